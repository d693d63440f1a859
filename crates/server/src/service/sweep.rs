//! Removes threads whose time is over, and what was deleted, for as long as the server runs.
//!
//! A thread with a `keep` time is due that long after its head last moved; the store's clock decides.
//! [`Engine::purge`](throughline_store::Engine::purge) says what is removed, and what spares a thread.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use throughline_store::{Purged, Result};

use super::Runs;
use crate::trials::planted;

/// How often the sweeper looks. What is due must be gone after 60 s: that leaves time for several
/// attempts if the store fails, and for much to remove.
const INTERVAL: Duration = Duration::from_secs(10);

/// How many rows one write of the sweeper touches, about: other writers wait no longer than that.
const BATCH: usize = 500;

/// What the sweeper has done since the server started.
#[derive(Debug, Default)]
pub struct SweepCounters {
    threads: Counter,
    items: Counter,
    errors: Counter,
}

impl SweepCounters {
    /// Threads that were erased.
    pub fn threads(&self) -> u64 {
        self.threads.get()
    }

    /// Items that were erased.
    pub fn items(&self) -> u64 {
        self.items.get()
    }

    /// Attempts that failed. Each is made again.
    pub fn errors(&self) -> u64 {
        self.errors.get()
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            (
                "throughline_swept_threads",
                "Threads erased because they were deleted or their time was over",
                &self.threads,
            ),
            (
                "throughline_swept_items",
                "Items erased with them",
                &self.items,
            ),
            (
                "throughline_sweep_errors",
                "Attempts to erase that failed and are made again",
                &self.errors,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

/// Sweep now and then again in every interval, until the server drains.
pub(crate) async fn sweep(runs: Arc<Runs>) {
    if planted("server-no-sweep") {
        return;
    }
    loop {
        if let Err(error) = sweep_once(&runs).await {
            runs.swept.errors.inc();
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "threads whose time is over cannot be removed now"
            );
        }
        tokio::select! {
            () = runs.stopping.draining() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Remove everything that is due, batch by batch.
async fn sweep_once(runs: &Runs) -> Result<()> {
    let mut gone = Purged::default();
    let result = loop {
        if runs.stopping.is_draining() {
            break Ok(());
        }
        match runs.store.purge(BATCH).await {
            Ok(purged) => {
                runs.swept.threads.inc_by(purged.threads);
                runs.swept.items.inc_by(purged.items);
                gone.threads += purged.threads;
                gone.items += purged.items;
                if !purged.more {
                    break Ok(());
                }
            }
            Err(error) => break Err(error),
        }
    };
    if gone != Purged::default() {
        // The store does not say of which threads: none may be remembered that is gone.
        runs.histories.clear();
        tracing::info!(
            threads = gone.threads,
            items = gone.items,
            "threads whose time is over are removed"
        );
    }
    result
}
