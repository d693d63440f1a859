//! A hasher for short names.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers that are faster on short texts than those of the standard library.
///
/// Tool output decides what is hashed, so the seed is drawn anew for each table: a tool cannot make names that
/// collide. What a table gives never depends on the seed, because no table is walked in its own order.
#[derive(Clone, Debug)]
pub(super) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0u8) | 1)
    }
}

impl BuildHasher for Seeded {
    type Hasher = FoldHasher;

    fn build_hasher(&self) -> FoldHasher {
        FoldHasher {
            state: self.0,
            seed: self.0,
        }
    }
}

/// Multiplies into twice the width and folds the halves.
pub(super) struct FoldHasher {
    state: u64,
    seed: u64,
}

impl FoldHasher {
    fn fold(&mut self, word: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.state ^ word) * u128::from(self.seed ^ ODD);
        self.state = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, byte: u8) {
        self.state ^= u64::from(byte);
    }

    fn finish(&self) -> u64 {
        self.state
    }
}
