use std::sync::atomic::{AtomicU64, Ordering};

/// A retry budget over many calls: each call adds a fraction of a retry, and each retry takes one.
/// So a service that is down gets little more than one request per call.
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
    /// `reserve` retries initially and at most; each call adds `per_call` of one.
    pub(super) fn new(reserve: u32, per_call: f64) -> Self {
        let most = u64::from(reserve) * RETRY;
        // Thousandths; casting a negative or infinite number saturates.
        let per_call = (per_call * RETRY as f64) as u64;
        Self {
            left: AtomicU64::new(most),
            most,
            per_call,
        }
    }

    /// Records a call.
    pub(super) fn call(&self) {
        let pay = |left: u64| Some(left.saturating_add(self.per_call).min(self.most));
        let paid = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        debug_assert!(paid.is_ok(), "paying in never refuses");
    }

    /// Takes one retry; false if there is none.
    pub(super) fn take(&self) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(RETRY)
            })
            .is_ok()
    }
}
