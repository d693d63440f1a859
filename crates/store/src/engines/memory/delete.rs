//! Deleting and hiding, and sweeping up after it.
//!
//! A deleted thread is out of sight at once. Its rows stay in three cases: a node lies on the
//! branch of something that lives (it is pinned, or a later one of its timeline is), a result was
//! never sent and belongs to such a node, or an item is said again somewhere that lives.
//! Everything else is swept in small steps, and whatever lets go of a
//! row puts it back into the queue.

use std::sync::Arc;

use crate::digest;
use crate::{ItemNo, Millis, Purged, Result, RunId, RunState, ThreadId, rules};

use super::Transaction;
use super::schema::{
    NodePlace, Row, RunNode, RunRow, Stage, StoredContent, SweepUnit, TenantTables,
};

impl Transaction<'_> {
    pub(super) fn delete(&mut self, id: &ThreadId) -> Result<()> {
        // One that is gone is deleted: a caller that did not hear the answer asks again.
        if let Ok(thread) = self.tables.thread(id) {
            self.delete_thread(thread.row);
        }
        Ok(())
    }

    /// Take a thread out of sight, with all that is only its own, and have the rest swept.
    pub(super) fn delete_thread(&mut self, row: Row) {
        let mut deleted = None;
        self.tables.change_thread(row, |thread| {
            thread.stage = Stage::Deleted;
            thread.unsettled = None;
            thread.queue.clear();
            thread.waiters.clear();
            // Callers that wait for a change are woken.
            thread.changes = None;
            thread.title = None;
            thread.meta = None;
            thread.settings = None;
            let aliases = std::mem::take(&mut thread.aliases);
            let head = thread.head.take();
            deleted = Some((thread.id.clone(), aliases, head));
        });
        let Some((id, aliases, head)) = deleted else {
            return;
        };
        self.tables.names.remove(&id);
        for alias in aliases {
            self.tables.aliases.remove(&alias);
        }
        let Some(thread) = self.tables.threads.get(&row) else {
            return;
        };
        let runs: Vec<_> = thread.runs.iter().map(|(row, id)| (*row, *id)).collect();
        let timelines: Vec<_> = thread.timelines.iter().copied().collect();
        for (row, run) in runs {
            self.shared.running.remove(&row);
            self.tables.run_order.remove(&row);
            self.tables.delete_run(run);
        }
        if let Some(head) = head {
            self.tables.unpin(head);
        }
        for timeline in timelines {
            if let Some(parent) = self.tables.release(timeline) {
                self.tables.unpin(parent);
            }
        }
        self.tables.sweep.push_back(SweepUnit::Thread(row));
    }

    pub(super) fn hide(&mut self, id: RunId) -> Result<()> {
        self.tables.live_run(id)?;
        let run = self.run_mut(id)?;
        run.hidden = true;
        // A key lives as long as what it names.
        if let Some(key) = run.key.take() {
            self.tables.keys.remove(&key.key);
        }
        Ok(())
    }

    /// Sweep until the budget is used up.
    pub(super) fn purge(&mut self, budget: &mut usize, purged: &mut Purged) {
        let outlived: Vec<Row> = self.outlived().take(*budget).collect();
        *budget -= outlived.len();
        for row in outlived {
            self.delete_thread(row);
        }
        self.tables.sweep(budget, purged);
        purged.more |= !self.tables.sweep.is_empty() || self.outlived().next().is_some();
    }

    /// Threads whose time is over, and imports that were left.
    fn outlived(&self) -> impl Iterator<Item = Row> {
        let over = |time: Millis| time <= self.now;
        let expired = self.tables.expiring.iter();
        let expired = expired.take_while(move |(time, _)| over(*time));
        let expired = expired.filter(|(_, row)| !self.is_at_work(*row));
        let left = self.tables.importing.iter();
        let left =
            left.take_while(move |(since, _)| over(since.saturating_add(rules::import::LONGEST)));
        expired.chain(left).map(|(_, row)| *row)
    }

    /// Whether a run of a thread has a living owner or waiter. A run whose owner is gone does
    /// not count: a process that died must not turn an hour into for ever.
    fn is_at_work(&self, thread: Row) -> bool {
        let Some(thread) = self.tables.threads.get(&thread) else {
            return false;
        };
        let mut runs = thread.runs.values().rev();
        runs.any(|run| {
            let run = self.tables.runs.get(run);
            run.is_some_and(|run| match self.shared.state(run, self.now) {
                RunState::Running | RunState::Parked => true,
                RunState::Interrupted
                | RunState::Held
                | RunState::Committed
                | RunState::Cancelled
                | RunState::Failed
                | RunState::Unpublished
                | RunState::Discarded => false,
            })
        })
    }
}

impl TenantTables {
    /// Whether a node belongs to a thread that lives, or lies on the way to something that does.
    pub(super) fn is_reached(&self, at: NodePlace) -> bool {
        let Some(timeline) = self.timelines.get(&at.timeline) else {
            return false;
        };
        match self.stage(timeline.thread) {
            Some(Stage::Visible) => true,
            Some(Stage::Deleted) => timeline.pins.range(at.first..).next().is_some(),
            Some(Stage::Importing(_)) | None => false,
        }
    }

