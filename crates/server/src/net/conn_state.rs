//! Connection state: whether a client reset its connection, stopped reading, or disconnected.
//!
//! An answer that was written is not an answer that was read: the system takes it long before the
//! client does. A client that goes away with unread data resets the connection; retries need to know
//! that, because they are given the same answer again.
//!
//! Whether a client is still there while it waits is looked for here too. `hyper` would do it by
//! reading, for which it keeps a buffer of eight kilobytes for every stream that is open; a look at
//! the socket needs none.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use throughline::client::MemoryBudget;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is known of a connection, shared with the deliveries that went over it.
#[derive(Debug, Default)]
pub(crate) struct ConnState {
    requests: AtomicU64,
    broken: AtomicBool,
    closed: AtomicBool,
    /// What it is a connection by, for as long as it is one.
    socket: OnceLock<Weak<Mutex<Socket>>>,
}

impl ConnState {
    /// Ask the system whether the client has broken it off. The thread that it is on may be busy, and
    /// hear of that much later.
    fn look(&self) {
        let Some(socket) = self.socket.get().and_then(Weak::upgrade) else {
            return;
        };
        // Stored under the lock: the kernel reports the error once.
        let socket = lock(&socket);
        if socket.is_broken() {
            self.broken.store(true, Ordering::Release);
        }
    }

    /// One more request has come, which takes everything before it as read.
    pub(super) fn next(self: &Arc<Self>) -> DeliveryProbe {
        DeliveryProbe {
            number: self.requests.fetch_add(1, Ordering::AcqRel) + 1,
            link: Arc::clone(self),
        }
    }
}

/// Tells whether the answer of one request was delivered.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryProbe {
    link: Arc<ConnState>,
    number: u64,
}

/// Whether the client has read an answer that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryOutcome {
    Unknown,
    Read,
    Broken,
}

/// How long nothing can be written to a connection before it is closed when memory is scarce.
const SCARCE: Duration = Duration::from_secs(1);

/// How long to wait for the outcome of an answer, and how often to look.
const LOOKS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(2);

impl DeliveryProbe {
    fn outcome(&self) -> DeliveryOutcome {
        let ConnState {
            requests,
            broken,
            closed,
            ..
        } = &*self.link;
        // A client that sends another request has read the answer before it.
        if requests.load(Ordering::Acquire) > self.number {
            return DeliveryOutcome::Read;
        }
        self.link.look();
        // In the order in which they are noted.
        let closed = closed.load(Ordering::Acquire);
        match (broken.load(Ordering::Acquire), closed) {
            (true, _) => DeliveryOutcome::Broken,
            (false, true) => DeliveryOutcome::Read,
            (false, false) => DeliveryOutcome::Unknown,
        }
    }

    /// Whether it is known by now that the client broke the connection off.
    pub(crate) fn is_known_broken(&self) -> bool {
        self.outcome() == DeliveryOutcome::Broken
    }

    /// Whether the client broke the connection off before it asked for anything else. One that has
    /// just gone away may not have been noticed yet, so an idle connection is watched for a
    /// moment.
    pub(crate) async fn is_broken(&self) -> bool {
        for _ in 0..LOOKS {
            match self.outcome() {
                DeliveryOutcome::Unknown => tokio::time::sleep(PAUSE).await,
                DeliveryOutcome::Read => return false,
                DeliveryOutcome::Broken => return true,
            }
        }
        false
    }
}

/// A TCP stream that records resets in its [`ConnState`]. The clone that is read and written, and the one that looks
/// whether the client is there, are in one task.
#[derive(Clone)]
pub(super) struct TrackedStream {
    socket: Arc<Mutex<Socket>>,
    link: Arc<ConnState>,
    /// A write is waiting for the client.
    stuck: Arc<Notify>,
    /// Each clone has one of these.
    clones: Arc<()>,
}

#[derive(Debug)]
struct Socket {
    stream: TokioIo<TcpStream>,
    /// Something is still to be written.
    is_full: bool,
    /// Since when nothing could be written.
    stuck: Option<Instant>,
}

impl Socket {
    /// Whether the client has broken it off. The system says so once.
    fn is_broken(&self) -> bool {
        !matches!(self.stream.inner().take_error(), Ok(None))
    }
}

fn lock(socket: &Mutex<Socket>) -> MutexGuard<'_, Socket> {
    socket.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TrackedStream {
    pub(super) fn new(stream: TcpStream, link: &Arc<ConnState>) -> Self {
        let socket = Arc::new(Mutex::new(Socket {
            stream: TokioIo::new(stream),
            is_full: false,
            stuck: None,
        }));
        // A link is one connection's, so nothing is there before.
        let _ = link.socket.set(Arc::downgrade(&socket));
        Self {
            socket,
            link: Arc::clone(link),
            stuck: Arc::default(),
            clones: Arc::default(),
        }
    }

    fn socket(&self) -> MutexGuard<'_, Socket> {
        lock(&self.socket)
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Socket) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let done = work(&mut self.socket());
        if let Poll::Ready(Err(_)) = &done {
            self.link.broken.store(true, Ordering::Release);
        }
        done
    }

    fn written<T>(
        &self,
        work: impl FnOnce(Pin<&mut TokioIo<TcpStream>>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.with(|socket| {
            let done = work(Pin::new(&mut socket.stream));
            socket.is_full = done.is_pending();
            match (socket.is_full, socket.stuck) {
                (true, None) => {
                    socket.stuck = Some(Instant::now());
                    self.stuck.notify_one();
                }
                (true, Some(_)) => {}
                (false, _) => socket.stuck = None,
            }
            done
        })
    }

    /// Wait until no write has made progress for `limit`, or for a second when memory is scarce.
    pub(super) async fn stalled(&self, limit: Duration, memory: &MemoryBudget) {
        let scarce = limit.min(SCARCE);
        loop {
            let Some(since) = self.socket().stuck else {
                self.stuck.notified().await;
                continue;
            };
            let allowed = match memory.is_scarce() {
                true => scarce,
                false => limit,
            };
            if since.elapsed() >= allowed {
                return;
            }
            tokio::time::sleep(scarce / 4).await;
        }
    }

    /// Wait until the client is gone: nothing is left to read, and nothing will come. One that only
    /// half-closed its side is not gone while an answer is being written. To be polled after the one
    /// that reads, which takes what there is.
    pub(super) async fn gone(&self) {
        poll_fn(|cx| {
            let mut space = [0];
            let mut space = ReadBuf::new(&mut space);
            let mut is_full = false;
            let peeked = self.with(|socket| {
                is_full = socket.is_full;
                socket.stream.inner().poll_peek(cx, &mut space)
            });
            match peeked {
                Poll::Ready(Ok(0)) if !is_full => Poll::Ready(()),
                Poll::Ready(Err(_)) => Poll::Ready(()),
                Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
            }
        })
        .await;
    }
}

impl Drop for TrackedStream {
    fn drop(&mut self) {
        // A reset by a client that half-closed first shows nowhere else.
        self.link.look();
        if Arc::strong_count(&self.clones) == 1 {
            self.link.closed.store(true, Ordering::Release);
        }
    }
}

impl Read for TrackedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.with(|socket| Pin::new(&mut socket.stream).poll_read(cx, into))
    }
}

impl Write for TrackedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|socket| Pin::new(&mut socket.stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|socket| Pin::new(&mut socket.stream).poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket().stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.written(|stream| stream.poll_write_vectored(cx, parts))
    }
}
