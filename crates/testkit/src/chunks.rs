//! Ways to cut a byte stream into chunks, for tests that chunk boundaries have no effect.

use crate::Rng;

/// Every cut into two chunks, the empty first and the empty last chunk included: `len + 1` ways.
pub fn every_split(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    (0..=bytes.len()).map(|at| {
        let (head, tail) = bytes.split_at(at);
        [head, tail]
    })
}

/// One chunk for each byte.
pub fn byte_by_byte(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(1)
}

/// One random cut: chunks are mostly short, sometimes long, sometimes empty.
pub fn random_split<'a>(bytes: &'a [u8], rng: &mut Rng) -> Vec<&'a [u8]> {
    let longest = *rng.pick(&[2, 5, 16, 64, 1024]);
    let mut chunks = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(rng.range(0..=longest).min(rest.len()));
        chunks.push(chunk);
        rest = tail;
    }
    chunks
}

/// All of the above, and the whole in one chunk: `random` random cuts after every other kind.
///
/// ```
/// use throughline_testkit::{Rng, chunks};
///
/// for cut in chunks::all(b"data: hi\n\n", &mut Rng::new(1), 10) {
///     assert_eq!(cut.concat(), b"data: hi\n\n");
/// }
/// ```
pub fn all<'a>(
    bytes: &'a [u8],
    rng: &mut Rng,
    random: usize,
) -> impl Iterator<Item = Vec<&'a [u8]>> {
    let mut rng = rng.fork();
    std::iter::once(vec![bytes])
        .chain(std::iter::once_with(|| byte_by_byte(bytes).collect()))
        .chain(every_split(bytes).map(Vec::from))
        .chain((0..random).map(move |_| random_split(bytes, &mut rng)))
}

#[cfg(test)]
mod tests {
    use super::{all, every_split, random_split};
    use crate::Rng;

    #[test]
    fn every_way_to_cut_gives_the_bytes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let cuts: Vec<Vec<&[u8]>> = all(&bytes, &mut Rng::new(1), 50).collect();
        assert_eq!(cuts.len(), 1 + 1 + 257 + 50);
        assert!(cuts.iter().all(|cut| cut.concat() == bytes));
    }

    #[test]
    fn single_splits_include_both_ends() {
        let splits: Vec<[&[u8]; 2]> = every_split(b"ab").collect();
        assert_eq!(splits, [[&b""[..], b"ab"], [b"a", b"b"], [b"ab", b""]]);
        assert_eq!(every_split(b"").count(), 1);
    }

    #[test]
    fn random_splits_differ_and_hold_empty_chunks() {
        let mut rng = Rng::new(2);
        let cuts: Vec<_> = (0..20).map(|_| random_split(&[7; 100], &mut rng)).collect();
        assert!(cuts.windows(2).any(|pair| pair[0] != pair[1]));
        assert!(cuts.iter().flatten().any(|chunk| chunk.is_empty()));
    }
}
