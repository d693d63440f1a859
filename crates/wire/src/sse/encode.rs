//! Frames to text.

use std::fmt::Write;

use super::{Frame, SseError};

/// The frame that ends OpenAI-style streams.
pub const DONE: &str = "data: [DONE]\n\n";

/// A frame to be written, borrowed from wherever its text lies.
///
/// ```
/// use throughline_wire::sse::{FrameRef, encode};
///
/// let frame = FrameRef::new("{}").with_event("ping");
/// assert_eq!(encode(frame)?, "event: ping\ndata: {}\n\n");
/// # Ok::<(), throughline_wire::sse::SseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameRef<'a> {
    /// The event's name; an empty one is left out, since the grammar reads it as none.
    pub event: Option<&'a str>,
    /// The data, of any number of lines.
    pub data: &'a str,
    /// The event's id.
    pub id: Option<&'a str>,
    /// The reconnection time in milliseconds.
    pub retry: Option<u64>,
}

impl<'a> FrameRef<'a> {
    /// Makes a frame that has data only.
    #[must_use]
    pub const fn new(data: &'a str) -> Self {
        Self {
            event: None,
            data,
            id: None,
            retry: None,
        }
    }

    /// Names the event.
    #[must_use]
    pub const fn with_event(mut self, event: &'a str) -> Self {
        self.event = Some(event);
        self
    }

    /// Gives the event an id.
    #[must_use]
    pub const fn with_id(mut self, id: &'a str) -> Self {
        self.id = Some(id);
        self
    }
}

impl<'a> From<&'a Frame> for FrameRef<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            event: frame.event.as_deref(),
            data: &frame.data,
            id: frame.id.as_deref(),
            retry: frame.retry,
        }
    }
}

/// Appends one whole frame to `out`; on error `out` is as it was.
///
/// Data of several lines becomes several data lines. The format has no way to say which line end it was: CR, LF
/// and CRLF in the data all arrive as LF. Everything else decodes to the frame that was written.
///
/// ```
/// use throughline_wire::sse::{FrameRef, write_frame};
///
/// let mut out = String::new();
/// write_frame(&mut out, FrameRef::new("one\ntwo"))?;
/// assert_eq!(out, "data: one\ndata: two\n\n");
/// # Ok::<(), throughline_wire::sse::SseError>(())
/// ```
///
/// # Errors
///
/// [`SseError::Unwritable`] when the name holds a line break, or the id a line break or a NUL, which makes
/// readers ignore it.
pub fn write_frame<'a>(out: &mut String, frame: impl Into<FrameRef<'a>>) -> Result<(), SseError> {
    let frame = frame.into();
    let event = frame.event.filter(|event| !event.is_empty());
    check("event", event, &['\r', '\n'])?;
    check("id", frame.id, &['\r', '\n', '\0'])?;
    // Room for the usual frame of one data line, so that `out` grows at most once.
    let text = frame.data.len() + event.map_or(0, str::len) + frame.id.map_or(0, str::len);
    out.reserve(text + "event: \nid: \ndata: \n\n".len());
    if let Some(event) = event {
        write_lines(out, "event: ", event);
    }
    if let Some(id) = frame.id {
        write_lines(out, "id: ", id);
    }
    if let Some(retry) = frame.retry {
        writeln!(out, "retry: {retry}").expect("writing to a string cannot fail");
    }
    write_lines(out, "data: ", frame.data);
    out.push('\n');
    Ok(())
}

/// Writes one whole frame to a new string.
///
/// # Errors
///
/// As [`write_frame`].
pub fn encode<'a>(frame: impl Into<FrameRef<'a>>) -> Result<String, SseError> {
    let mut out = String::new();
    write_frame(&mut out, frame)?;
    Ok(out)
}

/// Appends a comment, which readers skip: it keeps an idle connection open.
///
/// ```
/// let mut out = String::new();
/// throughline_wire::sse::write_comment(&mut out, "keep-alive");
/// assert_eq!(out, ": keep-alive\n\n");
/// ```
pub fn write_comment(out: &mut String, text: &str) {
    write_lines(out, ": ", text);
    // Readers that merely split at blank lines would otherwise take the comment for the start of the next frame.
    out.push('\n');
}

fn check(field: &'static str, value: Option<&str>, refused: &[char]) -> Result<(), SseError> {
    match value {
        Some(value) if value.contains(refused) => Err(SseError::Unwritable {
            field,
            value: value.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Writes each line of `text` behind `prefix`. The space in the prefix matters: a reader takes one space away, so
/// without ours it would take the text's own.
fn write_lines(out: &mut String, prefix: &str, text: &str) {
    let mut rest = text;
    loop {
        let end = rest.find(['\r', '\n']);
        out.push_str(prefix);
        out.push_str(&rest[..end.unwrap_or(rest.len())]);
        out.push('\n');
        let Some(end) = end else { return };
        let width = if rest[end..].starts_with("\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + width..];
    }
}
