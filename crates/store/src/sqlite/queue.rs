//! What waits to be written, and what a process remembers once it is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::cache::{Caches, Ended, Head, Live, lock};
use super::disk::Owed;
use super::event_log::EventLog;
use super::fault::{Done, Stop};
use super::hot::Kept;
use super::watch::Watch;
use crate::trials::{self, Op};
use crate::{Error, Millis, Options, OwnerId, Result, RunId, Tenant, ThreadId};

/// Operations in one transaction at most.
const GROUP: usize = 256;

/// Operations that may wait.
const ROOM: usize = 4096;

/// What the engine and its writer share.
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) owner: OwnerId,
    pub(super) caches: Caches,
    pub(super) watch: Watch,
    pub(super) owed: Owed,
    queue: Mutex<Queue>,
    wake: Condvar,
    room: Semaphore,
    closed: AtomicBool,
    /// The row of this process among the owners; 0 before the first run.
    pub(super) owner_row: AtomicI64,
    /// When the last heartbeat was written.
    pub(super) beaten: AtomicU64,
    /// Somebody asked for one.
    pub(super) overdue: AtomicBool,
    /// How many free runs were begun by what is remembered.
    free: AtomicI64,
    /// Runs that this process began or claimed and has not settled.
    pub(super) working: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    /// How many of them may wait for others.
    patient: usize,
    closing: bool,
    sleep: Sleep,
}

/// What the writer waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sleep {
    /// Nothing: it works.
    #[default]
    Awake,
    /// Something to do.
    Empty,
    /// So many operations to write together.
    Gathering(usize),
}

/// How soon something must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Haste {
    Urgent,
    /// It may wait a moment for others, events of streams.
    Patient,
}

/// How something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Manner {
    haste: Haste,
    /// Whether its answer waits for the disk.
    waits: bool,
}

/// From how many runs on they are gathered. What is urgent ends that, and takes them along.
const MANY_STREAMS: usize = 8;

/// How long they are. Below the time between two flushes of a stream, and long beside a commit: who
/// comes with something urgent is to find the writer idle.
const GATHER: Duration = Duration::from_millis(5);

/// What changes in the caches when a transaction is committed.
pub(super) enum Effect {
    Tenant(Tenant, i64),
    Began,
    Live(Arc<Live>),
    Settled(RunId),
    Forget(RunId),
    Head((i64, ThreadId), Head),
    ForgetHead((i64, ThreadId)),
    Ended((i64, RunId), Ended),
    Moved(i64),
    /// Bytes were erased: they must not stay in the log.
    Erased,
}

/// One operation inside a transaction.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    /// The statements of every turn.
    pub(super) hot: &'a dyn Kept,
    pub(super) shared: &'a Shared,
    /// The events of live runs.
    pub(super) log: &'a EventLog,
    /// When the operation runs; for events, when one before them in the transaction did.
    pub(super) now: Millis,
    /// This process among the owners.
    pub(super) owner: i64,
    pub(super) effects: Vec<Effect>,
}

impl Tx<'_> {
    /// Remember something once it is committed.
    pub(super) fn then(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The row of a tenant; made if there is none.
    pub(super) fn tenant(&mut self, tenant: &Tenant) -> Done<i64> {
        if let Some(row) = self.known_tenant(tenant)? {
            return Ok(row);
        }
        let row = self.conn.query_row(
            "INSERT INTO tenant(name) VALUES(?) RETURNING tenant",
            [tenant.as_str()],
            |row| row.get(0),
        )?;
        self.effects.push(Effect::Tenant(tenant.clone(), row));
        Ok(row)
    }

    /// The row of a tenant, if it has one.
    pub(super) fn known_tenant(&mut self, tenant: &Tenant) -> Done<Option<i64>> {
        let known = super::find::tenant(self.conn, &self.shared.caches, tenant)?;
        Ok(known)
    }
}

/// An operation that waits, whatever it answers.
pub(super) trait Job: Send {
    fn op(&self) -> Op;
    /// Whether its answer waits for the disk.
    fn waits(&self) -> bool;
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Stop>;
    /// Do nothing, and answer with an error.
    fn refuse(&mut self, error: Error);
    fn answer(self: Box<Self>);
    fn fail(self: Box<Self>, error: Error);
}

