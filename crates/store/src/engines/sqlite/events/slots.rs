//! The pages of the log that this process writes: one is being filled, others are full, and those
//! that no live run needs are written over.

use std::collections::VecDeque;

use rusqlite::params;

use super::packed::SLOT_BYTES;
use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::rows::row_map::RowMap;
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::write::job::Tx;
use crate::engines::sqlite::write::statements::TurnStatement;

/// Slots that are full and needed, at most. Beyond that the runs of the oldest one are moved out.
pub(super) const MAX_FULL_SLOTS: usize = 128;

#[derive(Default)]
struct Slot {
    /// How many runs need it.
    live: usize,
    /// Those that did at some time.
    runs: Vec<i64>,
}

#[derive(Default)]
pub(super) struct Slots {
    known: RowMap<Slot>,
    /// The one that is being filled, and what is in it.
    open: Option<i64>,
    image: Vec<u8>,
    used: usize,
    /// Those that are full, the oldest first.
    full: VecDeque<i64>,
    free: Vec<i64>,
}

impl Slots {
    /// Write entries; the slot of each.
    pub(super) fn write(&mut self, tx: &Tx<'_>, entries: &[&[u8]]) -> OpResult<Vec<i64>> {
        let mut places = Vec::with_capacity(entries.len());
        let size: usize = entries.iter().map(|entry| entry.len()).sum();
        // One page for each commit: what does not fit goes to the next slot all of it.
        if self.used + size > SLOT_BYTES {
            self.full.extend(self.open.take());
        }
        while places.len() < entries.len() {
            if self.open.is_none() {
                self.clear();
            }
            let start = self.used;
            let rest = &entries[places.len()..];
            let fits = self.fill(rest);
            if fits == 0 {
                self.full.extend(self.open.take());
                continue;
            }
            match self.store(tx)? {
                Some(slot) => {
                    self.open = Some(slot);
                    places.resize(places.len() + fits, slot);
                }
                // Another process took it. What was in it before is no longer ours to write.
                None => self.used = start,
            }
        }
        Ok(places)
    }

    /// Copy as many entries as fit; an empty slot takes any one.
    fn fill(&mut self, entries: &[&[u8]]) -> usize {
        let mut fits = 0;
        for entry in entries {
            let end = self.used + entry.len();
            if end > SLOT_BYTES {
                break;
            }
            self.image[self.used..end].copy_from_slice(entry);
            self.used = end;
            fits += 1;
        }
        fits
    }

    /// Write the slot that is being filled. `None` if it is not ours any more.
    fn store(&mut self, tx: &Tx<'_>) -> OpResult<Option<i64>> {
        if let Some(slot) = self.open.take().or_else(|| self.free.pop()) {
            let values = params![&self.image, slot, tx.owner];
            if tx.statements.run(TurnStatement::Slot, values)? == 1 {
                return Ok(Some(slot));
            }
            self.known.remove(&slot);
            return Ok(None);
        }
        let sql = "INSERT INTO event_log(owner, payload) VALUES(?,?)";
        run_sql(tx.conn, sql, (tx.owner, &self.image))?;
        let slot = tx.conn.last_insert_rowid();
        self.known.insert(slot, Slot::default());
        Ok(Some(slot))
    }

    fn clear(&mut self) {
        self.image.clear();
        self.image.resize(SLOT_BYTES, 0);
        self.used = 0;
    }

    /// A run needs a slot.
    pub(super) fn hold(&mut self, slot: i64, run: i64) {
        if let Some(slot) = self.known.get_mut(&slot) {
            slot.live += 1;
            slot.runs.push(run);
        }
    }

    /// A run needs a slot no more.
    pub(super) fn release(&mut self, slot: i64) {
        let Some(known) = self.known.get_mut(&slot) else {
            return;
        };
        known.live = known.live.saturating_sub(1);
        if known.live > 0 {
            return;
        }
        known.runs.clear();
        if self.open == Some(slot) {
            self.clear();
        } else {
            self.full.retain(|full| *full != slot);
            self.free.push(slot);
        }
    }

    /// Runs in slots that are full for too long.
    pub(super) fn runs_in_old_slots(&self) -> Vec<i64> {
        let many = self.full.len().saturating_sub(MAX_FULL_SLOTS);
        let late = self
            .full
            .iter()
            .take(many)
            .filter_map(|slot| self.known.get(slot));
        let mut runs: Vec<i64> = late.flat_map(|slot| slot.runs.iter().copied()).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    pub(super) fn has(&self, slot: i64) -> bool {
        self.known.contains_key(&slot)
    }

    /// Forget the slots that no run needs; which they are.
    pub(super) fn release_unneeded(&mut self) -> Vec<i64> {
        let unneeded = self.known.iter().filter(|(_, slot)| slot.live == 0);
        let unneeded: Vec<i64> = unneeded.map(|(slot, _)| *slot).collect();
        self.known.retain(|_, slot| slot.live > 0);
        self.free.clear();
        self.open = self.open.filter(|slot| self.known.contains_key(slot));
        unneeded
    }
}
