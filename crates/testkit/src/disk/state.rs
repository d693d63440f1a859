//! A disk: its files, faults, and power cut. All changes of a file happen here under one lock, so
//! that model and file cannot differ.

use std::ffi::c_int;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ffi::{
    SQLITE_FULL, SQLITE_IOERR, SQLITE_IOERR_DELETE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_READ,
    SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_WRITE, SQLITE_OK,
};

use super::counts::DiskCounts;
use super::directory::{Directory, FileNo};
use super::fault::{Faults, FileKind, Injection, Unsynced, Unwritten};
use super::image::{Image, Tally};
use crate::Rng;

/// What happens at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtCut {
    /// Every call fails, and the image can be written elsewhere.
    Fail,
    /// The files become the image, and the process aborts.
    Abort,
}

/// A planned cut.
#[derive(Clone, Copy, Debug)]
struct Planned {
    place: FileKind,
    /// The number of matching calls until then.
    left: u64,
    seed: u64,
}

#[derive(Debug)]
pub(super) struct DiskState {
    root: PathBuf,
    at_cut: AtCut,
    directory: Directory,
    counts: DiskCounts,
    faults: Faults,
    planned: Option<Planned>,
    image: Option<Image>,
}

impl DiskState {
    pub(super) fn new(root: PathBuf, at_cut: AtCut) -> Self {
        Self {
            root,
            at_cut,
            directory: Directory::default(),
            counts: DiskCounts::default(),
            faults: Faults::default(),
            planned: None,
            image: None,
        }
    }

