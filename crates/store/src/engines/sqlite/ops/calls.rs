//! Tool calls: what is about to be dispatched, and what came back.

use crate::engines::sqlite::cache::ItemSummary;
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt};
use crate::engines::sqlite::ops::approvals;
use crate::engines::sqlite::ops::lease::{cached_run, run_of_lease};
use crate::engines::sqlite::rows::items::{self, Original, PreparedItem};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{RunRow, int};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::rules::calls::{AskedBefore, IntendedCall, Intent, StoredResult};
use crate::{
    CallRef, CallResult, CallState, ItemKind, ItemRef, Lease, NewApproval, RunId, Tenant,
    TenantScope, rules,
};

/// A result, ready to be stored.
pub(crate) struct PreparedResult {
    step: u32,
    position: u32,
    pub(crate) item: PreparedItem,
    ends: bool,
}

impl PreparedResult {
    pub(crate) fn list(results: &[CallResult]) -> Vec<Self> {
        let prepared = |result: &CallResult| Self {
            step: result.step,
            position: result.position,
            item: PreparedItem::unnumbered(&result.item),
            ends: result.ends,
        };
        results.iter().map(prepared).collect()
    }
}

/// Where a result goes.
pub(crate) struct ResultPlace {
    pub(crate) no: u32,
    /// Whether it is not there yet.
    pub(crate) is_new: bool,
}

/// The bit of `call.effect` that says that the tool asked for the end of the run with its result.
/// Not one of `call.state`: a call with a result is done, for every statement and every version.
pub(crate) const ENDS: u8 = 16;

/// A call as it is stored.
struct CallRow {
    state: CallState,
    epoch: u32,
    result: u32,
    /// Where the approval stands, if it has one.
    approval: Option<i64>,
    ends: bool,
}

fn call(tx: &Tx<'_>, row: &RunRow, step: u32, position: u32) -> OpResult<CallRow> {
    let sql = "SELECT c.state, c.epoch, c.result_no, a.state, c.effect FROM call c CROSS JOIN run r ON r.run=c.run
      LEFT JOIN approval a ON a.tenant=r.tenant AND a.id=c.approval WHERE c.run=? AND c.step=? AND c.pos=?";
    let found = one(tx.conn, sql, (row.row, step, position), |row| {
        let effect: u8 = row.get(4)?;
        let state: u8 = row.get(0)?;
        let stored = CallRow {
            state: CallState::Planned,
            epoch: row.get(1)?,
            result: row.get(2)?,
            approval: row.get(3)?,
            ends: effect & ENDS != 0,
        };
        Ok((state, stored))
    })?;
    let at = at(row, step, position);
    let (state, stored) = found.ok_or_else(|| rules::calls::unknown(at))?;
    let state = CallState::of(state).ok_or_else(|| {
        let place = format!("call {position} of step {step} of {}", row.id);
        corrupt(place, "it is in no known state")
    })?;
    Ok(CallRow { state, ..stored })
}

fn at(row: &RunRow, step: u32, position: u32) -> CallRef {
    CallRef {
        run: row.id,
        step,
        position,
    }
}

