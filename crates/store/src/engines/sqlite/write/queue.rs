//! What waits to be written, and what a process remembers once it is.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::engines::sqlite::cache::{Caches, Ended, Head, Live, lock};
use crate::engines::sqlite::events::EventLog;
use crate::engines::sqlite::fault::{Done, Stop};
use crate::engines::sqlite::watch::Watch;
use crate::engines::sqlite::write::disk::{LogFile, Owed, Owes};
use crate::engines::sqlite::write::hot::Statements;
use crate::engines::sqlite::write::pen::Pen;
use crate::trials::{self, Op};
use crate::{Error, Millis, Options, OwnerId, Result, RunId, Tenant, ThreadId};

/// Operations in one transaction at most.
const GROUP: usize = 256;

/// Operations that may wait.
const ROOM: usize = 4096;

/// What the engine and its writer share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) owner: OwnerId,
    pub(crate) caches: Caches,
    pub(crate) watch: Watch,
    pub(crate) owed: Owed,
    /// What writing takes; nothing before the store is open and when it is closed. Whoever has the
    /// queue may try to get it but not wait for it.
    pub(crate) pen: Mutex<Option<Pen>>,
    queue: Mutex<Queue>,
    wake: Condvar,
    room: Semaphore,
    closed: AtomicBool,
    /// The row of this process among the owners; 0 before the first run.
    pub(crate) owner_row: AtomicI64,
    /// When the last heartbeat was written.
    pub(crate) beaten: AtomicU64,
    /// Somebody asked for one.
    pub(crate) overdue: AtomicBool,
    /// How many free runs were begun by what is remembered.
    free: AtomicI64,
    /// Runs that this process began or claimed and has not settled.
    pub(crate) working: AtomicUsize,
    /// Runs of this process that wait in a line.
    pub(crate) waiting: Mutex<HashSet<RunId>>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<(Manner, Box<dyn Job>)>,
    /// How many of them may wait for others.
    patient: usize,
    /// When those that wait for others have waited long enough.
    ripe: Option<Instant>,
    closing: bool,
    /// The writer is to look around before it sleeps again.
    nudged: bool,
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
    /// The disk, which takes what it is owed. Whoever wants the pen meanwhile may have it.
    Disk,
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
    /// The run whose events it has.
    run: Option<RunId>,
}

/// Who writes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Here,
    ByTheWriter,
}

/// From how many runs on they are gathered. What waits for the disk ends that, and takes them along.
const MANY_STREAMS: usize = 8;

/// How long they are. Below the time between two flushes of a stream, and long beside a commit: who
/// comes with something urgent is to find the writer idle.
const GATHER: Duration = Duration::from_millis(5);

impl Queue {
    /// Whether there are events only, of fewer than so many runs, that may wait for more.
    fn is_gathering(&self, streams: usize, now: Instant) -> bool {
        let waiting = self.jobs.len();
        let patient = waiting > 0 && self.patient == waiting && !self.closing;
        patient && streams >= MANY_STREAMS && waiting < streams && !self.is_ripe(now)
    }

    fn is_ripe(&self, now: Instant) -> bool {
        self.ripe.is_some_and(|ripe| ripe <= now)
    }

    /// Whether something that is urgent and does not wait for the disk came while others gather: it
    /// goes first, because whoever waits for it would wait for all of them, and for those who are
    /// told of theirs. Not for ever, and events of one run stay in their order.
    fn is_overtaken(&self, now: Instant) -> bool {
        let urgent = self.jobs.len() - self.patient;
        if self.patient == 0 || self.is_ripe(now) || !(1..=GROUP).contains(&urgent) {
            return false;
        }
        let of = |haste: Haste| {
            let manners = self.jobs.iter().map(|(manner, _)| manner);
            manners.filter(move |manner| manner.haste == haste)
        };
        let mut urgent = of(Haste::Urgent);
        urgent.all(|one| !one.waits && !one.run.is_some_and(|run| self.gathers(run)))
    }

