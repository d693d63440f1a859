//! The queue of the writer thread, and what a process remembers between operations.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::job::{CacheUpdate, Job, JobOf, Tx};
use crate::engines::sqlite::cache::{Caches, lock};
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::watch::Watch;
use crate::trials::Op;
use crate::{Error, Millis, Options, OwnerId, Result, RunId};

/// The most operations in one transaction.
const MAX_GROUP: usize = 256;

/// The most operations that wait; further callers wait for room.
const MAX_WAITING: usize = 4096;

/// What the engine and its writer thread share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) owner: OwnerId,
    pub(crate) caches: Caches,
    pub(crate) watch: Watch,
    queue: Mutex<Queue>,
    /// Notified when the writer thread has something to do.
    wake: Condvar,
    room: Semaphore,
    closed: AtomicBool,
    /// The row of this process among the owners; 0 before the first run.
    pub(crate) owner_row: AtomicI64,
    /// When the last heartbeat was written.
    last_heartbeat: AtomicU64,
    /// A heartbeat was asked for.
    heartbeat_requested: AtomicBool,
    /// How many free runs were begun from a remembered thread.
    free: AtomicI64,
    /// Runs that this process began or claimed and has not settled.
    pub(crate) working: AtomicUsize,
    /// Runs of this process that wait in a wait queue.
    pub(crate) waiting: Mutex<HashSet<RunId>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    closing: bool,
    /// The writer thread has to do its upkeep before it sleeps again.
    must_wake: bool,
    /// The writer thread waits on `wake`.
    asleep: bool,
}

/// What the writer thread took from the queue.
pub(super) struct Taken {
    pub(super) jobs: Vec<Box<dyn Job>>,
    /// The store is being closed, and nothing is left in the queue.
    pub(super) last: bool,
}

