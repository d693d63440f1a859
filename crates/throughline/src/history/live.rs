//! The runs that tasks of this process work on.
//!
//! A store knows which process owns a run, not whether anybody there still works on it: a task that
//! met a storage error is gone while its process lives on. Such a run can be taken over at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use throughline_store::{OwnerId, RunId, Store};
use tokio_util::sync::CancellationToken;

/// By the process as the store knows it, and the run.
type Live = HashMap<(OwnerId, RunId), CancellationToken>;

static LIVE: LazyLock<Mutex<Live>> = LazyLock::new(Mutex::default);

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run is worked on while this is held.
pub(crate) struct AtWork(OwnerId, RunId);

impl AtWork {
    /// Work on a run that is new.
    pub(crate) fn on(store: &Store, run: RunId, cancel: CancellationToken) -> Self {
        let owner = store.owner();
        live().insert((owner, run), cancel);
        Self(owner, run)
    }

    /// Work on a run, unless another task does.
    pub(crate) fn alone(store: &Store, run: RunId, cancel: CancellationToken) -> Option<Self> {
        let owner = store.owner();
        match live().entry((owner, run)) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(cancel);
                Some(Self(owner, run))
            }
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        live().remove(&(self.0, self.1));
    }
}

/// Whether a task of this process works on a run.
pub(crate) fn is_at_work(store: &Store, run: RunId) -> bool {
    live().contains_key(&(store.owner(), run))
}

/// Cancel a run of this process, if it is one.
pub(crate) fn cancel(store: &Store, run: RunId) {
    let token = live().get(&(store.owner(), run)).cloned();
    if let Some(token) = token {
        token.cancel();
    }
}
