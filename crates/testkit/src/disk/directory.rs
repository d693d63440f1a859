//! The files of a disk and their names. A name is durable when its directory was synced, which
//! SQLite does at the first sync of a new log or journal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::File;
use super::image::{Image, Tally};
use crate::Rng;

/// A file, independent of its name.
pub(super) type FileNo = usize;

#[derive(Debug, Default)]
pub(super) struct Directory {
    files: Vec<File>,
    now: BTreeMap<PathBuf, FileNo>,
    synced: BTreeMap<PathBuf, FileNo>,
}

impl Directory {
    pub(super) fn file(&mut self, no: FileNo) -> &mut File {
        &mut self.files[no]
    }

    /// The file with a name. `before` is its content before it was opened; `None` if it is new.
    pub(super) fn open(&mut self, path: &Path, before: Option<Vec<u8>>) -> FileNo {
        if let (Some(no), true) = (self.now.get(path), before.is_some()) {
            return *no;
        }
        let no = self.files.len();
        let old = before.is_some();
        self.files.push(File::of(before.unwrap_or_default()));
        self.now.insert(path.to_owned(), no);
        if old {
            self.synced.insert(path.to_owned(), no);
        }
        no
    }

    pub(super) fn knows(&self, path: &Path) -> bool {
        self.now.contains_key(path)
    }

    /// The file that has a name.
    pub(super) fn no(&self, path: &Path) -> Option<FileNo> {
        self.now.get(path).copied()
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.now.remove(path);
    }

    /// Syncs a file, and names if its first sync does so.
    pub(super) fn sync(&mut self, no: FileNo) {
        self.files[no].sync();
        if !std::mem::take(&mut self.files[no].syncs_names) {
            return;
        }
        let path = self.now.iter().find(|(_, file)| **file == no);
        if let Some(path) = path.map(|(path, _)| path.clone()) {
            self.sync_names(&path);
        }
    }

    /// Makes all names in this directory durable.
    pub(super) fn sync_names(&mut self, path: &Path) {
        let beside = |other: &Path| other.parent() == path.parent();
        self.synced.retain(|other, _| !beside(other));
        let now = self.now.iter().filter(|(other, _)| beside(other));
        self.synced
            .extend(now.map(|(path, no)| (path.clone(), *no)));
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.now.keys().map(PathBuf::as_path)
    }

    pub(super) fn after_cut(&self, rng: &mut Rng) -> Image {
        let mut tally = Tally::default();
        let mut paths: Vec<&PathBuf> = self.now.keys().chain(self.synced.keys()).collect();
        paths.sort();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let (now, synced) = (self.now.get(path), self.synced.get(path));
            let file = if now != synced && rng.bool() {
                synced
            } else {
                now
            };
            let bytes = file.map(|no| self.files[*no].after_cut(rng, &mut tally));
            files.push((path.clone(), bytes));
        }
        Image { files, tally }
    }
}
