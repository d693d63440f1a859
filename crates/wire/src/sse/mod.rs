//! Server-sent events, both ways.
//!
//! [`Decoder`] turns the bytes of an event stream, cut anywhere, into [`Frame`]s; [`write_frame`] turns frames
//! into an event stream. Both follow the WHATWG event-stream grammar. Time is linear in the bytes pushed and
//! memory is bounded by [`Limits`].
//!
//! Two things differ from a browser on purpose:
//!
//! - Text that is not UTF-8 is an error that names the byte, not U+FFFD: what a vendor sent is never altered
//!   silently. Only values that are kept are checked, so a broken comment does no harm.
//! - An event cut off by the end of input is not dropped but handed out as [`End::Unterminated`], because some
//!   vendors leave out the last blank line. The caller decides.
//!
//! Nothing here reconnects, so no last event id is remembered from frame to frame; [`Frame::id`] is the one the
//! frame itself had. An event without data is not dispatched, and its id and retry time go with it.
//!
//! ```
//! use throughline_wire::sse::{Decoder, End, Frame, Limits};
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut frames = Vec::new();
//! for chunk in [&b"event: greet\r"[..], b"\nda", b"ta: hello\r\n\r\ndata: [DONE]\n\n"] {
//!     decoder.push(chunk);
//!     while let Some(frame) = decoder.next_frame()? {
//!         frames.push(frame);
//!     }
//! }
//! assert_eq!(decoder.finish()?, End::Complete);
//! assert_eq!(frames[0], Frame { event: Some("greet".into()), data: "hello".into(), ..Frame::default() });
//! assert!(frames[1].is_done());
//! # Ok::<(), throughline_wire::sse::SseError>(())
//! ```

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use decode::{Decoder, End, Limits};
pub use encode::{DONE, FrameRef, encode, write_comment, write_frame};

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The event's name. An empty name means the same as none in the grammar and is read as none.
    pub event: Option<String>,
    /// The data lines, joined with a line feed.
    pub data: String,
    /// The id that this frame carried; an empty id is a value of its own (it resets the client's).
    pub id: Option<String>,
    /// The reconnection time in milliseconds that this frame carried.
    pub retry: Option<u64>,
}

impl Frame {
    /// Whether this is the `[DONE]` frame that ends OpenAI-style streams.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.data == "[DONE]"
    }
}

/// Why an event stream could not be read, or a frame not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line is longer than [`Limits::line_bytes`].
    #[error(
        "event-stream line passes {limit} bytes at byte {offset}; raise the line limit or send smaller events"
    )]
    LineTooLong {
        /// The limit in force.
        limit: usize,
        /// Where in the stream the first byte beyond the limit is.
        offset: u64,
    },
    /// An event holds more than [`Limits::event_bytes`].
    #[error(
        "event passes {limit} bytes in the line at byte {offset}; raise the event limit or send smaller events"
    )]
    EventTooLarge {
        /// The limit in force.
        limit: usize,
        /// Where in the stream the line begins that was too much.
        offset: u64,
    },
    /// A value is not UTF-8.
    #[error(
        "event stream is not utf-8 at byte {offset}; send text as utf-8 and binary data as base64"
    )]
    InvalidUtf8 {
        /// Where in the stream the first offending byte is.
        offset: u64,
    },
    /// A name or id to be written holds a character that would end its line or make readers skip it.
    #[error(
        "{field} {value:?} cannot be written to an event stream; remove line breaks and nul characters"
    )]
    Unwritable {
        /// Which field: `event` or `id`.
        field: &'static str,
        /// The value as given.
        value: String,
    },
}
