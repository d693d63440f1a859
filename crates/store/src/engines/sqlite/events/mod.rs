//! The events of live runs, in a log that all of them share.
//!
//! A flush is small and there are many of them, from many runs at once. A row of its own with a
//! place in an index would cost it several pages of a commit, so the flushes of a transaction go
//! together to a *slot*: a row that fills one page, which is filled up over some transactions and
//! written over when no run needs it any more. When a run is settled, its flushes are packed into
//! one row of `run_event`. ADR 6 says why.
//!
//! A run has its events in rows of its own first, and from where those end in the log, as long as
//! it is running. What the log has of it from before is of no account.

pub(super) mod flush;
mod log_cache;
mod packed;
mod scan;
mod slots;
mod sweep;

use std::cell::RefCell;

use rusqlite::params;

pub(crate) use log_cache::OwnedRun;
pub(crate) use scan::{EventEnds, events};
pub(crate) use sweep::{check, erase, move_all, redact, release_slots, sweep};

use log_cache::{LogCache, MAX_RUN_BYTES, PackedFlushes};

use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::rows::{RunRow, int};
use crate::engines::sqlite::write::job::Tx;
use crate::engines::sqlite::write::statements::TurnStatement;
use crate::{Flush, RunState};

/// What the writer remembers of the log.
#[derive(Default)]
pub(crate) struct EventLog(RefCell<LogCache>);

impl EventLog {
    /// The transaction was committed.
    pub(crate) fn committed(&self) {
        self.0.borrow_mut().committed();
    }

    /// The transaction was rolled back.
    pub(crate) fn rolled_back(&self) {
        self.0.borrow_mut().rolled_back();
    }

    /// Runs were ended otherwise than one by one.
    pub(crate) fn expect_changes(&self) {
        self.0.borrow_mut().expect_changes();
    }

    /// Whether everything before an event of a run is known.
    pub(crate) fn follows(&self, of: OwnedRun, first: u64) -> bool {
        self.0.borrow().follows(of, first)
    }
}

/// Store events of a run if it is this process's and they follow what is known of it.
pub(crate) fn add(tx: &Tx<'_>, of: OwnedRun, events: &Flush) -> OpResult<bool> {
    if events.count == 0 {
        return Ok(false);
    }
    let mut cache = tx.log.0.borrow_mut();
    // Whether others have written is asked once for a transaction.
    if cache.must_ask() {
        cache.note_version(tx.statements.number(TurnStatement::Version)?);
    }
    if cache.stage_known(of, events) {
        return Ok(true);
    }
    drop(cache);
    if !tx.log.follows(of, events.first) || !is_own(tx, of, events)? {
        return Ok(false);
    }
    put(tx, of, events)?;
    Ok(true)
}

/// Whether a run is running, in this process and at this epoch. Asked of SQLite, unless it was
/// before and nothing can have changed since.
fn is_own(tx: &Tx<'_>, of: OwnedRun, events: &Flush) -> OpResult<bool> {
    if tx.log.0.borrow().is_seen(of) {
        return Ok(true);
    }
    let first = int(events.first);
    let values = params![of.row, of.id.as_bytes(), of.epoch, tx.owner, first];
    tx.statements.exists(TurnStatement::Guard, values)
}

/// Store events of a running run. They must be the next ones.
pub(crate) fn append(tx: &Tx<'_>, of: OwnedRun, events: &Flush) -> OpResult<()> {
    if events.count == 0 {
        return Ok(());
    }
    if !tx.log.follows(of, events.first) {
        move_stored_out(tx, of)?;
    }
    put(tx, of, events)
}

fn put(tx: &Tx<'_>, of: OwnedRun, events: &Flush) -> OpResult<()> {
    let mut cache = tx.log.0.borrow_mut();
    let size = events.payload.len() + packed::ENTRY_OVERHEAD;
    if size <= packed::SLOT_BYTES && cache.size(of) + size <= MAX_RUN_BYTES {
        cache.stage(of, events);
        return Ok(());
    }
    drop(cache);
    move_out(tx, of, events.first, Some(events))
}

/// Move the events of a run out of the log, up to the number `end`, and put the last ones to them.
pub(crate) fn move_out(tx: &Tx<'_>, of: OwnedRun, end: u64, last: Option<&Flush>) -> OpResult<()> {
    let last = last.filter(|events| events.count > 0);
    let gathered = tx.log.0.borrow().gathered(of, end);
    if let Some(mut all) = gathered {
        if let Some(last) = last {
            all.push(last);
        }
        if all.flushes == 0 || insert(tx, of.row, &all)? {
            tx.log.0.borrow_mut().drop_run(of.row);
            return Ok(());
        }
        // Another process has moved some of them: only the stored ones count.
    }
    move_stored_out(tx, of)?;
    if let Some(last) = last {
        let mut alone = PackedFlushes::default();
        alone.push(last);
        insert(tx, of.row, &alone)?;
    }
    Ok(())
}

