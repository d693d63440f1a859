//! Bytes to frames.

use std::collections::VecDeque;
use std::mem;
use std::str;

use super::{Frame, SseError};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A line buffer that grew past this is given back after its line, so that one huge event does not stay in memory
/// for the rest of a long stream.
const KEEP_BYTES: usize = 64 * 1024;

/// How much of a stream may be held in memory at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, without its line end. A byte order mark counts as part of the first line.
    pub line_bytes: usize,
    /// The largest event: data with its joining line feeds, name and id together.
    pub event_bytes: usize,
}

impl Default for Limits {
    /// 32 MiB each.
    fn default() -> Self {
        Self {
            line_bytes: 32 << 20,
            event_bytes: 32 << 20,
        }
    }
}

/// What the end of input found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No event with data was open.
    Complete,
    /// An event with data was open: its blank line is missing, and its last line may be cut anywhere.
    ///
    /// The grammar drops such an event. Whoever reads vendors that leave out the last blank line, or captured
    /// files, may use the frame if what it holds is whole by its own rules, such as valid JSON.
    Unterminated(Frame),
}

/// Reads an event stream from chunks that may be cut anywhere, even inside a character or a line end.
///
/// Push each chunk, then take frames until there are none. The frames and the error are the same however the
/// stream is cut. Frames wait inside until they are taken, and an error is reported after the frames before it;
/// from then on the decoder stays failed.
///
/// Beyond the frames that wait, it holds at most one line and one event, each within its limit.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// The part of the current line that earlier chunks brought. It was searched for line ends already and is
    /// never searched again, which is what keeps long lines linear.
    line: Vec<u8>,
    line_start: u64,
    offset: u64,
    after_cr: bool,
    open: OpenEvent,
    ready: VecDeque<Frame>,
    failed: Option<SseError>,
}

/// The event whose blank line has not come yet.
#[derive(Debug, Default)]
struct OpenEvent {
    event: Option<String>,
    /// `None` until the first data line: one empty data line is an event, no data line is not.
    data: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
}

