//! Maps by the numbers of rows.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by the number of a row. SQLite gives the numbers, no caller can choose some that collide, so
/// they need no hash that withstands it.
pub(crate) type RowMap<V> = HashMap<i64, V, BuildHasherDefault<RowHasher>>;

#[derive(Default)]
pub(crate) struct RowHasher(u64);

/// Odd, so that numbers in a row stay apart, and it fills the high bits, by which maps compare.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for RowHasher {
    fn write_i64(&mut self, row: i64) {
        self.0 = row.cast_unsigned().wrapping_mul(SPREAD);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(SPREAD);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
