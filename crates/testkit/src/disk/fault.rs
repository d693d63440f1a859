//! Faults of a disk.

use std::collections::VecDeque;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Writes run out of space after this many more bytes; the last one is partial.
    Full {
        /// The remaining space.
        room: u64,
    },
    /// Reads fail.
    Read,
    /// Writes fail, and write nothing.
    Write,
    /// Syncs report a failure, although the data is kept.
    SyncKept,
    /// Syncs report a failure, and the data since the last sync is lost unless it is written again:
    /// the system counts it as written. Readers still see it.
    SyncLost,
}

/// The files that are affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// All of them.
    Anywhere,
    /// The database file.
    Main,
    /// Its write-ahead log.
    Log,
}

impl FileKind {
    pub(super) fn covers(self, other: Self) -> bool {
        self == Self::Anywhere || self == other
    }
}

/// A fault, with its files and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// What.
    pub fault: DiskFault,
    /// In which files.
    pub place: FileKind,
    /// How many matching calls still succeed.
    pub skip: u64,
    /// How many calls fail after them.
    pub times: u64,
}

impl Injection {
    /// A fault that stays until the disk is healed.
    pub fn always(fault: DiskFault) -> Self {
        Self {
            fault,
            place: FileKind::Anywhere,
            skip: 0,
            times: u64::MAX,
        }
    }

    /// A fault of the next call only.
    pub fn once(fault: DiskFault) -> Self {
        Self {
            times: 1,
            ..Self::always(fault)
        }
    }

    /// Restricts the fault to some files.
    #[must_use]
    pub fn within(self, place: FileKind) -> Self {
        Self { place, ..self }
    }

    /// Lets some calls succeed before.
    #[must_use]
    pub fn after(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    /// Whether this call, which matches, fails.
    fn strikes(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let strikes = self.times > 0;
        self.times = self.times.saturating_sub(1);
        strikes
    }
}

/// How a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// With an error.
    Error,
    /// Because the disk is full, after this many bytes of the write.
    Full(usize),
}

/// The kinds of failed syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsynced {
    /// The data is kept.
    Kept,
    /// The data is lost.
    Lost,
}

/// All faults of a disk: sequences, of which the first entry applies until it is used up.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<VecDeque<Injection>>);

impl Faults {
    pub(super) fn add(&mut self, sequence: &[Injection]) {
        self.0.push(sequence.iter().copied().collect());
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault of a call on these files, among those for which `ask` returns something.
    fn find<T>(
        &mut self,
        place: FileKind,
        mut ask: impl FnMut(&mut Injection) -> Option<T>,
    ) -> Option<T> {
        self.0.iter_mut().find_map(|sequence| {
            let first = sequence.front_mut()?;
            let struck = first.place.covers(place).then(|| ask(first)).flatten();
            if first.times == 0 {
                sequence.pop_front();
            }
            struck
        })
    }

    pub(super) fn read(&mut self, place: FileKind) -> bool {
        let struck = self.find(place, |one| {
            (one.fault == DiskFault::Read && one.strikes()).then_some(())
        });
        struck.is_some()
    }

    pub(super) fn sync(&mut self, place: FileKind) -> Option<Unsynced> {
        self.find(place, |one| match one.fault {
            DiskFault::SyncKept => one.strikes().then_some(Unsynced::Kept),
            DiskFault::SyncLost => one.strikes().then_some(Unsynced::Lost),
            DiskFault::Full { .. } | DiskFault::Read | DiskFault::Write => None,
        })
    }

    pub(super) fn write(&mut self, place: FileKind, bytes: usize) -> Option<Unwritten> {
        self.find(place, |one| match &mut one.fault {
            DiskFault::Write => one.strikes().then_some(Unwritten::Error),
            DiskFault::Full { room } => {
                let fits = usize::try_from(*room).unwrap_or(usize::MAX).min(bytes);
                *room -= fits as u64;
                (fits < bytes && one.strikes()).then_some(Unwritten::Full(fits))
            }
            DiskFault::Read | DiskFault::SyncKept | DiskFault::SyncLost => None,
        })
    }
}
