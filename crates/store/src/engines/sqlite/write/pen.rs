//! What writing takes, and how a group of operations is written.
//!
//! Everything that waits goes into one transaction that is committed once for all. An operation that
//! is refused has written nothing, so the others go on. When the storage fails, the group is rolled
//! back and its members are tried one by one: they are values, nobody was answered, so nothing is
//! lost and nothing done twice.
//!
//! A commit waits for the disk, unless it has events of live runs (ADR 19) and beginnings of runs
//! (ADR 21) only: those survive the process at once, and a power cut from the next commit of anything
//! else on. Beginnings are brought to the disk right after they were answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::engines::sqlite::connect::{CHECKPOINT, PATIENCE, Waits, set_waits};
use crate::engines::sqlite::events::{self, EventLog};
use crate::engines::sqlite::fault::{Done, Stop};
use crate::engines::sqlite::rows::int;
use crate::engines::sqlite::rows::sql::{prepare, run_sql};
use crate::engines::sqlite::write::disk::{LogFile, Owes};
use crate::engines::sqlite::write::hot::{Hot, Statements};
use crate::engines::sqlite::write::queue::{Effect, Job, Shared, Tx};
use crate::trials::{self, Commit, Op, Point};
use crate::{Error, Heartbeat, Millis};

/// Whoever has it writes: the thread of the store or, while that sleeps, whoever asks (ADR 23).
pub(crate) struct Pen {
    pub(crate) conn: Connection,
    /// The events of live runs.
    pub(crate) log: EventLog,
    /// The log, and what is known of it.
    pub(crate) file: Arc<LogFile>,
    told: Arc<Told>,
    /// A sync of the log failed. What was committed before without waiting for one can be read, but
    /// the disk may have lost it for good, and whatever follows it in the log with it.
    lossy: bool,
    /// Bytes that were erased may still be in the log.
    pub(crate) unerased: bool,
    /// The last commit failed in a way that leaves it valid in the log: whoever recovers the log
    /// before something else is written there finds it committed.
    in_doubt: bool,
    /// What commits of the connection wait for.
    waits: Waits,
}

/// What SQLite tells of each commit that writes to the log.
#[derive(Default)]
struct Told {
    /// How many pages the log had at the last one.
    pages: AtomicI32,
    /// How many there were.
    commits: AtomicU64,
}

impl Pen {
    pub(crate) fn new(mut conn: Connection) -> Done<Self> {
        Statements(&conn).check()?;
        let file = Arc::new(LogFile::of(&conn)?);
        let told = Arc::<Told>::default();
        let tell = Arc::clone(&told);
        // In the place of SQLite's own hook, which copies the log before the commit returns, whoever
        // commits: here nobody waits for that.
        conn.wal_hook(Some(move |_: &mut _, pages| {
            tell.pages.store(pages, Ordering::Relaxed);
            tell.commits.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            conn,
            log: EventLog::default(),
            file,
            told,
            lossy: false,
            unerased: false,
            in_doubt: false,
            waits: Waits::ForDisk,
        })
    }

    fn hot(&self) -> Statements<'_> {
        Statements(&self.conn)
    }

    /// Whether the log is to be copied to the file.
    pub(crate) fn is_log_long(&self) -> bool {
        self.told.pages.load(Ordering::Relaxed) >= CHECKPOINT
    }

    /// Copy the log to the file when it has become long.
    pub(crate) fn copy_log(&mut self) {
        if !self.is_log_long() {
            return;
        }
        // The next commit counts again. If it fails, or somebody still reads what is older, so does
        // the next attempt.
        self.told.pages.store(0, Ordering::Relaxed);
        if self.sync().is_err() {
            return;
        }
        let copied = self.conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        // Perhaps it was the log of which others had written more.
        if copied.is_err() && self.sync().is_err() {
            return;
        }
        // Whoever begins the log anew waits for the disk, so that is done here too.
        if let Err(stop) = self.begin_log() {
            self.roll_back();
            self.doubt(&stop);
        }
    }

