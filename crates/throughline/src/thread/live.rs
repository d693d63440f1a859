//! Registries of this process: runs that a task works on, and runs that wait for a thread.
//!
//! A store knows which process owns a run, but not whether a task of that process works on it:
//! after a storage error the task is gone while the process lives on. Such a run can be taken over
//! at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use throughline_store::{OwnerId, RunId, Store};
use tokio_util::sync::CancellationToken;

/// By owner (this process, as the store knows it) and run.
type Live = HashMap<(OwnerId, RunId), RunningTask>;

/// A run that a task works on.
struct RunningTask {
    /// Cancels the run.
    cancel: CancellationToken,
    /// Cancelled when the task ends.
    over: CancellationToken,
}

static LIVE: LazyLock<Mutex<Live>> = LazyLock::new(Mutex::default);

/// Runs that wait in a line. The token is cancelled when the run no longer waits.
static WAITING: LazyLock<Mutex<HashMap<(OwnerId, RunId), CancellationToken>>> =
    LazyLock::new(Mutex::default);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a run as being worked on, until it is dropped.
pub(crate) struct RunningRun(OwnerId, RunId);

impl RunningRun {
    /// Registers a new run.
    pub(crate) fn register(store: &Store, run: RunId, cancel: CancellationToken) -> Self {
        let owner = store.owner();
        lock(&LIVE).insert((owner, run), RunningTask::new(cancel));
        Self(owner, run)
    }

    /// Registers a run, unless a task works on it already.
    pub(crate) fn try_register(
        store: &Store,
        run: RunId,
        cancel: CancellationToken,
    ) -> Option<Self> {
        let owner = store.owner();
        match lock(&LIVE).entry((owner, run)) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                place.insert(RunningTask::new(cancel));
                Some(Self(owner, run))
            }
        }
    }
}

impl RunningTask {
    fn new(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            over: CancellationToken::new(),
        }
    }
}

impl Drop for RunningRun {
    fn drop(&mut self) {
        let work = lock(&LIVE).remove(&(self.0, self.1));
        if let Some(work) = work {
            work.over.cancel();
        }
    }
}

/// Registers a run as waiting in a line, until it is dropped.
pub(crate) struct QueuedRun(OwnerId, RunId);

impl QueuedRun {
    /// Registers a waiting run.
    pub(crate) fn register(store: &Store, run: RunId) -> Self {
        let owner = store.owner();
        lock(&WAITING).insert((owner, run), CancellationToken::new());
        Self(owner, run)
    }
}

impl Drop for QueuedRun {
    fn drop(&mut self) {
        let over = lock(&WAITING).remove(&(self.0, self.1));
        if let Some(over) = over {
            over.cancel();
        }
    }
}

/// Whether a task of this process works on a run.
pub(crate) fn is_running_here(store: &Store, run: RunId) -> bool {
    lock(&LIVE).contains_key(&(store.owner(), run))
}

/// Cancels a run if a task of this process works on it.
pub(crate) fn cancel(store: &Store, run: RunId) {
    let works = lock(&LIVE);
    let token = works
        .get(&(store.owner(), run))
        .map(|work| work.cancel.clone());
    drop(works);
    if let Some(token) = token {
        token.cancel();
    }
}

/// A token that is cancelled when this process stops working on a run, or when the run stops
/// waiting; `None` if this process does neither.
pub(crate) fn over(store: &Store, run: RunId) -> Option<CancellationToken> {
    let key = (store.owner(), run);
    let works = lock(&LIVE).get(&key).map(|work| work.over.clone());
    works.or_else(|| lock(&WAITING).get(&key).cloned())
}
