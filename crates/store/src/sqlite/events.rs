//! Events, stored just before they are sent.

use rusqlite::params;

use super::fault::Done;
use super::hot::Hot;
use super::lease::{admit, cached, events_in_order, must_run};
use super::queue::{Effect, Tx};
use super::rows::{RunRow, int};
use super::sql::{one, run_sql};
use crate::{Flush, Lease, TenantScope};

/// Store events.
pub(super) fn insert_events(tx: &Tx<'_>, run: i64, events: &Flush) -> Done<()> {
    if events.count > 0 {
        let sql = "INSERT INTO run_event(run, seq, n, payload) VALUES(?,?,?,?)";
        run_sql(
            tx.conn,
            sql,
            (run, int(events.first), events.count, &events.payload),
        )?;
    }
    Ok(())
}

/// Store events.
pub(super) fn flush(
    tx: &mut Tx<'_>,
    scope: &TenantScope,
    lease: Lease,
    events: &Flush,
) -> Done<()> {
    // One row, and the run's own row is left alone: whoever holds the epoch is alone, so the number
    // of the next event follows from the events.
    if let Some(live) = cached(tx, scope, lease).filter(|live| live.next_event == events.first) {
        let values = params![
            int(events.first),
            events.count,
            &events.payload,
            live.row,
            live.id.as_bytes(),
            live.epoch,
        ];
        if events.count > 0 && tx.hot.run(Hot::Events, values)? == 1 {
            tx.then(Effect::Events(live.id, events.end()));
            return Ok(());
        }
    }
    let row = admit(tx, scope, lease)?;
    if is_stored(tx, &row, events)? {
        return Ok(());
    }
    must_run(tx, &row)?;
    events_in_order(&row, Some(events))?;
    insert_events(tx, row.row, events)?;
    tx.then(Effect::Forget(lease.run));
    Ok(())
}

/// Whether these events are there already.
pub(super) fn is_stored(tx: &Tx<'_>, row: &RunRow, events: &Flush) -> Done<bool> {
    if events.end() > row.next_event || events.count == 0 {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM run_event WHERE run=? AND seq=? AND n=? AND payload=?";
    let key = (row.row, int(events.first), events.count, &events.payload);
    Ok(one(tx.conn, sql, key, |_| Ok(()))?.is_some())
}

/// Events that come with the end of a run's work, unless they are there.
pub(super) fn last_events(row: &RunRow, events: Option<&Flush>) -> Done<u64> {
    events_in_order(row, events)?;
    Ok(events.map_or(row.next_event, Flush::end))
}
