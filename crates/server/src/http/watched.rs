//! Connections that say whether their clients broke them off.
//!
//! An answer that was written is not an answer that was read: the system takes it long before the
//! client does. A client that goes away with something unread resets the connection, and whoever
//! keeps answers for those who ask again wants to know.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What is known of a connection.
#[derive(Debug, Default)]
pub(crate) struct Link {
    requests: AtomicU64,
    broken: AtomicBool,
    closed: AtomicBool,
}

impl Link {
    /// One more request has come, which takes everything before it as read.
    pub(super) fn next(self: &Arc<Self>) -> Way {
        Way {
            number: self.requests.fetch_add(1, Ordering::AcqRel) + 1,
            link: Arc::clone(self),
        }
    }
}

/// The way back to the client of one request.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    link: Arc<Link>,
    number: u64,
}

/// What became of an answer that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Unknown,
    Read,
    Broken,
}

/// How long to wait for the fate of an answer, and how often to look.
const LOOKS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(2);

impl Way {
    fn fate(&self) -> Fate {
        let Link {
            requests,
            broken,
            closed,
        } = &*self.link;
        // Whoever asks for something else has read what came before.
        if requests.load(Ordering::Acquire) > self.number {
            return Fate::Read;
        }
        // In the order in which they are noted.
        let closed = closed.load(Ordering::Acquire);
        match (broken.load(Ordering::Acquire), closed) {
            (true, _) => Fate::Broken,
            (false, true) => Fate::Read,
            (false, false) => Fate::Unknown,
        }
    }

    /// Whether the client broke the connection off before it asked for anything else. One that has
    /// just gone away may not have been noticed yet, so a connection that is idle is watched for a
    /// moment.
    pub(crate) async fn is_broken(&self) -> bool {
        for _ in 0..LOOKS {
            match self.fate() {
                Fate::Unknown => tokio::time::sleep(PAUSE).await,
                Fate::Read => return false,
                Fate::Broken => return true,
            }
        }
        false
    }
}

/// A connection whose breaks are noted.
pub(super) struct Watched {
    pub(super) stream: TokioIo<TcpStream>,
    pub(super) link: Arc<Link>,
}

impl Watched {
    fn seen<T>(&self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(_)) = &done {
            self.link.broken.store(true, Ordering::Release);
        }
        done
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A client that closed first and was sent more is not heard of in any other way.
        if !matches!(self.stream.inner().take_error(), Ok(None)) {
            self.link.broken.store(true, Ordering::Release);
        }
        self.link.closed.store(true, Ordering::Release);
    }
}

impl Read for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(cx, into);
        self.seen(done)
    }
}

impl Write for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.seen(done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        self.seen(done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.seen(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.seen(done)
    }
}
