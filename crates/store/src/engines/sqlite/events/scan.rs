//! Reading the log. It holds the events of live runs only, so walking through it is short.

use std::collections::HashMap;

use rusqlite::Connection;

use super::packed::{self, SlotEntry};
use crate::engines::sqlite::op_error::{OpError, OpResult, corrupt};
use crate::engines::sqlite::rows::sql::{one, prepare};
use crate::engines::sqlite::rows::{RunRow, int, num};
use crate::{Flush, RunState};

/// A slot as it is stored.
pub(super) struct StoredSlot {
    pub(super) slot: i64,
    /// The process that writes it; none if another process had to change it.
    pub(super) owner: Option<i64>,
    pub(super) entries: Vec<SlotEntry>,
}

/// Look at every slot.
pub(super) fn walk(
    conn: &Connection,
    mut look: impl FnMut(StoredSlot) -> OpResult<()>,
) -> OpResult<()> {
    let mut statement = prepare(conn, "SELECT slot, owner, payload FROM event_log")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let slot = row.get(0)?;
        let bytes = row.get_ref(2)?.as_blob();
        let bytes = bytes.map_err(rusqlite::Error::from)?;
        let entries = packed::entries(bytes).ok_or_else(|| damaged(slot))?;
        let owner = row.get(1)?;
        look(StoredSlot {
            slot,
            owner,
            entries,
        })?;
    }
    Ok(())
}

pub(super) fn damaged(slot: i64) -> OpError {
    corrupt(
        format!("slot {slot} of the event log"),
        "its bytes are damaged",
    )
}

/// The number after the last event that a run has in rows of its own.
pub(super) fn stored_end(conn: &Connection, run: i64) -> OpResult<u64> {
    let sql = "SELECT seq+n FROM run_event WHERE run=? ORDER BY seq DESC LIMIT 1";
    Ok(one(conn, sql, [run], |row| row.get(0))?.map_or(0, num))
}

/// The flushes of a run in the log from an event on, in order. Those before are in rows of the run.
pub(super) fn flushes_from(conn: &Connection, run: i64, from: u64) -> OpResult<Vec<Flush>> {
    let mut found = Vec::new();
    walk(conn, |stored| {
        let entries = stored.entries.into_iter();
        let own = entries.filter(|entry| entry.run == run && entry.flush.first >= from);
        found.extend(own.map(|entry| entry.flush));
        Ok(())
    })?;
    found.sort_by_key(Flush::first);
    found.dedup_by_key(|flush| flush.first);
    Ok(found)
}

/// Where the events of runs end, looked up once for as many runs as are shown.
#[derive(Default)]
pub(crate) struct EventEnds(Option<HashMap<i64, u64>>);

impl EventEnds {
    /// Say of a run which event comes next.
    pub(crate) fn set_next_event(&mut self, conn: &Connection, row: &mut RunRow) -> OpResult<()> {
        // All others have their events in rows of their own.
        if row.state != RunState::Running {
            return Ok(());
        }
        if self.0.is_none() {
            let mut ends = HashMap::new();
            walk(conn, |stored| {
                for entry in &stored.entries {
                    let end = ends.entry(entry.run).or_insert(0);
                    *end = entry.flush.end().max(*end);
                }
                Ok(())
            })?;
            self.0 = Some(ends);
        }
        let end = self.0.as_ref().and_then(|ends| ends.get(&row.row));
        row.next_event = end.copied().unwrap_or(0).max(row.next_event);
        Ok(())
    }
}

/// The events of a run from a number on, in whole flushes, about so many.
pub(crate) fn events(
    conn: &Connection,
    run: &RunRow,
    from: u64,
    limit: usize,
) -> OpResult<Vec<Flush>> {
    let sql = "SELECT seq, n, packed, payload FROM run_event WHERE run=?1
      AND seq>=coalesce((SELECT max(seq) FROM run_event WHERE run=?1 AND seq<=?2), 0) ORDER BY seq";
    let mut statement = prepare(conn, sql)?;
    let mut rows = statement.query((run.row, int(from)))?;
    let mut found = EventPage {
        flushes: Vec::new(),
        count: 0,
        from,
        limit,
    };
    let mut end = 0;
    while found.count < limit
        && let Some(row) = rows.next()?
    {
        let flushes = row_flushes(row)?;
        let flushes = flushes.ok_or_else(|| damaged_events(run))?;
        end = flushes.last().map_or(end, Flush::end);
        found.take(flushes);
    }
    if found.count < limit && run.state == RunState::Running {
        found.take(flushes_from(conn, run.row, end)?);
    }
    Ok(found.flushes)
}

/// Flushes that are asked for.
struct EventPage {
    flushes: Vec<Flush>,
    count: usize,
    from: u64,
    limit: usize,
}

impl EventPage {
    fn take(&mut self, flushes: Vec<Flush>) {
        for flush in flushes {
            if self.count < self.limit && flush.end() > self.from {
                self.count += flush.count as usize;
                self.flushes.push(flush);
            }
        }
    }
}

fn damaged_events(run: &RunRow) -> OpError {
    corrupt(
        format!("the events of {}", run.id),
        "their bytes are damaged",
    )
}

/// The flushes of a row of `seq, n, packed, payload`.
pub(super) fn row_flushes(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Vec<Flush>>> {
    let first = num(row.get(0)?);
    let count: u32 = row.get(1)?;
    let packed: u32 = row.get(2)?;
    let payload: Vec<u8> = row.get(3)?;
    if packed == 0 {
        // One flush, as they were stored before there was a log.
        return Ok(Some(vec![Flush {
            first,
            count,
            payload,
        }]));
    }
    let end = first.checked_add(u64::from(count));
    let flushes = packed::flushes(first, &payload);
    Ok(flushes.filter(|flushes| {
        flushes.len() == packed as usize && flushes.last().map(Flush::end) == end
    }))
}

/// The flush of a run that begins with an event, wherever it is.
pub(super) fn flush_at(conn: &Connection, run: &RunRow, first: u64) -> OpResult<Option<Flush>> {
    let found = events(conn, run, first, 1)?;
    Ok(found.into_iter().find(|flush| flush.first == first))
}
