//! One request and its response on a connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::pool::Pool;
use crate::client::http::request_body::RequestBody;
use crate::client::http::response_headers;
use crate::client::http::transport::{HttpResponse, TransportError, TransportFault};

/// How many bytes the head of a response may have, and how many headers.
const HEAD_BYTES: usize = 64 * 1024;
const HEADERS: usize = 100;

/// The body of a request, in the pieces that it was rendered in.
pub(super) struct OutgoingBody(VecDeque<Bytes>);

impl OutgoingBody {
    pub(super) fn new(body: &RequestBody) -> Self {
        let pieces = body.pieces().iter().filter(|piece| !piece.is_empty());
        Self(pieces.cloned().collect())
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Why a request got no response.
pub(super) enum SendFailure {
    /// The connection was closed before any byte of the request was written.
    Unsent(Box<Request<OutgoingBody>>, TransportError),
    /// The connection ended later, or what came is not a response.
    Cut(TransportError),
}

fn cut(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TransportError {
    TransportError::new(TransportFault::Cut, source)
}

/// Sends a request and waits for the head of its response, which may come before all of the request
/// was sent.
pub(super) async fn send(
    stream: TcpStream,
    request: Request<OutgoingBody>,
    pool: &Arc<Pool>,
    authority: &str,
) -> Result<HttpResponse, SendFailure> {
    let handshake = Builder::new()
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .handshake(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = handshake.map_err(|error| SendFailure::Cut(cut(error)))?;
    let mut connection = DrivenConnection::new(connection);
    let sent = {
        let mut sent = pin!(sender.try_send_request(request));
        poll_fn(|cx| {
            let has_ended = connection.drive(cx).is_ready();
            match sent.as_mut().poll(cx) {
                Poll::Ready(sent) => Poll::Ready(Some(sent)),
                Poll::Pending if has_ended => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    };
    let response = match sent {
        Some(Ok(response)) => response,
        Some(Err(mut failed)) => {
            let request = failed.take_message();
            let error = cut(failed.into_error());
            // Bytes that came after the pool looked at the socket, before the request was written.
            if request.is_some() && !connection.connection.into_parts().read_buf.is_empty() {
                pool.report_unsolicited(authority);
            }
            return Err(match request {
                Some(request) => SendFailure::Unsent(Box::new(request), error),
                None => SendFailure::Cut(error),
            });
        }
        None => return Err(SendFailure::Cut(cut("it was closed"))),
    };
    check_head(&response).map_err(|problem| SendFailure::Cut(cut(problem)))?;
    let (head, body) = response.into_parts();
    // A response with both can be read in two ways, so it is the last one of its connection.
    let is_ambiguous =
        head.headers.contains_key(TRANSFER_ENCODING) && head.headers.contains_key(CONTENT_LENGTH);
    Ok(HttpResponse {
        status: head.status.as_u16(),
        headers: response_headers(&head.headers),
        body: Box::pin(ResponseBody {
            body,
            exchange: Some((sender, connection)),
            pool: Arc::clone(pool),
            authority: authority.to_owned(),
            may_reuse: !is_ambiguous,
        }),
    })
}

/// Refuses responses that hyper accepts and that no request here allows.
fn check_head(response: &Response<Incoming>) -> Result<(), &'static str> {
    // hyper reads at most one buffer more than its limit before it looks at the length.
    let headers = response.headers().iter();
    let length: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    if length > HEAD_BYTES {
        return Err("the head of the response is too long");
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err("the service switches to a protocol that was not asked for");
    }
    let mut codings = response.headers().get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        (Some(_), _) => Err("the response has a transfer coding that was not asked for"),
    }
}

/// A connection that is driven by the task that waits for its response.
struct DrivenConnection {
    connection: Connection<TokioIo<TcpStream>, OutgoingBody>,
    has_ended: bool,
}

impl DrivenConnection {
    fn new(connection: Connection<TokioIo<TcpStream>, OutgoingBody>) -> Self {
        Self {
            connection,
            has_ended: false,
        }
    }

    /// Reads and writes what can be read and written; ready once the connection has ended. The
    /// reason for that is an error of the response or of its body.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.has_ended {
            self.has_ended = Pin::new(&mut self.connection).poll(cx).is_ready();
        }
        match self.has_ended {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

/// The body of a response. Dropping it before its end closes the connection.
struct ResponseBody {
    body: Incoming,
    /// None after the end or an error.
    exchange: Option<(SendRequest<OutgoingBody>, DrivenConnection)>,
    pool: Arc<Pool>,
    authority: String,
    may_reuse: bool,
}

impl ResponseBody {
    /// Returns the connection to the pool if it can take another request.
    fn finish(&mut self, cx: &mut Context<'_>) {
        let Some((sender, mut connection)) = self.exchange.take() else {
            return;
        };
        let is_idle = connection.drive(cx).is_pending() && sender.is_ready();
        let parts = connection.connection.into_parts();
        if !parts.read_buf.is_empty() {
            self.pool.report_unsolicited(&self.authority);
        } else if is_idle && self.may_reuse {
            self.pool.put(&self.authority, parts.io.into_inner());
        }
    }
}

impl Stream for ResponseBody {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut was_driven = false;
        while let Some((_, connection)) = &mut this.exchange {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Clients use no trailers.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    this.exchange = None;
                    return Poll::Ready(Some(Err(cut(error))));
                }
                Poll::Ready(None) => this.finish(cx),
                Poll::Pending if was_driven => return Poll::Pending,
                Poll::Pending => {
                    let _ = connection.drive(cx);
                    was_driven = true;
                }
            }
        }
        Poll::Ready(None)
    }
}