    /// Whether an item of a run is visible.
    pub(super) fn item_is_seen(&self, run: &RunRow, no: ItemNo) -> bool {
        match self.stage(run.thread) {
            Some(Stage::Visible) => true,
            Some(Stage::Deleted) => {
                let reached = |node: &RunNode| self.is_reached(node.at);
                let node = run.nodes.iter().find(|node| node.last_item >= no);
                node.is_some_and(|node| node.first_item <= no && reached(node))
                    || run.last_unsent().any(|unsent| unsent == no)
                        && run.nodes.last().is_some_and(reached)
            }
            Some(Stage::Importing(_)) | None => false,
        }
    }

    /// A run no longer needs its base.
    pub(super) fn unpin_base(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let pinned = std::mem::take(&mut run.pinned);
        if let Some(base) = run.base.filter(|_| pinned) {
            self.unpin(base);
        }
    }

    /// Remove everything of a run but what others may share.
    fn delete_run(&mut self, id: RunId) {
        self.unpin_base(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.flushes = Vec::new();
        run.steps = Vec::new();
        run.remote = None;
        run.note = None;
        let approvals: Vec<_> = run.calls.iter().filter_map(|call| call.approval).collect();
        let request = run.request.take();
        if let Some(key) = run.key.take() {
            self.keys.remove(&key.key);
        }
        for approval in approvals {
            if let Some(row) = self.approval_rows.remove(&approval) {
                self.approvals.remove(&row);
            }
        }
        // One here, one in the table: no other run has it.
        if let Some(request) = request.filter(|request| Arc::strong_count(request) == 2) {
            self.requests.remove(&digest::request(request.get()));
        }
        self.sweep.push_back(SweepUnit::Run(id));
    }

    pub(super) fn sweep(&mut self, budget: &mut usize, purged: &mut Purged) {
        while *budget > 0 {
            let Some(unit) = self.sweep.pop_front() else {
                return;
            };
            *budget -= 1;
            match unit {
                SweepUnit::Thread(row) => self.forget_thread(row, purged),
                SweepUnit::Timeline(row) => self.sweep_timeline(row, budget, purged),
                SweepUnit::Run(id) => self.sweep_run(id, budget, purged),
            }
        }
    }

    /// Remove the nodes of a deleted thread's timeline that nothing references, last ones first.
    fn sweep_timeline(&mut self, row: Row, budget: &mut usize, purged: &mut Purged) {
        loop {
            let Some(timeline) = self.timelines.get_mut(&row) else {
                return;
            };
            let thread = timeline.thread;
            let keep = timeline.pins.last_key_value().map(|(first, _)| *first);
            let free = |node: &super::schema::Node| keep.is_none_or(|keep| node.first > keep);
            let Some(node) = timeline.nodes.pop_if(|node| free(node)) else {
                if timeline.nodes.is_empty() {
                    self.timelines.remove(&row);
                    if let Some(thread) = self.threads.get_mut(&thread) {
                        thread.timelines.remove(&row);
                    }
                    self.forget_thread(thread, purged);
                }
                return;
            };
            if let Some(run) = self.runs.get_mut(&node.id.run) {
                run.nodes.retain(|one| one.step != node.id.step);
                // Results that were never sent belonged to the last node.
                run.calls = Vec::new();
            }
            self.sweep.push_back(SweepUnit::Run(node.id.run));
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                self.sweep.push_front(SweepUnit::Timeline(row));
                return;
            }
        }
    }

    /// Remove the items of a deleted thread's run that belong to no node and that no item says
    /// again.
    fn sweep_run(&mut self, id: RunId, budget: &mut usize, purged: &mut Purged) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let thread = run.thread;
        if self
            .threads
            .get(&thread)
            .is_some_and(|thread| thread.stage != Stage::Deleted)
        {
            return;
        }
        // Nodes go from the end, so those that stay are a prefix.
        let kept = run.published_items();
        let unsent: Vec<_> = run.last_unsent().collect();
        let mut said_again = Vec::new();
        let mut left = false;
        for (no, slot) in (1..).zip(&mut run.items).skip(kept as usize) {
            if unsent.contains(&no) {
                left = true;
            } else if let Some(item) = slot.take_if(|item| item.refs == 0) {
                purged.items += 1;
                *budget = budget.saturating_sub(1);
                if let StoredContent::Repeat(of) = item.what {
                    said_again.push(of);
                }
            }
            left |= slot.is_some();
        }
        for of in said_again {
            if let Some(first) = self.item_mut(of) {
                first.refs = first.refs.saturating_sub(1);
                if first.refs == 0 {
                    self.sweep.push_back(SweepUnit::Run(of.run));
                }
            }
        }
        self.drop_fingerprints(id);
        if kept == 0 && !left {
            if let Some(run) = self.runs.remove(&id)
                && let Some(thread) = self.threads.get_mut(&thread)
            {
                thread.runs.remove(&run.row);
            }
            self.forget_thread(thread, purged);
        }
    }

    /// A deleted thread without timelines and runs is gone for good.
    fn forget_thread(&mut self, row: Row, purged: &mut Purged) {
        let gone = self.threads.get(&row).is_some_and(|thread| {
            thread.stage == Stage::Deleted && thread.timelines.is_empty() && thread.runs.is_empty()
        });
        if gone {
            self.threads.remove(&row);
            purged.threads += 1;
        }
    }
}
