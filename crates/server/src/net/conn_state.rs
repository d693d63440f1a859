//! Connection state: whether a client reset its connection, stopped reading, or disconnected.
//!
//! An answer that was written is not an answer that was read: the system takes it long before the
//! client does. A client that goes away with unread data resets the connection; retries need to know
//! that, because they are given the same answer again.
//!
//! Whether a waiting client is still connected is checked here too, by peeking at the socket. hyper
//! would do it by reading, with a buffer of eight kilobytes for every open stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use throughline::client::MemoryBudget;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long nothing can be written to a connection before it is closed when memory is scarce.
const SCARCE: Duration = Duration::from_secs(1);

/// How long to wait until it is known whether an answer was read.
const UNKNOWN: Duration = Duration::from_millis(50);

/// What is known of a connection, shared with the deliveries that went over it.
#[derive(Debug, Default)]
pub(crate) struct ConnState {
    progress: watch::Sender<Progress>,
    /// How often everything that the connection had to write was written.
    flushes: AtomicU64,
    stream: OnceLock<Weak<SharedStream>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The number of requests so far.
    requests: u64,
    end: Option<End>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    /// The client reset it.
    Broken,
}

impl ConnState {
    /// One more request has come.
    pub(super) fn next(self: &Arc<Self>) -> DeliveryProbe {
        let mut number = 0;
        self.progress.send_modify(|progress| {
            progress.requests += 1;
            number = progress.requests;
        });
        DeliveryProbe {
            conn: Arc::clone(self),
            number,
            flushes_at_end: Arc::default(),
        }
    }

    fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::SeqCst)
    }

    fn end(&self, end: End) {
        self.progress.send_modify(|progress| {
            progress.end.get_or_insert(end);
        });
    }
}

/// Tells whether the answer of one request was delivered.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryProbe {
    conn: Arc<ConnState>,
    number: u64,
    /// How often the connection had written everything when it took the end of the answer.
    flushes_at_end: Arc<OnceLock<u64>>,
}

impl DeliveryProbe {
    /// The connection has taken the end of the answer. It is yet to write it.
    pub(crate) fn answer_ends(&self) {
        // An answer ends once.
        let _ = self.flushes_at_end.set(self.conn.flushes());
    }

    /// Whether the connection has written all of the answer.
    pub(crate) fn is_sent(&self) -> bool {
        let at_end = self.flushes_at_end.get();
        at_end.is_some_and(|at_end| self.conn.flushes() > *at_end)
    }

    /// Whether the client broke the connection off before it read the answer, if that is known.
    fn outcome(&self, progress: &Progress) -> Option<bool> {
        // A client that sends another request has read the answer before it.
        if progress.requests > self.number {
            return Some(false);
        }
        progress
            .end
            .map(|end| end == End::Broken || !self.is_sent())
    }

    /// Whether it is known by now that the client broke the connection off.
    pub(crate) fn is_known_broken(&self) -> bool {
        // The thread of the connection may be busy, and see the reset much later.
        let stream = self.conn.stream.get().and_then(Weak::upgrade);
        if let Some(stream) = stream {
            stream.check_error();
        }
        self.outcome(&self.conn.progress.borrow()) == Some(true)
    }

    /// Whether the client broke the connection off before it asked for anything else, or is still to be
    /// sent a part of the answer. The reset of a client that has just gone away may not have arrived
    /// yet, so an idle connection is watched for a moment.
    pub(crate) async fn is_broken(&self) -> bool {
        if self.is_known_broken() {
            return true;
        }
        let mut progress = self.conn.progress.subscribe();
        let known = progress.wait_for(|progress| self.outcome(progress).is_some());
        match tokio::time::timeout(UNKNOWN, known).await {
            Ok(Ok(progress)) => self.outcome(&progress) == Some(true),
            Ok(Err(_)) | Err(_) => !self.is_sent(),
        }
    }
}

/// A TCP stream that records resets in its [`ConnState`]. The clone that is read and written, and the one that looks
/// whether the client is there, are in one task.
#[derive(Clone)]
pub(super) struct TrackedStream(Arc<SharedStream>);

