//! Backups: a copy of the whole store as it is at one moment, and the way back.

use crate::engines::sqlite::events;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::connect::{BUSY_TIMEOUT, Role, connect, make_private};
use super::op_error::{OpError, OpResult, exists, invalid};
use super::schema::{APPLICATION, MIGRATIONS, VERSION, migrate, version};
use crate::trials;
use crate::{Error, Progress, Result, RunState};

/// What a restore made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Runs that were going on when the backup was made. They are held: no process goes on with them
    /// unasked.
    pub held: u64,
}

fn io(error: &std::io::Error) -> OpError {
    OpError::Broken(match error.kind() {
        std::io::ErrorKind::StorageFull => Error::Full,
        _ => Error::Io {
            detail: error.to_string(),
        },
    })
}

/// Refuse a file that is there.
fn must_be_free(to: &Path) -> OpResult<()> {
    match to.symlink_metadata() {
        Ok(_) => Err(exists("file", &to.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io(&error)),
    }
}

/// A name beside the target, under which the file is made until it is whole.
fn unfinished(to: &Path) -> OpResult<PathBuf> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(|error| {
        OpError::Broken(Error::Io {
            detail: error.to_string(),
        })
    })?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{name}.{:016x}.part", u64::from_be_bytes(random));
    Ok(to.with_file_name(name))
}

fn sync_folder(to: &Path) -> OpResult<()> {
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Not every system can sync a folder; those that cannot need not.
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().map_err(|error| io(&error))?;
    }
    Ok(())
}

/// Give a finished file its name, unless the name was taken meanwhile.
fn move_into_place(part: &Path, to: &Path) -> OpResult<()> {
    File::open(part)
        .and_then(|file| file.sync_all())
        .map_err(|error| io(&error))?;
    match fs::hard_link(part, to) {
        Ok(()) => {
            // Its other name does no harm if it stays.
            let _ = fs::remove_file(part);
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(exists("file", &to.display()));
        }
        // A file system without links.
        Err(_) => {
            must_be_free(to)?;
            fs::rename(part, to).map_err(|error| io(&error))?;
        }
    }
    sync_folder(to)
}

/// Copy the store at one moment. `VACUUM INTO` reads from a snapshot, so writers go on.
pub(super) fn backup(from: &Path, to: &Path, tell: &mut dyn FnMut(Progress)) -> OpResult<()> {
    must_be_free(to)?;
    let conn = open_to_copy(from)?;
    let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let total = super::rows::num(pages);
    let mut word = |done| {
        tell(Progress {
            done,
            total,
            unit: "pages",
        });
    };
    word(0);
    let part = unfinished(to)?;
    let copied = copy(&conn, &part).and_then(|()| move_into_place(&part, to));
    if copied.is_err() {
        let _ = fs::remove_file(&part);
    }
    copied?;
    word(total);
    Ok(())
}

fn open_to_copy(from: &Path) -> OpResult<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(from, flags)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    Ok(conn)
}

fn copy(conn: &Connection, to: &Path) -> OpResult<()> {
    let Some(to) = to.to_str() else {
        return Err(invalid("the path", "it is no text"));
    };
    // It may be there if it is empty.
    make_private(Path::new(to));
    conn.execute("VACUUM INTO ?", [to])?;
    Ok(())
}

/// Make a store of a backup, in a file that does not exist yet.
///
/// Every run that was going on is held, and has no owner: what it may have done since the
/// backup is not known.
pub fn restore(backup: &Path, to: &Path) -> Result<Restored> {
    restore_to(backup, to).map_err(OpError::into_error)
}

fn restore_to(backup: &Path, to: &Path) -> OpResult<Restored> {
    super::connect::check_version()?;
    must_be_free(to)?;
    must_be_ours(backup)?;
    let conn = open_to_copy(backup)?;
    let part = unfinished(to)?;
    let made = copy(&conn, &part)
        .and_then(|()| hold(&part))
        .and_then(|held| move_into_place(&part, to).map(|()| held));
    if made.is_err() {
        for end in ["", "-wal", "-shm"] {
            let mut name = part.clone().into_os_string();
            name.push(end);
            let _ = fs::remove_file(PathBuf::from(name));
        }
    }
    Ok(Restored { held: made? })
}

/// Refuse a file that is no backup of a store.
fn must_be_ours(backup: &Path) -> OpResult<()> {
    let metadata = backup.metadata().map_err(|error| io(&error))?;
    let no = |why: &str| invalid("the backup", format!("{}: {why}", backup.display()));
    if !metadata.is_file() {
        return Err(no("it is no file"));
    }
    let conn = open_to_copy(backup)?;
    let application: rusqlite::Result<i32> =
        conn.pragma_query_value(None, "application_id", |row| row.get(0));
    match application {
        Ok(APPLICATION) => {}
        Ok(_) => return Err(no("it is no backup of a store")),
        Err(_) => return Err(no("it is no SQLite file")),
    }
    let found = version(&conn)?;
    if found > VERSION {
        return Err(OpError::Refused(Error::Newer {
            found,
            known: VERSION,
        }));
    }
    let word: String = conn.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if word != "ok" {
        return Err(super::op_error::corrupt(backup.display().to_string(), word));
    }
    Ok(())
}

/// Bring a restored file up to date and hold its runs.
fn hold(part: &Path) -> OpResult<u64> {
    let conn = connect(part, Role::Writer)?;
    migrate(&conn, MIGRATIONS, &mut |_| {})?;
    conn.execute_batch("BEGIN IMMEDIATE")?;
    // Only running runs have events in the log.
    events::move_all(&conn)?;
    let sql = "UPDATE run SET state=?, owner=NULL WHERE live IS NOT NULL";
    let held = if trials::planted("restore-running") {
        0
    } else {
        conn.execute(sql, [RunState::Held.code()])?
    };
    conn.execute("DELETE FROM owner", [])?;
    conn.execute("DELETE FROM waiter", [])?;
    conn.execute_batch("COMMIT")?;
    // The file alone gets the name, so nothing may be left in the log.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    conn.close().map_err(|(_, error)| OpError::from(error))?;
    Ok(held as u64)
}
