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
    /// The grammar drops such an event. Callers that read vendors which leave out the last blank line, or captured
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
    /// The same for a data line that opens an event, so that long data is not copied from line to event.
    long: Option<LongData>,
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
            long: None,
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
        let taken = match self.long.take() {
            Some(long) => self.take_long(long),
            None if line.is_empty() => Ok(()),
            None => self.take_line(&line),
        };
        if let Err(error) = taken {
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
        let long = self.long.as_ref().map_or(0, |long| long.text.capacity());
        self.line.capacity()
            + long
            + text(&self.open.event)
            + text(&self.open.data)
            + text(&self.open.id)
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
            let kept = self
                .long
                .as_ref()
                .map_or(self.line.len(), |long| long.bytes);
            if piece.len() > limit - kept {
                return Err(SseError::LineTooLong {
                    limit,
                    offset: self.line_start + limit as u64,
                });
            }
            let Some(end) = end else {
                self.keep(piece);
                return Ok(());
            };
            if let Some(mut long) = self.long.take() {
                long.append(piece, limit);
                self.take_long(long)?;
            } else if self.line.is_empty() {
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
        let limit = self.limits.line_bytes;
        if self.line.is_empty()
            && self.open.data.is_none()
            && let Some(long) = self.long.take().or_else(|| LongData::open(piece))
        {
            let mut long = long;
            let value = if long.bytes == 0 {
                &piece[long.prefix..]
            } else {
                piece
            };
            long.append(value, limit);
            self.long = Some(long);
            return;
        }
        let line = &mut self.line;
        let target = grown(line.capacity(), line.len() + piece.len(), limit);
        line.reserve_exact(target - line.len());
        line.extend_from_slice(piece);
    }

    /// Takes a whole data line that opens an event.
    fn take_long(&mut self, long: LongData) -> Result<(), SseError> {
        if let Some(valid) = long.invalid_after() {
            return Err(SseError::InvalidUtf8 {
                offset: self.line_start + (long.prefix + valid) as u64,
            });
        }
        self.check_event(long.text.len(), 0)?;
        self.open.data = Some(long.text);
        Ok(())
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
        self.long = None;
        self.open = OpenEvent::default();
        self.failed = Some(error);
    }
}

/// The value of a data line that came in several chunks. Each chunk is checked while it is at hand: going over
/// megabytes once more at the end of the line would cost more than everything before.
#[derive(Debug)]
struct LongData {
    text: String,
    /// The start of a character whose rest has not come yet.
    partial: Vec<u8>,
    /// Set once the value was found not to be UTF-8; the rest of the line is only counted.
    broken: bool,
    /// How many bytes stand before the value.
    prefix: usize,
    /// How many bytes of the line were seen.
    bytes: usize,
}

impl LongData {
    /// The first piece of a line, if it is a data line and long enough to tell where its value starts.
    fn open(piece: &[u8]) -> Option<Self> {
        let value = piece.strip_prefix(b"data:")?;
        let prefix = match value.first()? {
            b' ' => 6,
            _ => 5,
        };
        Some(Self {
            text: String::new(),
            partial: Vec::new(),
            broken: false,
            prefix,
            bytes: 0,
        })
    }

    /// The next piece of the value.
    fn append(&mut self, piece: &[u8], limit: usize) {
        if self.bytes == 0 {
            self.bytes = self.prefix;
        }
        self.bytes += piece.len();
        if self.broken {
            return;
        }
        let mut piece = piece;
        // The rest of a character is at most three bytes.
        while !self.partial.is_empty() {
            let Some((first, rest)) = piece.split_first() else {
                return;
            };
            self.partial.push(*first);
            piece = rest;
            match str::from_utf8(&self.partial) {
                Ok(text) => {
                    self.text.push_str(text);
                    self.partial.clear();
                }
                Err(error) if error.error_len().is_some() => {
                    self.broken = true;
                    return;
                }
                Err(_) => {}
            }
        }
        let target = grown(self.text.capacity(), self.text.len() + piece.len(), limit);
        self.text.reserve_exact(target - self.text.len());
        let valid = match str::from_utf8(piece) {
            Ok(text) => {
                self.text.push_str(text);
                return;
            }
            Err(error) => {
                self.broken = error.error_len().is_some();
                error.valid_up_to()
            }
        };
        let (text, rest) = piece.split_at(valid);
        // The part before the error is valid, so nothing is replaced here.
        self.text.push_str(&String::from_utf8_lossy(text));
        if !self.broken {
            self.partial.extend_from_slice(rest);
        }
    }

    /// How many bytes of the value are UTF-8, if not all.
    fn invalid_after(&self) -> Option<usize> {
        (self.broken || !self.partial.is_empty()).then_some(self.text.len())
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