    /// Whether events of a run wait for those of others.
    fn gathers(&self, run: RunId) -> bool {
        let mut manners = self.jobs.iter().map(|(manner, _)| manner);
        manners.any(|one| one.haste == Haste::Patient && one.run == Some(run))
    }

    /// Take what is urgent.
    fn overtake(&mut self, now: Instant) -> Vec<Box<dyn Job>> {
        let mut urgent = Vec::new();
        for (manner, job) in std::mem::take(&mut self.jobs) {
            match manner.haste {
                Haste::Urgent => urgent.push(job),
                Haste::Patient => self.jobs.push_back((manner, job)),
            }
        }
        self.ripe.get_or_insert(now + GATHER);
        urgent
    }

    /// Take as many as go together.
    fn first(&mut self, now: Instant) -> Vec<Box<dyn Job>> {
        let count = self.jobs.len().min(GROUP);
        let first: Vec<_> = self.jobs.drain(..count).collect();
        let patient = |(manner, _): &&(Manner, _)| manner.haste == Haste::Patient;
        self.patient -= first.iter().filter(patient).count();
        // Those that are left waited long enough too.
        self.ripe = (!self.jobs.is_empty()).then_some(now);
        first.into_iter().map(|(_, job)| job).collect()
    }
}

/// What changes in the caches when a transaction is committed.
pub(crate) enum Effect {
    Tenant(Tenant, i64),
    Began,
    Live(Arc<Live>),
    Settled(RunId),
    Forget(RunId),
    /// A run has a place in a line.
    Waits(RunId),
    /// A run has none any more.
    WaitsNoMore(RunId),
    Head((i64, ThreadId), Head),
    ForgetHead((i64, ThreadId)),
    Ended((i64, RunId), Ended),
    Moved(i64),
    /// Bytes were erased: they must not stay in the log.
    Erased,
}

/// One operation inside a transaction.
pub(crate) struct Tx<'a> {
    pub(crate) conn: &'a Connection,
    /// The statements of every turn.
    pub(crate) hot: Statements<'a>,
    pub(crate) shared: &'a Shared,
    /// The events of live runs.
    pub(crate) log: &'a EventLog,
    /// When the operation runs; for events, when one before them in the transaction did.
    pub(crate) now: Millis,
    /// This process among the owners.
    pub(crate) owner: i64,
    pub(crate) effects: Vec<Effect>,
}

