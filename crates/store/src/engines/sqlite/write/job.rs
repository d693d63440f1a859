//! One operation on its way to the writer thread, and what it sees of the transaction.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::queue::Shared;
use super::statements::Statements;
use crate::engines::sqlite::cache::{CachedHead, CachedRun, EndedRun};
use crate::engines::sqlite::events::EventLog;
use crate::engines::sqlite::op_error::{OpError, OpResult};
use crate::engines::sqlite::rows::find;
use crate::trials::{self, Op};
use crate::{Error, Millis, Result, RunId, Tenant, ThreadId};

/// What changes in the caches when a transaction is committed.
pub(crate) enum CacheUpdate {
    Tenant(Tenant, i64),
    Began,
    Run(Arc<CachedRun>),
    Settled(RunId),
    ForgetRun(RunId),
    /// A run has a place in a wait queue.
    JoinedWaitQueue(RunId),
    /// A run has none any more.
    LeftWaitQueue(RunId),
    Head((i64, ThreadId), CachedHead),
    ForgetHead((i64, ThreadId)),
    Ended((i64, RunId), EndedRun),
    ThreadMoved(i64),
    /// Bytes were erased: they must not stay in the log.
    Erased,
}

/// One operation inside a transaction.
pub(crate) struct Tx<'a> {
    pub(crate) conn: &'a Connection,
    /// The statements of every turn.
    pub(crate) statements: Statements<'a>,
    pub(crate) shared: &'a Shared,
    /// The events of live runs.
    pub(crate) log: &'a EventLog,
    /// When the operation runs; for events, when an operation before them in the transaction did.
    pub(crate) now: Millis,
    /// This process among the owners.
    pub(crate) owner: i64,
    pub(crate) updates: Vec<CacheUpdate>,
}

impl Tx<'_> {
    /// Remember something once it is committed.
    pub(crate) fn after_commit(&mut self, update: CacheUpdate) {
        self.updates.push(update);
    }

    /// The row of a tenant; made if there is none.
    pub(crate) fn tenant(&mut self, tenant: &Tenant) -> OpResult<i64> {
        if let Some(row) = self.known_tenant(tenant)? {
            return Ok(row);
        }
        let row = self.conn.query_row(
            "INSERT INTO tenant(name) VALUES(?) RETURNING tenant",
            [tenant.as_str()],
            |row| row.get(0),
        )?;
        self.updates.push(CacheUpdate::Tenant(tenant.clone(), row));
        Ok(row)
    }

    /// The row of a tenant, if it has one.
    pub(crate) fn known_tenant(&mut self, tenant: &Tenant) -> OpResult<Option<i64>> {
        find::tenant(self.conn, &self.shared.caches, tenant)
    }
}

/// An operation that waits for the writer thread, whatever its result type.
pub(super) trait Job: Send {
    fn op(&self) -> Op;
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), OpError>;
    /// Do nothing, and answer with an error.
    fn refuse(&mut self, error: Error);
    fn answer(self: Box<Self>);
    fn fail(self: Box<Self>, error: Error);
}

pub(super) struct JobOf<T, F> {
    operation: F,
    op: Op,
    pub(super) outcome: Option<Result<T>>,
    /// The whole job goes back to the caller and is dropped there, because freeing memory that
    /// another thread allocated is slow and the writer thread serves everyone.
    reply: Option<oneshot::Sender<Box<Self>>>,
}

impl<T, F> JobOf<T, F> {
    pub(super) fn new(op: Op, operation: F) -> (Box<Self>, oneshot::Receiver<Box<Self>>) {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Self {
            operation,
            op,
            outcome: None,
            reply: Some(reply),
        });
        (job, answer)
    }
}

impl<T, F> Job for JobOf<T, F>
where
    T: Send,
    F: Fn(&mut Tx<'_>) -> OpResult<T> + Send,
{
    fn op(&self) -> Op {
        self.op
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), OpError> {
        let before_run = tx.updates.len();
        let before = tx.conn.total_changes();
        match (self.operation)(tx) {
            Ok(done) => {
                self.outcome = Some(Ok(done));
                Ok(())
            }
            // A refusal that came too late: what it wrote has to go, so the group goes.
            Err(OpError::Refused(error))
                if trials::unless("late-refusal", tx.conn.total_changes() != before) =>
            {
                tx.updates.truncate(before_run);
                self.outcome = None;
                Err(OpError::Broken(error))
            }
            Err(OpError::Refused(error)) => {
                // Effects of a refused operation only drop cache entries, so they may stay.
                self.outcome = Some(Err(error));
                Ok(())
            }
            Err(broken) => {
                tx.updates.truncate(before_run);
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
            // The caller may have gone; what was written stays written.
            let _ = reply.send(self);
        }
    }

    fn fail(mut self: Box<Self>, error: Error) {
        self.refuse(error);
        self.answer();
    }
}
