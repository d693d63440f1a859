//! Taking things out of the log other than by settling: what was erased, what dead processes left.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::Connection;

use super::log_cache::PackedFlushes;
use super::packed::{self, SLOT_BYTES};
use super::scan::{self, StoredSlot};
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt};
use crate::engines::sqlite::rows::find::run_by_row;
use crate::engines::sqlite::rows::sql::{one, prepare, run_sql};
use crate::engines::sqlite::rows::{int, num};
use crate::engines::sqlite::write::job::{CacheUpdate, Tx};
use crate::{Flush, RunState};

/// Leave nothing of these runs in the log, whichever process wrote it. They are dead or have their events in
/// rows of their own.
pub(crate) fn erase(tx: &mut Tx<'_>, runs: &HashSet<i64>) -> OpResult<()> {
    if runs.is_empty() {
        return Ok(());
    }
    let mut touched: Vec<StoredSlot> = Vec::new();
    scan::walk(tx.conn, |stored| {
        if stored.entries.iter().any(|entry| runs.contains(&entry.run)) {
            touched.push(stored);
        }
        Ok(())
    })?;
    for stored in &touched {
        let mut rest = Vec::with_capacity(SLOT_BYTES);
        for entry in &stored.entries {
            if !runs.contains(&entry.run) {
                packed::push_entry(&mut rest, entry.run, &entry.flush);
            }
        }
        if rest.is_empty() {
            run_sql(tx.conn, "DELETE FROM event_log WHERE slot=?", [stored.slot])?;
        } else {
            rest.resize(SLOT_BYTES.max(rest.len()), 0);
            // It has no owner from now on: its writer would put back what it remembers.
            let sql = "UPDATE event_log SET owner=NULL, payload=? WHERE slot=?";
            run_sql(tx.conn, sql, (&rest, stored.slot))?;
        }
    }
    let mut cache = tx.log.0.borrow_mut();
    for run in runs {
        cache.drop_run(*run);
    }
    drop(cache);
    if !touched.is_empty() {
        tx.after_commit(CacheUpdate::Erased);
    }
    Ok(())
}

/// Leave nothing of a run in the log, running or not.
pub(crate) fn clear(tx: &mut Tx<'_>, run: i64) -> OpResult<()> {
    if let Some(row) = run_by_row(tx.conn, run)?
        && row.state == RunState::Running
    {
        super::move_stored_out(tx, row.owned())?;
    }
    erase(tx, &HashSet::from([run]))
}

/// Take the words out of a run's events. Their numbers and kinds stay.
pub(crate) fn redact(tx: &mut Tx<'_>, run: i64) -> OpResult<()> {
    clear(tx, run)?;
    let mut emptied = Vec::new();
    {
        let sql = "SELECT seq, n, packed, payload, ev FROM run_event WHERE run=?";
        let mut statement = prepare(tx.conn, sql)?;
        let mut rows = statement.query([run])?;
        while let Some(row) = rows.next()? {
            let flushes = scan::row_flushes(row)?.unwrap_or_default();
            let mut bytes = Vec::new();
            for flush in &flushes {
                packed::push_flush(&mut bytes, &flush.emptied());
            }
            let count = u32::try_from(flushes.len()).unwrap_or(u32::MAX);
            emptied.push((count, bytes, row.get::<_, i64>(4)?));
        }
    }
    for (flushes, bytes, row) in emptied {
        let sql = "UPDATE run_event SET packed=?, payload=? WHERE ev=?";
        run_sql(tx.conn, sql, (flushes, bytes, row))?;
    }
    Ok(())
}

/// Remove slots that no process writes and no run needs: all, or those that held events of one run.
pub(crate) fn sweep(tx: &Tx<'_>, of: Option<i64>) -> OpResult<()> {
    let mut found: Vec<StoredSlot> = Vec::new();
    scan::walk(tx.conn, |stored| {
        let asked = of.is_none_or(|run| stored.entries.iter().any(|entry| entry.run == run));
        if asked && !tx.log.0.borrow().slots.has(stored.slot) {
            found.push(stored);
        }
        Ok(())
    })?;
    let mut ends = HashMap::new();
    for stored in found {
        if is_written(tx, stored.owner)? {
            continue;
        }
        let mut needed = false;
        for entry in &stored.entries {
            let from = match ends.get(&entry.run) {
                Some(from) => *from,
                None => {
                    let from = needed_from(tx.conn, entry.run)?;
                    ends.insert(entry.run, from);
                    from
                }
            };
            needed |= from.is_some_and(|from| entry.flush.first >= from);
        }
        if !needed {
            run_sql(tx.conn, "DELETE FROM event_log WHERE slot=?", [stored.slot])?;
        }
    }
    Ok(())
}

