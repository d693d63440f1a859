//! The writer thread: it commits what waits in the queue, and does the upkeep between groups.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::WriteConnection;
use super::queue::{Shared, Taken};
use crate::Heartbeat;
use crate::engines::sqlite::cache::lock;
use crate::engines::sqlite::connect::CommitSync;
use crate::engines::sqlite::events;
use crate::engines::sqlite::op_error::storage;
use crate::engines::sqlite::rows::sql::prepare;

/// How often commits of other processes are looked for while a caller waits for a change.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Write until the store is closed and the queue is empty, then let the file go.
pub(crate) fn run(mut connection: WriteConnection, shared: &Shared) {
    let mut others = OtherProcesses {
        at: Instant::now(),
        seen: None,
    };
    // Nothing was begun yet, and no caller waits for anything.
    let mut timeout = None;
    let _refusal = RefuseAtEnd(shared);
    loop {
        let Taken { jobs, last } = shared.take(timeout);
        if !jobs.is_empty() {
            connection.group(shared, jobs);
        }
        if last {
            connection.release_owner(shared);
            connection.erase();
            return;
        }
        others.poll(&connection.conn, shared);
        connection.mend_early();
        connection.keep_alive(shared);
        connection.erase();
        connection.checkpoint();
        timeout = connection.timeout(shared);
    }
}

/// Refuses all operations when the writer thread ends, also by a panic: no caller may wait for a thread
/// that is gone.
struct RefuseAtEnd<'s>(&'s Shared);

impl Drop for RefuseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
        self.0.drop_waiting();
    }
}

/// What the writer thread has seen of the commits of other processes.
struct OtherProcesses {
    at: Instant,
    seen: Option<i64>,
}

impl OtherProcesses {
    /// Wake callers that wait for a change if another process has written.
    fn poll(&mut self, conn: &Connection, shared: &Shared) {
        if !shared.watch.is_watched() {
            self.seen = None;
            return;
        }
        if self.seen.is_some() && self.at.elapsed() < POLL_INTERVAL {
            return;
        }
        self.at = Instant::now();
        let version = prepare(conn, "PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
        let Ok(version) = version else { return };
        // The first look of a watch may come after the change that a caller waits for.
        if self.seen != Some(version) {
            shared.watch.wake_all();
        }
        self.seen = Some(version);
    }
}

impl WriteConnection {
    /// How long the writer thread may sleep.
    fn timeout(&self, shared: &Shared) -> Option<Duration> {
        let beat = needs_heartbeats(shared).then(|| shared.options.lease / 3);
        let watched = shared.watch.is_watched();
        let look = (watched || self.erase_pending || self.is_lossy()).then_some(POLL_INTERVAL);
        match (beat, look) {
            (Some(beat), Some(look)) => Some(beat.min(look)),
            (beat, look) => beat.or(look),
        }
    }

    /// Write a heartbeat if the last one is old and there is something to keep.
    fn keep_alive(&mut self, shared: &Shared) {
        if needs_heartbeats(shared) && shared.is_heartbeat_due(shared.options.clock.now()) {
            let opened = self.open(CommitSync::Fsync);
            let last_heartbeat = opened.and_then(|()| {
                let now = shared.options.clock.now();
                let beat = self.write_heartbeat(shared, now)?;
                self.conn.execute_batch("COMMIT")?;
                Ok((beat, now))
            });
            match last_heartbeat {
                Ok((row, now)) => shared.note_heartbeat(row, now),
                // The next turn of the loop tries again, well before the lease is over.
                Err(error) => {
                    self.roll_back();
                    self.note_failed_commit(&error);
                }
            }
        }
    }

    /// Leave nothing behind that says this process lives, unless its runs need it.
    fn release_owner(&mut self, shared: &Shared) {
        let row = shared.owner_row.load(Ordering::Relaxed);
        // Without it they stay until they are swept.
        drop(events::release_slots(&self.log, &self.conn, row));
        if row == 0 {
            return;
        }
        let left = self.conn.execute("DELETE FROM waiter WHERE owner=?", [row]);
        // Without it they lapse.
        drop(left.map_err(|error| storage(&error)));
        // The row means nothing after a power cut, so it does not matter whether this commit is synced.
        let gone = self.conn.execute(
            "DELETE FROM owner WHERE owner=?1 AND NOT EXISTS(SELECT 1 FROM run INDEXED BY run_live WHERE live IS NOT NULL AND run.owner=?1)",
            [row],
        );
        // Without it the row stays until it is swept.
        drop(gone.map_err(|error| storage(&error)));
    }
}

fn needs_heartbeats(shared: &Shared) -> bool {
    let holds = shared.working.load(Ordering::Relaxed) > 0 || !lock(&shared.waiting).is_empty();
    shared.options.heartbeat == Heartbeat::Automatic && holds
}
