//! Events, stored just before they are sent.

use crate::engines::sqlite::cache::CachedRun;
use crate::engines::sqlite::events::{OwnedRun, add, append, has, move_out, move_stored_out};
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::ops::lease::{cached_run, load_run, run_of_lease_with_events};
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::rows::{RunRow, int};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::engines::sqlite::write::queue::Shared;
use crate::{Flush, Lease, TenantScope, rules};

/// Events, ready to be stored.
pub(crate) struct PreparedFlush {
    events: Flush,
    /// The run, if this process remembers it and they may come next. It may have been settled
    /// meanwhile or belong to another process: the log finds that out.
    of: Option<OwnedRun>,
}

impl PreparedFlush {
    pub(crate) fn new(shared: &Shared, scope: &TenantScope, lease: Lease, events: &Flush) -> Self {
        let live = cached_run(shared, scope, lease);
        let live = live.filter(|live| live.next_event <= events.first);
        Self {
            events: events.clone(),
            of: live.map(|live| live.owned()),
        }
    }
}

/// Store events.
pub(crate) fn flush(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    prepared: &PreparedFlush,
) -> OpResult<()> {
    let events = &prepared.events;
    // The run's own row is left alone: the holder of the epoch is alone, so the number of the next
    // event follows from the events.
    if let Some(of) = prepared.of
        && add(tx, of, events)?
    {
        return Ok(());
    }
    let mut row = run_of_lease_with_events(tx, scope, lease)?;
    if is_stored(tx, &row, events)? {
        return Ok(());
    }
    rules::lease::running(row.id, row.state)?;
    rules::lease::next_events(row.id, row.next_event, Some(events))?;
    if row.owner != Some(tx.owner) {
        // Neither its owner nor this process knows all of its events: only what is stored counts,
        // and its row says so.
        let sql = "UPDATE run SET next_event=? WHERE run=?";
        run_sql(tx.conn, sql, (int(events.end()), row.row))?;
        move_stored_out(tx, row.owned())?;
        move_out(tx, row.owned(), events.first, Some(events))?;
        tx.after_commit(CacheUpdate::ForgetRun(row.id));
        return Ok(());
    }
    append(tx, row.owned(), events)?;
    row.next_event = events.end();
    tx.after_commit(CacheUpdate::Run(load_run(tx, scope, &row)?.into()));
    Ok(())
}

/// Whether events are the next ones by what is remembered of a run and of its events.
pub(crate) fn is_next(tx: &Tx<'_>, live: &CachedRun, events: &Flush) -> bool {
    // What is remembered of the run itself does not know of flushes since its last step.
    live.next_event <= events.first && tx.log.follows(live.owned(), events.first)
}

/// Whether these events are there already.
pub(crate) fn is_stored(tx: &Tx<'_>, row: &RunRow, events: &Flush) -> OpResult<bool> {
    if events.end() > row.next_event || events.count == 0 {
        return Ok(false);
    }
    has(tx, row, events)
}

/// Events that come with the end of a run's work, unless they are there.
pub(crate) fn last_events(row: &RunRow, events: Option<&Flush>) -> OpResult<u64> {
    rules::lease::next_events(row.id, row.next_event, events)?;
    Ok(events.map_or(row.next_event, Flush::end))
}
