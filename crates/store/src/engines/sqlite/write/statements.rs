//! The statements of every turn, by name.

use rusqlite::{Connection, OptionalExtension, Row, ToSql};

use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::rows::sql::prepare;

/// Which statement.
#[derive(Clone, Copy)]
pub(crate) enum TurnStatement {
    /// Begin a transaction.
    Begin,
    /// Commit it.
    Commit,
    /// Insert a run, if its thread is as expected.
    Run,
    /// Insert an item.
    Item,
    /// Publish a run, if it and its thread are as expected.
    Publish,
    /// Insert a node, unless its place is taken.
    Node,
    /// Move the head of a thread within its timeline.
    Head,
    /// Counts the commits of others.
    Version,
    /// Whether a run is the caller's to add events to.
    Guard,
    /// Write a slot of the event log, if it is still the writer's.
    Slot,
    /// Insert events of a run, unless it has some there.
    Events,
    /// Find a request that is stored.
    Request,
    /// Whether a run still ends where it is remembered to, on a thread that is as it is remembered,
    /// and the version of the thread.
    Base,
    /// What a free run will find when it publishes.
    Place,
    /// The highest number of a timeline so far.
    LastTimeline,
    /// Open a timeline.
    Timeline,
    /// Move the head of a thread within its timeline, for a free run.
    FreeHead,
    /// The same, wherever it goes.
    FreeMove,
}

/// In the order of the names.
const SQL: [&str; 18] = [
    "BEGIN IMMEDIATE",
    "COMMIT",
    // `OR IGNORE` and not `ON CONFLICT DO NOTHING`: the latter may still abort half-way for other
    // reasons, so that SQLite keeps a journal of each such statement. And nothing of `run` is read
    // here, or the row would go through a table of its own first. Where the thread has waiters,
    // alive or not, `begin` takes the slower way and looks at them.
    "INSERT OR IGNORE INTO run(tenant, id, thread, live, state, flags, epoch, owner, attempt, base_tl, base_first, version,
       inputs, next_step, next_item, next_event, created, progress, idem, idem_digest, request)
     SELECT ?1, ?2, ?3, ?16, 1, ?5, 1, ?6, 0, ?7, ?8, version,
       ?9, 0, ?9+1, ?10, ?11, ?11, ?12, ?13, ?14
     FROM thread WHERE thread=?3 AND stage=0 AND (version=?15 OR NOT ?4)
       AND (NOT ?4 OR ?17 OR NOT EXISTS(SELECT 1 FROM waiter WHERE waiter.thread=?3))",
    "INSERT INTO item(run, no, kind, source, units, again, digest, body) VALUES(?,?,?,?,?,?,?,?)",
    // 183: all flags but `UNSENT` and `MOVED`, and without a seal. Other flags may have been set by other processes.
    "UPDATE run SET state=?1, live=NULL, flags=flags & 183 | ?2, next_item=?3, next_step=?4, next_event=?5,
       pub_tl=?6, pub_first=?7, pub_step=?8, version=?9, progress=?10, note=?11
     WHERE run=?12 AND id=?13 AND epoch=?14 AND state=1 AND next_step=?15 AND next_item=?16 AND next_event<=?17
       AND EXISTS(SELECT 1 FROM thread WHERE thread.thread=?18 AND stage=0 AND (version=?19 OR NOT ?20))",
    "INSERT OR IGNORE INTO node(tl, first, last, run, step, item_lo, flags, state_run, state_step, units, created, digest)
     VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    "UPDATE thread SET head_first=?1, version=version+1, touched=?2, head_digest=?7
     WHERE thread=?3 AND version=?4 AND head_tl=?5 AND recent=?6",
    "PRAGMA data_version",
    // A process that adds events to a run of another process raises its `next_event`.
    "SELECT 1 FROM run WHERE run=?1 AND id=?2 AND epoch=?3 AND state=1 AND owner=?4 AND next_event<=?5",
    "UPDATE event_log SET payload=?1 WHERE slot=?2 AND owner=?3",
    "INSERT OR IGNORE INTO run_event(run, seq, n, packed, payload) VALUES(?,?,?,?,?)",
    "SELECT request FROM request WHERE tenant=?1 AND digest=?2",
    // 32: `HIDDEN`. A node never changes while its run is shown, so that what is remembered of it holds.
    "SELECT t.version FROM run r CROSS JOIN thread t ON t.thread=r.thread
     WHERE r.run=?1 AND r.id=?2 AND r.pub_tl=?3 AND r.pub_first=?4 AND r.flags & 32=0 AND t.stage=0
       AND (NOT ?5 OR t.settings IS ?6 AND NOT EXISTS(SELECT 1 FROM queue q WHERE q.thread=t.thread))",
    "SELECT version, stage=0 AND head_tl IS ?2 AND head_first IS ?3 AND moved_by=0
       AND NOT EXISTS(SELECT 1 FROM run WHERE run.thread=?1 AND run.live=0),
       CASE WHEN NOT ?5 OR EXISTS(SELECT 1 FROM node WHERE tl=?2 AND first=?4)
         THEN (SELECT max(last, coalesce((SELECT max(tl) FROM timeline), 0)) FROM given WHERE name='timeline') END
     FROM thread WHERE thread=?1",
    "SELECT max(last, coalesce((SELECT max(tl) FROM timeline), 0)) FROM given WHERE name='timeline'",
    "INSERT INTO timeline(tl, thread, parent_tl, fork) VALUES(?,?,?,?)",
    // Setting an indexed column to the value that it has writes a page of the index.
    "UPDATE thread SET head_first=?5, version=version+1, touched=?6, head_digest=?8
     WHERE thread=?1 AND head_tl IS ?2 AND head_first IS ?3 AND moved_by=0
     AND NOT EXISTS(SELECT 1 FROM run WHERE run.thread=?1 AND run.live=0) AND head_tl=?4 AND recent=?7 AND borrowed=0",
    "UPDATE thread SET head_tl=?4, head_first=?5, borrowed=0, version=version+1, touched=?6, recent=?7, head_digest=?8
     WHERE thread=?1 AND head_tl IS ?2 AND head_first IS ?3 AND moved_by=0
     AND NOT EXISTS(SELECT 1 FROM run WHERE run.thread=?1 AND run.live=0)",
];

