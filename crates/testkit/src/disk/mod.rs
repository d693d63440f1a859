//! A disk that can lose its power, fill up and fail, under SQLite and for tests only.
//!
//! A [`Disk`] covers a directory. Files below it are opened through a VFS that becomes the default
//! of the process, so that the code under test needs no change; other files are left to the
//! platform. The disk tracks for every file what was synced and what was written later:
//!
//! - A *power cut* keeps the synced state and any part of the later writes: dropped, torn at
//!   sectors of 512 bytes, later ones without earlier ones; and likewise for sizes and names of
//!   files. The guarantees of a disk hold: after a sync everything is durable, and a sector is
//!   written atomically.
//! - [`DiskFault`]s are enabled and disabled while the code under test runs.
//!
//! Nothing is really synced, which makes it fast; the state after a cut is computed. With its
//! feature `trials` the store reports what it syncs without SQLite, and without that feature there
//! are no disks, because unreported syncs would lose durable data. The shared memory of the
//! write-ahead log is the platform's and never part of an image. There is no memory-mapped I/O.

mod counts;
mod directory;
mod environment;
mod fault;
mod file;
#[expect(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]
mod handle;
mod image;
mod state;
#[expect(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]
mod vfs;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use counts::DiskCounts;
pub use environment::from_environment;
pub use fault::{DiskFault, FileKind, Injection};
pub use image::Tally;

use state::{AtCut, DiskState};

/// The disk of a directory. Files that are opened while it lives are on it.
#[derive(Debug)]
pub struct Disk(Arc<Mutex<DiskState>>);

fn lock(state: &Mutex<DiskState>) -> MutexGuard<'_, DiskState> {
    // A test that panicked while it held the lock is reported by itself.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Puts everything below a directory on a disk of its own.
    ///
    /// # Panics
    ///
    /// When the directory does not exist, or SQLite does not accept the VFS.
    pub fn below(directory: &Path) -> Self {
        Self::new(directory, AtCut::Fail)
    }

    fn new(directory: &Path, at_cut: AtCut) -> Self {
        vfs::install();
        let root = directory
            .canonicalize()
            .expect("the directory of a disk is there");
        let state = Arc::new(Mutex::new(DiskState::new(root, at_cut)));
        vfs::mount(&state);
        Self(state)
    }

    /// Cuts the power at the `n`-th write or sync from now on; 1 is the next one. The seed decides
    /// which unsynced writes survive. From then on every call fails.
    pub fn cut_at(&self, n: u64, seed: u64) {
        self.cut_within(FileKind::Anywhere, n, seed);
    }

    /// Cuts the power at the `n`-th write or sync of some files: only a checkpoint writes to the
    /// database file itself.
    pub fn cut_within(&self, place: FileKind, n: u64, seed: u64) {
        lock(&self.0).cut_at(place, n, seed);
    }

    /// Cuts the power now, unless it is cut already.
    pub fn cut_now(&self, seed: u64) {
        lock(&self.0).cut_now(seed);
    }

    /// Whether the power is cut.
    pub fn is_cut(&self) -> bool {
        lock(&self.0).is_cut()
    }

    /// Writes the image of the cut to another directory, and returns its effect.
    ///
    /// # Errors
    ///
    /// When the power is not cut, or a file cannot be written.
    pub fn write_image(&self, to: &Path) -> std::io::Result<Tally> {
        lock(&self.0).write_image(to)
    }

    /// Copies the current files to another directory: the state after a process kill.
    ///
    /// # Errors
    ///
    /// When a file cannot be copied.
    pub fn copy(&self, to: &Path) -> std::io::Result<()> {
        lock(&self.0).copy(to)
    }

    /// Adds a fault. Faults add up.
    pub fn inject(&self, injection: Injection) {
        self.inject_in_turn(&[injection]);
    }

    /// Adds a sequence of faults, of which each begins when the one before is used up.
    pub fn inject_in_turn(&self, sequence: &[Injection]) {
        lock(&self.0).inject(sequence);
    }

    /// Ends all faults. A cut remains.
    pub fn heal(&self) {
        lock(&self.0).heal();
    }

    /// The counts so far.
    pub fn counts(&self) -> DiskCounts {
        lock(&self.0).counts()
    }
}