/// Move the events of a run out of the log by what is stored there.
pub(crate) fn move_stored_out(tx: &Tx<'_>, of: OwnedRun) -> OpResult<()> {
    let mut next = scan::stored_end(tx.conn, of.row)?;
    let mut flushes = scan::flushes_from(tx.conn, of.row, next)?;
    {
        let cache = tx.log.0.borrow();
        for added in cache.added(of.row) {
            let entry = &cache.staged.bytes[added.entry.clone()];
            let entries = packed::entries(entry).unwrap_or_default();
            flushes.extend(entries.into_iter().map(|entry| entry.flush));
        }
    }
    let mut packed = PackedFlushes::default();
    for flush in flushes {
        // Events that are missing are no reason to lose those after them; the check finds the hole.
        if flush.first != next && packed.flushes > 0 {
            insert(tx, of.row, &std::mem::take(&mut packed))?;
        }
        next = flush.end();
        packed.push(&flush);
    }
    if packed.flushes > 0 {
        insert(tx, of.row, &packed)?;
    }
    tx.log.0.borrow_mut().drop_run(of.row);
    Ok(())
}

/// Insert a row of a run. Not if it has one there.
fn insert(tx: &Tx<'_>, run: i64, packed: &PackedFlushes) -> OpResult<bool> {
    let values = params![
        run,
        int(packed.first),
        int(packed.end.saturating_sub(packed.first)),
        packed.flushes,
        packed.bytes,
    ];
    Ok(tx.statements.run(TurnStatement::Events, values)? == 1)
}

/// Put right which event comes next in a run: its row does not know what is in the log.
pub(crate) fn set_next_event(tx: &Tx<'_>, row: &mut RunRow) -> OpResult<()> {
    let own = tx.owner != 0 && row.owner == Some(tx.owner);
    let known = tx.log.0.borrow().end(row.owned(), row.next_event, own);
    match known {
        Some(end) if row.state == RunState::Running => row.next_event = end,
        _ => EventEnds::default().set_next_event(tx.conn, row)?,
    }
    Ok(())
}

/// Whether events are there already, exactly as given.
pub(crate) fn has(tx: &Tx<'_>, row: &RunRow, events: &Flush) -> OpResult<bool> {
    {
        let cache = tx.log.0.borrow();
        let mut added = cache.added(row.row);
        if let Some(added) = added.find(|added| added.first == events.first) {
            let entry = &cache.staged.bytes[added.entry.clone()];
            let entries = packed::entries(entry).unwrap_or_default();
            return Ok(entries.iter().any(|entry| entry.flush == *events));
        }
    }
    Ok(scan::flush_at(tx.conn, row, events.first)?.is_some_and(|flush| flush == *events))
}

/// Write what the transaction has added, just before it is committed.
pub(crate) fn write_slots(tx: &Tx<'_>) -> OpResult<()> {
    if tx.log.0.borrow().staged.added.is_empty() {
        return Ok(());
    }
    shorten_log(tx)?;
    let mut cache = tx.log.0.borrow_mut();
    let LogCache { slots, staged, .. } = &mut *cache;
    staged.written = true;
    // Mostly all of it goes to one slot, as it lies.
    if staged.bytes.len() <= packed::SLOT_BYTES && staged.added.iter().all(|added| !added.gone) {
        let places = slots.write(tx, &[&staged.bytes])?;
        for (added, slot) in staged.added.iter_mut().zip(places.iter().cycle()) {
            added.slot = *slot;
        }
        return Ok(());
    }
    let waiting = || staged.added.iter().filter(|added| !added.gone);
    let entries: Vec<&[u8]> = waiting()
        .map(|added| &staged.bytes[added.entry.clone()])
        .collect();
    let places = slots.write(tx, &entries)?;
    let waiting = staged.added.iter_mut().filter(|added| !added.gone);
    for (added, slot) in waiting.zip(places) {
        added.slot = slot;
    }
    Ok(())
}

/// Keep the log short: runs that hold on to old slots get rows of their own.
fn shorten_log(tx: &Tx<'_>) -> OpResult<()> {
    let late: Vec<(OwnedRun, u64)> = {
        let cache = tx.log.0.borrow();
        let kept = cache.slots.runs_in_old_slots().into_iter();
        kept.filter_map(|run| cache.runs.get(&run))
            .map(|kept| (kept.of, kept.packed.end))
            .collect()
    };
    for (of, end) in late {
        let sql = "SELECT 1 FROM run WHERE run=? AND id=? AND epoch=? AND state=1";
        let key = (of.row, of.id.as_bytes(), of.epoch);
        if one(tx.conn, sql, key, |_| Ok(()))?.is_some() {
            move_out(tx, of, end, None)?;
        } else {
            tx.log.0.borrow_mut().drop_run(of.row);
        }
    }
    Ok(())
}
