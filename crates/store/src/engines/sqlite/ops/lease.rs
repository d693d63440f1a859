//! Whether a write may be made: the run of a lease, and whether it fits.

use crate::engines::sqlite::cache;
use crate::engines::sqlite::cache::{CachedRun, ItemSummary};
use crate::engines::sqlite::events;
use crate::engines::sqlite::op_error::{OpError, OpResult, not_found};
use crate::engines::sqlite::rows::RunRow;
use crate::engines::sqlite::rows::find::{node_at, run_to_write};
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::engines::sqlite::write::queue::Shared;
use crate::trials::{self, Point};
use crate::{Error, Lease, Result, TenantScope, rules};

/// What this process knows of a run that it works on.
pub(crate) fn cached_run(
    shared: &Shared,
    scope: &TenantScope,
    lease: Lease,
) -> Option<std::sync::Arc<CachedRun>> {
    let live = cache::lock(&shared.caches.live).get(&lease.run)?;
    // Runs are remembered by their ids, which two tenants may share.
    let foreign = trials::unless("lease-tenant", live.tenant != *scope.tenant());
    (live.epoch == lease.epoch && !foreign).then_some(live)
}

/// The run of a lease that still counts.
pub(crate) fn run_of_lease(tx: &mut Tx<'_>, scope: &TenantScope, lease: Lease) -> OpResult<RunRow> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let row = run_to_write(tx.conn, tenant, lease.run)?;
    if let Err(fenced) = rules::lease::fence(lease, row.epoch) {
        tx.after_commit(CacheUpdate::ForgetRun(lease.run));
        trials::reach(Point::LeaseLost)?;
        return Err(fenced.into());
    }
    Ok(row)
}

/// The same for who has to know which event comes next.
pub(crate) fn run_of_lease_with_events(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
) -> OpResult<RunRow> {
    let mut row = run_of_lease(tx, scope, lease)?;
    events::set_next_event(tx, &mut row)?;
    Ok(row)
}

/// A row that changed while the lock was held: it cannot.
pub(crate) fn changed_under_lock(row: &RunRow) -> OpError {
    OpError::Broken(Error::Io {
        detail: format!("{} changed under the lock", row.id),
    })
}

/// Everything that is known of a run, read anew.
pub(crate) fn load_run(tx: &Tx<'_>, scope: &TenantScope, row: &RunRow) -> OpResult<CachedRun> {
    let thread_id = row.thread_id.clone();
    let (base, from) = match (row.published, row.base) {
        (Some((tl, first, _)), _) => {
            let node = node_at(tx.conn, tl, first)?;
            let from = node.as_ref().map_or(1, |node| node.item_hi() + 1);
            (node.map(|node| node.base(true)), from)
        }
        (None, Some((tl, first))) => {
            let node = node_at(tx.conn, tl, first)?;
            let sql = "SELECT thread FROM timeline WHERE tl=?";
            let owner: Option<i64> = one(tx.conn, sql, [tl], |row| row.get(0))?;
            (node.map(|node| node.base(owner == Some(row.thread))), 1)
        }
        (None, None) => (None, 1),
    };
    let mut statement = prepare(
        tx.conn,
        "SELECT no, units, digest FROM item WHERE run=? AND no>=? ORDER BY no",
    )?;
    let summaries = statement.query_map((row.row, from), |row| {
        Ok(ItemSummary {
            no: row.get(0)?,
            tokens: row.get(1)?,
            digest: row.get(2)?,
        })
    })?;
    let calls: Option<i64> = one(
        tx.conn,
        "SELECT 1 FROM call WHERE run=? LIMIT 1",
        [row.row],
        |row| row.get(0),
    )?;
    Ok(CachedRun {
        row: row.row,
        id: row.id,
        tenant: scope.tenant().clone(),
        thread: row.thread,
        thread_id: thread_id.ok_or_else(|| not_found("run", &row.id))?,
        flags: row.flags,
        epoch: row.epoch,
        version: row.version,
        inputs: row.inputs,
        next_step: row.next_step,
        next_item: row.next_item,
        next_event: row.next_event,
        base,
        published: row.published,
        from,
        summaries: summaries.collect::<Result<_, _>>()?,
        calls: calls.is_some(),
    })
}
