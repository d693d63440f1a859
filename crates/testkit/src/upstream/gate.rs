use std::sync::Arc;

use tokio::sync::watch;

/// A gate at which answers wait until a test opens it; open at first.
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
    /// Closes the gate.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Opens the gate for all waiting and later answers.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until the gate is open.
    pub(super) async fn passed(&self) {
        // The sender lives as long as this gate.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}
