//! Reads response bodies: with a timeout, up to a size limit, and to the announced end.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt};

use super::transport::{Body, HttpResponse};
use crate::client::{ClientError, ErrorKind, TimeoutPhase};

/// The value of the header `content-length`.
fn content_length(response: &HttpResponse) -> Option<u64> {
    response.header("content-length")?.trim().parse().ok()
}

/// Reads the body of one response.
pub(in crate::client) struct BodyReader {
    body: Body,
    upstream: String,
    idle: Option<Duration>,
    announced: Option<u64>,
    seen: u64,
    limit: u64,
    /// Whether the body has ended or failed.
    ended: bool,
}

/// How long to wait for the end of a body after the end of the answer.
const LINGER: Duration = Duration::from_millis(100);
/// How many bytes may follow the end of an answer.
const TRAILING: usize = 64 * 1024;

impl BodyReader {
    pub(in crate::client) fn new(
        response: HttpResponse,
        upstream: &str,
        idle: Option<Duration>,
        limit: u64,
    ) -> Self {
        Self {
            announced: content_length(&response),
            body: response.body,
            upstream: upstream.to_owned(),
            idle,
            seen: 0,
            limit,
            ended: false,
        }
    }

    /// The next piece; `None` at the announced end of the body.
    pub(in crate::client) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let piece = match self.idle {
            None => self.body.next().await,
            Some(wait) => match tokio::time::timeout(wait, self.body.next()).await {
                Ok(piece) => piece,
                Err(_) => {
                    let kind = ErrorKind::Timeout(TimeoutPhase::Idle);
                    return Err(self.error(kind, "nothing more came for too long"));
                }
            },
        };
        self.ended = !matches!(piece, Some(Ok(_)));
        let Some(piece) = piece else {
            return match self.announced {
                Some(length) if length != self.seen => Err(self.error(
                    ErrorKind::Cut,
                    format!("the body ended after {} of {length} bytes", self.seen),
                )),
                _ => Ok(None),
            };
        };
        let piece = piece.map_err(|error| {
            self.error(error.kind(), "the answer broke off")
                .with_source(error)
        })?;
        self.seen += piece.len() as u64;
        if self.seen > self.limit {
            let text = format!("the body is larger than {} bytes", self.limit);
            return Err(self.error(ErrorKind::TooLarge, text));
        }
        Ok(Some(piece))
    }

    /// Reads the whole body.
    pub(in crate::client) async fn whole(&mut self) -> Result<Bytes, ClientError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// Reads what has already arrived after the end of an answer, so that its connection can be
    /// reused. Does not wait.
    pub(in crate::client) fn settle(&mut self) {
        while !self.ended
            && let Some(piece) = self.body.next().now_or_never()
        {
            self.ended = !matches!(piece, Some(Ok(_)));
        }
    }

    /// Like [`settle`](Self::settle), but waits a moment for the end of the body, which usually
    /// follows directly.
    pub(in crate::client) async fn linger(&mut self) {
        let rest = async {
            let mut left = TRAILING;
            while !self.ended {
                match self.body.next().await {
                    Some(Ok(piece)) if piece.len() <= left => left -= piece.len(),
                    Some(Ok(_) | Err(_)) | None => self.ended = true,
                }
            }
        };
        // If the service keeps the body open, its connection is not reused.
        let _ = tokio::time::timeout(LINGER, rest).await;
    }

    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> ClientError {
        ClientError::new(kind, &self.upstream, message)
    }
}