/// Record that calls are about to be dispatched.
pub(crate) fn intend(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    step: u32,
    positions: &[u32],
) -> OpResult<()> {
    let row = run_of_lease(tx, scope, lease)?;
    rules::lease::running(row.id, row.state)?;
    let mut fresh = Vec::with_capacity(positions.len());
    for position in positions {
        let call = call(tx, &row, step, *position)?;
        let call = IntendedCall {
            state: call.state,
            epoch: call.epoch,
            approval: call.approval.map(approvals::stored_state),
        };
        match rules::calls::intend(at(&row, step, *position), &call, lease.epoch)? {
            Intent::Repeated => {}
            Intent::New => fresh.push((*position, false)),
            Intent::Approved => fresh.push((*position, true)),
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    touch(tx, &row)?;
    for (position, approved) in fresh {
        let sql = "UPDATE call SET state=?, epoch=? WHERE run=? AND step=? AND pos=?";
        let code = CallState::Intent.code();
        run_sql(tx.conn, sql, (code, lease.epoch, row.row, step, position))?;
        if approved {
            approvals::used(tx, row.row, step, position)?;
        }
    }
    Ok(())
}

/// Ask for leave for planned calls.
pub(crate) fn ask(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    approvals: &[NewApproval],
) -> OpResult<()> {
    let row = run_of_lease(tx, scope, lease)?;
    rules::lease::running(row.id, row.state)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let mut fresh: Vec<NewApproval> = Vec::with_capacity(approvals.len());
    for approval in approvals {
        let (step, position) = (approval.step, approval.position);
        let call = call(tx, &row, step, position)?;
        let before = match approvals::call_of(tx, tenant, approval.id)? {
            None => AskedBefore::No,
            Some(of) if of == (row.row, step, position) => AskedBefore::ForThisCall,
            Some(_) => AskedBefore::ForAnother,
        };
        let at = at(&row, step, position);
        if rules::calls::ask(at, call.state, approval, before, &fresh)? {
            fresh.push(approval.clone());
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    touch(tx, &row)?;
    for approval in &fresh {
        let sql = "UPDATE call SET state=?, approval=? WHERE run=? AND step=? AND pos=?";
        let code = CallState::Approval.code();
        let place = (row.row, approval.step, approval.position);
        let values = (code, approval.id.as_bytes(), place.0, place.1, place.2);
        run_sql(tx.conn, sql, values)?;
    }
    approvals::insert(tx, tenant, (row.thread, row.row), &fresh)
}

/// Note that a run has come on.
fn touch(tx: &Tx<'_>, row: &RunRow) -> OpResult<()> {
    run_sql(
        tx.conn,
        "UPDATE run SET progress=? WHERE run=?",
        (int(tx.now), row.row),
    )?;
    Ok(())
}

/// Where results go; refuse what does not fit. Nothing is written.
pub(crate) fn places(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    results: &[PreparedResult],
) -> OpResult<Vec<ResultPlace>> {
    let mut places: Vec<ResultPlace> = Vec::with_capacity(results.len());
    for prepared in results {
        let call = call(tx, row, prepared.step, prepared.position)?;
        let no = call.result;
        let is_given = places.iter().any(|place| place.no == no);
        let stored = match call.state {
            CallState::Done => {
                let run = (row.row, row.id);
                let item = std::slice::from_ref(&prepared.item);
                let same = call.ends == prepared.ends
                    && items::same(tx.conn, scope.tenant(), run, no, item)?;
                if same {
                    StoredResult::Same
                } else {
                    StoredResult::Other
                }
            }
            _ => {
                let sql = "SELECT kind FROM item WHERE run=? AND no=?";
                let kind: Option<u8> = one(tx.conn, sql, (row.row, no), |row| row.get(0))?;
                match kind {
                    Some(kind) if kind == ItemKind::Gap.code() => StoredResult::Gap,
                    _ => StoredResult::Nothing,
                }
            }
        };
        let at = at(row, prepared.step, prepared.position);
        let is_new = rules::calls::result(at, call.state, stored, is_given)?;
        places.push(ResultPlace { no, is_new });
    }
    Ok(places)
}

/// What results say again.
pub(crate) fn resolve_results(
    tx: &Tx<'_>,
    tenant: i64,
    results: &[PreparedResult],
) -> OpResult<Vec<Option<Original>>> {
    let mut originals = Vec::with_capacity(results.len());
    for prepared in results {
        let item = std::slice::from_ref(&prepared.item);
        originals.extend(items::resolve(tx.conn, tenant, item)?);
    }
    Ok(originals)
}

/// Store results at their places.
pub(crate) fn fill(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: (i64, RunId),
    places: &[ResultPlace],
    results: &[PreparedResult],
    originals: &[Option<Original>],
) -> OpResult<Vec<ItemSummary>> {
    let mut summaries = Vec::with_capacity(results.len());
    for ((prepared, place), original) in results.iter().zip(places).zip(originals) {
        if !place.is_new {
            continue;
        }
        let sql = "UPDATE call SET state=? WHERE run=? AND step=? AND pos=?";
        let done = CallState::Done.code();
        run_sql(
            tx.conn,
            sql,
            (done, run.0, prepared.step, prepared.position),
        )?;
        if prepared.ends {
            let sql = "UPDATE call SET effect=effect|? WHERE run=? AND step=? AND pos=?";
            run_sql(
                tx.conn,
                sql,
                (ENDS, run.0, prepared.step, prepared.position),
            )?;
        }
        approvals::withdraw_call(tx, run.0, prepared.step, prepared.position)?;
        let at = ItemRef {
            run: run.1,
            no: place.no,
        };
        let original = original.as_ref();
        summaries.push(items::insert(
            tx,
            tenant,
            run.0,
            at,
            &prepared.item,
            original,
        )?);
    }
    Ok(summaries)
}

/// Whether results are stored as given.
pub(crate) fn same_results(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    results: &[PreparedResult],
) -> OpResult<bool> {
    match places(tx, scope, row, results) {
        Ok(places) => Ok(places.iter().all(|place| !place.is_new)),
        Err(OpError::Refused(_)) => Ok(false),
        Err(broken) => Err(broken),
    }
}

/// Record results.
pub(crate) fn results(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    results: &[PreparedResult],
) -> OpResult<()> {
    let row = run_of_lease(tx, scope, lease)?;
    rules::lease::running(row.id, row.state)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let places = places(tx, scope, &row, results)?;
    let originals = resolve_results(tx, tenant, results)?;
    if places.iter().all(|place| !place.is_new) {
        return Ok(());
    }
    touch(tx, &row)?;
    let run = (row.row, row.id);
    let summaries = fill(tx, scope.tenant(), run, &places, results, &originals)?;
    match cached_run(tx.shared, scope, lease) {
        // Only if nothing else happened since; otherwise it is read anew when it is needed.
        Some(live) if live.next_item == row.next_item && live.next_step == row.next_step => {
            let mut live = (*live).clone();
            for summary in summaries {
                live.add_summary(summary);
            }
            tx.after_commit(CacheUpdate::Run(live.into()));
        }
        _ => tx.after_commit(CacheUpdate::ForgetRun(lease.run)),
    }
    Ok(())
}
