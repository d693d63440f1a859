//! One request and its answer on a connection.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::answer::{self, AnswerHead};
use super::frames::{Frames, Framing, Step};
use super::pool::Pool;
use super::target::Target;
use crate::client::http::pieces::RequestBody;
use crate::client::http::transport::{TransportError, TransportFault};

/// What is still to be sent of a request.
#[derive(Clone)]
pub(super) struct Outgoing(VecDeque<Bytes>);

impl Outgoing {
    pub(super) fn new(head: Bytes, body: &RequestBody) -> Self {
        let pieces = body.pieces().iter().filter(|piece| !piece.is_empty());
        Self([head].into_iter().chain(pieces.cloned()).collect())
    }

    /// So many bytes are gone.
    fn advance(&mut self, mut count: usize) {
        while let Some(piece) = self.0.front_mut() {
            if count < piece.len() {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            self.0.pop_front();
        }
    }
}

/// Why there is no answer.
pub(super) enum Lost {
    /// The connection was closed before anything was sent.
    Unsent,
    /// It ended, or what came is no answer.
    Cut(TransportError),
}

/// A connection with a request on it.
pub(super) struct Exchange {
    stream: TcpStream,
    outgoing: Outgoing,
    /// What was read and not used. Empty, it holds no memory.
    read: BytesMut,
    /// Something was sent.
    is_begun: bool,
    /// Why nothing more can be sent. What was answered before may still be there to read.
    refused: Option<io::Error>,
}

/// How many pieces are sent at once.
const PIECES: usize = 16;
/// How much is read at once.
const READ: usize = 16 * 1024;

fn cut(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
    TransportError::new(TransportFault::Cut, source)
}

impl Exchange {
    pub(super) fn new(stream: TcpStream, outgoing: Outgoing) -> Self {
        Self {
            stream,
            outgoing,
            read: BytesMut::new(),
            is_begun: false,
            refused: None,
        }
    }

    /// Send the request, and read the head of its answer: a service may refuse a request before it
    /// has read all of it.
    pub(super) async fn head(&mut self) -> Result<AnswerHead, Lost> {
        poll_fn(|cx| {
            self.send(cx);
            if self.refused.is_some() && !self.is_begun {
                return Poll::Ready(Err(Lost::Unsent));
            }
            loop {
                match ready!(self.fill(cx)) {
                    Ok(0) => return Poll::Ready(Err(Lost::Cut(self.closed()))),
                    Ok(_) => {}
                    Err(error) => return Poll::Ready(Err(Lost::Cut(cut(error)))),
                }
                match answer::read(&mut self.read) {
                    Ok(None) => {}
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Err(broken) => return Poll::Ready(Err(Lost::Cut(cut(broken)))),
                }
            }
        })
        .await
    }

    /// Send what can be sent now.
    fn send(&mut self, cx: &mut Context<'_>) {
        while !self.outgoing.0.is_empty() && self.refused.is_none() {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let pieces = self.outgoing.0.iter().take(PIECES);
            for (slice, piece) in slices.iter_mut().zip(pieces) {
                *slice = IoSlice::new(piece);
            }
            let count = self.outgoing.0.len().min(PIECES);
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write_vectored(cx, &slices[..count]) {
                Poll::Pending => return,
                Poll::Ready(Ok(sent)) if sent > 0 => {
                    self.is_begun = true;
                    self.outgoing.advance(sent);
                }
                Poll::Ready(Ok(_)) => self.refused = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Err(error)) => self.refused = Some(error),
            }
        }
    }

    /// Read what has come; no bytes when the connection has ended.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack, so that whoever waits holds nothing.
        let mut space = [const { MaybeUninit::uninit() }; READ];
        let mut space = ReadBuf::uninit(&mut space);
        match Pin::new(&mut self.stream).poll_read(cx, &mut space) {
            Poll::Ready(read) => read?,
            // Nobody answers what cannot be sent.
            Poll::Pending => match self.refused.take() {
                Some(error) => return Poll::Ready(Err(error)),
                None => return Poll::Pending,
            },
        }
        let filled = space.filled();
        // As much memory as there is to keep: a buffer that grows remembers how large it once was.
        let mut read = BytesMut::with_capacity(self.read.len() + filled.len());
        read.extend_from_slice(&self.read);
        read.extend_from_slice(filled);
        self.read = read;
        Poll::Ready(Ok(filled.len()))
    }

    /// Whether nothing of this request and its answer is left.
    fn is_over(&self) -> bool {
        self.outgoing.0.is_empty() && self.read.is_empty() && self.refused.is_none()
    }

    /// The connection has ended.
    fn closed(&mut self) -> TransportError {
        match self.refused.take() {
            Some(error) => cut(error),
            None => cut("it was closed"),
        }
    }
}

/// The body of an answer. Dropped before its end, it closes the connection.
pub(super) struct Answer {
    exchange: Option<Exchange>,
    frames: Frames,
    /// Where the connection goes at the end.
    kept: Option<(Arc<Pool>, Arc<Target>)>,
}

impl Answer {
    pub(super) fn new(
        exchange: Exchange,
        framing: Framing,
        kept: Option<(Arc<Pool>, Arc<Target>)>,
    ) -> Self {
        Self {
            exchange: Some(exchange),
            frames: Frames::new(framing),
            kept,
        }
    }

    /// The body is complete.
    fn end(&mut self) {
        if let (Some(exchange), Some((pool, target))) = (self.exchange.take(), self.kept.take())
            && exchange.is_over()
        {
            pool.keep(&target, exchange.stream);
        }
    }

    /// The body breaks off.
    fn broken(&mut self, error: TransportError) -> Poll<Option<Result<Bytes, TransportError>>> {
        self.exchange = None;
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for Answer {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = &mut *self;
        loop {
            let Some(exchange) = &mut answer.exchange else {
                return Poll::Ready(None);
            };
            match answer.frames.next(&mut exchange.read) {
                Ok(Step::Piece(piece)) => return Poll::Ready(Some(Ok(piece))),
                Ok(Step::End) => {
                    answer.end();
                    return Poll::Ready(None);
                }
                Ok(Step::More) => {}
                Err(error) => return answer.broken(cut(error)),
            }
            exchange.send(cx);
            match ready!(exchange.fill(cx)) {
                // Sending takes the news of a reset, which would have been read otherwise.
                Ok(0) if answer.frames.may_end() && exchange.refused.is_none() => {
                    answer.exchange = None;
                }
                Ok(0) => {
                    let error = exchange.closed();
                    return answer.broken(error);
                }
                Ok(_) => {}
                Err(error) => return answer.broken(cut(error)),
            }
        }
    }
}
