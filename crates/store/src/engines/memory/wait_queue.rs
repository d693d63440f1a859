//! The wait queue of a thread: runs that wait until it is free.

use crate::{AfterTurn, OwnerId, Result, RunId, ThreadId, Waiter, WaiterNo, trials};

use super::Transaction;
use super::schema::{Row, ThreadRow};
use crate::rules::exists;

/// A place in a wait queue.
#[derive(Clone, Copy)]
pub(super) struct WaiterRow {
    pub(super) waiter: Waiter,
    /// The process that took it.
    owner: OwnerId,
}

impl Transaction<'_> {
    pub(super) fn join_wait_queue(&mut self, id: &ThreadId, run: RunId) -> Result<WaiterNo> {
        self.shared.renew(self.me, self.until);
        let row = self.tables.thread(id)?.row;
        if self.tables.runs.contains_key(&run) {
            return Err(exists("run", run));
        }
        Ok(self.take_place(row, run))
    }

    /// The place of a run; the last one if it has none.
    fn take_place(&mut self, thread: Row, run: RunId) -> WaiterNo {
        let no = self.shared.row().unsigned_abs();
        let Some(thread) = self.tables.threads.get_mut(&thread) else {
            return no;
        };
        let mut places = thread.waiters.iter().map(|place| place.waiter);
        if let Some(known) = places.find(|waiter| waiter.run == run) {
            return known.no;
        }
        thread.waiters.push(WaiterRow {
            waiter: Waiter { no, run },
            owner: self.me,
        });
        no
    }

    pub(super) fn leave_wait_queue(&mut self, id: &ThreadId, run: RunId) {
        let row = self.tables.thread(id).map(|thread| thread.row);
        if let Ok(row) = row
            && let Some(thread) = self.tables.threads.get_mut(&row)
        {
            thread.waiters.retain(|place| place.waiter.run != run);
        }
    }

    pub(super) fn wait_queue(&self, id: &ThreadId) -> Result<Vec<Waiter>> {
        let thread = self.tables.thread(id)?;
        Ok(self.living_waiters(thread).collect())
    }

    /// Those who wait and whose processes live.
    fn living_waiters(&self, thread: &ThreadRow) -> impl Iterator<Item = Waiter> {
        let lives = |place: &&WaiterRow| {
            trials::planted("queue-dead-waiter-kept") || self.shared.is_alive(place.owner, self.now)
        };
        thread
            .waiters
            .iter()
            .filter(lives)
            .map(|place| place.waiter)
    }

    /// The next run that may begin at the head.
    pub(super) fn first_waiter(&self, thread: &ThreadRow) -> Option<RunId> {
        self.living_waiters(thread).next().map(|waiter| waiter.run)
    }

    /// A run whose turn it is goes ahead: what became of its place, and of those before it, which
    /// have lapsed.
    pub(super) fn take_turn(&mut self, thread: Row, run: RunId, place: AfterTurn) {
        if let Some(thread) = self.tables.threads.get_mut(&thread) {
            let mut waiters = thread.waiters.iter();
            match waiters.position(|place| place.waiter.run == run) {
                Some(at) => {
                    let own = usize::from(place == AfterTurn::Leave);
                    thread.waiters.drain(..at + own);
                }
                // No living waiter is left.
                None => thread.waiters.clear(),
            }
        }
        if place == AfterTurn::Keep {
            self.take_place(thread, run);
        }
    }
}