    pub(super) fn covers(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    pub(super) fn cut_at(&mut self, place: FileKind, n: u64, seed: u64) {
        let left = n.max(1);
        self.planned = Some(Planned { place, left, seed });
    }

    pub(super) fn cut_now(&mut self, seed: u64) {
        if self.image.is_none() {
            self.cut(seed);
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.image.is_some()
    }

    pub(super) fn inject(&mut self, sequence: &[Injection]) {
        self.faults.add(sequence);
    }

    pub(super) fn heal(&mut self) {
        self.faults.clear();
    }

    pub(super) fn counts(&self) -> DiskCounts {
        self.counts
    }

    pub(super) fn write_image(&self, to: &Path) -> io::Result<Tally> {
        let image = self.image.as_ref();
        let image = image.ok_or_else(|| io::Error::other("the power is not cut"))?;
        image.write(to)?;
        Ok(image.tally)
    }

    pub(super) fn copy(&self, to: &Path) -> io::Result<()> {
        for path in self.directory.paths() {
            if let Some(name) = path.file_name().filter(|_| path.exists()) {
                fs::copy(path, to.join(name))?;
            }
        }
        Ok(())
    }

    fn cut(&mut self, seed: u64) {
        let image = self.directory.after_cut(&mut Rng::new(seed));
        if self.at_cut == AtCut::Abort {
            // Another process that opens the files afterwards must not see half an image.
            image.replace().expect("the files of a disk can be written");
            std::process::abort();
        }
        self.image = Some(image);
    }

    /// Counts a call at which the power can be cut; returns whether it is.
    fn is_cut_here(&mut self, place: FileKind) -> bool {
        let Some(planned) = &mut self.planned else {
            return false;
        };
        if planned.place.covers(place) {
            planned.left -= 1;
        }
        if planned.left > 0 {
            return false;
        }
        let seed = planned.seed;
        self.planned = None;
        self.cut(seed);
        true
    }

    /// Opens a file. `open` opens it; its previous content is read first.
    pub(super) fn open(
        &mut self,
        path: &Path,
        syncs_names: bool,
        open: impl FnOnce() -> c_int,
    ) -> Result<FileNo, c_int> {
        if self.is_cut() {
            return Err(SQLITE_IOERR);
        }
        let before = match fs::metadata(path) {
            // Its content is known; that it exists is enough.
            Ok(_) if self.directory.knows(path) => Some(Vec::new()),
            Ok(_) => Some(fs::read(path).map_err(|_| SQLITE_IOERR)?),
            Err(_) => None,
        };
        let is_new = before.is_none();
        match open() {
            SQLITE_OK => {
                let no = self.directory.open(path, before);
                self.directory.file(no).syncs_names |= syncs_names && is_new;
                Ok(no)
            }
            code => Err(code),
        }
    }

    pub(super) fn delete(
        &mut self,
        path: &Path,
        syncs_names: bool,
        delete: impl FnOnce() -> c_int,
    ) -> c_int {
        if self.is_cut() {
            return SQLITE_IOERR_DELETE;
        }
        let code = delete();
        if code == SQLITE_OK {
            self.directory.remove(path);
            if syncs_names {
                self.directory.sync_names(path);
            }
        }
        code
    }

    /// Counts a lock of the shared memory; returns whether it may be taken.
    pub(super) fn lock(&mut self) -> bool {
        self.counts.locks += 1;
        !self.is_cut()
    }

    /// Whether a read succeeds.
    pub(super) fn read(&mut self, place: FileKind) -> c_int {
        self.counts.reads += 1;
        if self.is_cut() {
            return SQLITE_IOERR_READ;
        }
        if self.faults.read(place) {
            self.counts.failed += 1;
            return SQLITE_IOERR_READ;
        }
        SQLITE_OK
    }

    pub(super) fn write(
        &mut self,
        (no, place): (FileNo, FileKind),
        at: usize,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> c_int,
    ) -> c_int {
        if self.is_cut() {
            return SQLITE_IOERR_WRITE;
        }
        self.counts.writes += 1;
        let failure = self.faults.write(place, bytes.len());
        let (bytes, answer) = match failure {
            None => (bytes, SQLITE_OK),
            Some(Unwritten::Error) => (&bytes[..0], SQLITE_IOERR_WRITE),
            Some(Unwritten::Full(fits)) => (&bytes[..fits], SQLITE_FULL),
        };
        self.counts.failed += u64::from(failure.is_some());
        if !bytes.is_empty() {
            let code = write(bytes);
            if code != SQLITE_OK {
                return code;
            }
            self.directory.file(no).write(at, bytes);
        }
        if self.is_cut_here(place) {
            return SQLITE_IOERR_WRITE;
        }
        answer
    }

    pub(super) fn truncate(
        &mut self,
        (no, place): (FileNo, FileKind),
        size: usize,
        truncate: impl FnOnce() -> c_int,
    ) -> c_int {
        if self.is_cut() {
            return SQLITE_IOERR_TRUNCATE;
        }
        self.counts.writes += 1;
        if self.faults.write(place, 0).is_some() {
            self.counts.failed += 1;
            return SQLITE_IOERR_TRUNCATE;
        }
        let code = truncate();
        if code == SQLITE_OK {
            self.directory.file(no).set_size(size);
        }
        if self.is_cut_here(place) {
            return SQLITE_IOERR_TRUNCATE;
        }
        code
    }

    /// Syncs a log by its name.
    pub(super) fn sync_log(&mut self, path: &Path) -> c_int {
        match self.directory.no(path) {
            Some(no) => self.sync((no, FileKind::Log)),
            None => SQLITE_IOERR_FSYNC,
        }
    }

    pub(super) fn sync(&mut self, (no, place): (FileNo, FileKind)) -> c_int {
        if self.is_cut() {
            return SQLITE_IOERR_FSYNC;
        }
        self.counts.syncs += 1;
        // A sync that has only begun guarantees nothing.
        if self.is_cut_here(place) {
            return SQLITE_IOERR_FSYNC;
        }
        let failure = self.faults.sync(place);
        match failure {
            None | Some(Unsynced::Kept) => self.directory.sync(no),
            Some(Unsynced::Lost) => self.directory.file(no).lose(),
        }
        if failure.is_some() {
            self.counts.failed += 1;
            return SQLITE_IOERR_FSYNC;
        }
        SQLITE_OK
    }
}
