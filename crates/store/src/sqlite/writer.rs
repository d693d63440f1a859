//! The one thread that writes.
//!
//! It takes everything that waits, puts it into one transaction and commits once for all. An
//! operation that is refused has written nothing, so the others go on. When the storage fails, the
//! group is rolled back and its members are tried one by one: they are values, nobody was answered,
//! so nothing is lost and nothing done twice.
//!
//! A commit waits for the disk, unless it has events of live runs (ADR 19) and beginnings of runs
//! (ADR 21) only: those survive the process at once, and a power cut from the next commit of anything
//! else on. Beginnings are brought to the disk right after they were answered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connect::{PATIENCE, Waits, set_waits};
use super::event_log::{self, EventLog};
use super::fault::{Done, Stop, storage};
use super::hot::{Hot, Kept, Statements};
use super::queue::{Effect, Job, Shared, Tx};
use super::rows::int;
use super::sql::{prepare, run_sql};
use crate::trials::{self, Commit, Op, Point};
use crate::{Error, Heartbeat, Millis};

/// How often other processes' commits are looked for while somebody waits for a change.
const LOOK: Duration = Duration::from_millis(50);

/// The writer's own things.
struct Writer<'c> {
    conn: &'c Connection,
    hot: Statements<'c>,
    shared: Arc<Shared>,
    /// The events of live runs.
    log: EventLog,
    /// When other processes' commits were last looked for, and what was seen.
    looked: Instant,
    seen: Option<i64>,
    /// Bytes that were erased may still be in the log.
    unerased: bool,
    /// The last commit failed in a way that leaves it valid in the log: whoever recovers the log
    /// before something else is written there finds it committed.
    in_doubt: bool,
    /// What commits of the connection wait for.
    waits: Waits,
    /// Whether runs were begun that the disk does not have.
    owes: Owes,
}

/// When the disk gets what was answered before it had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owes {
    Nothing,
    /// At once.
    Now,
    /// With the next commit: it was tried, and failed.
    WithNext,
}

/// Write until the engine is closed and nothing waits any more.
pub(super) fn run<'c>(conn: &'c Connection, hot: Statements<'c>, shared: Arc<Shared>) {
    let mut writer = Writer {
        conn,
        hot,
        shared,
        log: EventLog::default(),
        looked: Instant::now(),
        seen: None,
        unerased: false,
        in_doubt: false,
        waits: Waits::ForDisk,
        owes: Owes::Nothing,
    };
    loop {
        let (jobs, last) = match writer.owes {
            Owes::Now => writer.shared.take_waiting(),
            Owes::Nothing | Owes::WithNext => writer.shared.take(writer.patience()),
        };
        if !jobs.is_empty() {
            writer.group(jobs);
        } else if writer.owes == Owes::Now {
            writer.pay();
        }
        if last {
            break;
        }
        writer.look();
        writer.keep_alive();
        writer.erase();
    }
    writer.leave();
    writer.erase();
}