/// The statements of one connection.
#[derive(Clone, Copy)]
pub(crate) struct Statements<'c>(pub(crate) &'c Connection);

impl Statements<'_> {
    /// Prepare all of them: it shows whether the tables are what they should be.
    pub(crate) fn check(self) -> OpResult<()> {
        for sql in SQL {
            // Not by `prepare`: none of them is run here.
            drop(self.0.prepare_cached(sql)?);
        }
        Ok(())
    }

    /// Run a statement; how many rows it changed.
    pub(crate) fn run(self, which: TurnStatement, params: &[&dyn ToSql]) -> OpResult<usize> {
        Ok(prepare(self.0, SQL[which as usize])?.execute(params)?)
    }

    /// Run a question; whether there is a row.
    pub(crate) fn exists(self, which: TurnStatement, params: &[&dyn ToSql]) -> OpResult<bool> {
        Ok(prepare(self.0, SQL[which as usize])?.exists(params)?)
    }

    /// Run a question whose answer is a number.
    pub(crate) fn number(self, which: TurnStatement) -> OpResult<i64> {
        Ok(prepare(self.0, SQL[which as usize])?.query_row([], |row| row.get(0))?)
    }

    /// Run a question and read its one row, if there is one.
    pub(crate) fn query_one(
        self,
        which: TurnStatement,
        params: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<()>,
    ) -> OpResult<bool> {
        let found = prepare(self.0, SQL[which as usize])?.query_row(params, read);
        Ok(found.optional()?.is_some())
    }
}
