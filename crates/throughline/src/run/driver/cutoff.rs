//! What ends a run from outside: cancellation and its time limit.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::RunContext;
use crate::thread::StopReason;

/// Waits for the cancellation of a run, or for the end of its time.
pub(crate) struct Cutoff {
    cancel: CancellationToken,
    deadline: Option<Instant>,
}

impl Cutoff {
    /// `used` milliseconds of the time limit were spent before this process took the run.
    pub(crate) fn new(context: &RunContext, limit: Option<Duration>, used: u64) -> Self {
        let used = Duration::from_millis(used);
        Self {
            cancel: context.cancel.clone(),
            deadline: limit.map(|limit| Instant::now() + limit.saturating_sub(used)),
        }
    }

    /// Wait until the run must stop. A cancellation goes before the end of its time.
    pub(crate) async fn reached(&self) -> StopReason {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => StopReason::Cancelled,
            () = until(self.deadline) => StopReason::Budget,
        }
    }
}

/// Wait for a moment; for ever if there is none.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        // A timer fires at whole milliseconds, so one that is due now would still wait.
        Some(moment) if moment <= Instant::now() => {}
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
