//! A temporary directory that is removed with its owner.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new, empty directory; removed when it is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a directory with a word in its name.
    ///
    /// # Panics
    ///
    /// When the directory for temporary files cannot be written to.
    pub fn new(word: &str) -> Self {
        Self::under(&std::env::temp_dir(), word)
            .expect("the directory for temporary files can be written")
    }

    /// Makes a directory in memory, if the machine has such a place. It survives process kills like
    /// a disk, but not a power cut.
    ///
    /// # Panics
    ///
    /// When the directory for temporary files cannot be written to.
    pub fn in_memory(word: &str) -> Self {
        Self::under(Path::new("/dev/shm"), word).unwrap_or_else(|_| Self::new(word))
    }

    fn under(folder: &Path, word: &str) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("throughline-{word}-{}-{count}", std::process::id());
        let path = folder.join(name);
        // Left over from an earlier process with the same number.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The URL of a SQLite store in the directory.
    pub fn sqlite(&self, name: &str) -> String {
        format!("sqlite://{}", self.0.join(name).display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
