//! One file: what is synced, and what was written since.

use std::ops::Range;

use super::image::{Fate, Tally, Weather};
use crate::Rng;

/// What a disk writes whole or not at all.
pub(super) const SECTOR: usize = 512;

/// Something that happened to a file and is not synced.
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
    /// What is there after a cut, whatever else is.
    synced: Vec<u8>,
    /// What readers saw after the last sync, where that is something else: a sync has lost it.
    seen: Option<Vec<u8>>,
    since: Vec<Change>,
    /// Whether its first sync makes its name, and all names beside it, last.
    pub(super) syncs_names: bool,
}

/// Take a sector over; the end of a file may lie in it.
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

    /// Everything that was written is there from now on, except for what was lost before.
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
                // What was beyond it is not there again when the file grows.
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

    /// Nothing that was written gets there any more, though readers see it.
    pub(super) fn lose(&mut self) {
        let mut seen = self.seen.take().unwrap_or_else(|| self.synced.clone());
        for change in std::mem::take(&mut self.since) {
            change.apply(&mut seen);
        }
        self.seen = Some(seen);
    }

    /// What is there after a cut.
    ///
    /// A sector that reached the disk holds everything that was written to it until then: it came
    /// from the system's cache, where earlier writes were too.
    pub(super) fn after_cut(&self, rng: &mut Rng, tally: &mut Tally) -> Vec<u8> {
        let weather = Weather::pick(rng, self.since.len());
        let mut seen = self.seen.clone().unwrap_or_else(|| self.synced.clone());
        let mut there = self.synced.clone();
        for (no, change) in self.since.iter().enumerate() {
            change.apply(&mut seen);
            let sectors = change.sectors();
            let fate = weather.fate(rng, no, sectors.len());
            tally.note(fate);
            match (change, fate) {
                (_, Fate::Dropped) => {}
                (Change::Size(size), _) => there.resize(*size, 0),
                (Change::Write { .. }, Fate::Kept) => {
                    sectors.for_each(|sector| copy_sector(&seen, &mut there, sector));
                }
                (Change::Write { .. }, Fate::Torn) => {
                    sectors
                        .filter(|_| rng.bool())
                        .for_each(|sector| copy_sector(&seen, &mut there, sector));
                }
            }
        }
        // The size is written apart from what it covers: it may be ahead, or behind.
        if there.len() < seen.len() && rng.chance(0.3) {
            there.resize(rng.range(there.len()..=seen.len()), 0);
        } else if there.len() > self.synced.len() && rng.chance(0.2) {
            there.truncate(rng.range(self.synced.len()..=there.len()));
        }
        there
    }
}