    /// Commit something that changes nothing, and wait for the disk.
    fn begin_log(&mut self) -> Done<()> {
        self.wait_for(Waits::ForDisk)?;
        self.hot().run(Hot::Begin, &[])?;
        // Another value each time, or SQLite would write nothing.
        if self.hot().run(Hot::Mark, &[])? == 0 {
            let first = "INSERT INTO given(name, last) VALUES('mark', 0)";
            run_sql(&self.conn, first, [])?;
        }
        self.hot().run(Hot::Commit, &[])?;
        Ok(())
    }

    /// How many commits have written to the log.
    pub(crate) fn commits(&self) -> u64 {
        self.told.commits.load(Ordering::Relaxed)
    }

    /// Bring the log to the disk. A checkpoint does so too, but whoever sees that one fail does not
    /// know whether it was the log.
    pub(crate) fn sync(&mut self) -> Done<()> {
        let synced = self.file.sync();
        self.lossy |= synced.is_err();
        synced
    }

    /// Whether the log is to be mended before anything is written.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lossy
    }

    /// A commit failed: perhaps its sync did.
    pub(crate) fn doubt(&mut self, stop: &Stop) {
        self.lossy |= matches!(stop, Stop::Broken(Error::Io { .. }));
    }

    /// If the disk may have lost some of the log, copy all of it to the file and begin it anew.
    /// SQLite writes again what belonged to the commit that failed, but not what was there before.
    pub(crate) fn mend_log(&mut self, shared: &Shared) -> Done<()> {
        if !self.lossy || trials::planted("lossy-log") {
            return Ok(());
        }
        let upto = shared.owed.begun();
        // Each handle is told of a failure once: this one must not tell of an old one later.
        let _ = self.file.sync();
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        if self.conn.query_row(sql, [], |row| row.get::<_, bool>(0))? {
            return Err(Stop::Broken(Error::Locked));
        }
        self.lossy = false;
        shared.owed.paid(upto);
        Ok(())
    }

    /// End a transaction that was left open: whoever was at it broke off.
    fn clear(&self) {
        if self.conn.is_autocommit() {
            return;
        }
        if trials::planted("ack-before-commit") {
            let _ = self.hot().run(Hot::Commit, &[]);
        } else {
            self.roll_back();
        }
    }

    /// Write the row that says that this process is alive.
    pub(crate) fn beat(&self, shared: &Shared, now: Millis) -> Done<i64> {
        trials::reach(Point::LeaseRenew).map_err(Stop::Broken)?;
        let lease = u64::try_from(shared.options.lease.as_millis()).unwrap_or(u64::MAX);
        let sql = "INSERT INTO owner(id, until) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET until=?2 RETURNING owner";
        let values = (shared.owner.as_bytes(), int(now.saturating_add(lease)));
        let row = prepare(&self.conn, sql)?.query_row(values, |row| row.get(0))?;
        Ok(row)
    }

    pub(crate) fn roll_back(&self) {
        self.log.rolled_back();
        if !self.conn.is_autocommit() {
            // If even this fails, the next BEGIN says so.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    /// Have the next commits wait for something. Not within a transaction.
    pub(crate) fn wait_for(&mut self, waits: Waits) -> Done<()> {
        if self.waits == waits {
            return Ok(());
        }
        // If this fails half-way, it is the weaker one that may hold.
        self.waits = Waits::ForNothing;
        set_waits(&self.conn, waits)?;
        self.waits = waits;
        Ok(())
    }

    /// Commit a group; if it breaks, each of its members alone.
    pub(crate) fn group(&mut self, shared: &Shared, jobs: Vec<Box<dyn Job>>) {
        self.clear();
        let mut waits = jobs.iter().map(|job| job.waits());
        let waits = match trials::planted("events-unsync-others") {
            true => waits.all(|waits| waits),
            false => waits.any(|waits| waits),
        };
        // Where many begin at once they share a commit, and it is the disk that has them gather.
        let begins = jobs.iter().filter(|job| job.op() == Op::Begin).count();
        let owes = shared.owed.owes() != Owes::Nothing;
        let waits = match waits || begins > 1 || owes {
            true => Waits::ForDisk,
            false => Waits::ForNothing,
        };
        if let Err(stop) = self.open(shared, waits) {
            // Nobody gets any further by trying again: each would wait as long.
            self.roll_back();
            shared.owed.failed();
            let error = stop.into_error();
            for job in jobs {
                job.fail(copy_of(&error));
            }
            return;
        }
        self.finish(shared, jobs);
    }

    /// Begin a transaction.
    pub(crate) fn open(&mut self, shared: &Shared, waits: Waits) -> Done<()> {
        self.mend_log(shared)?;
        self.wait_for(waits)?;
        self.hot().run(Hot::Begin, &[])?;
        Ok(())
    }

    /// Write one operation on the thread of whoever asks, without waiting for anything. It comes back
    /// if that cannot be.
    pub(crate) fn at_once(
        &mut self,
        shared: &Shared,
        job: Box<dyn Job>,
    ) -> Result<(), Box<dyn Job>> {
        let is_for_the_writer = match shared.owed.owes() {
            Owes::Nothing => false,
            // Beginnings that come while the disk takes one share a commit, see `group`.
            Owes::Now(_) => job.op() == Op::Begin,
            // The next commit is to bring it along.
            Owes::WithNext(_) => true,
        };
        if is_for_the_writer || self.lossy {
            return Err(job);
        }
        self.clear();
        // Another process may have the file for seconds: it is for the thread of the store to wait.
        let begun = self.conn.busy_timeout(Duration::ZERO).map_err(Stop::from);
        let begun = begun.and_then(|()| self.open(shared, Waits::ForNothing));
        let patient = self.conn.busy_timeout(PATIENCE);
        if begun.is_err() || patient.is_err() {
            self.roll_back();
            return Err(job);
        }
        self.finish(shared, vec![job]);
        Ok(())
    }

    /// Write a group in the transaction that has begun, and answer.
    fn finish(&mut self, shared: &Shared, mut jobs: Vec<Box<dyn Job>>) {
        match self.transaction(shared, &mut jobs) {
            Ok(effects) => self.answer(shared, effects, jobs),
            Err(stop) if jobs.len() == 1 => {
                self.roll_back();
                shared.owed.failed();
                if let Some(job) = jobs.pop() {
                    job.fail(stop.into_error());
                }
            }
            Err(_) => {
                self.roll_back();
                let in_doubt = self.in_doubt;
                for job in jobs {
                    self.alone(shared, job, in_doubt);
                }
            }
        }
    }

    /// Try one operation in a transaction of its own. `in_doubt`: the commit of its group is.
    fn alone(&mut self, shared: &Shared, job: Box<dyn Job>, in_doubt: bool) {
        let mut one = [job];
        let tried = match self.open(shared, self.waits) {
            Ok(()) => self.transaction(shared, &mut one),
            Err(stop) => Err(stop),
        };
        let [job] = one;
        match tried {
            Ok(effects) => self.answer(shared, effects, [job]),
            Err(stop) => {
                self.roll_back();
                shared.owed.failed();
                let error = stop.into_error();
                job.fail(if in_doubt { unsure(error) } else { error });
            }
        }
    }

    /// Apply operations in the transaction that has begun, and commit it.
    fn transaction(&mut self, shared: &Shared, jobs: &mut [Box<dyn Job>]) -> Done<Vec<Effect>> {
        self.in_doubt = false;
        let mut now = shared.options.clock.now();
        let mut owner = shared.owner_row.load(Ordering::Relaxed);
        let mut beaten = None;
        let owns = jobs.iter().any(|job| job.op().owns());
        let always = shared.options.heartbeat == Heartbeat::Manual;
        if owns && (always || shared.is_beat_due(now)) {
            owner = self.beat(shared, now)?;
            beaten = Some((owner, now));
        }
        let mut effects = Vec::with_capacity(jobs.len() * 2);
        for job in jobs.iter_mut() {
            if let Err(error) = trials::before(job.op()) {
                job.refuse(error);
                continue;
            }
            // Events bear no time, and there are so many of them that reading it would tell.
            if job.op() != Op::Flush {
                now = shared.options.clock.now();
            }
            let mut tx = Tx {
                conn: &self.conn,
                hot: self.hot(),
                shared,
                log: &self.log,
                now,
                owner,
                effects,
            };
            job.run(&mut tx)?;
            effects = tx.effects;
        }
        effects = self.seal(shared, now, owner, effects)?;
        let before = self.commits();
        if let Err(stop) = self.commit(jobs) {
            self.in_doubt = matches!(stop, Stop::Broken(Error::Io { .. }));
            self.doubt(&stop);
            return Err(stop);
        }
        self.log.committed();
        self.settle(shared, before)?;
        if let Some((row, now)) = beaten {
            shared.note_beat(row, now);
        }
        Ok(effects)
    }

    /// After a commit that waited for the disk: that has what it was owed.
    /// `before`: how many commits there were before it.
    pub(crate) fn settle(&mut self, shared: &Shared, before: u64) -> Done<()> {
        let (Owes::Now(upto) | Owes::WithNext(upto)) = shared.owed.owes() else {
            return Ok(());
        };
        if self.waits == Waits::ForNothing {
            return Ok(());
        }
        // A commit that changes no page is none: SQLite syncs nothing then. But what its operations
        // answer may be what is owed.
        if self.commits() == before && trials::unless("paid-with-nothing", true) {
            self.sync()?;
        }
        shared.owed.paid(upto);
        Ok(())
    }

    /// Write the events that the transaction has gathered.
    fn seal(
        &self,
        shared: &Shared,
        now: Millis,
        owner: i64,
        effects: Vec<Effect>,
    ) -> Done<Vec<Effect>> {
        let tx = Tx {
            conn: &self.conn,
            hot: self.hot(),
            shared,
            log: &self.log,
            now,
            owner,
            effects,
        };
        events::seal(&tx)?;
        Ok(tx.effects)
    }

    /// Acknowledge only after COMMIT returns: a caller that saw Ok may delete its own copy.
    fn commit(&self, jobs: &[Box<dyn Job>]) -> Done<()> {
        let asked = trials::at_commit(jobs.iter().map(|job| job.op()));
        if asked != Commit::Withhold && trials::unless("ack-before-commit", true) {
            match self.hot().run(Hot::Commit, &[]) {
                Err(Stop::Broken(Error::Full)) if trials::planted("full-is-fine") => {
                    self.roll_back();
                }
                other => drop(other?),
            }
        }
        match asked {
            Commit::Send => Ok(()),
            Commit::Withhold | Commit::Deny => Err(Stop::Broken(Error::Io {
                detail: "the commit was told to fail".into(),
            })),
        }
    }

    /// Tell whoever asked, and remember.
    fn answer(
        &mut self,
        shared: &Shared,
        effects: Vec<Effect>,
        jobs: impl IntoIterator<Item = Box<dyn Job>>,
    ) {
        self.unerased |= shared.apply(effects);
        for job in jobs {
            if self.waits == Waits::ForNothing && job.op() == Op::Begin {
                shared.owed.owe();
            }
            match trials::after(job.op()) {
                Ok(()) => job.answer(),
                Err(error) => job.fail(error),
            }
        }
    }
}

/// An error of an operation whose group may have been committed: none that says that nothing was.
fn unsure(error: Error) -> Error {
    match error {
        Error::Full | Error::Locked => Error::Io {
            detail: format!("{error} now, but perhaps it was at the attempt before"),
        },
        other => other,
    }
}

/// An error of the storage, for each of a group.
fn copy_of(error: &Error) -> Error {
    match error {
        Error::Locked => Error::Locked,
        Error::Full => Error::Full,
        Error::Corrupt { place, detail } => Error::corrupt((**place).clone(), detail.clone()),
        other => Error::Io {
            detail: other.to_string(),
        },
    }
}
