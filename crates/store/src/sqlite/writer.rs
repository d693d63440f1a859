//! The one thread that writes.
//!
//! It takes everything that waits, puts it into one transaction and commits once for all. An
//! operation that is refused has written nothing, so the others go on. When the storage fails, the
//! group is rolled back and its members are tried one by one: they are values, nobody was answered,
//! so nothing is lost and nothing done twice.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::cache::{Caches, Head, Live, lock};
use super::fault::{Done, Stop, storage};
use super::rows::int;
use super::sql::prepare;
use super::watch::Watch;
use crate::{Error, Heartbeat, Millis, Options, OwnerId, Result, RunId, Tenant, ThreadId};

/// Operations in one transaction at most.
const GROUP: usize = 256;
/// Operations that may wait.
const ROOM: usize = 4096;
/// How often other processes' commits are looked for while somebody waits for a change.
const LOOK: Duration = Duration::from_millis(50);

/// What the engine and its writer share.
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) owner: OwnerId,
    pub(super) caches: Caches,
    pub(super) watch: Watch,
    queue: Mutex<Queue>,
    wake: Condvar,
    room: Semaphore,
    closed: AtomicBool,
    /// The row of this process among the owners; 0 before the first run.
    owner_row: AtomicI64,
    /// When the last heartbeat was written.
    beaten: AtomicU64,
    /// Somebody asked for one.
    overdue: AtomicBool,
    /// Runs that this process began or claimed and has not settled.
    pub(super) working: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    asleep: bool,
    closing: bool,
}

/// What changes in the caches when a transaction is committed.
pub(super) enum Effect {
    Tenant(Tenant, i64),
    Began,
    Live(Arc<Live>),
    Settled(RunId),
    Forget(RunId),
    Head((i64, ThreadId), Head),
    ForgetHead((i64, ThreadId)),
    Moved(i64),
    /// Bytes were erased: they must not stay in the log.
    Erased,
}

/// One operation inside a transaction.
pub(super) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) shared: &'a Shared,
    /// When the operation runs.
    pub(super) now: Millis,
    /// This process among the owners.
    pub(super) owner: i64,
    /// Whether it was tried before, with others.
    pub(super) again: bool,
    effects: Vec<Effect>,
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
        let known = super::rows::tenant(self.conn, &self.shared.caches, tenant)?;
        Ok(known)
    }
}

/// An operation that waits, whatever it answers.
trait Job: Send {
    fn owns(&self) -> bool;
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Stop>;
    fn answer(self: Box<Self>);
    fn fail(self: Box<Self>, error: Error);
}

