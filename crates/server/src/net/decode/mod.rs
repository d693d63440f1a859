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
pub(super) enum Refused {
    TooLarge,
    GrowsTooMuch,
    Damaged,
}

/// Below this size the decompression ratio is not checked.
const SMALL: usize = 1 << 20;

/// The largest window of zstd, as a power of two: what decompressing may take of memory.
const WINDOW: u32 = 23;

/// What inflating takes of memory: a window of 32 KiB, and tables.
const INFLATE: usize = 64 << 10;

/// Takes a body in pieces and gives it decompressed.
pub(super) struct Decoder {
    coding: Coding,
    /// Bytes taken in.
    taken: usize,
    most: usize,
    ratio: u64,
}

enum Coding {
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
    pub(super) fn new(encoding: Encoding, most: usize, ratio: u64) -> Result<Self, Refused> {
        let sink = Sink::new(most);
        let coding = match encoding {
            Encoding::Identity => Coding::Identity(sink),
            Encoding::Gzip => Coding::Gzip(GzDecoder::new(sink)),
            Encoding::Deflate => Coding::Deflate {
                // What HTTP calls deflate has the head of zlib.
                decoder: Decompress::new(true),
                sink,
                whole: false,
            },
            Encoding::Zstd => {
                let mut decoder = DCtx::create();
                decoder
                    .set_parameter(DParameter::WindowLogMax(WINDOW))
                    .map_err(|_| Refused::Damaged)?;
                Coding::Zstd {
                    decoder,
                    sink,
                    whole: true,
                }
            }
        };
        Ok(Self {
            coding,
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
        match &self.coding {
            Coding::Identity(_) => 0,
            Coding::Gzip(_) | Coding::Deflate { .. } => INFLATE,
            Coding::Zstd { decoder, .. } => decoder.sizeof(),
        }
    }

    fn sink(&self) -> &Sink {
        match &self.coding {
            Coding::Identity(sink) | Coding::Deflate { sink, .. } | Coding::Zstd { sink, .. } => {
                sink
            }
            Coding::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn sink_mut(&mut self) -> &mut Sink {
        match &mut self.coding {
            Coding::Identity(sink) | Coding::Deflate { sink, .. } | Coding::Zstd { sink, .. } => {
                sink
            }
            Coding::Gzip(decoder) => decoder.get_mut(),
        }
    }

    /// Take in a piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), Refused> {
        self.taken = self.taken.saturating_add(piece.len());
        if self.taken > self.most {
            return Err(Refused::TooLarge);
        }
        let grown = self.ratio.saturating_mul(self.taken as u64);
        let allowed = usize::try_from(grown).unwrap_or(usize::MAX).max(SMALL);
        self.sink_mut().allowed = allowed;
        let done = match &mut self.coding {
            Coding::Identity(sink) => sink.write_all(piece),
            Coding::Gzip(decoder) => decoder.write_all(piece),
            Coding::Deflate {
                decoder,
                sink,
                whole,
            } => inflate(decoder, sink, whole, piece),
            Coding::Zstd {
                decoder,
                sink,
                whole,
            } => unpack(decoder, sink, whole, piece),
        };
        done.map_err(|_| self.sink().full.unwrap_or(Refused::Damaged))
    }

    /// The whole, if it is whole.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, Refused> {
        // Nothing compressed is nothing.
        if self.taken > 0 {
            let ended = match &mut self.coding {
                Coding::Identity(_) => Ok(()),
                Coding::Gzip(decoder) => decoder.try_finish(),
                Coding::Deflate { whole, .. } | Coding::Zstd { whole, .. } => match whole {
                    true => Ok(()),
                    false => Err(io::Error::other("broken off")),
                },
            };
            ended.map_err(|_| self.sink().full.unwrap_or(Refused::Damaged))?;
        }
        Ok(std::mem::take(&mut self.sink_mut().bytes))
    }
}

/// How much is decompressed before it is looked at.
const ROOM: usize = 128 * 1024;

fn inflate(
    decoder: &mut Decompress,
    sink: &mut Sink,
    whole: &mut bool,
    piece: &[u8],
) -> io::Result<()> {
    let mut room = vec![0; ROOM];
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
            Status::Ok | Status::BufError if rest.is_empty() && given < ROOM => return Ok(()),
            Status::BufError if taken == 0 && given == 0 => {
                return Err(io::Error::other("no progress"));
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

fn unpack(
    decoder: &mut DCtx<'static>,
    sink: &mut Sink,
    whole: &mut bool,
    piece: &[u8],
) -> io::Result<()> {
    let mut input = InBuffer::around(piece);
    let mut room = vec![0; ROOM];
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
    full: Option<Refused>,
}

impl Sink {
    fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            allowed: SMALL,
            full: None,
        }
    }
}

impl Write for Sink {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let after = self.bytes.len().saturating_add(piece.len());
        let refused = match after {
            after if after > self.most => Some(Refused::TooLarge),
            after if after > self.allowed => Some(Refused::GrowsTooMuch),
            _ => None,
        };
        if let Some(refused) = refused {
            self.full = Some(refused);
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
