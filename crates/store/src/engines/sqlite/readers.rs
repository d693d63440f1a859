//! Connections that read. A read is a short transaction on one of them, on the caller's thread: it
//! takes tens of microseconds, less than handing it to another thread would.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::cache::lock;
use super::connect::{Role, connect};
use super::op_error::OpResult;
use crate::engines::sqlite::rows::sql::prepare;
use crate::{Error, Result};

/// Connections that are kept open.
const READERS: u32 = 4;

pub(super) struct Readers {
    path: PathBuf,
    free: Mutex<Vec<Connection>>,
    room: Semaphore,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            free: Mutex::new(Vec::new()),
            room: Semaphore::new(READERS as usize),
        }
    }

    /// Read something, all of it as it is at one moment.
    pub(super) async fn read<T>(
        &self,
        operation: impl FnOnce(&Connection) -> OpResult<T>,
    ) -> Result<T> {
        let _permit = self.room.acquire().await.map_err(|_| Error::Closed)?;
        let free = lock(&self.free).pop();
        let conn = match free {
            Some(conn) => conn,
            None => {
                connect(&self.path, Role::Reader).map_err(super::op_error::OpError::into_error)?
            }
        };
        let done = snapshot(&conn, operation);
        // A connection that is still in a transaction would keep the log from being reset.
        if conn.is_autocommit() {
            lock(&self.free).push(conn);
        }
        done.map_err(super::op_error::OpError::into_error)
    }

    /// Begin no new reads, wait for those at work, and let the file go: the connection that closes last
    /// brings the log into it, and is to be the writer.
    pub(super) async fn close(&self) {
        let all = self.room.acquire_many(READERS).await;
        self.room.close();
        drop(all);
        self.forget();
    }

    /// Close the idle connections.
    pub(super) fn forget(&self) {
        lock(&self.free).clear();
    }
}

fn snapshot<T>(
    conn: &Connection,
    operation: impl FnOnce(&Connection) -> OpResult<T>,
) -> OpResult<T> {
    prepare(conn, "BEGIN")?.execute([])?;
    let done = operation(conn);
    let ended = prepare(conn, "COMMIT")?.execute([]);
    let done = done?;
    ended?;
    Ok(done)
}
