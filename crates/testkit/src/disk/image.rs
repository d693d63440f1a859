//! The image of a disk after a power cut.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Rng;

/// The effect of a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Unsynced changes that survived.
    pub kept: u64,
    /// Unsynced changes that were lost.
    pub dropped: u64,
    /// Unsynced writes of which some sectors survived.
    pub torn: u64,
}

impl Tally {
    pub(super) fn note(&mut self, outcome: ChangeOutcome) {
        match outcome {
            ChangeOutcome::Kept => self.kept += 1,
            ChangeOutcome::Dropped => self.dropped += 1,
            ChangeOutcome::Torn => self.torn += 1,
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

/// The outcome of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeOutcome {
    Kept,
    Dropped,
    Torn,
}

/// Which unsynced changes of a file survive. Independent coins alone would hardly ever produce the
/// simple cases, which are the likely ones.
#[derive(Clone, Copy, Debug)]
pub(super) enum Survivors {
    /// Nothing of it got there.
    Nothing,
    /// All of it did.
    Everything,
    /// The changes up to this one survive.
    UpTo(usize),
    /// Each survives with this probability.
    Each(f64),
}

impl Survivors {
    pub(super) fn pick(rng: &mut Rng, changes: usize) -> Self {
        match rng.below(8) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 | 3 => Self::UpTo(rng.below(changes + 1)),
            _ => Self::Each(*rng.pick(&[0.1, 0.5, 0.9])),
        }
    }

    pub(super) fn outcome(self, rng: &mut Rng, no: usize, sectors: usize) -> ChangeOutcome {
        let tears = sectors > 1;
        match self {
            Self::Nothing => ChangeOutcome::Dropped,
            Self::Everything => ChangeOutcome::Kept,
            Self::UpTo(last) if no < last => ChangeOutcome::Kept,
            Self::UpTo(last) if no == last && tears => ChangeOutcome::Torn,
            Self::UpTo(_) => ChangeOutcome::Dropped,
            Self::Each(_) if tears && rng.chance(0.25) => ChangeOutcome::Torn,
            Self::Each(chance) if rng.chance(chance) => ChangeOutcome::Kept,
            Self::Each(_) => ChangeOutcome::Dropped,
        }
    }
}

/// The files that exist after a cut, and those that do not.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) files: Vec<(PathBuf, Option<Vec<u8>>)>,
    pub(super) tally: Tally,
}

impl Image {
    /// Writes the image to another directory.
    pub(super) fn write(&self, to: &Path) -> io::Result<()> {
        for (path, bytes) in &self.files {
            if let (Some(bytes), Some(name)) = (bytes, path.file_name()) {
                fs::write(to.join(name), bytes)?;
            }
        }
        Ok(())
    }

    /// Replaces the files by the image.
    pub(super) fn replace(&self) -> io::Result<()> {
        for (path, bytes) in &self.files {
            match bytes {
                Some(bytes) => fs::write(path, bytes)?,
                None if path.exists() => fs::remove_file(path)?,
                None => {}
            }
            // Shared memory does not survive a power cut.
            let mut shared = path.clone().into_os_string();
            shared.push("-shm");
            if Path::new(&shared).exists() {
                fs::remove_file(&shared)?;
            }
        }
        Ok(())
    }
}
