//! Events, stored just before they are sent.

use crate::engines::sqlite::cache::Live;
use crate::engines::sqlite::events::{Worked, add, append, gather, has, settle};
use crate::engines::sqlite::fault::Done;
use crate::engines::sqlite::ops::lease::{admit_events, cached, load};
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::rows::{RunRow, int};
use crate::engines::sqlite::write::job::{Effect, Tx};
use crate::engines::sqlite::write::queue::Shared;
use crate::{Flush, Lease, TenantScope, rules};

/// Events, ready to be stored.
pub(crate) struct ReadyFlush {
    events: Flush,
    /// The run, if this process remembers it and they may come next. It may have been settled
    /// meanwhile or belong to another process: the log finds that out.
    of: Option<Worked>,
}

impl ReadyFlush {
    pub(crate) fn new(shared: &Shared, scope: &TenantScope, lease: Lease, events: &Flush) -> Self {
        let live = cached(shared, scope, lease);
        let live = live.filter(|live| live.next_event <= events.first);
        Self {
            events: events.clone(),
            of: live.map(|live| live.worked()),
        }
    }
}

/// Store events.
pub(crate) fn flush(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    ready: &ReadyFlush,
) -> Done<()> {
    let events = &ready.events;
    // The run's own row is left alone: the holder of the epoch is alone, so the number of the next
    // event follows from the events.
    if let Some(of) = ready.of
        && add(tx, of, events)?
    {
        return Ok(());
    }
    let mut row = admit_events(tx, scope, lease)?;
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
        gather(tx, row.worked())?;
        settle(tx, row.worked(), events.first, Some(events))?;
        tx.then(Effect::Forget(row.id));
        return Ok(());
    }
    append(tx, row.worked(), events)?;
    row.next_event = events.end();
    tx.then(Effect::Live(load(tx, scope, &row)?.into()));
    Ok(())
}

/// Whether events are the next ones by what is remembered of a run and of its events.
pub(crate) fn is_next(tx: &Tx<'_>, live: &Live, events: &Flush) -> bool {
    // What is remembered of the run itself does not know of flushes since its last step.
    live.next_event <= events.first && tx.log.follows(live.worked(), events.first)
}

/// Whether these events are there already.
pub(crate) fn is_stored(tx: &Tx<'_>, row: &RunRow, events: &Flush) -> Done<bool> {
    if events.end() > row.next_event || events.count == 0 {
        return Ok(false);
    }
    has(tx, row, events)
}

/// Events that come with the end of a run's work, unless they are there.
pub(crate) fn last_events(row: &RunRow, events: Option<&Flush>) -> Done<u64> {
    rules::lease::next_events(row.id, row.next_event, events)?;
    Ok(events.map_or(row.next_event, Flush::end))
}