impl Writer<'_> {
    /// How long nothing has to be done unless something comes.
    fn patience(&self) -> Option<Duration> {
        let beat = self.beats().then(|| self.shared.options.lease / 3);
        let watched = self.shared.watch.is_watched();
        let look = (watched || self.unerased).then_some(LOOK);
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
        let version = prepare(self.conn, "PRAGMA data_version")
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
            let ready = self.wait_for(Waits::ForDisk);
            let beaten = ready.and_then(|()| {
                self.conn.execute_batch("BEGIN IMMEDIATE")?;
                let now = self.shared.options.clock.now();
                let beat = self.beat(now)?;
                self.pay_along()?;
                self.conn.execute_batch("COMMIT")?;
                Ok((beat, now))
            });
            match beaten {
                Ok((row, now)) => {
                    self.note_beat(row, now);
                    self.paid();
                }
                // The next turn of the loop tries again, well before the lease is over.
                Err(_) => {
                    self.roll_back();
                    self.unpaid();
                }
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
        trials::reach(Point::LeaseRenew).map_err(Stop::Broken)?;
        let lease = u64::try_from(self.shared.options.lease.as_millis()).unwrap_or(u64::MAX);
        let sql = "INSERT INTO owner(id, until) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET until=?2 RETURNING owner";
        let values = (self.shared.owner.as_bytes(), int(now.saturating_add(lease)));
        let row = prepare(self.conn, sql)?.query_row(values, |row| row.get(0))?;
        Ok(row)
    }

    fn note_beat(&self, row: i64, now: Millis) {
        self.shared.owner_row.store(row, Ordering::Relaxed);
        self.shared.beaten.store(now, Ordering::Relaxed);
        self.shared.overdue.store(false, Ordering::Relaxed);
    }

    fn roll_back(&self) {
        self.log.rolled_back();
        if !self.conn.is_autocommit() {
            // If even this fails, the next BEGIN says so.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    /// Have the next commits wait for something. Not within a transaction.
    fn wait_for(&mut self, waits: Waits) -> Done<()> {
        if self.waits == waits {
            return Ok(());
        }
        // If this fails half-way, it is the weaker one that may hold.
        self.waits = Waits::ForNothing;
        set_waits(self.conn, waits)?;
        self.waits = waits;
        Ok(())
    }

    /// Bring to the disk what was answered before: by a commit that waits for it, because that is how
    /// SQLite has the log synced.
    fn pay(&mut self) {
        let paid = self.wait_for(Waits::ForDisk).and_then(|()| {
            self.hot.run(Hot::Begin, &[])?;
            self.mark()?;
            self.hot.run(Hot::Commit, &[])
        });
        match paid {
            Ok(_) => self.paid(),
            Err(_) => {
                self.roll_back();
                self.unpaid();
            }
        }
    }

    /// Have the commit that follows bring to the disk what was answered before. One that changes no
    /// page is none: SQLite writes nothing then, and syncs nothing.
    fn pay_along(&self) -> Done<()> {
        if self.owes != Owes::Nothing && trials::unless("paid-with-nothing", true) {
            self.mark()?;
        }
        Ok(())
    }

    /// Write something, so that there is something to commit.
    fn mark(&self) -> Done<()> {
        if self.hot.run(Hot::Mark, &[])? == 0 {
            let first = "INSERT INTO given(name, last) VALUES('mark', 0)";
            run_sql(self.conn, first, [])?;
        }
        Ok(())
    }

    /// A commit failed: whoever waits for what is owed hears of it, and the next one tries again.
    fn unpaid(&mut self) {
        if self.owes != Owes::Nothing {
            self.owes = Owes::WithNext;
            self.shared.owed.failed();
        }
    }

    /// A commit that waits for the disk brings along all before it.
    fn paid(&mut self) {
        if self.owes != Owes::Nothing {
            self.owes = Owes::Nothing;
            self.shared.owed.paid();
        }
    }

    /// Commit a group; if it breaks, each of its members alone.
    fn group(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        if trials::planted("ack-before-commit") && !self.conn.is_autocommit() {
            let _ = self.hot.run(Hot::Commit, &[]);
        }
        let mut waits = jobs.iter().map(|job| job.waits());
        let waits = match trials::planted("events-unsync-others") {
            true => waits.all(|waits| waits),
            false => waits.any(|waits| waits),
        };
        // Where many begin at once they share a commit, and it is the disk that has them gather.
        let begins = jobs.iter().filter(|job| job.op() == Op::Begin).count();
        let begun = self.wait_for(match waits || begins > 1 || self.owes != Owes::Nothing {
            true => Waits::ForDisk,
            false => Waits::ForNothing,
        });
        if let Err(stop) = begun.and_then(|()| self.hot.run(Hot::Begin, &[])) {
            // Nobody gets any further by trying again: each would wait as long.
            self.roll_back();
            self.unpaid();
            let error = stop.into_error();
            for job in jobs {
                job.fail(copy_of(&error));
            }
            return;
        }
        match self.transaction(&mut jobs) {
            Ok(effects) => self.answer(effects, jobs),
            Err(stop) if jobs.len() == 1 => {
                self.roll_back();
                self.unpaid();
                if let Some(job) = jobs.pop() {
                    job.fail(stop.into_error());
                }
            }
            Err(_) => {
                self.roll_back();
                let in_doubt = self.in_doubt;
                for job in jobs {
                    self.alone(job, in_doubt);
                }
            }
        }
    }

    /// Try one operation in a transaction of its own. `in_doubt`: the commit of its group is.
    fn alone(&mut self, job: Box<dyn Job>, in_doubt: bool) {
        let mut one = [job];
        let tried = match self.hot.run(Hot::Begin, &[]) {
            Ok(_) => self.transaction(&mut one),
            Err(stop) => Err(stop),
        };
        let [job] = one;
        match tried {
            Ok(effects) => self.answer(effects, [job]),
            Err(stop) => {
                self.roll_back();
                self.unpaid();
                let error = stop.into_error();
                job.fail(if in_doubt { unsure(error) } else { error });
            }
        }
    }

    /// Apply operations in the transaction that has begun, and commit it.
    fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Done<Vec<Effect>> {
        self.in_doubt = false;
        let mut now = self.shared.options.clock.now();
        let mut owner = self.shared.owner_row.load(Ordering::Relaxed);
        let mut beaten = None;
        let owns = jobs.iter().any(|job| job.op().owns());
        let always = self.shared.options.heartbeat == Heartbeat::Manual;
        if owns && (always || self.is_beat_due(now)) {
            owner = self.beat(now)?;
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
                now = self.shared.options.clock.now();
            }
            let mut tx = Tx {
                conn: self.conn,
                hot: &self.hot,
                shared: &self.shared,
                log: &self.log,
                now,
                owner,
                effects,
            };
            job.run(&mut tx)?;
            effects = tx.effects;
        }
        effects = self.seal(now, owner, effects)?;
        self.pay_along()?;
        if let Err(stop) = self.commit(jobs) {
            self.in_doubt = matches!(stop, Stop::Broken(Error::Io { .. }));
            return Err(stop);
        }
        self.log.committed();
        if let Some((row, now)) = beaten {
            self.note_beat(row, now);
        }
        Ok(effects)
    }

    /// Write the events that the transaction has gathered.
    fn seal(&self, now: Millis, owner: i64, effects: Vec<Effect>) -> Done<Vec<Effect>> {
        let tx = Tx {
            conn: self.conn,
            hot: &self.hot,
            shared: &self.shared,
            log: &self.log,
            now,
            owner,
            effects,
        };
        event_log::seal(&tx)?;
        Ok(tx.effects)
    }

    /// Acknowledge only after COMMIT returns: a caller that saw Ok may delete its own copy.
    fn commit(&self, jobs: &[Box<dyn Job>]) -> Done<()> {
        let asked = trials::at_commit(jobs.iter().map(|job| job.op()));
        if asked != Commit::Withhold && trials::unless("ack-before-commit", true) {
            match self.hot.run(Hot::Commit, &[]) {
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
    fn answer(&mut self, effects: Vec<Effect>, jobs: impl IntoIterator<Item = Box<dyn Job>>) {
        self.unerased |= self.shared.apply(effects);
        if self.waits == Waits::ForDisk {
            self.paid();
        }
        for job in jobs {
            if self.waits == Waits::ForNothing && job.op() == Op::Begin {
                self.owes = Owes::Now;
                self.shared.owed.owe();
            }
            match trials::after(job.op()) {
                Ok(()) => job.answer(),
                Err(error) => job.fail(error),
            }
        }
    }

    /// Take erased bytes out of the log too. It waits for no reader: until all have gone on to a
    /// newer state it is tried again and again.
    fn erase(&mut self) {
        if !trials::unless("erase-later", self.unerased) {
            return;
        }
        let truncated = self.conn.busy_timeout(Duration::ZERO).and_then(|()| {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            self.conn.query_row(sql, [], |row| row.get::<_, bool>(0))
        });
        if matches!(truncated, Ok(false)) {
            self.unerased = false;
        }
        // It was set before, with the same value.
        let _ = self.conn.busy_timeout(PATIENCE);
    }

    /// Leave nothing behind that says this process lives, unless its runs need it.
    fn leave(&mut self) {
        if self.owes != Owes::Nothing {
            self.pay();
        }
        let row = self.shared.owner_row.load(Ordering::Relaxed);
        // Without it they stay until they are swept.
        drop(event_log::leave(&self.log, self.conn, row));
        if row == 0 {
            return;
        }
        // Nobody reads this row after a power cut, so it does not matter what this commit waits for.
        let gone = self.conn.execute(
            "DELETE FROM owner WHERE owner=?1 AND NOT EXISTS(SELECT 1 FROM run INDEXED BY run_live WHERE live IS NOT NULL AND run.owner=?1)",
            [row],
        );
        // Without it the row stays until it is swept.
        drop(gone.map_err(|error| storage(&error)));
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
        Error::Corrupt { place, detail } => Error::Corrupt {
            place: place.clone(),
            detail: detail.clone(),
        },
        other => Error::Io {
            detail: other.to_string(),
        },
    }
}
