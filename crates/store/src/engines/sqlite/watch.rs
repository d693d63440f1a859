//! Waking callers that wait for a thread to change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::cache::lock;

/// Who waits for which thread.
#[derive(Default)]
pub(super) struct Watch {
    waiting: AtomicUsize,
    threads: Mutex<HashMap<i64, Arc<Notify>>>,
}

/// A caller that waits; dropping it ends the wait.
pub(super) struct Watching<'a> {
    watch: &'a Watch,
    thread: i64,
    pub(super) notify: Arc<Notify>,
}

impl Watch {
    pub(super) fn is_watched(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    pub(super) fn on(&self, thread: i64) -> Watching<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let notify = Arc::clone(lock(&self.threads).entry(thread).or_default());
        Watching {
            watch: self,
            thread,
            notify,
        }
    }

    /// A thread has changed.
    pub(super) fn wake(&self, thread: i64) {
        if self.is_watched()
            && let Some(notify) = lock(&self.threads).get(&thread)
        {
            notify.notify_waiters();
        }
    }

    /// Any thread may have changed.
    pub(super) fn wake_all(&self) {
        for notify in lock(&self.threads).values() {
            notify.notify_waiters();
        }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.watch.waiting.fetch_sub(1, Ordering::AcqRel);
        let mut threads = lock(&self.watch.threads);
        // Two owners: the map and this one. A later caller makes a new entry.
        if threads
            .get(&self.thread)
            .is_some_and(|notify| Arc::strong_count(notify) <= 2)
        {
            threads.remove(&self.thread);
        }
    }
}
