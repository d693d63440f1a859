//! Decompression that stops in time.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use flate2::write::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Deflate,
    Zstd,
}

impl Encoding {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "identity" | "" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Why a body is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    TooLarge,
    GrowsTooMuch,
    Damaged,
}

/// Below this size the decompression ratio is not checked.
const UNCHECKED_SIZE: usize = 1 << 20;

/// The largest window of zstd, as a power of two: what decompressing may take of memory.
const ZSTD_WINDOW_LOG: u32 = 23;

/// What inflating takes of memory: a window of 32 KiB, and tables.
const INFLATE_MEMORY: usize = 64 << 10;

/// Takes a body in pieces and gives it decompressed.
pub(super) struct Decoder {
    state: DecoderState,
    /// Bytes taken in.
    taken: usize,
    most: usize,
    ratio: u64,
}

enum DecoderState {
    Identity(Sink),
    Gzip(GzDecoder<Sink>),
    Deflate {
        decoder: Decompress,
        sink: Sink,
        whole: bool,
    },
    Zstd {
        decoder: DCtx<'static>,
        sink: Sink,
        /// Whether the last frame is over.
        whole: bool,
    },
}

impl Decoder {
    /// At most so many bytes before and after, and at most so many times as many after.
    pub(super) fn new(encoding: Encoding, most: usize, ratio: u64) -> Result<Self, DecodeError> {
        let sink = Sink::new(most);
        let state = match encoding {
            Encoding::Identity => DecoderState::Identity(sink),
            Encoding::Gzip => DecoderState::Gzip(GzDecoder::new(sink)),
            Encoding::Deflate => DecoderState::Deflate {
                // What HTTP calls deflate has the head of zlib.
                decoder: Decompress::new(true),
                sink,
                whole: false,
            },
            Encoding::Zstd => {
                let mut decoder = DCtx::create();
                decoder
                    .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
                    .map_err(|_| DecodeError::Damaged)?;
                DecoderState::Zstd {
                    decoder,
                    sink,
                    whole: true,
                }
            }
        };
        Ok(Self {
            state,
            taken: 0,
            most,
            ratio,
        })
    }

    /// Bytes given so far.
    pub(super) fn decoded(&self) -> usize {
        self.sink().bytes.len()
    }

    /// The memory that decompressing takes.
    pub(super) fn window(&self) -> usize {
        match &self.state {
            DecoderState::Identity(_) => 0,
            DecoderState::Gzip(_) | DecoderState::Deflate { .. } => INFLATE_MEMORY,
            DecoderState::Zstd { decoder, .. } => decoder.sizeof(),
        }
    }

    fn sink(&self) -> &Sink {
        match &self.state {
            DecoderState::Identity(sink)
            | DecoderState::Deflate { sink, .. }
            | DecoderState::Zstd { sink, .. } => sink,
            DecoderState::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn sink_mut(&mut self) -> &mut Sink {
        match &mut self.state {
            DecoderState::Identity(sink)
            | DecoderState::Deflate { sink, .. }
            | DecoderState::Zstd { sink, .. } => sink,
            DecoderState::Gzip(decoder) => decoder.get_mut(),
        }
    }

    /// Take in a piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), DecodeError> {
        self.taken = self.taken.saturating_add(piece.len());
        if self.taken > self.most {
            return Err(DecodeError::TooLarge);
        }
        let grown = self.ratio.saturating_mul(self.taken as u64);
        let allowed = usize::try_from(grown)
            .unwrap_or(usize::MAX)
            .max(UNCHECKED_SIZE);
        self.sink_mut().allowed = allowed;
        let done = match &mut self.state {
            DecoderState::Identity(sink) => sink.write_all(piece),
            DecoderState::Gzip(decoder) => decoder.write_all(piece),
            DecoderState::Deflate {
                decoder,
                sink,
                whole,
            } => inflate(decoder, sink, whole, piece),
            DecoderState::Zstd {
                decoder,
                sink,
                whole,
            } => decompress_zstd(decoder, sink, whole, piece),
        };
        done.map_err(|_| self.sink().full.unwrap_or(DecodeError::Damaged))
    }

    /// The whole, if it is whole.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, DecodeError> {
        // Nothing compressed is nothing.
        if self.taken > 0 {
            let ended = match &mut self.state {
                DecoderState::Identity(_) => Ok(()),
                DecoderState::Gzip(decoder) => decoder.try_finish(),
                DecoderState::Deflate { whole, .. } | DecoderState::Zstd { whole, .. } => {
                    match whole {
                        true => Ok(()),
                        false => Err(io::Error::other("broken off")),
                    }
                }
            };
            ended.map_err(|_| self.sink().full.unwrap_or(DecodeError::Damaged))?;
        }
        Ok(std::mem::take(&mut self.sink_mut().bytes))
    }
}

/// How many bytes are decompressed before the limits are checked.
const OUTPUT_CHUNK: usize = 128 * 1024;

fn inflate(
    decoder: &mut Decompress,
    sink: &mut Sink,
    whole: &mut bool,
    piece: &[u8],
) -> io::Result<()> {
    let mut room = vec![0; OUTPUT_CHUNK];
    let mut rest = piece;
    loop {
        let (taken, given) = (decoder.total_in(), decoder.total_out());
        let status = decoder
            .decompress(rest, &mut room, FlushDecompress::None)
            .map_err(io::Error::other)?;
        let taken = (decoder.total_in() - taken) as usize;
        let given = (decoder.total_out() - given) as usize;
        sink.write_all(room.get(..given).unwrap_or_default())?;
        rest = rest.get(taken..).unwrap_or_default();
        match status {
            Status::StreamEnd if rest.is_empty() => {
                *whole = true;
                return Ok(());
            }
            // Something stands behind the end.
            Status::StreamEnd => return Err(io::Error::other("more than one body")),
            Status::Ok | Status::BufError if rest.is_empty() && given < OUTPUT_CHUNK => {
                return Ok(());
            }
            Status::BufError if taken == 0 && given == 0 => {
                return Err(io::Error::other("no progress"));
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

fn decompress_zstd(
    decoder: &mut DCtx<'static>,
    sink: &mut Sink,
    whole: &mut bool,
    piece: &[u8],
) -> io::Result<()> {
    let mut input = InBuffer::around(piece);
    let mut room = vec![0; OUTPUT_CHUNK];
    loop {
        let mut output = OutBuffer::around(&mut room[..]);
        let hint = decoder
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        let given = output.as_slice().len();
        sink.write_all(output.as_slice())?;
        *whole = hint == 0;
        if input.pos() == piece.len() && (*whole || given < room.len()) {
            return Ok(());
        }
    }
}

/// Where bytes go, as long as there are not too many.
#[derive(Debug)]
struct Sink {
    bytes: Vec<u8>,
    most: usize,
    allowed: usize,
    full: Option<DecodeError>,
}

impl Sink {
    fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            allowed: UNCHECKED_SIZE,
            full: None,
        }
    }
}

impl Write for Sink {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let after = self.bytes.len().saturating_add(piece.len());
        let error = match after {
            after if after > self.most => Some(DecodeError::TooLarge),
            after if after > self.allowed => Some(DecodeError::GrowsTooMuch),
            _ => None,
        };
        if let Some(error) = error {
            self.full = Some(error);
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
