//! Group commit: operations that wait go into one transaction, which is committed once for all.
//!
//! An operation that is refused has written nothing, so the others go on. When the storage fails,
//! the group is rolled back and its operations are tried one by one: no caller was answered yet, so
//! nothing is lost and nothing done twice. The same happens when an operation panics.
//!
//! A commit waits for fsync unless it holds only events of live runs (ADR 19). Those survive the
//! death of the process, and the next commit that waits makes them survive a power cut.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

use super::connection::WriteConnection;
use super::job::{CacheUpdate, Job, Tx};
use super::queue::Shared;
use super::statements::TurnStatement;
use crate::engines::sqlite::connect::CommitSync;
use crate::engines::sqlite::events;
use crate::engines::sqlite::op_error::{OpError, OpResult};
use crate::trials::{self, Commit, Op};
use crate::{Error, Heartbeat, Millis};

impl WriteConnection {
    /// Commit a group; if that fails, each of its operations alone.
    pub(super) fn group(&mut self, shared: &Shared, mut jobs: Vec<Box<dyn Job>>) {
        self.end_open_transaction();
        let mut waits = jobs.iter().map(|job| job.op() != Op::Flush);
        let waits = match trials::planted("events-unsync-others") {
            true => waits.all(|waits| waits),
            false => waits.any(|waits| waits),
        };
        let waits = match waits {
            true => CommitSync::Fsync,
            false => CommitSync::NoFsync,
        };
        if let Err(error) = self.open(waits) {
            // Trying the operations one by one would not help: each would wait as long.
            self.roll_back();
            let error = error.into_error();
            for job in jobs {
                job.fail(copy_of(&error));
            }
            return;
        }
        match self.transaction(shared, &mut jobs) {
            Ok(updates) => self.answer(shared, updates, jobs),
            Err(error) if jobs.len() == 1 => {
                self.roll_back();
                if let Some(job) = jobs.pop() {
                    job.fail(error.into_error());
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

    /// End a transaction that was left open.
    fn end_open_transaction(&self) {
        if self.conn.is_autocommit() {
            return;
        }
        if trials::planted("ack-before-commit") {
            let _ = self.statements().run(TurnStatement::Commit, &[]);
        } else {
            self.roll_back();
        }
    }

    /// Try one operation in a transaction of its own. `in_doubt`: the commit of its group is.
    fn alone(&mut self, shared: &Shared, job: Box<dyn Job>, in_doubt: bool) {
        let mut one = [job];
        let tried = match self.open(self.commit_sync) {
            Ok(()) => self.transaction(shared, &mut one),
            Err(error) => Err(error),
        };
        let [job] = one;
        match tried {
            Ok(updates) => self.answer(shared, updates, [job]),
            Err(error) => {
                self.roll_back();
                let error = error.into_error();
                job.fail(if in_doubt {
                    in_doubt_error(error)
                } else {
                    error
                });
            }
        }
    }

    /// Apply operations in the transaction that has begun, and commit it.
    fn transaction(
        &mut self,
        shared: &Shared,
        jobs: &mut [Box<dyn Job>],
    ) -> OpResult<Vec<CacheUpdate>> {
        self.in_doubt = false;
        let mut now = shared.options.clock.now();
        let mut owner = shared.owner_row.load(Ordering::Relaxed);
        let mut last_heartbeat = None;
        let owns = jobs.iter().any(|job| job.op().owns());
        let always = shared.options.heartbeat == Heartbeat::Manual;
        if owns && (always || shared.is_heartbeat_due(now)) {
            owner = self.write_heartbeat(shared, now)?;
            last_heartbeat = Some((owner, now));
        }
        let mut updates = Vec::with_capacity(jobs.len() * 2);
        for job in jobs.iter_mut() {
            if let Err(error) = trials::before(job.op()) {
                job.refuse(error);
                continue;
            }
            // Events bear no time, and there are so many of them that reading the clock shows.
            if job.op() != Op::Flush {
                now = shared.options.clock.now();
            }
            let mut tx = self.tx(shared, now, owner, updates);
            // Nothing that the panicking operation leaves half-done is used: the transaction is rolled
            // back, with what is remembered of its events, and its effects are dropped.
            match catch_unwind(AssertUnwindSafe(|| job.run(&mut tx))) {
                Ok(ran) => ran?,
                Err(panic) if trials::planted("panic-uncaught") => resume_unwind(panic),
                Err(panic) => return Err(OpError::Broken(panicked(&*panic))),
            }
            updates = tx.updates;
        }
        let tx = self.tx(shared, now, owner, updates);
        events::write_slots(&tx)?;
        updates = tx.updates;
        if let Err(error) = self.commit(jobs) {
            self.in_doubt = matches!(error, OpError::Broken(Error::Io { .. }));
            self.note_failed_commit(&error);
            return Err(error);
        }
        self.log.committed();
        if let Some((row, now)) = last_heartbeat {
            shared.note_heartbeat(row, now);
        }
        Ok(updates)
    }

    fn tx<'a>(
        &'a self,
        shared: &'a Shared,
        now: Millis,
        owner: i64,
        updates: Vec<CacheUpdate>,
    ) -> Tx<'a> {
        Tx {
            conn: &self.conn,
            statements: self.statements(),
            shared,
            log: &self.log,
            now,
            owner,
            updates,
        }
    }

    /// Acknowledge only after COMMIT returns: a caller that saw Ok may delete its own copy.
    fn commit(&self, jobs: &[Box<dyn Job>]) -> OpResult<()> {
        let asked = trials::at_commit(jobs.iter().map(|job| job.op()));
        if asked != Commit::Withhold && trials::unless("ack-before-commit", true) {
            match self.statements().run(TurnStatement::Commit, &[]) {
                Err(OpError::Broken(Error::Full)) if trials::planted("full-is-fine") => {
                    self.roll_back();
                }
                other => drop(other?),
            }
        }
        match asked {
            Commit::Send => Ok(()),
            Commit::Withhold | Commit::Deny => Err(OpError::Broken(Error::Io {
                detail: "the commit was told to fail".into(),
            })),
        }
    }

    /// Update the caches, then answer the callers.
    fn answer(
        &mut self,
        shared: &Shared,
        updates: Vec<CacheUpdate>,
        jobs: impl IntoIterator<Item = Box<dyn Job>>,
    ) {
        self.erase_pending |= shared.apply(updates);
        for job in jobs {
            match trials::after(job.op()) {
                Ok(()) => job.answer(),
                Err(error) => job.fail(error),
            }
        }
    }
}

/// The error of an operation that panicked.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::Panicked {
        message: text.unwrap_or_else(|| "no message".to_owned()),
    }
}

/// The error of an operation whose group may have been committed: none that says that it was not.
fn in_doubt_error(error: Error) -> Error {
    match error {
        Error::Full | Error::Locked => Error::Io {
            detail: format!("{error} now, but perhaps it was at the attempt before"),
        },
        other => other,
    }
}

/// An error of the storage, for each operation of a group.
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
