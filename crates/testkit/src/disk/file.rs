//! A file: its synced content, and the later writes.

use std::ops::Range;

use super::image::{ChangeOutcome, Survivors, Tally};
use crate::Rng;

/// The unit that a disk writes atomically.
pub(super) const SECTOR: usize = 512;

/// An unsynced change.
#[derive(Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Size(usize),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*at..end].copy_from_slice(bytes);
            }
            Self::Size(size) => to.resize(*size, 0),
        }
    }

    /// The sectors that it touches.
    fn sectors(&self) -> Range<usize> {
        match self {
            Self::Write { at, bytes } if !bytes.is_empty() => {
                at / SECTOR..(at + bytes.len()).div_ceil(SECTOR)
            }
            Self::Write { .. } | Self::Size(_) => 0..0,
        }
    }
}

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct File {
    /// The content after a cut, at least.
    synced: Vec<u8>,
    /// What readers saw after the last sync, if that differs: a failed sync has lost it.
    seen: Option<Vec<u8>>,
    since: Vec<Change>,
    /// Whether its first sync makes its name, and all names in its directory, durable.
    pub(super) syncs_names: bool,
}

/// Copies a sector; the end of a file may be inside of it.
fn copy_sector(from: &[u8], to: &mut Vec<u8>, sector: usize) {
    let start = sector * SECTOR;
    let end = from.len().min(start + SECTOR);
    if start >= end {
        return;
    }
    if to.len() < end {
        to.resize(end, 0);
    }
    to[start..end].copy_from_slice(&from[start..end]);
}

impl File {
    pub(super) fn of(synced: Vec<u8>) -> Self {
        Self {
            synced,
            ..Self::default()
        }
    }

    pub(super) fn write(&mut self, at: usize, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.since.push(Change::Write { at, bytes });
    }

    pub(super) fn set_size(&mut self, size: usize) {
        self.since.push(Change::Size(size));
    }

    /// Makes all writes durable, except those that were lost before.
    pub(super) fn sync(&mut self) {
        let changes = std::mem::take(&mut self.since);
        let Some(seen) = &mut self.seen else {
            for change in &changes {
                change.apply(&mut self.synced);
            }
            return;
        };
        for change in &changes {
            change.apply(seen);
        }
        for change in &changes {
            if let Change::Size(size) = change {
                // Data beyond the new end does not return when the file grows again.
                let left = self.synced.len().min(*size);
                self.synced.truncate(left);
            }
            for sector in change.sectors() {
                copy_sector(seen, &mut self.synced, sector);
            }
        }
        self.synced.resize(seen.len(), 0);
        if self.synced == *seen {
            self.seen = None;
        }
    }

    /// Loses all unsynced writes, although readers still see them.
    pub(super) fn lose(&mut self) {
        let mut seen = self.seen.take().unwrap_or_else(|| self.synced.clone());
        for change in std::mem::take(&mut self.since) {
            change.apply(&mut seen);
        }
        self.seen = Some(seen);
    }

    /// The content after a cut.
    ///
    /// A sector that reached the disk has everything that was written to it until then, because it
    /// came from the system's cache.
    pub(super) fn after_cut(&self, rng: &mut Rng, tally: &mut Tally) -> Vec<u8> {
        let survivors = Survivors::pick(rng, self.since.len());
        let mut seen = self.seen.clone().unwrap_or_else(|| self.synced.clone());
        let mut there = self.synced.clone();
        for (no, change) in self.since.iter().enumerate() {
            change.apply(&mut seen);
            let sectors = change.sectors();
            let outcome = survivors.outcome(rng, no, sectors.len());
            tally.note(outcome);
            match (change, outcome) {
                (_, ChangeOutcome::Dropped) => {}
                (Change::Size(size), _) => there.resize(*size, 0),
                (Change::Write { .. }, ChangeOutcome::Kept) => {
                    sectors.for_each(|sector| copy_sector(&seen, &mut there, sector));
                }
                (Change::Write { .. }, ChangeOutcome::Torn) => {
                    sectors
                        .filter(|_| rng.bool())
                        .for_each(|sector| copy_sector(&seen, &mut there, sector));
                }
            }
        }
        // The size is written independently of the data: it may be ahead, or behind.
        if there.len() < seen.len() && rng.chance(0.3) {
            there.resize(rng.range(there.len()..=seen.len()), 0);
        } else if there.len() > self.synced.len() && rng.chance(0.2) {
            there.truncate(rng.range(self.synced.len()..=there.len()));
        }
        there
    }
}
