//! What is on the disk after a power cut.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Rng;

/// What a cut did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Unsynced changes that are there.
    pub kept: u64,
    /// Unsynced changes that are not.
    pub dropped: u64,
    /// Unsynced writes of which some sectors are there.
    pub torn: u64,
}

impl Tally {
    pub(super) fn note(&mut self, fate: Fate) {
        match fate {
            Fate::Kept => self.kept += 1,
            Fate::Dropped => self.dropped += 1,
            Fate::Torn => self.torn += 1,
        }
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.dropped += other.dropped;
        self.torn += other.torn;
    }
}

/// What becomes of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Dropped,
    Torn,
}

/// How a disk treats what one file was not synced of. Independent coins alone would hardly ever
/// give the plain cases, which are the likely ones in life.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weather {
    /// Nothing of it got there.
    Nothing,
    /// All of it did.
    Everything,
    /// It got there in order, up to this one.
    UpTo(usize),
    /// Each for itself, with this chance.
    Each(f64),
}

impl Weather {
    pub(super) fn pick(rng: &mut Rng, changes: usize) -> Self {
        match rng.below(8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 | 3 => Self::UpTo(rng.below(changes + 1)),
            _ => Self::Each(*rng.pick(&[0.1, 0.5, 0.9])),
        }
    }

    pub(super) fn fate(self, rng: &mut Rng, no: usize, sectors: usize) -> Fate {
        let tears = sectors > 1;
        match self {
            Self::Nothing => Fate::Dropped,
            Self::Everything => Fate::Kept,
            Self::UpTo(last) if no < last => Fate::Kept,
            Self::UpTo(last) if no == last && tears => Fate::Torn,
            Self::UpTo(_) => Fate::Dropped,
            Self::Each(_) if tears && rng.chance(0.25) => Fate::Torn,
            Self::Each(chance) if rng.chance(chance) => Fate::Kept,
            Self::Each(_) => Fate::Dropped,
        }
    }
}

/// The files that are there after a cut, and those that are not.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) files: Vec<(PathBuf, Option<Vec<u8>>)>,
    pub(super) tally: Tally,
}

impl Image {
    /// Write it into another directory.
    pub(super) fn write(&self, to: &Path) -> io::Result<()> {
        for (path, bytes) in &self.files {
            if let (Some(bytes), Some(name)) = (bytes, path.file_name()) {
                fs::write(to.join(name), bytes)?;
            }
        }
        Ok(())
    }

    /// Make it what the files are.
    pub(super) fn replace(&self) -> io::Result<()> {
        for (path, bytes) in &self.files {
            match bytes {
                Some(bytes) => fs::write(path, bytes)?,
                None if path.exists() => fs::remove_file(path)?,
                None => {}
            }
            // Shared memory does not outlive a machine.
            let mut shared = path.clone().into_os_string();
            shared.push("-shm");
            if Path::new(&shared).exists() {
                fs::remove_file(&shared)?;
            }
        }
        Ok(())
    }
}