impl Shared {
    pub(crate) fn new(options: Options, owner: OwnerId) -> Self {
        Self {
            options,
            owner,
            caches: Caches::new(),
            watch: Watch::default(),
            queue: Mutex::new(Queue::default()),
            wake: Condvar::new(),
            room: Semaphore::new(MAX_WAITING),
            closed: AtomicBool::new(false),
            owner_row: AtomicI64::new(0),
            last_heartbeat: AtomicU64::new(0),
            heartbeat_requested: AtomicBool::new(false),
            free: AtomicI64::new(0),
            working: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// A number for `run.live` of a free run that no other run of this process has; another process
    /// may have given it. Those of the slower path are above 0.
    pub(crate) fn free_number(&self) -> i64 {
        -1 - self.free.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Have the writer thread do something, and wait until it is committed. Once it is queued it is
    /// done, whether or not the caller still waits.
    ///
    /// `Op::Flush` is answered without an fsync, unless the group that it shares has one.
    pub(crate) async fn write<T, F>(&self, op: Op, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> OpResult<T> + Send + 'static,
    {
        let permit = self.room.acquire().await.map_err(|_| Error::Closed)?;
        let (job, answer) = JobOf::new(op, operation);
        self.enqueue(job)?;
        permit.forget();
        let outcome = answer.await.ok().and_then(|job| job.outcome);
        outcome.unwrap_or(Err(Error::Closed))
    }

    fn enqueue(&self, job: Box<dyn Job>) -> Result<()> {
        let mut queue = lock(&self.queue);
        if queue.closing {
            return Err(Error::Closed);
        }
        queue.jobs.push_back(job);
        self.wake_if_asleep(&mut queue);
        Ok(())
    }

    /// Have the writer thread do its upkeep: a caller has begun to watch a thread.
    pub(crate) fn wake_writer(&self) {
        let mut queue = lock(&self.queue);
        queue.must_wake = true;
        self.wake_if_asleep(&mut queue);
    }

    fn wake_if_asleep(&self, queue: &mut Queue) {
        if std::mem::take(&mut queue.asleep) {
            self.wake.notify_one();
        }
    }

    /// Take nothing new.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        lock(&self.queue).closing = true;
        self.room.close();
        self.wake.notify_all();
        self.watch.wake_all();
    }

    /// Drop the operations that wait; their callers are answered that the store is closed.
    pub(super) fn drop_waiting(&self) {
        let jobs = std::mem::take(&mut lock(&self.queue).jobs);
        drop(jobs);
    }

    /// Wait for work, at most so long, and take it.
    pub(super) fn take(&self, timeout: Option<Duration>) -> Taken {
        let mut queue = lock(&self.queue);
        if queue.jobs.is_empty() && !queue.closing && !queue.must_wake {
            queue.asleep = true;
            queue = match timeout {
                None => self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let waited = self.wake.wait_timeout(queue, timeout);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            queue.asleep = false;
        }
        queue.must_wake = false;
        let count = queue.jobs.len().min(MAX_GROUP);
        let jobs: Vec<_> = queue.jobs.drain(..count).collect();
        self.room.add_permits(jobs.len());
        Taken {
            jobs,
            last: queue.closing && queue.jobs.is_empty(),
        }
    }

    /// Whether the writer thread waits for something to do.
    #[cfg(test)]
    pub(crate) fn is_asleep(&self) -> bool {
        lock(&self.queue).asleep
    }

    /// Whether it is time for a heartbeat.
    pub(super) fn is_heartbeat_due(&self, now: Millis) -> bool {
        let third = u64::try_from(self.options.lease.as_millis() / 3).unwrap_or(u64::MAX);
        let last_heartbeat = self.last_heartbeat.load(Ordering::Relaxed);
        self.heartbeat_requested.load(Ordering::Relaxed)
            || self.owner_row.load(Ordering::Relaxed) == 0
            || now < last_heartbeat
            || now - last_heartbeat >= third
    }

    /// A heartbeat was written.
    pub(super) fn note_heartbeat(&self, row: i64, now: Millis) {
        self.owner_row.store(row, Ordering::Relaxed);
        self.last_heartbeat.store(now, Ordering::Relaxed);
        self.heartbeat_requested.store(false, Ordering::Relaxed);
    }

    /// Have the next heartbeat written however young the last one is.
    pub(crate) fn request_heartbeat(&self) {
        self.heartbeat_requested.store(true, Ordering::Relaxed);
    }

    /// Update the caches after a commit. Whether bytes were erased.
    pub(super) fn apply(&self, updates: Vec<CacheUpdate>) -> bool {
        let caches = &self.caches;
        let mut erased = false;
        for update in updates {
            match update {
                CacheUpdate::Tenant(tenant, row) => {
                    lock(&caches.tenants).insert(tenant, row);
                }
                CacheUpdate::Began => {
                    self.working.fetch_add(1, Ordering::Relaxed);
                }
                CacheUpdate::Run(live) => lock(&caches.live).insert(live.id, live),
                CacheUpdate::Settled(run) => {
                    lock(&caches.live).remove(&run);
                    let less = |count: usize| Some(count.saturating_sub(1));
                    // More settled than begun happens when a cache was lost; it is only a count.
                    let _ = self
                        .working
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
                }
                CacheUpdate::ForgetRun(run) => lock(&caches.live).remove(&run),
                CacheUpdate::JoinedWaitQueue(run) => {
                    lock(&self.waiting).insert(run);
                }
                CacheUpdate::LeftWaitQueue(run) => {
                    lock(&self.waiting).remove(&run);
                }
                CacheUpdate::Head(key, head) => lock(&caches.heads).insert(key, head),
                CacheUpdate::ForgetHead(key) => lock(&caches.heads).remove(&key),
                CacheUpdate::Ended(key, ended) => lock(&caches.ended).insert(key, ended),
                CacheUpdate::ThreadMoved(thread) => self.watch.wake(thread),
                CacheUpdate::Erased => erased = true,
            }
        }
        erased
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nudge_is_not_lost_on_a_writer_that_is_awake() {
        let shared = Shared::new(Options::default(), OwnerId::from_bytes([1; 16]));
        shared.wake_writer();
        // It does not sleep.
        let taken = shared.take(None);
        assert!(taken.jobs.is_empty() && !taken.last);
        assert!(!lock(&shared.queue).must_wake);
    }
}