impl Decoder {
    /// Makes a decoder at the start of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            line_start: 0,
            offset: 0,
            after_cr: false,
            open: OpenEvent::default(),
            ready: VecDeque::new(),
            failed: None,
        }
    }

    /// Reads the next bytes of the stream. Once the decoder has failed, they are ignored.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.read(chunk)
        {
            self.fail(error);
        }
    }

    /// Takes the next frame that is complete; `None` asks for more bytes.
    ///
    /// # Errors
    ///
    /// When the stream broke a limit or was not UTF-8, after all frames before that place, and on every later
    /// call again.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SseError> {
        match self.ready.pop_front() {
            Some(frame) => Ok(Some(frame)),
            None => self.failed.clone().map_or(Ok(None), Err),
        }
    }

    /// Ends the stream and says whether an event was left open. Frames not yet taken stay available.
    ///
    /// Afterwards the decoder is at the start of a new stream, unless it failed.
    ///
    /// ```
    /// use throughline_wire::sse::{Decoder, End, Frame, Limits};
    ///
    /// let mut decoder = Decoder::new(Limits::default());
    /// decoder.push(b"data: {\"last\":true}");
    /// assert_eq!(decoder.next_frame()?, None);
    /// let cut = Frame { data: "{\"last\":true}".into(), ..Frame::default() };
    /// assert_eq!(decoder.finish()?, End::Unterminated(cut));
    /// # Ok::<(), throughline_wire::sse::SseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the stream failed earlier, or its last line ends inside a character.
    pub fn finish(&mut self) -> Result<End, SseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let line = mem::take(&mut self.line);
        if !line.is_empty()
            && let Err(error) = self.take_line(&line)
        {
            self.fail(error.clone());
            return Err(error);
        }
        let end = mem::take(&mut self.open)
            .into_frame()
            .map_or(End::Complete, End::Unterminated);
        let ready = mem::take(&mut self.ready);
        *self = Self {
            ready,
            ..Self::new(self.limits)
        };
        Ok(end)
    }

    /// The memory set aside for the unfinished line and the unfinished event.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        self.line.capacity() + text(&self.open.event) + text(&self.open.data) + text(&self.open.id)
    }

    fn read(&mut self, chunk: &[u8]) -> Result<(), SseError> {
        let base = self.offset;
        self.offset += chunk.len() as u64;
        let mut at = 0;
        while at < chunk.len() {
            if mem::take(&mut self.after_cr) && chunk[at] == b'\n' {
                at += 1;
                self.line_start = base + at as u64;
                continue;
            }
            let rest = &chunk[at..];
            let end = line_end(rest);
            let piece = &rest[..end.unwrap_or(rest.len())];
            let limit = self.limits.line_bytes;
            if piece.len() > limit - self.line.len() {
                return Err(SseError::LineTooLong {
                    limit,
                    offset: self.line_start + limit as u64,
                });
            }
            let Some(end) = end else {
                self.keep(piece);
                return Ok(());
            };
            if self.line.is_empty() {
                self.take_line(piece)?;
            } else {
                self.keep(piece);
                let mut line = mem::take(&mut self.line);
                self.take_line(&line)?;
                if line.capacity() <= KEEP_BYTES {
                    line.clear();
                    self.line = line;
                }
            }
            self.after_cr = rest[end] == b'\r';
            at += end + 1;
            self.line_start = base + at as u64;
        }
        Ok(())
    }

    fn keep(&mut self, piece: &[u8]) {
        let line = &mut self.line;
        let target = grown(
            line.capacity(),
            line.len() + piece.len(),
            self.limits.line_bytes,
        );
        line.reserve_exact(target - line.len());
        line.extend_from_slice(piece);
    }

    /// Takes one whole line, without its line end, that begins at `line_start`.
    fn take_line(&mut self, line: &[u8]) -> Result<(), SseError> {
        let whole = line.len();
        let line = match line.strip_prefix(BOM) {
            Some(rest) if self.line_start == 0 => rest,
            _ => line,
        };
        if line.is_empty() {
            self.ready.extend(mem::take(&mut self.open).into_frame());
            return Ok(());
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            // A colon in front makes the line a comment; its name is empty and matches nothing below.
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        let value_start = self.line_start + (whole - value.len()) as u64;
        let text = |bytes| {
            str::from_utf8(bytes).map_err(|error| SseError::InvalidUtf8 {
                offset: value_start + error.valid_up_to() as u64,
            })
        };
        match name {
            b"data" => {
                let value = text(value)?;
                let joint = usize::from(self.open.data.is_some());
                self.check_event(joint + value.len(), 0)?;
                match &mut self.open.data {
                    Some(data) => {
                        let needed = data.len() + joint + value.len();
                        let target = grown(data.capacity(), needed, self.limits.event_bytes);
                        data.reserve_exact(target - data.len());
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => self.open.data = Some(value.to_owned()),
                }
            }
            b"event" => {
                let value = text(value)?;
                self.check_event(value.len(), held(&self.open.event))?;
                self.open.event = (!value.is_empty()).then(|| value.to_owned());
            }
            b"id" if !value.contains(&0) => {
                let value = text(value)?;
                self.check_event(value.len(), held(&self.open.id))?;
                self.open.id = Some(value.to_owned());
            }
            b"retry" => {
                if let Some(time) = milliseconds(value) {
                    self.open.retry = Some(time);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that the open event may take `added` bytes in place of `replaced`.
    fn check_event(&self, added: usize, replaced: usize) -> Result<(), SseError> {
        let limit = self.limits.event_bytes;
        let open = &self.open;
        let kept = held(&open.event) + held(&open.data) + held(&open.id) - replaced;
        if added > limit.saturating_sub(kept) {
            return Err(SseError::EventTooLarge {
                limit,
                offset: self.line_start,
            });
        }
        Ok(())
    }

    fn fail(&mut self, error: SseError) {
        self.line = Vec::new();
        self.open = OpenEvent::default();
        self.failed = Some(error);
    }
}

impl OpenEvent {
    fn into_frame(self) -> Option<Frame> {
        let Self {
            event,
            data,
            id,
            retry,
        } = self;
        data.map(|data| Frame {
            event,
            data,
            id,
            retry,
        })
    }
}

fn held(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// The capacity to have for `needed` bytes: doubling, so that growing stays linear, but never past `limit`, as
/// plain doubling would.
fn grown(capacity: usize, needed: usize, limit: usize) -> usize {
    if needed <= capacity {
        return capacity;
    }
    capacity.saturating_mul(2).min(limit).max(needed)
}

fn milliseconds(value: &[u8]) -> Option<u64> {
    // `parse` alone would take a leading plus sign.
    let all_digits = value.iter().all(u8::is_ascii_digit);
    str::from_utf8(value)
        .ok()
        .filter(|_| all_digits)?
        .parse()
        .ok()
}

/// Finds the first CR or LF.
///
/// Whole blocks are tested without an early exit, which compiles to vector instructions; only the block with the
/// line end is searched byte by byte.
fn line_end(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 16;
    let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r';
    let clear = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| !block.iter().fold(false, |hit, byte| hit | ends(byte)))
        .count();
    let searched = clear * BLOCK;
    bytes[searched..]
        .iter()
        .position(ends)
        .map(|at| searched + at)
}