struct JobOf<T, F> {
    operation: F,
    op: Op,
    waits: bool,
    outcome: Option<Result<T>>,
    /// The whole of it goes back to whoever asked, and is dropped there: the writer is one for all,
    /// and freeing what other threads made is dear.
    reply: Option<oneshot::Sender<Box<Self>>>,
}

impl<T, F> Job for JobOf<T, F>
where
    T: Send,
    F: Fn(&mut Tx<'_>) -> Done<T> + Send,
{
    fn op(&self) -> Op {
        self.op
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Stop> {
        let mark = tx.effects.len();
        let before = tx.conn.total_changes();
        match (self.operation)(tx) {
            Ok(done) => {
                self.outcome = Some(Ok(done));
                Ok(())
            }
            // A refusal that came too late: what it wrote has to go, so the group goes.
            Err(Stop::Refused(error))
                if trials::unless("late-refusal", tx.conn.total_changes() != before) =>
            {
                tx.effects.truncate(mark);
                self.outcome = None;
                Err(Stop::Broken(error))
            }
            Err(Stop::Refused(error)) => {
                // What was learnt while refusing may stay: it is only forgotten things.
                self.outcome = Some(Err(error));
                Ok(())
            }
            Err(broken) => {
                tx.effects.truncate(mark);
                self.outcome = None;
                Err(broken)
            }
        }
    }

    fn refuse(&mut self, error: Error) {
        self.outcome = Some(Err(error));
    }

    fn answer(mut self: Box<Self>) {
        if let Some(reply) = self.reply.take() {
            // Whoever asked may have gone; what was written stays written.
            let _ = reply.send(self);
        }
    }

    fn fail(mut self: Box<Self>, error: Error) {
        self.refuse(error);
        self.answer();
    }
}

impl Shared {
    pub(super) fn new(options: Options, owner: OwnerId) -> Self {
        Self {
            options,
            owner,
            caches: Caches::new(),
            watch: Watch::default(),
            owed: Owed::default(),
            queue: Mutex::new(Queue::default()),
            wake: Condvar::new(),
            room: Semaphore::new(ROOM),
            closed: AtomicBool::new(false),
            owner_row: AtomicI64::new(0),
            beaten: AtomicU64::new(0),
            overdue: AtomicBool::new(false),
            free: AtomicI64::new(0),
            working: AtomicUsize::new(0),
        }
    }

    /// A number for `run.live` of a free run that none of this process has; another process may have
    /// given it. Those of the slower way are above 0.
    pub(super) fn free_number(&self) -> i64 {
        -1 - self.free.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Have something written. Once it waits it will be, whether or not the caller does.
    pub(super) async fn write<T, F>(&self, op: Op, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let manner = Manner {
            haste: Haste::Urgent,
            waits: true,
        };
        self.hand_over(manner, op, operation).await
    }

    /// The same for the beginning of a run, which may be answered before the disk has it.
    pub(super) async fn write_begin<T, F>(&self, early: bool, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let manner = Manner {
            haste: Haste::Urgent,
            waits: !early,
        };
        self.hand_over(manner, Op::Begin, operation).await
    }

    /// The same for events, which may wait a moment so that many streams share a commit, unless they
    /// are urgent.
    pub(super) async fn write_events<T, F>(&self, urgent: bool, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let haste = match urgent {
            true => Haste::Urgent,
            false => Haste::Patient,
        };
        let manner = Manner {
            haste,
            waits: false,
        };
        self.hand_over(manner, Op::Flush, operation).await
    }

    async fn hand_over<T, F>(&self, manner: Manner, op: Op, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let permit = self.room.acquire().await.map_err(|_| Error::Closed)?;
        permit.forget();
        let (reply, answer) = oneshot::channel();
        let job = Box::new(JobOf {
            operation,
            op,
            waits: manner.waits,
            outcome: None,
            reply: Some(reply),
        });
        let asleep = {
            let mut queue = lock(&self.queue);
            if queue.closing {
                return Err(Error::Closed);
            }
            queue.jobs.push_back(job);
            let is_urgent = manner.haste == Haste::Urgent;
            queue.patient += usize::from(!is_urgent);
            let wakes = match queue.sleep {
                Sleep::Awake => false,
                Sleep::Empty => true,
                Sleep::Gathering(enough) => is_urgent || queue.jobs.len() >= enough,
            };
            if wakes {
                queue.sleep = Sleep::Awake;
            }
            wakes
        };
        if asleep {
            self.wake.notify_one();
        }
        let outcome = answer.await.ok().and_then(|job| job.outcome);
        outcome.unwrap_or(Err(Error::Closed))
    }

    /// Have the next heartbeat written however young the last one is.
    pub(super) fn beat_now(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    /// Take nothing new.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        lock(&self.queue).closing = true;
        self.room.close();
        self.wake.notify_all();
        self.watch.wake_all();
    }

    /// There is no writer: answer whoever waits.
    pub(super) fn abandon(&self) {
        self.close();
        lock(&self.queue).jobs.clear();
    }

    /// Wake the writer so that it looks at what it has to watch.
    pub(super) fn nudge(&self) {
        let asleep = std::mem::take(&mut lock(&self.queue).sleep);
        if asleep != Sleep::Awake {
            self.wake.notify_one();
        }
    }

    /// Wait for work, at most so long.
    pub(super) fn take(&self, patience: Option<Duration>) -> (Vec<Box<dyn Job>>, bool) {
        let mut queue = self.gather(lock(&self.queue));
        if queue.jobs.is_empty() && !queue.closing {
            queue = self.sleep(queue, Sleep::Empty, patience);
            queue = self.gather(queue);
        }
        self.drain(queue)
    }

    /// Take what there is, without waiting for more.
    pub(super) fn take_waiting(&self) -> (Vec<Box<dyn Job>>, bool) {
        self.drain(lock(&self.queue))
    }

    fn drain(&self, mut queue: MutexGuard<'_, Queue>) -> (Vec<Box<dyn Job>>, bool) {
        let count = queue.jobs.len().min(GROUP);
        let jobs: Vec<_> = queue.jobs.drain(..count).collect();
        if count > 0 {
            // Of those that are left nobody knows; they go next.
            queue.patient = 0;
        }
        self.room.add_permits(count);
        (jobs, queue.closing && queue.jobs.is_empty())
    }

    /// While many runs stream, what they write gathers for a moment: one commit for all of them.
    fn gather<'q>(&self, queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let streams = self.working.load(Ordering::Relaxed).min(GROUP);
        let waiting = queue.jobs.len();
        let patient = waiting > 0 && queue.patient == waiting;
        if !patient || streams < MANY_STREAMS || waiting >= streams || queue.closing {
            return queue;
        }
        self.sleep(queue, Sleep::Gathering(streams), Some(GATHER))
    }

    /// Sleep until something comes that is worth it, at most so long.
    fn sleep<'q>(
        &self,
        mut queue: MutexGuard<'q, Queue>,
        sleep: Sleep,
        patience: Option<Duration>,
    ) -> MutexGuard<'q, Queue> {
        queue.sleep = sleep;
        queue = match patience {
            None => self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.wake.wait_timeout(queue, patience);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        queue.sleep = Sleep::Awake;
        queue
    }

    pub(super) fn apply(&self, effects: Vec<Effect>) -> bool {
        let caches = &self.caches;
        let mut erased = false;
        for effect in effects {
            match effect {
                Effect::Tenant(tenant, row) => {
                    lock(&caches.tenants).insert(tenant, row);
                }
                Effect::Began => {
                    self.working.fetch_add(1, Ordering::Relaxed);
                }
                Effect::Live(live) => lock(&caches.live).insert(live.id, live),
                Effect::Settled(run) => {
                    lock(&caches.live).remove(&run);
                    let less = |count: usize| Some(count.saturating_sub(1));
                    // More settled than begun happens when a cache was lost; it is only a count.
                    let _ = self
                        .working
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
                }
                Effect::Forget(run) => lock(&caches.live).remove(&run),
                Effect::Head(key, head) => lock(&caches.heads).insert(key, head),
                Effect::ForgetHead(key) => lock(&caches.heads).remove(&key),
                Effect::Ended(key, ended) => lock(&caches.ended).insert(key, ended),
                Effect::Moved(thread) => self.watch.wake(thread),
                Effect::Erased => erased = true,
            }
        }
        erased
    }
}
