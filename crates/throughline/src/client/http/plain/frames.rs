//! Where a body ends: by its length, in chunks, or with the connection (RFC 9112, sections 6 and 7).

use bytes::{Buf, Bytes, BytesMut};
use httparse::Status;

use super::answer::Broken;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// Each chunk says how long it is.
    Chunked,
    /// The connection ends with it.
    UntilClosed,
}

/// A body on its way.
#[derive(Debug)]
pub(super) struct Frames(State);

#[derive(Debug)]
enum State {
    /// So many bytes are still to come.
    Length(u64),
    /// All that comes belongs to it.
    UntilClosed,
    /// The size of a chunk comes.
    Size,
    /// So many bytes of a chunk are still to come.
    Chunk(u64),
    /// The line break behind a chunk comes.
    Behind,
    /// Headers after the last chunk come; this many bytes of them came so far.
    Trailers(usize),
}

/// What the buffer held.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A piece of the body.
    Piece(Bytes),
    /// Not enough.
    More,
    /// The end of the body.
    End,
}

/// How long the line with the size of a chunk may be.
const SIZE_LINE: usize = 4 * 1024;
/// How much may follow the last chunk.
const TRAILERS: usize = 16 * 1024;

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size,
            Framing::UntilClosed => State::UntilClosed,
        })
    }

    /// Whether the body is complete when the connection ends here.
    pub(super) fn may_end(&self) -> bool {
        matches!(self.0, State::UntilClosed)
    }

    /// What comes next, as far as it is there.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<Step, Broken> {
        loop {
            self.0 = match self.0 {
                State::Length(0) => return Ok(Step::End),
                State::Length(left) => {
                    return Ok(piece(buffer, left, |left| self.0 = State::Length(left)));
                }
                State::UntilClosed => return Ok(piece(buffer, u64::MAX, |_| {})),
                State::Size => match size(buffer)? {
                    None => return Ok(Step::More),
                    Some(0) => State::Trailers(0),
                    Some(size) => State::Chunk(size),
                },
                State::Chunk(0) => State::Behind,
                State::Chunk(left) => {
                    return Ok(piece(buffer, left, |left| self.0 = State::Chunk(left)));
                }
                State::Behind => match buffer[..] {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        State::Size
                    }
                    [] | [b'\r'] => return Ok(Step::More),
                    _ => return Err(Broken("a chunk is longer than it says")),
                },
                State::Trailers(before) => {
                    let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
                        if before + buffer.len() > TRAILERS {
                            return Err(Broken("too much follows the last chunk"));
                        }
                        return Ok(Step::More);
                    };
                    if before + end > TRAILERS {
                        return Err(Broken("too much follows the last chunk"));
                    }
                    let is_last = matches!(buffer[..end], [] | [b'\r']);
                    buffer.advance(end + 1);
                    if is_last {
                        self.0 = State::Length(0);
                        return Ok(Step::End);
                    }
                    State::Trailers(before + end + 1)
                }
            };
        }
    }
}

/// As much of a piece as is there, and how much is left of it then.
fn piece(buffer: &mut BytesMut, most: u64, left: impl FnOnce(u64)) -> Step {
    if buffer.is_empty() {
        return Step::More;
    }
    let there = usize::try_from(most).map_or(buffer.len(), |most| most.min(buffer.len()));
    left(most - there as u64);
    // The whole buffer is handed on as it is; a part of it would have to be shared.
    let piece = match there == buffer.len() {
        true => std::mem::take(buffer),
        false => buffer.split_to(there),
    };
    Step::Piece(piece.freeze())
}

/// The size of the next chunk, if its line is there.
fn size(buffer: &mut BytesMut) -> Result<Option<u64>, Broken> {
    // A line without a number would be read as the number of the last chunk.
    if buffer
        .first()
        .is_some_and(|first| !first.is_ascii_hexdigit())
    {
        return Err(Broken("a chunk has no size"));
    }
    match httparse::parse_chunk_size(buffer) {
        Ok(Status::Complete((length, size))) if length <= SIZE_LINE => {
            buffer.advance(length);
            Ok(Some(size))
        }
        Ok(Status::Partial) if buffer.len() <= SIZE_LINE => Ok(None),
        Ok(_) | Err(_) => Err(Broken("the size of a chunk cannot be read")),
    }
}
