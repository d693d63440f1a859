//! The thread that writes: whatever waits to be written, and what nobody asks for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::engines::sqlite::cache::lock;
use crate::engines::sqlite::connect::{PATIENCE, Waits};
use crate::engines::sqlite::events;
use crate::engines::sqlite::fault::storage;
use crate::engines::sqlite::rows::sql::prepare;
use crate::engines::sqlite::write::disk::Owes;
use crate::engines::sqlite::write::pen::Pen;
use crate::engines::sqlite::write::queue::Shared;
use crate::{Heartbeat, trials};

/// How often other processes' commits are looked for while somebody waits for a change.
const LOOK: Duration = Duration::from_millis(50);

/// Write until the engine is closed and nothing waits any more, and let the file go.
pub(crate) fn run(shared: &Shared) {
    let mut look = Look {
        at: Instant::now(),
        seen: None,
    };
    // Nothing was begun yet, and nobody waits for anything.
    let mut patience = None;
    let mut is_paid = true;
    loop {
        if is_paid {
            shared.wait(patience);
        }
        // First the pen and then what waits, or somebody could write between the two what was asked
        // for later.
        let mut held = lock(&shared.pen);
        let Some(pen) = held.as_mut() else { return };
        let owes = shared.owed.owes();
        let (jobs, last) = shared.take(matches!(owes, Owes::Now(_)));
        if !jobs.is_empty() {
            pen.group(shared, jobs);
        } else if let Owes::Now(upto) = owes {
            let file = Arc::clone(&pen.file);
            drop(held);
            let paid = shared.pay(upto, &file);
            held = lock(&shared.pen);
            if let (Err(stop), Some(pen)) = (paid, held.as_mut()) {
                pen.doubt(&stop);
            }
        }
        let Some(pen) = held.as_mut() else { return };
        if last {
            pen.leave(shared);
            pen.erase();
            *held = None;
            return;
        }
        look.look(&pen.conn, shared);
        pen.mend_early(shared);
        pen.keep_alive(shared);
        pen.erase();
        // What is owed to the disk goes first.
        is_paid = !matches!(shared.owed.owes(), Owes::Now(_));
        if is_paid {
            pen.copy_log();
        }
        patience = pen.patience(shared);
    }
}

/// What was seen of other processes.
struct Look {
    at: Instant,
    seen: Option<i64>,
}

impl Look {
    /// See whether another process has written, while somebody waits for that.
    fn look(&mut self, conn: &Connection, shared: &Shared) {
        if !shared.watch.is_watched() {
            self.seen = None;
            return;
        }
        if self.seen.is_some() && self.at.elapsed() < LOOK {
            return;
        }
        self.at = Instant::now();
        let version = prepare(conn, "PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
        let Ok(version) = version else { return };
        // The first look of a watch may come after the change that is waited for.
        if self.seen != Some(version) {
            shared.watch.wake_all();
        }
        self.seen = Some(version);
    }
}

impl Pen {
    /// How long nothing has to be done unless something comes.
    fn patience(&self, shared: &Shared) -> Option<Duration> {
        let beat = beats(shared).then(|| shared.options.lease / 3);
        let watched = shared.watch.is_watched();
        let look = (watched || self.unerased || self.is_lossy()).then_some(LOOK);
        match (beat, look) {
            (Some(beat), Some(look)) => Some(beat.min(look)),
            (beat, look) => beat.or(look),
        }
    }

    /// Write a heartbeat if the last one is old and there is something to keep.
    fn keep_alive(&mut self, shared: &Shared) {
        if beats(shared) && shared.is_beat_due(shared.options.clock.now()) {
            let opened = self.open(shared, Waits::ForDisk);
            let beaten = opened.and_then(|()| {
                let now = shared.options.clock.now();
                let beat = self.beat(shared, now)?;
                let before = self.commits();
                self.conn.execute_batch("COMMIT")?;
                self.settle(shared, before)?;
                Ok((beat, now))
            });
            match beaten {
                Ok((row, now)) => shared.note_beat(row, now),
                // The next turn of the loop tries again, well before the lease is over.
                Err(stop) => {
                    self.roll_back();
                    self.doubt(&stop);
                    shared.owed.failed();
                }
            }
        }
    }

    /// Mend the log before somebody wants to write, as long as what the disk may have lost can still
    /// be read. It waits for no reader: it is tried again and again.
    fn mend_early(&mut self, shared: &Shared) {
        if !self.is_lossy() {
            return;
        }
        if self.conn.busy_timeout(Duration::ZERO).is_ok() {
            let _ = self.mend_log(shared);
        }
        // It was set before, with the same value.
        let _ = self.conn.busy_timeout(PATIENCE);
    }

    /// Take erased bytes out of the log too. It waits for no reader: until all have gone on to a
    /// newer state it is tried again and again.
    fn erase(&mut self) {
        if !trials::unless("erase-later", self.unerased) {
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
            self.unerased = false;
        }
        // It was set before, with the same value.
        let _ = self.conn.busy_timeout(PATIENCE);
    }

    /// Leave nothing behind that says this process lives, unless its runs need it.
    fn leave(&mut self, shared: &Shared) {
        if let Owes::Now(upto) | Owes::WithNext(upto) = shared.owed.owes() {
            match self.mend_log(shared).and_then(|()| self.sync()) {
                Ok(()) => shared.owed.paid(upto),
                Err(_) => shared.owed.failed(),
            }
        }
        let row = shared.owner_row.load(Ordering::Relaxed);
        // Without it they stay until they are swept.
        drop(events::leave(&self.log, &self.conn, row));
        if row == 0 {
            return;
        }
        let left = self.conn.execute("DELETE FROM waiter WHERE owner=?", [row]);
        // Without it they lapse.
        drop(left.map_err(|error| storage(&error)));
        // Nobody reads this row after a power cut, so it does not matter what this commit waits for.
        let gone = self.conn.execute(
            "DELETE FROM owner WHERE owner=?1 AND NOT EXISTS(SELECT 1 FROM run INDEXED BY run_live WHERE live IS NOT NULL AND run.owner=?1)",
            [row],
        );
        // Without it the row stays until it is swept.
        drop(gone.map_err(|error| storage(&error)));
    }
}

fn beats(shared: &Shared) -> bool {
    let holds = shared.working.load(Ordering::Relaxed) > 0 || !lock(&shared.waiting).is_empty();
    shared.options.heartbeat == Heartbeat::Automatic && holds
}
