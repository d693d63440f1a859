use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Random waits (splitmix64), which follow from the seed.
#[derive(Debug)]
pub(super) struct Jitter(AtomicU64);

impl Jitter {
    pub(super) fn new(seed: Option<u64>) -> Self {
        // Without a source of randomness the waits are still valid, but equal in each process.
        let seed = seed.unwrap_or_else(|| getrandom::u64().unwrap_or(0));
        Self(AtomicU64::new(seed))
    }

    /// A random wait from zero to `most`.
    pub(super) fn up_to(&self, most: Duration) -> Duration {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        most.mul_f64((z >> 11) as f64 / (1_u64 << 53) as f64)
    }
}
