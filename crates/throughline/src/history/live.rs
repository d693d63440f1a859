//! The runs that tasks of this process work on.
//!
//! A store knows which process owns a run, not whether anybody there still works on it: a task that
//! met a storage error is gone while its process lives on. Such a run can be taken over at once.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use throughline_store::RunId;
use tokio_util::sync::CancellationToken;

static LIVE: LazyLock<Mutex<HashMap<RunId, CancellationToken>>> = LazyLock::new(Mutex::default);

fn live() -> MutexGuard<'static, HashMap<RunId, CancellationToken>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run is worked on while this is held.
pub(crate) struct AtWork(RunId);

impl AtWork {
    pub(crate) fn on(run: RunId, cancel: CancellationToken) -> Self {
        live().insert(run, cancel);
        Self(run)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        live().remove(&self.0);
    }
}

/// Whether a task of this process works on a run.
pub(crate) fn is_at_work(run: RunId) -> bool {
    live().contains_key(&run)
}

/// Cancel a run of this process, if it is one.
pub(crate) fn cancel(run: RunId) -> bool {
    let token = live().get(&run).cloned();
    let found = token.is_some();
    if let Some(token) = token {
        token.cancel();
    }
    found
}