impl Tx<'_> {
    /// Remember something once it is committed.
    pub(crate) fn then(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The row of a tenant; made if there is none.
    pub(crate) fn tenant(&mut self, tenant: &Tenant) -> Done<i64> {
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
    pub(crate) fn known_tenant(&mut self, tenant: &Tenant) -> Done<Option<i64>> {
        let known =
            crate::engines::sqlite::rows::find::tenant(self.conn, &self.shared.caches, tenant)?;
        Ok(known)
    }
}

/// An operation that waits, whatever it answers.
pub(crate) trait Job: Send {
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
    pub(crate) fn new(options: Options, owner: OwnerId) -> Self {
        Self {
            options,
            owner,
            caches: Caches::new(),
            watch: Watch::default(),
            owed: Owed::default(),
            pen: Mutex::new(None),
            queue: Mutex::new(Queue::default()),
            wake: Condvar::new(),
            room: Semaphore::new(ROOM),
            closed: AtomicBool::new(false),
            owner_row: AtomicI64::new(0),
            beaten: AtomicU64::new(0),
            overdue: AtomicBool::new(false),
            free: AtomicI64::new(0),
            working: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// A number for `run.live` of a free run that none of this process has; another process may have
    /// given it. Those of the slower way are above 0.
    pub(crate) fn free_number(&self) -> i64 {
        -1 - self.free.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Have something written. Once it waits it will be, whether or not the caller does.
    pub(crate) async fn write<T, F>(&self, op: Op, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let manner = Manner {
            haste: Haste::Urgent,
            waits: true,
            run: None,
        };
        self.hand_over(manner, op, operation).await
    }

    /// The same for the beginning of a run, which may be answered before the disk has it.
    pub(crate) async fn write_begin<T, F>(&self, early: bool, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let manner = Manner {
            haste: Haste::Urgent,
            waits: !early,
            run: None,
        };
        self.hand_over(manner, Op::Begin, operation).await
    }

    /// The same for events, which may wait a moment so that many streams share a commit, unless they
    /// are urgent.
    pub(crate) async fn write_events<T, F>(
        &self,
        run: RunId,
        urgent: bool,
        operation: F,
    ) -> Result<T>
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
            run: Some(run),
        };
        self.hand_over(manner, Op::Flush, operation).await
    }

    async fn hand_over<T, F>(&self, manner: Manner, op: Op, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let permit = self.room.acquire().await.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(JobOf {
            operation,
            op,
            waits: manner.waits,
            outcome: None,
            reply: Some(reply),
        });
        if self.write_here(manner, job)? == Where::ByTheWriter {
            permit.forget();
        }
        let outcome = answer.await.ok().and_then(|job| job.outcome);
        outcome.unwrap_or(Err(Error::Closed))
    }

    /// Write something here and now if nothing has to be waited for, and otherwise have the writer do
    /// it: waking a thread and being woken by it takes longer than writing a few rows.
    fn write_here(&self, manner: Manner, job: Box<dyn Job>) -> Result<Where> {
        let queue = self.open_queue()?;
        let Some(mut held) = self.pen_for(manner, &queue) else {
            self.line_up(manner, job, queue);
            return Ok(Where::ByTheWriter);
        };
        drop(queue);
        let Some(pen) = held.as_mut() else {
            return Err(Error::Closed);
        };
        let left = pen.at_once(self, job);
        let is_for_the_writer = matches!(self.owed.owes(), Owes::Now(_)) || pen.is_log_long();
        drop(held);
        match left {
            Ok(()) => {
                if is_for_the_writer {
                    self.nudge();
                }
                Ok(Where::Here)
            }
            Err(job) => {
                self.line_up(manner, job, self.open_queue()?);
                Ok(Where::ByTheWriter)
            }
        }
    }

    fn open_queue(&self) -> Result<MutexGuard<'_, Queue>> {
        let queue = lock(&self.queue);
        match queue.closing {
            true => Err(Error::Closed),
            false => Ok(queue),
        }
    }

    /// The pen, if the writer sleeps and would write this alone, and at once.
    fn pen_for(&self, manner: Manner, queue: &Queue) -> Option<MutexGuard<'_, Option<Pen>>> {
        if manner.waits || queue.sleep == Sleep::Awake {
            return None;
        }
        let is_alone = match manner.haste {
            // Who asked for something urgent before goes first.
            Haste::Urgent => {
                queue.jobs.len() == queue.patient
                    && !manner.run.is_some_and(|run| queue.gathers(run))
            }
            Haste::Patient => queue.jobs.is_empty() && self.streams() < MANY_STREAMS,
        };
        if !is_alone {
            return None;
        }
        match self.pen.try_lock() {
            Ok(pen) => Some(pen),
            // Whoever wrote broke off; what is left of that is rolled back first.
            Err(TryLockError::Poisoned(pen)) => Some(pen.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Have something wait for the writer.
    fn line_up(&self, manner: Manner, job: Box<dyn Job>, mut queue: MutexGuard<'_, Queue>) {
        queue.jobs.push_back((manner, job));
        let is_urgent = manner.haste == Haste::Urgent;
        queue.patient += usize::from(!is_urgent);
        let wakes = match queue.sleep {
            Sleep::Awake | Sleep::Disk => false,
            Sleep::Empty => true,
            Sleep::Gathering(enough) => is_urgent || queue.jobs.len() >= enough,
        };
        if wakes {
            queue.sleep = Sleep::Awake;
        }
        drop(queue);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Whether it is time for a heartbeat.
    pub(crate) fn is_beat_due(&self, now: Millis) -> bool {
        let third = u64::try_from(self.options.lease.as_millis() / 3).unwrap_or(u64::MAX);
        let beaten = self.beaten.load(Ordering::Relaxed);
        self.overdue.load(Ordering::Relaxed)
            || self.owner_row.load(Ordering::Relaxed) == 0
            || now < beaten
            || now - beaten >= third
    }

    /// A heartbeat was written.
    pub(crate) fn note_beat(&self, row: i64, now: Millis) {
        self.owner_row.store(row, Ordering::Relaxed);
        self.beaten.store(now, Ordering::Relaxed);
        self.overdue.store(false, Ordering::Relaxed);
    }

    /// Have the next heartbeat written however young the last one is.
    pub(crate) fn beat_now(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    /// Take nothing new.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        lock(&self.queue).closing = true;
        self.room.close();
        self.wake.notify_all();
        self.watch.wake_all();
    }

    /// Have the writer look around: at what it has to watch, and at what the pen is left with. It does
    /// so before it sleeps if it is awake.
    pub(crate) fn nudge(&self) {
        let mut queue = lock(&self.queue);
        queue.nudged = true;
        if matches!(queue.sleep, Sleep::Awake | Sleep::Disk) {
            return;
        }
        queue.sleep = Sleep::Awake;
        drop(queue);
        self.wake.notify_one();
    }

    /// Bring to the disk what it is owed. Nobody has to wait for it who wants to write.
    pub(crate) fn pay(&self, upto: u64, file: &LogFile) -> Done<()> {
        lock(&self.queue).sleep = Sleep::Disk;
        let synced = file.sync();
        lock(&self.queue).sleep = Sleep::Awake;
        match synced {
            Ok(()) => self.owed.paid(upto),
            Err(_) => self.owed.failed(),
        }
        synced
    }

    /// Wait for work, at most so long.
    pub(crate) fn wait(&self, patience: Option<Duration>) {
        let mut queue = self.gather(lock(&self.queue));
        if queue.jobs.is_empty() && !queue.closing && !queue.nudged {
            queue = self.sleep(queue, Sleep::Empty, patience);
            drop(self.gather(queue));
        }
    }

    /// Take what waits, and say whether that was the last. Events that gather are left alone if there is
    /// something else to do: the writer was nudged, or `owes`.
    pub(crate) fn take(&self, owes: bool) -> (Vec<Box<dyn Job>>, bool) {
        let mut queue = lock(&self.queue);
        let now = Instant::now();
        let has_to = std::mem::take(&mut queue.nudged) || owes;
        let jobs = if has_to && queue.is_gathering(self.streams(), now) {
            Vec::new()
        } else if queue.is_overtaken(now) {
            queue.overtake(now)
        } else {
            queue.first(now)
        };
        self.room.add_permits(jobs.len());
        (jobs, queue.closing && queue.jobs.is_empty())
    }

    /// Whether the writer waits for something to do.
    #[cfg(test)]
    pub(crate) fn is_asleep(&self) -> bool {
        lock(&self.queue).sleep == Sleep::Empty
    }

    /// How many runs may stream, as far as that counts.
    fn streams(&self) -> usize {
        self.working.load(Ordering::Relaxed).min(GROUP)
    }

    /// While many runs stream, what they write gathers for a moment: one commit for all of them.
    fn gather<'q>(&self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let (streams, now) = (self.streams(), Instant::now());
        if queue.nudged || !queue.is_gathering(streams, now) {
            return queue;
        }
        let ripe = *queue.ripe.get_or_insert(now + GATHER);
        self.sleep(queue, Sleep::Gathering(streams), Some(ripe - now))
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

    pub(crate) fn apply(&self, effects: Vec<Effect>) -> bool {
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
                Effect::Waits(run) => {
                    lock(&self.waiting).insert(run);
                }
                Effect::WaitsNoMore(run) => {
                    lock(&self.waiting).remove(&run);
                }
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

#[cfg(test)]
mod tests;
