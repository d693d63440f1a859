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
mod memory;
mod packed;
mod scan;
mod slots;
mod sweep;

use std::cell::RefCell;

use rusqlite::params;

pub(crate) use memory::Worked;
pub(crate) use scan::{Ends, events};
pub(crate) use sweep::{check, erase, leave, move_all, redact, sweep};

use memory::{LONG, Memory, Packed};

use crate::engines::sqlite::fault::Done;
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::rows::{RunRow, int};
use crate::engines::sqlite::write::job::Tx;
use crate::engines::sqlite::write::statements::TurnStatement;
use crate::{Flush, RunState};

/// What the writer remembers of the log.
#[derive(Default)]
pub(crate) struct EventLog(RefCell<Memory>);

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
    pub(crate) fn distrust(&self) {
        self.0.borrow_mut().distrust();
    }

    /// Whether everything before an event of a run is known.
    pub(crate) fn follows(&self, of: Worked, first: u64) -> bool {
        self.0.borrow().follows(of, first)
    }
}

/// Store events of a run if it is this process's and they follow what is known of it.
pub(crate) fn add(tx: &Tx<'_>, of: Worked, events: &Flush) -> Done<bool> {
    if events.count == 0 {
        return Ok(false);
    }
    let mut memory = tx.log.0.borrow_mut();
    // Whether others have written is asked once for a transaction.
    if memory.must_ask() {
        memory.note_version(tx.statements.number(TurnStatement::Version)?);
    }
    if memory.stage_known(of, events) {
        return Ok(true);
    }
    drop(memory);
    if !tx.log.follows(of, events.first) || !is_own(tx, of, events)? {
        return Ok(false);
    }
    put(tx, of, events)?;
    Ok(true)
}

/// Whether a run is running, in this process and at this epoch. Asked of SQLite, unless it was
/// before and nothing can have changed since.
fn is_own(tx: &Tx<'_>, of: Worked, events: &Flush) -> Done<bool> {
    if tx.log.0.borrow().is_seen(of) {
        return Ok(true);
    }
    let first = int(events.first);
    let values = params![of.row, of.id.as_bytes(), of.epoch, tx.owner, first];
    tx.statements.holds(TurnStatement::Guard, values)
}

/// Store events of a running run. They must be the next ones.
pub(crate) fn append(tx: &Tx<'_>, of: Worked, events: &Flush) -> Done<()> {
    if events.count == 0 {
        return Ok(());
    }
    if !tx.log.follows(of, events.first) {
        gather(tx, of)?;
    }
    put(tx, of, events)
}

fn put(tx: &Tx<'_>, of: Worked, events: &Flush) -> Done<()> {
    let mut memory = tx.log.0.borrow_mut();
    let size = events.payload.len() + packed::ENTRY;
    if size <= packed::ROOM && memory.size(of) + size <= LONG {
        memory.stage(of, events);
        return Ok(());
    }
    drop(memory);
    settle(tx, of, events.first, Some(events))
}

/// Move the events of a run out of the log, up to the number `end`, and put the last ones to them.
pub(crate) fn settle(tx: &Tx<'_>, of: Worked, end: u64, last: Option<&Flush>) -> Done<()> {
    let last = last.filter(|events| events.count > 0);
    let gathered = tx.log.0.borrow().gathered(of, end);
    if let Some(mut all) = gathered {
        if let Some(last) = last {
            all.push(last);
        }
        if all.flushes == 0 || insert(tx, of.row, &all)? {
            tx.log.0.borrow_mut().leave(of.row);
            return Ok(());
        }
        // Another process has moved some of them: only the stored ones count.
    }
    gather(tx, of)?;
    if let Some(last) = last {
        let mut alone = Packed::default();
        alone.push(last);
        insert(tx, of.row, &alone)?;
    }
    Ok(())
}

/// Move the events of a run out of the log by what is stored there.
pub(crate) fn gather(tx: &Tx<'_>, of: Worked) -> Done<()> {
    let mut next = scan::stored_end(tx.conn, of.row)?;
    let mut flushes = scan::flushes_from(tx.conn, of.row, next)?;
    {
        let memory = tx.log.0.borrow();
        for added in memory.added(of.row) {
            let entry = &memory.staged.bytes[added.entry.clone()];
            let entries = packed::entries(entry).unwrap_or_default();
            flushes.extend(entries.into_iter().map(|entry| entry.flush));
        }
    }
    let mut packed = Packed::default();
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
    tx.log.0.borrow_mut().leave(of.row);
    Ok(())
}

/// Insert a row of a run. Not if it has one there.
fn insert(tx: &Tx<'_>, run: i64, packed: &Packed) -> Done<bool> {
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
pub(crate) fn tell_next(tx: &Tx<'_>, row: &mut RunRow) -> Done<()> {
    let own = tx.owner != 0 && row.owner == Some(tx.owner);
    let known = tx.log.0.borrow().end(row.worked(), row.next_event, own);
    match known {
        Some(end) if row.state == RunState::Running => row.next_event = end,
        _ => Ends::default().tell(tx.conn, row)?,
    }
    Ok(())
}

/// Whether events are there already, exactly as given.
pub(crate) fn has(tx: &Tx<'_>, row: &RunRow, events: &Flush) -> Done<bool> {
    {
        let memory = tx.log.0.borrow();
        let mut added = memory.added(row.row);
        if let Some(added) = added.find(|added| added.first == events.first) {
            let entry = &memory.staged.bytes[added.entry.clone()];
            let entries = packed::entries(entry).unwrap_or_default();
            return Ok(entries.iter().any(|entry| entry.flush == *events));
        }
    }
    Ok(scan::flush_at(tx.conn, row, events.first)?.is_some_and(|flush| flush == *events))
}

/// Write what the transaction has added, just before it is committed.
pub(crate) fn seal(tx: &Tx<'_>) -> Done<()> {
    if tx.log.0.borrow().staged.added.is_empty() {
        return Ok(());
    }
    move_late(tx)?;
    let mut memory = tx.log.0.borrow_mut();
    let Memory { slots, staged, .. } = &mut *memory;
    staged.sealed = true;
    // Mostly all of it goes to one slot, as it lies.
    if staged.bytes.len() <= packed::ROOM && staged.added.iter().all(|added| !added.gone) {
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
fn move_late(tx: &Tx<'_>) -> Done<()> {
    let late: Vec<(Worked, u64)> = {
        let memory = tx.log.0.borrow();
        let kept = memory.slots.late().into_iter();
        kept.filter_map(|run| memory.runs.get(&run))
            .map(|kept| (kept.of, kept.packed.end))
            .collect()
    };
    for (of, end) in late {
        let sql = "SELECT 1 FROM run WHERE run=? AND id=? AND epoch=? AND state=1";
        let key = (of.row, of.id.as_bytes(), of.epoch);
        if one(tx.conn, sql, key, |_| Ok(()))?.is_some() {
            settle(tx, of, end, None)?;
        } else {
            tx.log.0.borrow_mut().leave(of.row);
        }
    }
    Ok(())
}
