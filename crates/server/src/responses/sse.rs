//! Event streams: frames in one chunk each, comments while nothing happens, and the mark of the end.
//! A stream whose end is not known ends with an error event and without that mark.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use futures_util::Stream;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;

use super::wire::DONE;
use crate::runs::Delivery;

const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Frames that are ready, or the last event of a stream that breaks off.
pub(crate) type Batch = Result<Vec<Bytes>, Bytes>;

/// An event stream of frames that come in batches.
pub(crate) fn events(
    batches: impl Stream<Item = Batch> + Send + 'static,
    keep_alive: Duration,
    (place, delivery): (OwnedSemaphorePermit, Delivery),
) -> Response<Body> {
    let told = Told {
        batches: batches.boxed(),
        ready: Vec::new().into_iter(),
        keep_alive,
        end: None,
        delivery,
        _place: place,
    };
    let chunks = stream::unfold(told, |mut told| async move {
        let chunk = told.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), told))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    // Proxies that gather what they pass on would hold up the words.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

struct Told {
    batches: BoxStream<'static, Batch>,
    ready: std::vec::IntoIter<Bytes>,
    keep_alive: Duration,
    end: Option<End>,
    delivery: Delivery,
    _place: OwnedSemaphorePermit,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    BrokenOff,
}

impl Told {
    /// The next chunk: one frame, a comment, or the mark of the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.next() {
                return Some(frame);
            }
            match self.end {
                Some(End::Whole) => {
                    // What came before was taken by the connection.
                    self.delivery.done();
                    return None;
                }
                Some(End::BrokenOff) => return None,
                None => {}
            }
            match tokio::time::timeout(self.keep_alive, self.batches.next()).await {
                Err(_) => return Some(KEEP_ALIVE),
                Ok(Some(Ok(frames))) => self.ready = frames.into_iter(),
                Ok(Some(Err(last))) => {
                    self.end = Some(End::BrokenOff);
                    return Some(last);
                }
                Ok(None) => {
                    self.end = Some(End::Whole);
                    return Some(Bytes::from_static(DONE));
                }
            }
        }
    }
}
