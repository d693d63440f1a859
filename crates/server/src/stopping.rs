//! Graceful shutdown in two phases: new requests are refused, then remaining connections are closed.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The two phases of a shutdown. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Stopping {
    draining: CancellationToken,
    closing: CancellationToken,
    work: TaskTracker,
}

impl Stopping {
    /// Whether no new work is taken.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Wait until no new work is taken.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Wait until what is left is cut off. Event streams end here; they can be resumed elsewhere.
    pub async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Background tasks that a draining server waits for.
    pub fn work(&self) -> &TaskTracker {
        &self.work
    }

    pub(crate) fn drain(&self) {
        self.draining.cancel();
    }

    pub(crate) fn close(&self) {
        self.draining.cancel();
        self.closing.cancel();
    }
}
