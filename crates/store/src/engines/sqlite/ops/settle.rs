//! Parking, ending, cancelling and claiming runs.

use crate::engines::sqlite::ops::approvals;
use rusqlite::params;
use throughline_model::json::RawJson;

use crate::engines::sqlite::events;
use crate::engines::sqlite::events::flush::{is_stored, last_events};
use crate::engines::sqlite::op_error::{OpResult, not_found};
use crate::engines::sqlite::ops::begin::{check_free, started};
use crate::engines::sqlite::ops::lease::run_of_lease_with_events;
use crate::engines::sqlite::ops::wait_queue;
use crate::engines::sqlite::rows::find::{run_by_row, run_to_write, shown_run};
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::rows::{RunRow, flag, int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::{
    AfterTurn, Claim, End, Flush, Lease, Run, RunId, RunState, Started, TenantScope, rules,
};

/// Whether events that come with an end are there already, or there are none.
fn has_events(tx: &Tx<'_>, row: &RunRow, events: Option<&Flush>) -> OpResult<bool> {
    match events {
        Some(events) if events.count > 0 => is_stored(tx, row, events),
        _ => Ok(true),
    }
}

/// Park a run.
pub(crate) fn park(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    events: Option<&Flush>,
) -> OpResult<()> {
    let row = run_of_lease_with_events(tx, scope, lease)?;
    if row.state == RunState::Parked && has_events(tx, &row, events)? {
        return Ok(());
    }
    rules::lease::running(row.id, row.state)?;
    let next = last_events(&row, events)?;
    let sql = "UPDATE run SET state=?, owner=NULL, next_event=?, progress=? WHERE run=?";
    let parked = RunState::Parked.code();
    run_sql(tx.conn, sql, (parked, int(next), int(tx.now), row.row))?;
    events::move_out(tx, row.owned(), row.next_event, events)?;
    tx.after_commit(CacheUpdate::Settled(row.id));
    Ok(())
}

/// End a run without publishing.
pub(crate) fn end(tx: &mut Tx<'_>, scope: &TenantScope, lease: Lease, end: &End) -> OpResult<()> {
    let row = run_of_lease_with_events(tx, scope, lease)?;
    let (state, withdraws) = rules::publish::stopped(end.how);
    let note = end.note.as_ref().map(RawJson::get);
    let events = end.events.as_ref();
    if rules::publish::is_ended(&row.run(tx.now)?, end) && has_events(tx, &row, events)? {
        return Ok(());
    }
    rules::lease::running(row.id, row.state)?;
    let next = last_events(&row, events)?;
    let sql = "UPDATE run SET state=?, live=NULL, next_event=?, progress=?, note=? WHERE run=?";
    run_sql(
        tx.conn,
        sql,
        params![state.code(), int(next), int(tx.now), note, row.row],
    )?;
    events::move_out(tx, row.owned(), row.next_event, events)?;
    if withdraws {
        approvals::withdraw(tx, row.row)?;
    }
    tx.after_commit(CacheUpdate::Settled(row.id));
    Ok(())
}

/// Ask for the end of a run.
pub(crate) fn cancel(tx: &mut Tx<'_>, scope: &TenantScope, run: RunId) -> OpResult<Run> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let mut row = shown_run(tx.conn, tenant, run)?;
    if !row.state.is_settled() && !row.has(flag::CANCELLING) {
        let sql = "UPDATE run SET flags=flags|? WHERE run=?";
        run_sql(tx.conn, sql, (flag::CANCELLING, row.row))?;
        row.flags |= flag::CANCELLING;
        // What is remembered of the run does not have the flag.
        tx.after_commit(CacheUpdate::ForgetRun(run));
    }
    events::set_next_event(tx, &mut row)?;
    row.run(tx.now)
}

/// Take a run over; with a waiter, only in turn.
pub(crate) fn claim(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    run: RunId,
    seen: u32,
    claim: Claim,
    waiter: Option<(RunId, AfterTurn)>,
) -> OpResult<Started> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let row = run_to_write(tx.conn, tenant, run)?;
    let thread = row.thread_id.clone();
    let thread = thread.ok_or_else(|| not_found("run", &run))?;
    rules::lease::claimed_epoch(run, seen, row.epoch)?;
    let state = row.seen(tx.now);
    let mine = row.state == RunState::Running && row.owner == Some(tx.owner);
    let of = rules::lease::ClaimedRun {
        run,
        thread: &thread,
        state,
        is_own: mine,
    };
    rules::lease::claim(&of, claim)?;
    if rules::lease::claim_needs_free_thread(state, row.has(flag::LEASED)) {
        check_free(tx, row.thread, &thread)?;
    }
    let turn = match waiter.filter(|_| row.has(flag::LEASED)) {
        Some((waiter, place)) => Some((wait_queue::turn(tx, row.thread, &thread, waiter)?, place)),
        None => None,
    };
    let sql = "UPDATE run SET state=1, owner=?1, epoch=epoch+1, attempt=attempt+?5, progress=?2,
      worked=?6, since=?2, live=coalesce(live, CASE WHEN flags & ?3 THEN 0 ELSE run END) WHERE run=?4";
    let now = int(tx.now);
    let lost = row
        .until
        .filter(|_| !mine && row.state == RunState::Running);
    let lease = u64::try_from(tx.shared.options.lease.as_millis()).unwrap_or(u64::MAX);
    let last = rules::lease::last_worked(row.progress, lost.map(|until| (num(until), lease)));
    let worked = row.worked_time.until(last);
    let attempts = rules::lease::attempts_of_claim(state);
    let values = (tx.owner, now, flag::LEASED, row.row, attempts, int(worked));
    run_sql(tx.conn, sql, values)?;
    if row.state == RunState::Running {
        // What the owner before has stored goes on with the run, whatever becomes of its slots.
        events::move_stored_out(tx, row.owned())?;
        events::sweep(tx, Some(row.row))?;
    }
    if let Some((turn, place)) = turn {
        wait_queue::take_turn(tx, turn, place)?;
    }
    tx.after_commit(CacheUpdate::ForgetRun(run));
    // One of this process is counted already.
    if !mine {
        tx.after_commit(CacheUpdate::Began);
    }
    let after = run_by_row(tx.conn, row.row)?;
    started(tx, &after.ok_or_else(|| not_found("run", &run))?)
}

/// Hide a run.
pub(crate) fn hide(tx: &mut Tx<'_>, scope: &TenantScope, run: RunId) -> OpResult<()> {
    let tenant = tx.known_tenant(scope.tenant())?;
    let row = run_to_write(tx.conn, tenant, run)?;
    let sql = "UPDATE run SET flags=flags|? WHERE run=?";
    run_sql(tx.conn, sql, (flag::HIDDEN, row.row))?;
    tx.after_commit(CacheUpdate::ForgetRun(run));
    Ok(())
}

/// Note that the answers of runs were delivered.
pub(crate) fn note_delivered(tx: &mut Tx<'_>, scope: &TenantScope, runs: &[RunId]) -> OpResult<()> {
    let tenant = tx.known_tenant(scope.tenant())?;
    // A row that has the note is not written again.
    let sql = "UPDATE run SET flags=flags|?3 WHERE tenant=?1 AND id=?2 AND flags & ?3=0";
    for run in runs {
        run_sql(tx.conn, sql, (tenant, run.as_bytes(), flag::DELIVERED))?;
    }
    Ok(())
}
