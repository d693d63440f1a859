//! Connections: how they are opened, and every setting read back.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::op_error::{OpError, OpResult};
use crate::trials;
use crate::{Error, Setting, create_private};

/// Below this one SQLite has a bug that can corrupt a database in WAL mode.
const OLDEST: i32 = 3_051_003;

/// How long to wait for the lock of another process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Bodies of a kilobyte fill pages of this size well; see ARCHITECTURE.md.
const PAGE: u32 = 8192;

/// Pages in the log before they are copied to the file.
pub(super) const CHECKPOINT: i32 = 2000;

/// Which work a connection does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The one that writes.
    Writer,
    /// One of those that read.
    Reader,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitSync {
    /// Until the disk has it.
    Fsync,
    /// Until the log of the file has it, which outlives the process. The disk has it with the next
    /// commit that waits for it, and nothing that comes later before.
    NoFsync,
}

/// Set what commits of a connection wait for. Within a transaction SQLite would not.
pub(super) fn set_commit_sync(conn: &Connection, sync: CommitSync) -> OpResult<()> {
    let sql = match sync {
        _ if trials::planted("no-sync") => "PRAGMA synchronous=OFF",
        CommitSync::Fsync => "PRAGMA synchronous=FULL",
        CommitSync::NoFsync => "PRAGMA synchronous=NORMAL",
    };
    Ok(conn.execute_batch(sql)?)
}

/// Refuse a SQLite that is too old.
pub(super) fn check_version() -> OpResult<()> {
    refuse_older(rusqlite::version_number(), rusqlite::version())
}

fn refuse_older(number: i32, text: &str) -> OpResult<()> {
    if number >= OLDEST {
        return Ok(());
    }
    Err(OpError::Refused(Error::Invalid {
        what: "SQLite",
        why: format!("version {text} can corrupt a store; 3.51.3 or newer is needed"),
    }))
}

/// Make the file, for its owner alone. One that is there keeps the permissions that it was given.
pub(super) fn make_private(path: &Path) {
    if !trials::planted("files-public") {
        // If this fails, SQLite opens the same path next and reports the error.
        let _ = create_private(path);
    }
}

/// Open a connection to a file. A writer makes the file if there is none.
pub(super) fn connect(path: &Path, role: Role) -> OpResult<Connection> {
    check_version()?;
    // A connection is used by one thread at a time, so SQLite need not lock it.
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if role == Role::Writer {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
        make_private(path);
    }
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    // Without this, cached statements that compare bound values are prepared anew each time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(256);
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "foreign_keys", false)?;
    match role {
        Role::Writer => {
            // It counts only before the first table is made.
            conn.pragma_update(None, "page_size", PAGE)?;
            write_ahead(&conn)?;
            set_commit_sync(&conn, CommitSync::Fsync)?;
            conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
            conn.pragma_update(None, "secure_delete", true)?;
            // Each commit walks the cache: a large one costs more than it saves.
            conn.pragma_update(None, "cache_size", -2048)?;
        }
        Role::Reader => {
            conn.pragma_update(None, "cache_size", -8192)?;
            conn.pragma_update(None, "query_only", true)?;
        }
    }
    Ok(conn)
}

/// Switch to the write-ahead log. Two processes may do this to a new file at once, and the switch
/// does not wait for locks by itself.
fn write_ahead(conn: &Connection) -> OpResult<()> {
    let mut waited = Duration::ZERO;
    let pause = Duration::from_millis(10);
    loop {
        let mode: Result<String, _> =
            conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(OpError::Refused(Error::Invalid {
                    what: "the file",
                    why: format!("its journal mode is {mode} and cannot be made wal"),
                }));
            }
            Err(error) => {
                let error = OpError::from(error);
                if !matches!(error, OpError::Broken(Error::Locked)) || waited >= BUSY_TIMEOUT {
                    return Err(error);
                }
            }
        }
        std::thread::sleep(pause);
        waited += pause;
    }
}

/// The settings of the writer as they are in effect.
pub(super) fn settings(conn: &Connection) -> OpResult<Vec<Setting>> {
    let read = |name: &'static str, wanted: Option<&'static str>| -> OpResult<Setting> {
        let value: rusqlite::types::Value =
            conn.pragma_query_value(None, name, |row| row.get(0))?;
        let value = match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        };
        Ok(Setting {
            name,
            value,
            wanted,
        })
    };
    let relaxed = trials::planted("no-sync");
    let qpsg = conn.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG)?;
    Ok(vec![
        Setting {
            name: "version",
            value: rusqlite::version().to_owned(),
            wanted: None,
        },
        read("journal_mode", Some("wal"))?,
        read("synchronous", Some(if relaxed { "0" } else { "2" }))?,
        read("secure_delete", Some("1"))?,
        read("temp_store", Some("2"))?,
        read("busy_timeout", Some("5000"))?,
        // See `WriteConnection::checkpoint`.
        read("wal_autocheckpoint", Some("0"))?,
        read("cache_size", Some("-2048"))?,
        Setting {
            name: "query_planner_stability",
            value: u8::from(qpsg).to_string(),
            wanted: Some("1"),
        },
        // A file that was made otherwise is slower, not wrong.
        read("page_size", None)?,
        read("freelist_count", None)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::refuse_older;

    #[test]
    fn an_old_sqlite_is_refused_with_its_version() {
        assert!(refuse_older(3_051_003, "3.51.3").is_ok());
        let error = refuse_older(3_051_002, "3.51.2").unwrap_err();
        let text = error.into_error().to_string();
        assert!(text.contains("3.51.2"), "{text}");
    }
}
