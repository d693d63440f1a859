//! A folder of one's own for a test, removed at its end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("throughline-store-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The store in it.
    pub(crate) fn url(&self) -> String {
        format!("sqlite://{}", self.0.join("store.db").display())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // A test that failed leaves enough to look at on the screen.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