/// Whether another process that is alive writes a slot.
fn is_written(tx: &Tx<'_>, owner: Option<i64>) -> OpResult<bool> {
    let Some(owner) = owner.filter(|owner| *owner != tx.owner) else {
        return Ok(false);
    };
    let sql = "SELECT until FROM owner WHERE owner=?";
    let until: Option<i64> = one(tx.conn, sql, [owner], |row| row.get(0))?;
    Ok(until.is_some_and(|until| num(until) > tx.now))
}

/// From which event on a run needs the log; not at all if it is not running.
fn needed_from(conn: &Connection, run: i64) -> OpResult<Option<u64>> {
    let sql = "SELECT 1 FROM run WHERE run=? AND state=1";
    match one(conn, sql, [run], |_| Ok(()))? {
        Some(()) => scan::stored_end(conn, run).map(Some),
        None => Ok(None),
    }
}

/// This process ends: remove its slots that no run needs.
pub(crate) fn release_slots(log: &super::EventLog, conn: &Connection, owner: i64) -> OpResult<()> {
    for slot in log.0.borrow_mut().slots.release_unneeded() {
        let sql = "DELETE FROM event_log WHERE slot=? AND owner=?";
        run_sql(conn, sql, (slot, owner))?;
    }
    Ok(())
}

/// Move everything out of the log, in a file that no other process has open.
pub(crate) fn move_all(conn: &Connection) -> OpResult<()> {
    let mut runs: BTreeMap<i64, Vec<Flush>> = BTreeMap::new();
    scan::walk(conn, |stored| {
        for entry in stored.entries {
            runs.entry(entry.run).or_default().push(entry.flush);
        }
        Ok(())
    })?;
    for (run, mut flushes) in runs {
        let Some(from) = needed_from(conn, run)? else {
            continue;
        };
        flushes.sort_by_key(Flush::first);
        flushes.dedup_by_key(|flush| flush.first);
        for flush in flushes.into_iter().filter(|flush| flush.first >= from) {
            let mut packed = PackedFlushes::default();
            packed.push(&flush);
            let sql = "INSERT INTO run_event(run, seq, n, packed, payload) VALUES(?,?,?,1,?)";
            let values = (run, int(flush.first), flush.count, packed.bytes);
            run_sql(conn, sql, values)?;
        }
    }
    run_sql(conn, "DELETE FROM event_log", [])?;
    Ok(())
}

/// Look at everything that is stored of events: what is wrong, each with its place.
pub(crate) fn check(conn: &Connection) -> OpResult<Vec<OpError>> {
    let mut wrong = Vec::new();
    check_rows(conn, &mut wrong)?;
    let mut runs: BTreeMap<i64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut statement = conn.prepare("SELECT slot, payload FROM event_log")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let payload: Vec<u8> = row.get(1)?;
        let Some(entries) = packed::entries(&payload) else {
            wrong.push(scan::damaged(row.get(0)?));
            continue;
        };
        for entry in entries {
            let spans = runs.entry(entry.run).or_default();
            spans.push((entry.flush.first, entry.flush.end()));
        }
    }
    for (run, mut spans) in runs {
        let place = || format!("the event log, run {run}");
        let sql = "SELECT 1 FROM run WHERE run=?";
        if one(conn, sql, [run], |_| Ok(()))?.is_none() {
            wrong.push(corrupt(place(), "the run is missing"));
            continue;
        }
        let Some(from) = needed_from(conn, run)? else {
            continue;
        };
        let mut next = from;
        spans.sort_unstable();
        for (first, end) in spans.into_iter().filter(|(first, _)| *first >= from) {
            if first != next {
                let detail = format!("event {first} comes after event {next} is missing");
                wrong.push(corrupt(place(), detail));
            }
            next = end;
        }
    }
    Ok(wrong)
}

fn check_rows(conn: &Connection, wrong: &mut Vec<OpError>) -> OpResult<()> {
    let sql = "SELECT seq, n, packed, payload, run FROM run_event ORDER BY run, seq";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut before: Option<(i64, u64)> = None;
    while let Some(row) = rows.next()? {
        let (first, count, run): (i64, u32, i64) = (row.get(0)?, row.get(1)?, row.get(4)?);
        let mut say = |detail: String| {
            let place = format!("event {first} of run {run}");
            wrong.push(corrupt(place, detail));
        };
        let flushes = scan::row_flushes(row)?;
        let packed = flushes.is_some_and(|all| all.iter().all(|flush| flush.events().is_some()));
        if !packed {
            say("its bytes are damaged".into());
        }
        let next = before
            .filter(|(of, _)| *of == run)
            .map_or(0, |(_, end)| end);
        if num(first) != next {
            say(format!("event {next} is missing before it"));
        }
        before = Some((run, num(first).saturating_add(u64::from(count))));
    }
    Ok(())
}
