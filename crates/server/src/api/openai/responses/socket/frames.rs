//! The events of a response as messages: what an event stream has between `data: ` and a blank line.

use std::str::Utf8Error;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::ws::Utf8Bytes;
use futures_util::StreamExt as _;

use crate::api::openai::responses::wire::DONE;

const DATA: &[u8] = b"data: ";
const END: &[u8] = b"\n\n";

/// What comes next.
pub(super) enum NextMessage {
    Event(EventMessage),
    /// Nothing has happened for a while.
    KeepAlive,
}

/// An event, ready to be sent.
pub(super) struct EventMessage {
    pub(super) text: Utf8Bytes,
    /// Whether it says that the response failed.
    pub(super) is_failure: bool,
    /// Whether it is the last event.
    pub(super) is_last: bool,
}

/// Reads the events of a streamed answer.
pub(super) struct EventMessages {
    chunks: BodyDataStream,
    /// A frame that came in part: long ones do.
    begun: Vec<u8>,
    is_whole: bool,
}

impl EventMessages {
    pub(super) fn new(body: Body) -> Self {
        Self {
            chunks: body.into_data_stream(),
            begun: Vec::new(),
            is_whole: false,
        }
    }

    /// Whether all events were read.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The next event. `None`: all events were read, or the stream broke off.
    pub(super) async fn next(&mut self) -> Option<NextMessage> {
        loop {
            let chunk = self.chunks.next().await?.ok()?;
            let frame = match (self.begun.is_empty(), chunk.ends_with(END)) {
                (true, true) => chunk,
                (_, is_end) => {
                    self.begun.extend_from_slice(&chunk);
                    if !is_end {
                        continue;
                    }
                    Bytes::from(std::mem::take(&mut self.begun))
                }
            };
            if frame == DONE {
                self.is_whole = true;
                return None;
            }
            return match event(&frame) {
                Some(event) => event.ok().map(NextMessage::Event),
                None => Some(NextMessage::KeepAlive),
            };
        }
    }
}

/// The event of a frame; `None` for a comment.
fn event(frame: &Bytes) -> Option<Result<EventMessage, Utf8Error>> {
    let start = frame.windows(DATA.len()).position(|bytes| bytes == DATA)?;
    let head = &frame[..start];
    let is = |name: &[u8]| head == [b"event: ", name, b"\n"].concat();
    let is_failure = is(b"response.failed") || is(b"error");
    let is_last = is_failure || is(b"response.completed") || is(b"response.incomplete");
    let data = frame.slice(start + DATA.len()..frame.len() - END.len());
    Some(Utf8Bytes::try_from(data).map(|text| EventMessage {
        text,
        is_failure,
        is_last,
    }))
}

/// An event that names its stream.
pub(super) fn with_stream_id(event: &str, stream_id: &str) -> String {
    let mut named = String::with_capacity(event.len() + stream_id.len() + 20);
    named.push_str("{\"stream_id\":");
    throughline_model::json::push_string(&mut named, stream_id);
    named.push(',');
    named.push_str(event.strip_prefix('{').unwrap_or(event));
    named
}
