//! What the writer remembers of the log: the flushes of its live runs, and what the transaction
//! that is under way adds and takes away. Nothing here is needed to read the log: what is not
//! remembered is looked up in it.

use std::ops::Range;

use super::packed::{ENTRY_OVERHEAD, SLOT_BYTES, push_entry, push_flush};
use super::slots::Slots;
use crate::engines::sqlite::rows::row_map::RowMap;
use crate::{Flush, RunId};

/// Bytes of a run in the log, at most. What is more goes to a row of the run.
pub(super) const MAX_RUN_BYTES: usize = 32 * 1024;

/// A run while it is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedRun {
    pub(crate) row: i64,
    pub(crate) id: RunId,
    pub(crate) epoch: u32,
}

/// All flushes of a run that are in the log and not yet in a row of the run's own.
pub(super) struct LoggedRun {
    pub(super) of: OwnedRun,
    pub(super) packed: PackedFlushes,
    /// The slots that hold them.
    pub(super) slots: Vec<i64>,
    /// The generation in which the run was last seen to be the caller's.
    seen: u64,
    /// How many flushes the transaction under way adds.
    added: u32,
    /// Whether it takes those from before away.
    left: bool,
}

impl LoggedRun {
    fn new(of: OwnedRun) -> Self {
        Self {
            of,
            // Room for an answer of usual length: growing it bit by bit would cost more.
            packed: PackedFlushes {
                bytes: Vec::with_capacity(2048),
                ..PackedFlushes::default()
            },
            slots: Vec::with_capacity(32),
            seen: 0,
            added: 0,
            left: false,
        }
    }
}

/// Flushes in a row, packed as a settled run has them.
#[derive(Clone, Default)]
pub(super) struct PackedFlushes {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) flushes: u32,
    pub(super) bytes: Vec<u8>,
}

impl PackedFlushes {
    /// Add a flush that follows.
    pub(super) fn push(&mut self, flush: &Flush) {
        self.note(flush.first, flush.end());
        push_flush(&mut self.bytes, flush);
    }

    fn note(&mut self, first: u64, end: u64) {
        if self.flushes == 0 {
            self.first = first;
        }
        self.end = end;
        self.flushes += 1;
    }

    fn add(&mut self, added: &AddedFlush, bytes: &[u8]) {
        self.note(added.first, added.end);
        self.bytes
            .extend_from_slice(&bytes[added.inner..added.entry.end]);
    }
}

/// A flush that the transaction adds to the log.
pub(super) struct AddedFlush {
    pub(super) of: OwnedRun,
    pub(super) first: u64,
    pub(super) end: u64,
    /// Its entry in the bytes of the transaction.
    pub(super) entry: Range<usize>,
    /// Where in it the part begins that a row of a settled run has.
    inner: usize,
    /// Where it went.
    pub(super) slot: i64,
    /// Whether it went to a row of its run after all.
    pub(super) gone: bool,
    seen: u64,
}

/// The transaction that is under way.
#[derive(Default)]
pub(super) struct PendingFlushes {
    pub(super) added: Vec<AddedFlush>,
    pub(super) bytes: Vec<u8>,
    /// Runs whose flushes from before are no longer needed in the log.
    pub(super) left: Vec<i64>,
    /// Whether it was asked if other processes have written.
    asked: bool,
    /// Whether slots were written: what is known of them then hangs on the commit.
    pub(super) written: bool,
}

#[derive(Default)]
pub(super) struct LogCache {
    pub(super) runs: RowMap<LoggedRun>,
    pub(super) slots: Slots,
    pub(super) staged: PendingFlushes,
    /// Whether the log may hold flushes of this process's runs that are not remembered.
    lost: bool,
    /// Goes up whenever runs may have changed unseen: another process has written, or runs were
    /// ended otherwise than one by one.
    generation: u64,
    /// What SQLite counts other processes' commits with.
    version: Option<i64>,
}

impl LogCache {
    /// The flushes of a run from before this transaction, if they are still the log's.
    fn kept(&self, of: OwnedRun) -> Option<&LoggedRun> {
        let kept = self.runs.get(&of.row);
        kept.filter(|kept| kept.of == of && !kept.left)
    }

    /// Whether this transaction may have added something for a run. Mostly it has not, and there is
    /// no need to look through what it has added for others.
    fn may_have_added(&self, run: i64) -> bool {
        let kept = self.runs.get(&run);
        kept.is_none_or(|kept| kept.left || kept.added > 0)
    }

    /// What this transaction has added for a run.
    pub(super) fn added(&self, run: i64) -> impl DoubleEndedIterator<Item = &AddedFlush> {
        let some = self.may_have_added(run);
        let staged = self.staged.added.iter().filter(move |_| some);
        staged.filter(move |added| added.of.row == run && !added.gone)
    }

    /// Whether everything before an event of a run is either remembered or in rows of the run.
    pub(super) fn follows(&self, of: OwnedRun, first: u64) -> bool {
        match (self.added(of.row).next_back(), self.kept(of)) {
            (Some(added), _) => added.of == of && added.end == first,
            (None, Some(kept)) => kept.packed.end == first,
            (None, None) => first == 0,
        }
    }

    /// Whether a run was seen to be the caller's and cannot have changed since.
    pub(super) fn is_seen(&self, of: OwnedRun) -> bool {
        self.kept(of)
            .is_some_and(|kept| kept.seen == self.generation)
    }

    /// Whether this transaction has not checked yet if other processes have written.
    pub(super) fn must_ask(&mut self) -> bool {
        !std::mem::replace(&mut self.staged.asked, true)
    }