struct JobOf<T, F> {
    operation: F,
    owns: bool,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for JobOf<T, F>
where
    T: Send,
    F: Fn(&mut Tx<'_>) -> Done<T> + Send,
{
    fn owns(&self) -> bool {
        self.owns
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
            Err(Stop::Refused(error)) if tx.conn.total_changes() != before => {
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

    fn answer(self: Box<Self>) {
        let outcome = self.outcome.unwrap_or(Err(Error::Closed));
        // Whoever asked may have gone; what was written stays written.
        let _ = self.reply.send(outcome);
    }

    fn fail(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error));
    }
}

impl Shared {
    pub(super) fn new(options: Options, owner: OwnerId) -> Self {
        Self {
            options,
            owner,
            caches: Caches::new(),
            watch: Watch::default(),
            queue: Mutex::new(Queue::default()),
            wake: Condvar::new(),
            room: Semaphore::new(ROOM),
            closed: AtomicBool::new(false),
            owner_row: AtomicI64::new(0),
            beaten: AtomicU64::new(0),
            overdue: AtomicBool::new(false),
            working: AtomicUsize::new(0),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Have something written. Once it waits it will be, whether or not the caller does.
    pub(super) async fn write<T, F>(&self, owns: bool, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Done<T> + Send + 'static,
    {
        let permit = self.room.acquire().await.map_err(|_| Error::Closed)?;
        permit.forget();
        let (reply, answer) = oneshot::channel();
        let job = JobOf {
            operation,
            owns,
            outcome: None,
            reply,
        };
        let asleep = {
            let mut queue = lock(&self.queue);
            if queue.closing {
                return Err(Error::Closed);
            }
            queue.jobs.push_back(Box::new(job));
            std::mem::take(&mut queue.asleep)
        };
        if asleep {
            self.wake.notify_one();
        }
        answer.await.unwrap_or(Err(Error::Closed))
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

    /// Wake the writer so that it looks at what it has to watch.
    pub(super) fn nudge(&self) {
        let asleep = std::mem::take(&mut lock(&self.queue).asleep);
        if asleep {
            self.wake.notify_one();
        }
    }

    /// Wait for work, at most so long.
    fn take(&self, patience: Option<Duration>) -> (Vec<Box<dyn Job>>, bool) {
        let mut queue = lock(&self.queue);
        if queue.jobs.is_empty() && !queue.closing {
            queue.asleep = true;
            queue = match patience {
                None => self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(std::sync::PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.wake.wait_timeout(queue, patience);
                    waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
                }
            };
            queue.asleep = false;
        }
        let count = queue.jobs.len().min(GROUP);
        let jobs: Vec<_> = queue.jobs.drain(..count).collect();
        self.room.add_permits(count);
        (jobs, queue.closing && queue.jobs.is_empty())
    }

    fn apply(&self, effects: Vec<Effect>) -> bool {
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
                Effect::Moved(thread) => self.watch.wake(thread),
                Effect::Erased => erased = true,
            }
        }
        erased
    }
}

/// The writer's own things.
struct Writer {
    conn: Connection,
    shared: Arc<Shared>,
    /// When other processes' commits were last looked for, and what was seen.
    looked: Instant,
    seen: Option<i64>,
}

/// Write until the engine is closed and nothing waits any more.
pub(super) fn run(conn: Connection, shared: Arc<Shared>) {
    let mut writer = Writer {
        conn,
        shared,
        looked: Instant::now(),
        seen: None,
    };
    loop {
        let (jobs, last) = writer.shared.take(writer.patience());
        if !jobs.is_empty() {
            writer.group(jobs);
        }
        if last {
            break;
        }
        writer.look();
        writer.keep_alive();
    }
    writer.leave();
}

impl Writer {
    /// How long nothing has to be done unless something comes.
    fn patience(&self) -> Option<Duration> {
        let beat = self.beats().then(|| self.shared.options.lease / 3);
        let look = self.shared.watch.is_watched().then_some(LOOK);
        match (beat, look) {
            (Some(beat), Some(look)) => Some(beat.min(look)),
            (beat, look) => beat.or(look),
        }
    }

    fn beats(&self) -> bool {
        self.shared.options.heartbeat == Heartbeat::Automatic
            && self.shared.working.load(Ordering::Relaxed) > 0
    }

    /// See whether another process has written, while somebody waits for that.
    fn look(&mut self) {
        if !self.shared.watch.is_watched() {
            self.seen = None;
            return;
        }
        if self.seen.is_some() && self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let version = prepare(&self.conn, "PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
        let Ok(version) = version else { return };
        // The first look of a watch may come after the change that is waited for.
        if self.seen != Some(version) {
            self.shared.watch.wake_all();
        }
        self.seen = Some(version);
    }

    /// Write a heartbeat if the last one is old and there is something to keep.
    fn keep_alive(&mut self) {
        if self.beats() && self.is_beat_due(self.shared.options.clock.now()) {
            let begun = self.conn.execute_batch("BEGIN IMMEDIATE");
            let beaten = begun.map_err(Stop::from).and_then(|()| {
                let now = self.shared.options.clock.now();
                let beat = self.beat(now)?;
                self.conn.execute_batch("COMMIT")?;
                Ok((beat, now))
            });
            match beaten {
                Ok((row, now)) => self.note_beat(row, now),
                // The next turn of the loop tries again, well before the lease is over.
                Err(_) => self.roll_back(),
            }
        }
    }

    fn is_beat_due(&self, now: Millis) -> bool {
        let third = u64::try_from(self.shared.options.lease.as_millis() / 3).unwrap_or(u64::MAX);
        let beaten = self.shared.beaten.load(Ordering::Relaxed);
        self.shared.overdue.load(Ordering::Relaxed)
            || self.shared.owner_row.load(Ordering::Relaxed) == 0
            || now < beaten
            || now - beaten >= third
    }

    /// Write the row that says that this process is alive.
    fn beat(&self, now: Millis) -> Done<i64> {
        let lease = u64::try_from(self.shared.options.lease.as_millis()).unwrap_or(u64::MAX);
        let row = prepare(&self.conn, 
            "INSERT INTO owner(id, until) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET until=?2 RETURNING owner",
        )?
        .query_row((self.shared.owner.as_bytes(), int(now.saturating_add(lease))), |row| row.get(0))?;
        Ok(row)
    }

    fn note_beat(&self, row: i64, now: Millis) {
        self.shared.owner_row.store(row, Ordering::Relaxed);
        self.shared.beaten.store(now, Ordering::Relaxed);
        self.shared.overdue.store(false, Ordering::Relaxed);
    }

    fn roll_back(&self) {
        if !self.conn.is_autocommit() {
            // If even this fails, the next BEGIN says so.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    /// Commit a group; if it breaks, each of its members alone.
    fn group(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        match self.transaction(&mut jobs, false) {
            Ok(effects) => {
                let erased = self.shared.apply(effects);
                for job in jobs {
                    job.answer();
                }
                self.truncate(erased);
            }
            Err(stop) => {
                self.roll_back();
                if jobs.len() == 1
                    && let Some(job) = jobs.pop()
                {
                    job.fail(stop.into_error());
                    return;
                }
                for job in jobs {
                    self.alone(job);
                }
            }
        }
    }

    fn alone(&mut self, job: Box<dyn Job>) {
        let mut one = vec![job];
        let tried = self.transaction(&mut one, true);
        let Some(job) = one.pop() else { return };
        match tried {
            Ok(effects) => {
                let erased = self.shared.apply(effects);
                job.answer();
                self.truncate(erased);
            }
            Err(stop) => {
                self.roll_back();
                job.fail(stop.into_error());
            }
        }
    }

    fn transaction(&mut self, jobs: &mut [Box<dyn Job>], again: bool) -> Done<Vec<Effect>> {
        prepare(&self.conn, "BEGIN IMMEDIATE")?.execute([])?;
        let mut now = self.shared.options.clock.now();
        let mut owner = self.shared.owner_row.load(Ordering::Relaxed);
        let mut beaten = None;
        let owns = jobs.iter().any(|job| job.owns());
        let always = self.shared.options.heartbeat == Heartbeat::Manual;
        if owns && (always || self.is_beat_due(now)) {
            owner = self.beat(now)?;
            beaten = Some((owner, now));
        }
        let mut effects = Vec::with_capacity(jobs.len() * 2);
        for job in jobs {
            now = self.shared.options.clock.now();
            let mut tx = Tx {
                conn: &self.conn,
                shared: &self.shared,
                now,
                owner,
                again,
                effects,
            };
            job.run(&mut tx)?;
            effects = tx.effects;
        }
        // Acknowledge only after COMMIT returns: a caller that saw Ok may delete its own copy.
        prepare(&self.conn, "COMMIT")?.execute([])?;
        if let Some((row, now)) = beaten {
            self.note_beat(row, now);
        }
        Ok(effects)
    }

    /// Take erased bytes out of the log too.
    fn truncate(&self, erased: bool) {
        if erased {
            // A reader in the way only delays it to the next time.
            let _ = self
                .conn
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    /// Leave nothing behind that says this process lives, unless its runs need it.
    fn leave(&mut self) {
        let row = self.shared.owner_row.load(Ordering::Relaxed);
        if row == 0 {
            return;
        }
        let gone = self.conn.execute(
            "DELETE FROM owner WHERE owner=?1 AND NOT EXISTS(SELECT 1 FROM run INDEXED BY run_live WHERE live IS NOT NULL AND run.owner=?1)",
            [row],
        );
        // Without it the row stays until it is swept.
        drop(gone.map_err(|error| storage(&error)));
    }
}
