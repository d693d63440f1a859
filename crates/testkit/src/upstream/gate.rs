use std::sync::Arc;

use tokio::sync::watch;

/// Where answers wait until a test lets them go on; open at first.
#[derive(Clone, Debug)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            open: Arc::new(watch::Sender::new(true)),
        }
    }
}

impl Gate {
    /// From now on nothing passes.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Everything that waits goes on, and whatever comes later does not wait.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Wait until it is open.
    pub(super) async fn passed(&self) {
        // The sender lives as long as this gate.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}
