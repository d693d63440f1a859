//! How a server stops: first nobody new is let in, then whoever is left is cut off.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The two moments of stopping, for whoever must know. Clones are the same.
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

    /// Work that a server waits for while it drains, whoever asked for it.
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
