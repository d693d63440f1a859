//! Tool calls: what is about to be dispatched, and what came back.

use crate::engines::sqlite::cache::Mark;
use crate::engines::sqlite::fault::{Done, Stop, exists, invalid, missing};
use crate::engines::sqlite::ops::lease::{admit, cached, must_run};
use crate::engines::sqlite::rows::items::{self, Original, Ready};
use crate::engines::sqlite::rows::sql::{one, run_sql};
use crate::engines::sqlite::rows::{RunRow, int};
use crate::engines::sqlite::write::job::{Effect, Tx};
use crate::trials;
use crate::{
    ApprovalState, CallResult, CallState, Error, ItemKind, ItemRef, Lease, NewApproval, RunId,
    Tenant, TenantScope,
};

/// A result, ready to be stored.
pub(crate) struct Filled {
    step: u32,
    position: u32,
    pub(crate) item: Ready,
    ends: bool,
}

impl Filled {
    pub(crate) fn list(results: &[CallResult]) -> Vec<Self> {
        let ready = |result: &CallResult| Self {
            step: result.step,
            position: result.position,
            item: Ready::unnumbered(&result.item),
            ends: result.ends,
        };
        results.iter().map(ready).collect()
    }
}

/// Where a result goes.
pub(crate) struct Place {
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

fn call(tx: &Tx<'_>, row: &RunRow, step: u32, position: u32) -> Done<CallRow> {
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
    let place = || format!("{position} of step {step} of {}", row.id);
    let Some((state, stored)) = found else {
        return Err(missing("call", &place()));
    };
    let state = CallState::of(state).ok_or_else(|| {
        crate::engines::sqlite::fault::corrupt(
            format!("call {}", place()),
            "it is in no known state",
        )
    })?;
    Ok(CallRow { state, ..stored })
}

fn wrong_call(
    row: &RunRow,
    step: u32,
    position: u32,
    state: &'static str,
    wanted: &'static str,
) -> Stop {
    Stop::Refused(Error::WrongCall {
        run: row.id,
        step,
        position,
        state,
        wanted,
    })
}

/// Record that calls are about to be dispatched.
pub(crate) fn intend(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    step: u32,
    positions: &[u32],
) -> Done<()> {
    let row = admit(tx, scope, lease)?;
    must_run(tx, &row)?;
    let mut fresh = Vec::with_capacity(positions.len());
    for position in positions {
        let call = call(tx, &row, step, *position)?;
        let approved = crate::engines::sqlite::ops::approvals::code(ApprovalState::Approved);
        let denied = trials::unless("approval-unasked", call.approval != Some(approved));
        match call.state {
            CallState::Planned => fresh.push((*position, false)),
            CallState::Approval if !denied => fresh.push((*position, true)),
            CallState::Approval => {
                let wanted = "it needs an approval that says yes";
                return Err(wrong_call(
                    &row,
                    step,
                    *position,
                    call.state.as_str(),
                    wanted,
                ));
            }
            // Sent again.
            CallState::Intent if !trials::unless("intend-again", call.epoch != lease.epoch) => {}
            CallState::Intent | CallState::Done | CallState::Client | CallState::Taken => {
                let wanted = "it must be planned";
                return Err(wrong_call(
                    &row,
                    step,
                    *position,
                    call.state.as_str(),
                    wanted,
                ));
            }
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
            crate::engines::sqlite::ops::approvals::used(tx, row.row, step, position)?;
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
) -> Done<()> {
    let row = admit(tx, scope, lease)?;
    must_run(tx, &row)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let mut fresh: Vec<NewApproval> = Vec::with_capacity(approvals.len());
    for approval in approvals {
        let (step, position) = (approval.step, approval.position);
        let call = call(tx, &row, step, position)?;
        let known = crate::engines::sqlite::ops::approvals::call_of(tx, tenant, approval.id)?;
        match (call.state, known) {
            (CallState::Planned, None) => {}
            // Sent again.
            (CallState::Approval, Some(of)) if of == (row.row, step, position) => continue,
            (CallState::Planned, Some(_)) => return Err(exists("approval", &approval.id)),
            (state, _) => {
                let wanted = "it must be planned to wait for leave";
                return Err(wrong_call(&row, step, position, state.as_str(), wanted));
            }
        }
        let same = |one: &NewApproval| {
            one.id == approval.id || (one.step, one.position) == (step, position)
        };
        if fresh.iter().any(same) {
            return Err(invalid("an approval", "its call has another one"));
        }
        fresh.push(approval.clone());
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
    crate::engines::sqlite::ops::approvals::insert(tx, tenant, (row.thread, row.row), &fresh)
}

/// Note that a run has come on.
fn touch(tx: &Tx<'_>, row: &RunRow) -> Done<()> {
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
    results: &[Filled],
) -> Done<Vec<Place>> {
    let mut places: Vec<Place> = Vec::with_capacity(results.len());
    for filled in results {
        let call = call(tx, row, filled.step, filled.position)?;
        let wrong = |state, wanted| wrong_call(row, filled.step, filled.position, state, wanted);
        let no = call.result;
        let twice = places.iter().any(|place| place.no == no);
        if trials::unless("result-twice", twice) {
            return Err(wrong(
                call.state.as_str(),
                "it has one result, and two were given",
            ));
        }
        let is_new = match call.state {
            CallState::Planned | CallState::Intent | CallState::Approval | CallState::Client => {
                true
            }
            CallState::Done => {
                let run = (row.row, row.id);
                let item = std::slice::from_ref(&filled.item);
                let other = call.ends != filled.ends
                    || !items::same(tx.conn, scope.tenant(), run, no, item)?;
                if trials::unless("result-other", other) {
                    return Err(wrong(call.state.as_str(), "it has another result already"));
                }
                false
            }
            CallState::Taken => return Err(wrong(call.state.as_str(), "its run must have it")),
        };
        let sql = "SELECT kind FROM item WHERE run=? AND no=?";
        let kind: Option<u8> = one(tx.conn, sql, (row.row, no), |row| row.get(0))?;
        let gone = is_new && kind == Some(ItemKind::Gap.code());
        if trials::unless("result-gap", gone) {
            return Err(wrong(
                "published without a result",
                "it must come before its node",
            ));
        }
        places.push(Place { no, is_new });
    }
    Ok(places)
}

/// What results say again.
pub(crate) fn resolve_results(
    tx: &Tx<'_>,
    tenant: i64,
    results: &[Filled],
) -> Done<Vec<Option<Original>>> {
    let mut originals = Vec::with_capacity(results.len());
    for filled in results {
        let item = std::slice::from_ref(&filled.item);
        originals.extend(items::resolve(tx.conn, tenant, item)?);
    }
    Ok(originals)
}

/// Store results at their places.
pub(crate) fn fill(
    tx: &Tx<'_>,
    tenant: &Tenant,
    run: (i64, RunId),
    places: &[Place],
    results: &[Filled],
    originals: &[Option<Original>],
) -> Done<Vec<Mark>> {
    let mut marks = Vec::with_capacity(results.len());
    for ((filled, place), original) in results.iter().zip(places).zip(originals) {
        if !place.is_new {
            continue;
        }
        let sql = "UPDATE call SET state=? WHERE run=? AND step=? AND pos=?";
        let done = CallState::Done.code();
        run_sql(tx.conn, sql, (done, run.0, filled.step, filled.position))?;
        if filled.ends {
            let sql = "UPDATE call SET effect=effect|? WHERE run=? AND step=? AND pos=?";
            run_sql(tx.conn, sql, (ENDS, run.0, filled.step, filled.position))?;
        }
        crate::engines::sqlite::ops::approvals::withdraw_call(
            tx,
            run.0,
            filled.step,
            filled.position,
        )?;
        let at = ItemRef {
            run: run.1,
            no: place.no,
        };
        let original = original.as_ref();
        marks.push(items::insert(
            tx,
            tenant,
            run.0,
            at,
            &filled.item,
            original,
        )?);
    }
    Ok(marks)
}

/// Whether results are stored as given.
pub(crate) fn same_results(
    tx: &Tx<'_>,
    scope: &TenantScope,
    row: &RunRow,
    results: &[Filled],
) -> Done<bool> {
    match places(tx, scope, row, results) {
        Ok(places) => Ok(places.iter().all(|place| !place.is_new)),
        Err(Stop::Refused(_)) => Ok(false),
        Err(broken) => Err(broken),
    }
}

/// Record results.
pub(crate) fn results(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    results: &[Filled],
) -> Done<()> {
    let row = admit(tx, scope, lease)?;
    must_run(tx, &row)?;
    let tenant = tx.known_tenant(scope.tenant())?.unwrap_or(0);
    let places = places(tx, scope, &row, results)?;
    let originals = resolve_results(tx, tenant, results)?;
    if places.iter().all(|place| !place.is_new) {
        return Ok(());
    }
    touch(tx, &row)?;
    let run = (row.row, row.id);
    let marks = fill(tx, scope.tenant(), run, &places, results, &originals)?;
    match cached(tx.shared, scope, lease) {
        // Only if nothing else happened since; otherwise it is read anew when it is needed.
        Some(live) if live.next_item == row.next_item && live.next_step == row.next_step => {
            let mut live = (*live).clone();
            for mark in marks {
                live.mark(mark);
            }
            tx.then(Effect::Live(live.into()));
        }
        _ => tx.then(Effect::Forget(lease.run)),
    }
    Ok(())
}
