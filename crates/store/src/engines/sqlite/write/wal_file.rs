//! The write-ahead log as a file that can be synced outside of a commit.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use rusqlite::Connection;

use crate::engines::sqlite::op_error::{OpError, OpResult};
use crate::{Error, trials};

/// A handle on the write-ahead log of a store.
///
/// SQLite syncs its log only as part of a commit. An fsync through any handle on the file syncs all
/// of it. The file stays the same as long as a connection is open, and SQLite syncs its directory
/// entry when it starts a log.
pub(super) struct WalFile {
    path: PathBuf,
    file: File,
}

impl WalFile {
    /// The log of a connection that has read its database: by then the log exists.
    pub(super) fn of(conn: &Connection) -> OpResult<Self> {
        let path = PathBuf::from(format!("{}-wal", conn.path().unwrap_or_default()));
        // Nothing is written through this handle, but some systems sync only writable ones.
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(OpError::Broken(Error::Io {
                detail: format!("{} cannot be opened: {error}", path.display()),
            })),
        }
    }

    pub(super) fn sync(&self) -> OpResult<()> {
        let synced = trials::sync(&self.path, || self.file.sync_data());
        synced.map_err(|error| {
            OpError::Broken(Error::Io {
                detail: format!("the log cannot be brought to the disk: {error}"),
            })
        })
    }
}
