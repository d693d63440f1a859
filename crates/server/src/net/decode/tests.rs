use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use throughline_testkit::{Rng, chunks, mutate, property};

use super::{DecodeError, Decoder, Encoding, UNCHECKED_SIZE};

const ALL: [Encoding; 4] = [
    Encoding::Identity,
    Encoding::Gzip,
    Encoding::Deflate,
    Encoding::Zstd,
];

fn encode(encoding: Encoding, plain: &[u8]) -> Vec<u8> {
    match encoding {
        Encoding::Identity => plain.to_vec(),
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Encoding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Encoding::Zstd => zstd::encode_all(plain, 1).unwrap(),
    }
}

fn decode<'p>(
    encoding: Encoding,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    (most, ratio): (usize, u64),
) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(encoding, most, ratio)?;
    for piece in pieces {
        decoder.push(piece)?;
        assert!(decoder.decoded() <= most);
    }
    decoder.finish()
}

/// Some bytes, repeated so that they compress well or not at all.
fn plain(rng: &mut Rng, size: usize) -> Vec<u8> {
    let length = rng.below(size * size + 1);
    let piece = rng.bytes(length);
    let times = rng.range(1..=50);
    piece.repeat(times)
}

const WIDE: (usize, u64) = (64 << 20, 10_000);

#[test]
fn chunk_boundaries_do_not_show() {
    property("decompression of whole bodies", 200, |rng, size| {
        let plain = plain(rng, size);
        for encoding in ALL {
            let packed = encode(encoding, &plain);
            let pieces = chunks::random_split(&packed, rng);
            match decode(encoding, pieces, WIDE) {
                Ok(found) if found == plain => {}
                Ok(found) => return Err(format!("{encoding:?}: {} bytes", found.len())),
                Err(error) => return Err(format!("{encoding:?}: {error:?}")),
            }
        }
        Ok(())
    });
}

#[test]
fn a_body_that_breaks_off_is_never_whole() {
    property("decompression of cut bodies", 200, |rng, size| {
        let plain = plain(rng, size);
        for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Zstd] {
            let packed = encode(encoding, &plain);
            let cut = mutate::truncate(&packed, rng);
            if cut.len() == packed.len() || cut.is_empty() {
                continue;
            }
            if let Ok(found) = decode(encoding, [cut], WIDE) {
                return Err(format!("{encoding:?}: {} bytes as if whole", found.len()));
            }
        }
        Ok(())
    });
}

#[test]
fn damaged_bodies_are_refused_or_bounded() {
    property("decompression of damaged bodies", 400, |rng, size| {
        let plain = plain(rng, size);
        let encoding = *rng.pick(&ALL);
        let damaged = match rng.bool() {
            true => mutate::flip(&encode(encoding, &plain), rng),
            false => rng.bytes(size),
        };
        // What comes out may be anything, but not more than was allowed.
        if let Ok(found) = decode(encoding, chunks::random_split(&damaged, rng), (4096, 10))
            && found.len() > 4096
        {
            return Err(format!("{encoding:?}: {} bytes", found.len()));
        }
        Ok(())
    });
}

#[test]
fn bombs_stop_at_the_limits() {
    let bomb = vec![0; 32 << 20];
    for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Zstd] {
        let packed = encode(encoding, &bomb);
        let found = decode(encoding, [&packed[..]], (8 << 20, 1_000_000));
        assert_eq!(found, Err(DecodeError::TooLarge), "{encoding:?}");
        let found = decode(encoding, [&packed[..]], (64 << 20, 10));
        assert_eq!(found, Err(DecodeError::GrowsTooMuch), "{encoding:?}");
        let small = encode(encoding, &bomb[..UNCHECKED_SIZE]);
        assert_eq!(
            decode(encoding, [&small[..]], (64 << 20, 2)).unwrap().len(),
            UNCHECKED_SIZE
        );
    }
}

#[test]
fn a_window_that_takes_much_memory_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(b"small").unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(
        decode(Encoding::Zstd, [&packed[..]], WIDE),
        Err(DecodeError::Damaged)
    );
}
