//! Event streams: frames in one chunk each, if they are not very long, comments while nothing happens, and the mark of the end.
//! A stream whose end is not known ends with an error event and without that mark.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Response;
use futures_util::Stream;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use throughline::client::Reservation;
use tokio::sync::OwnedSemaphorePermit;

use super::wire::DONE;
use crate::app::App;
use crate::net::event_stream;
use crate::service::{Delivery, Pieces, held_bytes};

const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Frames that are ready, or the last event of a stream that breaks off.
pub(crate) type Batch = Result<Vec<Pieces>, Bytes>;

/// An event stream of frames that come in batches.
pub(crate) fn events(
    batches: impl Stream<Item = Batch> + Send + 'static,
    app: &App,
    (place, delivery): (OwnedSemaphorePermit, Delivery),
) -> Response<Body> {
    let events_out = EventStream {
        batches: batches.boxed(),
        frames: Vec::new().into_iter(),
        pieces: VecDeque::new(),
        memory: app.memory.reservation(),
        keep_alive: app.config.limits.keep_alive,
        end: None,
        delivery,
        _place: place,
    };
    let chunks = stream::unfold(events_out, |mut events_out| async move {
        let chunk = events_out.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), events_out))
    });
    event_stream(Body::from_stream(chunks))
}

struct EventStream {
    batches: BoxStream<'static, Batch>,
    frames: std::vec::IntoIter<Pieces>,
    /// What is left of a frame.
    pieces: VecDeque<Bytes>,
    /// For the frames that are ready.
    memory: Reservation,
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

impl EventStream {
    /// The next chunk: one frame or a piece of a long one, a comment, or the mark of the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some(piece);
            }
            match self.frames.next() {
                Some(Pieces::One(frame)) => return Some(frame),
                Some(Pieces::Many(pieces)) => {
                    self.pieces = pieces.into();
                    continue;
                }
                None => self.memory.follow(0),
            }
            match self.end {
                Some(End::Whole) => {
                    // The connection has taken everything before.
                    self.delivery.written();
                    return None;
                }
                Some(End::BrokenOff) => return None,
                None => {}
            }
            match tokio::time::timeout(self.keep_alive, self.batches.next()).await {
                Err(_) => return Some(KEEP_ALIVE),
                Ok(Some(Ok(frames))) => {
                    self.memory.follow(held_bytes(&frames));
                    self.frames = frames.into_iter();
                }
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
