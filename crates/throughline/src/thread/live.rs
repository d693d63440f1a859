//! The runs that tasks of this process work on, and those that wait for a thread.
//!
//! A store knows which process owns a run, not whether anybody there still works on it: a task that
//! met a storage error is gone while its process lives on. Such a run can be taken over at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use throughline_store::{OwnerId, RunId, Store};
use tokio_util::sync::CancellationToken;

/// By the process as the store knows it, and the run.
type Live = HashMap<(OwnerId, RunId), RunningTask>;

/// What is known of a run that is worked on.
struct RunningTask {
    /// Cancels it.
    cancel: CancellationToken,
    /// Cancelled when the task that works on it ends.
    over: CancellationToken,
}

static LIVE: LazyLock<Mutex<Live>> = LazyLock::new(Mutex::default);

/// Runs that wait in a line; the token is cancelled when one does no longer.
static WAITING: LazyLock<Mutex<HashMap<(OwnerId, RunId), CancellationToken>>> =
    LazyLock::new(Mutex::default);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run is worked on while this is held.
pub(crate) struct AtWork(OwnerId, RunId);

impl AtWork {
    /// Work on a run that is new.
    pub(crate) fn on(store: &Store, run: RunId, cancel: CancellationToken) -> Self {
        let owner = store.owner();
        lock(&LIVE).insert((owner, run), RunningTask::new(cancel));
        Self(owner, run)
    }

    /// Work on a run, unless another task does.
    pub(crate) fn alone(store: &Store, run: RunId, cancel: CancellationToken) -> Option<Self> {
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

impl Drop for AtWork {
    fn drop(&mut self) {
        let work = lock(&LIVE).remove(&(self.0, self.1));
        if let Some(work) = work {
            work.over.cancel();
        }
    }
}

/// A run waits in a line while this is held.
pub(crate) struct QueuedRun(OwnerId, RunId);

impl QueuedRun {
    /// A run waits from now on.
    pub(crate) fn on(store: &Store, run: RunId) -> Self {
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
pub(crate) fn is_at_work(store: &Store, run: RunId) -> bool {
    lock(&LIVE).contains_key(&(store.owner(), run))
}

/// Cancel a run of this process, if it is one.
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

/// A token that is cancelled when this process no longer works on a run, or when the run no longer
/// waits; `None` if it does neither here.
pub(crate) fn over(store: &Store, run: RunId) -> Option<CancellationToken> {
    let key = (store.owner(), run);
    let works = lock(&LIVE).get(&key).map(|work| work.over.clone());
    works.or_else(|| lock(&WAITING).get(&key).cloned())
}