#[derive(Debug)]
struct SharedStream {
    socket: Mutex<Socket>,
    /// Notified when a write has to wait for the client.
    stuck: Notify,
    conn: Arc<ConnState>,
}

#[derive(Debug)]
struct Socket {
    stream: TokioIo<TcpStream>,
    /// Something is still to be written.
    is_full: bool,
    /// Since when nothing could be written.
    stuck: Option<Instant>,
}

impl SharedStream {
    fn socket(&self) -> MutexGuard<'_, Socket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Record a reset that no read or write has seen.
    fn check_error(&self) {
        // Recorded under the lock: the kernel reports the error once.
        let socket = self.socket();
        if !matches!(socket.stream.inner().take_error(), Ok(None)) {
            self.conn.end(End::Broken);
        }
    }
}

impl Drop for SharedStream {
    fn drop(&mut self) {
        // A reset by a client that half-closed first shows nowhere else.
        self.check_error();
        self.conn.end(End::Closed);
    }
}

impl TrackedStream {
    pub(super) fn new(stream: TcpStream, conn: &Arc<ConnState>) -> Self {
        let shared = Arc::new(SharedStream {
            socket: Mutex::new(Socket {
                stream: TokioIo::new(stream),
                is_full: false,
                stuck: None,
            }),
            stuck: Notify::new(),
            conn: Arc::clone(conn),
        });
        // A connection has one stream, so nothing is there before.
        let _ = conn.stream.set(Arc::downgrade(&shared));
        Self(shared)
    }

    fn socket(&self) -> MutexGuard<'_, Socket> {
        self.0.socket()
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Socket) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let done = work(&mut self.socket());
        if let Poll::Ready(Err(_)) = &done {
            self.0.conn.end(End::Broken);
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
                    self.0.stuck.notify_one();
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
                self.0.stuck.notified().await;
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
        let flushed = self.with(|socket| Pin::new(&mut socket.stream).poll_flush(cx));
        if let Poll::Ready(Ok(())) = &flushed {
            // hyper flushes when it has written all that it has.
            self.0.conn.flushes.fetch_add(1, Ordering::SeqCst);
        }
        flushed
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    async fn connected() -> (TcpStream, TrackedStream, Arc<ConnState>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        let state = Arc::<ConnState>::default();
        let stream = TrackedStream::new(accepted.unwrap().0, &state);
        (client.unwrap(), stream, state)
    }

    async fn write(stream: &mut TrackedStream, bytes: &[u8]) {
        let written = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await;
        assert_eq!(written.unwrap(), bytes.len());
    }

    async fn flush(stream: &mut TrackedStream) {
        let flushed = poll_fn(|cx| Pin::new(&mut *stream).poll_flush(cx)).await;
        flushed.unwrap();
    }

    #[tokio::test]
    async fn an_answer_is_not_delivered_until_the_connection_has_written_it() {
        let (mut client, mut stream, state) = connected().await;
        let probe = state.next();
        // Earlier parts of the answer say nothing about its end.
        write(&mut stream, b"one ").await;
        flush(&mut stream).await;
        assert!(probe.is_broken().await, "it has not ended");
        probe.answer_ends();
        assert!(!probe.is_sent() && !probe.is_known_broken());
        assert!(probe.is_broken().await, "nothing was written since");
        write(&mut stream, b"two").await;
        flush(&mut stream).await;
        let mut read = [0; 7];
        client.read_exact(&mut read).await.unwrap();
        assert!(probe.is_sent() && !probe.is_broken().await);
    }

    #[tokio::test]
    async fn a_connection_that_ends_before_it_has_written_an_answer_has_not_delivered_it() {
        for sent in [false, true] {
            let (client, mut stream, state) = connected().await;
            let probe = state.next();
            probe.answer_ends();
            if sent {
                write(&mut stream, b"all").await;
                flush(&mut stream).await;
            }
            drop(stream);
            assert_eq!(probe.is_known_broken(), !sent);
            assert_eq!(probe.is_broken().await, !sent);
            drop(client);
        }
    }
}
