//! The connection that writes, and what is known of its write-ahead log.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::queue::Shared;
use super::statements::{Statements, TurnStatement};
use super::wal_file::WalFile;
use crate::engines::sqlite::connect::{BUSY_TIMEOUT, CHECKPOINT, CommitSync, set_commit_sync};
use crate::engines::sqlite::events::EventLog;
use crate::engines::sqlite::op_error::{OpError, OpResult};
use crate::engines::sqlite::rows::int;
use crate::engines::sqlite::rows::sql::prepare;
use crate::trials::{self, Point};
use crate::{Error, Millis};

/// The connection of the writer thread.
pub(crate) struct WriteConnection {
    pub(crate) conn: Connection,
    /// The event log of live runs.
    pub(crate) log: EventLog,
    wal: WalFile,
    /// Pages in the write-ahead log at the last commit.
    wal_pages: Arc<AtomicI32>,
    /// An fsync of the log failed. Commits that did not wait for an fsync can still be read, but the
    /// disk may have lost them, and with them everything behind them in the log (ADR 25).
    lossy: bool,
    /// Erased bytes may still be in the log.
    pub(super) erase_pending: bool,
    /// The last commit failed in a way that may leave it valid in the log: a recovery before the
    /// next write would find it committed.
    pub(super) in_doubt: bool,
    /// Whether commits of the connection wait for fsync.
    pub(super) commit_sync: CommitSync,
}

impl WriteConnection {
    pub(crate) fn new(mut conn: Connection) -> OpResult<Self> {
        Statements(&conn).check()?;
        let wal = WalFile::of(&conn)?;
        let wal_pages = Arc::<AtomicI32>::default();
        let counted = Arc::clone(&wal_pages);
        // Replaces SQLite's own hook, which checkpoints inside the commit while callers wait.
        conn.wal_hook(Some(move |_: &mut _, pages| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            conn,
            log: EventLog::default(),
            wal,
            wal_pages,
            lossy: false,
            erase_pending: false,
            in_doubt: false,
            commit_sync: CommitSync::Fsync,
        })
    }

    pub(super) fn statements(&self) -> Statements<'_> {
        Statements(&self.conn)
    }

    /// Checkpoint the log into the database when it has become long.
    pub(super) fn checkpoint(&mut self) {
        if self.wal_pages.load(Ordering::Relaxed) < CHECKPOINT {
            return;
        }
        // The next commit counts again: if the checkpoint fails, or a reader still needs older
        // pages, it is tried again then.
        self.wal_pages.store(0, Ordering::Relaxed);
        if self.sync().is_err() {
            return;
        }
        let copied = self.conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
        if copied.is_err() {
            // Other processes may have written to the log meanwhile: find out whether it was the log
            // that failed.
            let _ = self.sync();
        }
    }

    /// Sync the log. A checkpoint does so too, but its failure does not say whether it was the log.
    pub(super) fn sync(&mut self) -> OpResult<()> {
        let synced = self.wal.sync();
        self.lossy |= synced.is_err();
        synced
    }

    /// Whether the log must be mended before anything is written.
    pub(super) fn is_lossy(&self) -> bool {
        self.lossy
    }

    /// A commit failed: perhaps its fsync did.
    pub(super) fn note_failed_commit(&mut self, error: &OpError) {
        self.lossy |= matches!(error, OpError::Broken(Error::Io { .. }));
    }

    /// If the disk may have lost some of the log, copy all of it to the database and start it anew.
    /// SQLite itself rewrites only the pages of the commit that failed.
    pub(super) fn mend_log(&mut self) -> OpResult<()> {
        if !self.lossy || trials::planted("lossy-log") {
            return Ok(());
        }
        // The system reports a failed write once per handle: this one must not report it later.
        let _ = self.wal.sync();
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        if self.conn.query_row(sql, [], |row| row.get::<_, bool>(0))? {
            return Err(OpError::Broken(Error::Locked));
        }
        self.lossy = false;
        Ok(())
    }

    /// Mend the log while what the disk may have lost can still be read, before the next write needs
    /// it. It does not wait for readers: the writer thread tries again.
    pub(super) fn mend_early(&mut self) {
        if !self.lossy {
            return;
        }
        if self.conn.busy_timeout(Duration::ZERO).is_ok() {
            let _ = self.mend_log();
        }
        // It was set before, with the same value.
        let _ = self.conn.busy_timeout(BUSY_TIMEOUT);
    }

    /// Remove erased bytes from the log too. It does not wait for readers: the writer thread tries
    /// again until all of them have moved on to a newer snapshot.
    pub(super) fn erase(&mut self) {
        if !trials::unless("erase-later", self.erase_pending) {
            return;
        }
        if self.sync().is_err() {
            return;
        }
        let truncated = self.conn.busy_timeout(Duration::ZERO).and_then(|()| {
            let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
            self.conn.query_row(sql, [], |row| row.get::<_, bool>(0))
        });
        if matches!(truncated, Ok(false)) {
            self.erase_pending = false;
        }
        // It was set before, with the same value.
        let _ = self.conn.busy_timeout(BUSY_TIMEOUT);
    }

    /// Begin a transaction whose commit waits for fsync or not.
    pub(super) fn open(&mut self, sync: CommitSync) -> OpResult<()> {
        self.mend_log()?;
        self.use_commit_sync(sync)?;
        self.statements().run(TurnStatement::Begin, &[])?;
        Ok(())
    }

    fn use_commit_sync(&mut self, sync: CommitSync) -> OpResult<()> {
        if self.commit_sync == sync {
            return Ok(());
        }
        // If this fails half-way, the weaker one may hold.
        self.commit_sync = CommitSync::NoFsync;
        set_commit_sync(&self.conn, sync)?;
        self.commit_sync = sync;
        Ok(())
    }

    /// Write the row that says that this process is alive.
    pub(super) fn write_heartbeat(&self, shared: &Shared, now: Millis) -> OpResult<i64> {
        trials::reach(Point::LeaseRenew).map_err(OpError::Broken)?;
        let lease = u64::try_from(shared.options.lease.as_millis()).unwrap_or(u64::MAX);
        let sql = "INSERT INTO owner(id, until) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET until=?2 RETURNING owner";
        let values = (shared.owner.as_bytes(), int(now.saturating_add(lease)));
        let row = prepare(&self.conn, sql)?.query_row(values, |row| row.get(0))?;
        Ok(row)
    }

    pub(super) fn roll_back(&self) {
        self.log.rolled_back();
        if !self.conn.is_autocommit() {
            // If even this fails, the next BEGIN says so.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }
}