    /// What SQLite says about that.
    pub(super) fn note_version(&mut self, version: i64) {
        if self.version.replace(version) != Some(version) {
            self.expect_changes();
        }
    }

    /// Runs may have changed.
    pub(super) fn expect_changes(&mut self) {
        self.generation += 1;
    }

    /// The number after the last event of a run, if it can be known from here. `stored` is what the
    /// run's own rows say: if they know more, another process has written. `own`: this process owns it.
    pub(super) fn end(&self, of: OwnedRun, stored: u64, own: bool) -> Option<u64> {
        let added = self.added(of.row).next_back().filter(|last| last.of == of);
        let end = match added {
            Some(added) => Some(added.end),
            None => self.kept(of).map(|kept| kept.packed.end),
        };
        match end {
            _ if !own => added.map(|added| added.end),
            // Whatever others add to a run of this process shows in its row.
            Some(end) => (end >= stored).then_some(end),
            None => (!self.lost).then_some(stored),
        }
    }

    /// All flushes of a run up to `end` and those of this transaction; `None` if some are not known.
    pub(super) fn gathered(&self, of: OwnedRun, end: u64) -> Option<PackedFlushes> {
        let mut all = match self.kept(of) {
            Some(kept) => kept.packed.clone(),
            None if self.lost => return None,
            None => PackedFlushes::default(),
        };
        for added in self.added(of.row) {
            if all.end != added.first || added.of != of {
                return None;
            }
            all.add(added, &self.staged.bytes);
        }
        (all.end >= end).then_some(all)
    }

    /// How many bytes of a run are in the log.
    pub(super) fn size(&self, of: OwnedRun) -> usize {
        let kept = self.kept(of).map_or(0, |kept| kept.packed.bytes.len());
        let added: usize = self.added(of.row).map(|added| added.entry.len()).sum();
        kept + added
    }

    /// Add a flush if all that must be known for it is: the run is the caller's, the flush is its
    /// next one and there is room. Almost every flush goes this way, with one look at the run.
    pub(super) fn stage_known(&mut self, of: OwnedRun, flush: &Flush) -> bool {
        let size = flush.payload.len() + ENTRY_OVERHEAD;
        let Some(kept) = self.runs.get_mut(&of.row) else {
            return false;
        };
        let known = kept.of == of
            && kept.seen == self.generation
            && !kept.left
            && kept.added == 0
            && kept.packed.end == flush.first
            && size <= SLOT_BYTES
            && kept.packed.bytes.len() + size <= MAX_RUN_BYTES;
        if known {
            kept.added = 1;
            self.push(of, flush);
        }
        known
    }

    /// Add a flush, to be written when the transaction is committed.
    pub(super) fn stage(&mut self, of: OwnedRun, flush: &Flush) {
        if let Some(kept) = self.runs.get_mut(&of.row) {
            kept.added += 1;
        }
        self.push(of, flush);
    }

    fn push(&mut self, of: OwnedRun, flush: &Flush) {
        let staged = &mut self.staged;
        let start = staged.bytes.len();
        let inner = push_entry(&mut staged.bytes, of.row, flush);
        staged.added.push(AddedFlush {
            of,
            first: flush.first,
            end: flush.end(),
            entry: start..staged.bytes.len(),
            inner,
            slot: 0,
            gone: false,
            seen: self.generation,
        });
    }

    /// The flushes of a run so far need not be in the log.
    pub(super) fn drop_run(&mut self, run: i64) {
        if self.may_have_added(run) {
            for added in &mut self.staged.added {
                added.gone |= added.of.row == run;
            }
        }
        if let Some(kept) = self.runs.get_mut(&run) {
            kept.left = true;
        }
        self.staged.left.push(run);
    }

    /// The transaction was committed.
    pub(super) fn committed(&mut self) {
        let staged = &mut self.staged;
        if staged.added.is_empty() && staged.left.is_empty() {
            staged.asked = false;
            return;
        }
        let mut released = Vec::new();
        for run in staged.left.drain(..) {
            released.extend(self.runs.remove(&run).map(|kept| kept.slots));
        }
        for added in staged.added.drain(..).filter(|added| !added.gone) {
            let new = || LoggedRun::new(added.of);
            let kept = self.runs.entry(added.of.row).or_insert_with(new);
            if kept.of != added.of {
                // The number of a run that was removed is given again.
                released.push(std::mem::replace(kept, new()).slots);
            }
            kept.packed.add(&added, &staged.bytes);
            kept.seen = added.seen;
            kept.added = 0;
            if kept.slots.last() != Some(&added.slot) {
                kept.slots.push(added.slot);
                self.slots.hold(added.slot, added.of.row);
            }
        }
        for slot in released.into_iter().flatten() {
            self.slots.release(slot);
        }
        staged.bytes.clear();
        staged.written = false;
        staged.asked = false;
    }

    /// The transaction was rolled back.
    pub(super) fn rolled_back(&mut self) {
        if self.staged.written {
            // What the slots hold is not known any more. Those that are forgotten are swept up.
            *self = Self {
                lost: true,
                generation: self.generation + 1,
                ..Self::default()
            };
        } else {
            let staged = std::mem::take(&mut self.staged);
            let added = staged.added.iter().map(|added| added.of.row);
            for run in added.chain(staged.left) {
                if let Some(kept) = self.runs.get_mut(&run) {
                    (kept.added, kept.left) = (0, false);
                }
            }
        }
    }
}
