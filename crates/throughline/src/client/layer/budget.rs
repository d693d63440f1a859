use std::sync::atomic::{AtomicU64, Ordering};

/// How many retries there may be, seen over many calls: each call pays in a little, each retry
/// takes one out. So a service that is down gets little more than one request for each call.
#[derive(Debug)]
pub(super) struct Budget {
    /// In thousandths of a retry.
    left: AtomicU64,
    most: u64,
    per_call: u64,
}

/// One retry.
const RETRY: u64 = 1_000;

impl Budget {
    /// `reserve` retries at the start and at the most; each call pays in `per_call` of one.
    pub(super) fn new(reserve: u32, per_call: f64) -> Self {
        let most = u64::from(reserve) * RETRY;
        // A share of a thousand; casting a negative or endless number saturates.
        let per_call = (per_call * RETRY as f64) as u64;
        Self {
            left: AtomicU64::new(most),
            most,
            per_call,
        }
    }

    /// A call was made.
    pub(super) fn call(&self) {
        let pay = |left: u64| Some(left.saturating_add(self.per_call).min(self.most));
        let paid = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        debug_assert!(paid.is_ok(), "paying in never refuses");
    }

    /// Take out one retry; false if there is none.
    pub(super) fn take(&self) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(RETRY)
            })
            .is_ok()
    }
}
