//! A disk that can lose its power, fill up and fail, under SQLite and for tests only.
//!
//! A [`Disk`] covers a directory. Files below it are opened through a VFS that is made the default
//! of the process, so that the code under test needs no change; files elsewhere are left to the
//! platform. For every file it knows what was synced and what was written since:
//!
//! - A *power cut* leaves the synced state and any part of the later writes: dropped, torn at
//!   sectors of 512 bytes, the later ones without the earlier ones; sizes and names of files
//!   likewise. What a disk promises is kept: after a sync everything is there, and a sector is
//!   never half new.
//! - [`DiskFault`]s are switched on and off while the code under test runs.
//!
//! Nothing is really synced, which makes it fast; what would be there after a cut is computed. What
//! the store syncs without SQLite it asks us for, with its feature `trials`, which is why there are no
//! disks without it: one that does not hear of syncs would lose what is safe. The
//! shared memory of the write-ahead log is the platform's and never part of an image. There is no
//! memory-mapped I/O.

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

/// The disk under a directory. Files that are opened while it lives are on it.
#[derive(Debug)]
pub struct Disk(Arc<Mutex<DiskState>>);

fn lock(state: &Mutex<DiskState>) -> MutexGuard<'_, DiskState> {
    // A test that panicked while it held the lock is reported by itself.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Put everything below a directory on a disk of its own.
    ///
    /// # Panics
    ///
    /// When the directory is not there, or SQLite takes no VFS.
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

    /// Cut the power at the `n`-th write or sync from now on; 1 is the next one. What survives of
    /// it and of what was not synced follows from the seed. From then on every call fails.
    pub fn cut_at(&self, n: u64, seed: u64) {
        self.cut_within(FileKind::Anywhere, n, seed);
    }

    /// The same at the `n`-th write or sync of some files: what is written to the database file
    /// itself is written by a checkpoint.
    pub fn cut_within(&self, place: FileKind, n: u64, seed: u64) {
        lock(&self.0).cut_at(place, n, seed);
    }

    /// Cut the power now, unless it is cut already.
    pub fn cut_now(&self, seed: u64) {
        lock(&self.0).cut_now(seed);
    }

    /// Whether the power is cut.
    pub fn is_cut(&self) -> bool {
        lock(&self.0).is_cut()
    }

    /// Write what the disk holds after the cut into another directory, and say what the cut did.
    ///
    /// # Errors
    ///
    /// When the power is not cut, or a file cannot be written.
    pub fn write_image(&self, to: &Path) -> std::io::Result<Tally> {
        lock(&self.0).write_image(to)
    }

    /// Copy the files as they are into another directory: what is there after the process was
    /// killed and the machine was not.
    ///
    /// # Errors
    ///
    /// When a file cannot be copied.
    pub fn copy(&self, to: &Path) -> std::io::Result<()> {
        lock(&self.0).copy(to)
    }

    /// Let something fail from now on. Injections add up.
    pub fn inject(&self, injection: Injection) {
        self.inject_in_turn(&[injection]);
    }

    /// Let one thing fail, and when that is over the next.
    pub fn inject_in_turn(&self, sequence: &[Injection]) {
        lock(&self.0).inject(sequence);
    }

    /// End all faults. A cut stays.
    pub fn heal(&self) {
        lock(&self.0).heal();
    }

    /// What was called so far.
    pub fn counts(&self) -> DiskCounts {
        lock(&self.0).counts()
    }
}
