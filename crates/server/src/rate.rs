//! How often something happened in the last minute.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Seconds that are remembered, and the one that is going on.
const SECONDS: usize = 61;

/// Counts by the second, for a minute.
#[derive(Debug)]
pub(crate) struct RateMeter {
    since: Instant,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    /// By the second, modulo their number.
    by_second: [u64; SECONDS],
    /// The second that is going on.
    now: u64,
}

impl Default for RateMeter {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            counts: Mutex::new(Counts {
                by_second: [0; SECONDS],
                now: 0,
            }),
        }
    }
}

impl RateMeter {
    /// It happened once.
    pub(crate) fn count(&self) {
        let second = self.since.elapsed().as_secs();
        self.with(|counts| counts.add(second));
    }

    /// How often it happened in the last minute, up to now.
    pub(crate) fn last_minute(&self) -> u64 {
        let second = self.since.elapsed().as_secs();
        self.with(|counts| counts.total(second))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        work(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counts {
    fn add(&mut self, second: u64) {
        self.move_to(second);
        if let Some(count) = self.by_second.get_mut(place(self.now)) {
            *count += 1;
        }
    }

    fn total(&mut self, second: u64) -> u64 {
        self.move_to(second);
        self.by_second.iter().sum()
    }

    /// Forget the seconds that are over a minute ago.
    fn move_to(&mut self, second: u64) {
        let passed = second.saturating_sub(self.now).min(SECONDS as u64);
        for step in 1..=passed {
            // Of a long pause the last seconds are those that count.
            if let Some(count) = self.by_second.get_mut(place(second - passed + step)) {
                *count = 0;
            }
        }
        self.now = self.now.max(second);
    }
}

fn place(second: u64) -> usize {
    usize::try_from(second % SECONDS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Counts, SECONDS};

    #[test]
    fn what_is_over_a_minute_ago_does_not_count() {
        let mut counts = Counts {
            by_second: [0; SECONDS],
            now: 0,
        };
        counts.add(0);
        counts.add(30);
        counts.add(30);
        assert_eq!(counts.total(60), 3);
        assert_eq!(counts.total(61), 2);
        assert_eq!(counts.total(90), 2);
        assert_eq!(counts.total(91), 0);
        counts.add(1_000);
        // A clock reading that another thread took earlier.
        counts.add(999);
        assert_eq!(counts.total(1_060), 2);
        assert_eq!(counts.total(u64::MAX), 0);
    }
}
