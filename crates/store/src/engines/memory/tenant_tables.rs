//! Finding rows, and which nodes are needed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use throughline_model::json::RawJson;

use crate::digest;
use crate::{ItemNo, ItemRef, NodeId, Position, Result, RunId, RunState, TenantScope, ThreadId};

use super::schema::{
    CallRow, ItemRow, Node, NodePlace, Row, RunRow, Stage, SweepUnit, TenantTables, ThreadRow,
    Timeline, missing_row,
};
use crate::rules::not_found;

impl TenantTables {
    pub(super) fn new(scope: &TenantScope) -> Self {
        Self {
            scope: scope.clone(),
            tenant: scope.tenant().clone(),
            threads: HashMap::new(),
            names: HashMap::new(),
            aliases: HashMap::new(),
            recent: BTreeSet::new(),
            expiring: BTreeSet::new(),
            importing: BTreeSet::new(),
            timelines: HashMap::new(),
            runs: HashMap::new(),
            run_order: BTreeMap::new(),
            keys: HashMap::new(),
            approvals: BTreeMap::new(),
            approval_rows: HashMap::new(),
            requests: HashMap::new(),
            redactions: 0,
            fingerprints: BTreeSet::new(),
            sweep: VecDeque::new(),
        }
    }

    /// A request of a run, each content once.
    pub(super) fn shared_request(&mut self, request: RawJson) -> Arc<RawJson> {
        let digest = digest::request(request.get());
        let shared = self.requests.entry(digest);
        Arc::clone(shared.or_insert_with(|| Arc::new(request)))
    }

    /// A visible thread.
    pub(super) fn thread(&self, id: &ThreadId) -> Result<&ThreadRow> {
        let row = self.names.get(id).and_then(|row| self.threads.get(row));
        row.filter(|thread| thread.stage == Stage::Visible)
            .ok_or_else(|| not_found("thread", id))
    }

    pub(super) fn thread_row(&self, row: Row) -> Result<&ThreadRow> {
        self.threads
            .get(&row)
            .ok_or_else(|| missing_row("a thread"))
    }

    /// A run of a visible thread, hidden or not.
    pub(super) fn live_run(&self, id: RunId) -> Result<&RunRow> {
        let run = self.runs.get(&id);
        run.filter(|run| self.stage(run.thread) == Some(Stage::Visible))
            .ok_or_else(|| not_found("run", id))
    }

    /// A run that can be named.
    pub(super) fn run(&self, id: RunId) -> Result<&RunRow> {
        let run = self.live_run(id)?;
        if run.hidden {
            return Err(not_found("run", id));
        }
        Ok(run)
    }

    pub(super) fn stage(&self, thread: Row) -> Option<Stage> {
        self.threads.get(&thread).map(|thread| thread.stage)
    }

    pub(super) fn timeline(&self, row: Row) -> Result<&Timeline> {
        self.timelines
            .get(&row)
            .ok_or_else(|| missing_row(format_args!("timeline {row}")))
    }

    pub(super) fn node(&self, at: NodePlace) -> Result<&Node> {
        self.timeline(at.timeline)?
            .node(at.first)
            .ok_or_else(|| missing_row(format_args!("the node at position {}", at.first)))
    }

    /// The item at a place, if it is stored.
    pub(super) fn item(&self, at: ItemRef) -> Option<&ItemRow> {
        self.runs.get(&at.run)?.item(at.no)
    }

    pub(super) fn item_mut(&mut self, at: ItemRef) -> Option<&mut ItemRow> {
        let place = usize::try_from(at.no).ok()?.checked_sub(1)?;
        let run = self.runs.get_mut(&at.run)?;
        run.items.get_mut(place)?.as_mut()
    }

    /// Say that a node is needed.
    pub(super) fn pin(&mut self, at: NodePlace) {
        if let Some(timeline) = self.timelines.get_mut(&at.timeline) {
            *timeline.pins.entry(at.first).or_insert(0) += 1;
        }
    }

    /// Say that a node is needed once less. Timelines of deleted threads that nothing needs any
    /// more let go of their parents at once; their rows are swept later.
    pub(super) fn unpin(&mut self, at: NodePlace) {
        let mut next = Some(at);
        while let Some(at) = next.take() {
            let Some(timeline) = self.timelines.get_mut(&at.timeline) else {
                return;
            };
            if let Some(count) = timeline.pins.get_mut(&at.first) {
                *count -= 1;
                if *count == 0 {
                    timeline.pins.remove(&at.first);
                }
            }
            next = self.release(at.timeline);
        }
    }

    /// If a timeline's thread is deleted, have it swept, and if nothing needs it let go of its
    /// parent, which is the answer.
    pub(super) fn release(&mut self, row: Row) -> Option<NodePlace> {
        let timeline = self.timelines.get_mut(&row)?;
        let owner = self.threads.get(&timeline.thread)?;
        if owner.stage != Stage::Deleted {
            return None;
        }
        self.sweep.push_back(SweepUnit::Timeline(row));
        if timeline.released || !timeline.pins.is_empty() {
            return None;
        }
        timeline.released = true;
        timeline.parent
    }
}

impl Timeline {
    fn place(&self, first: Position) -> Option<usize> {
        let place = self.nodes.binary_search_by_key(&first, |node| node.first);
        place.ok()
    }

    pub(super) fn node(&self, first: Position) -> Option<&Node> {
        self.nodes.get(self.place(first)?)
    }

    /// The place of the node that a node continues.
    pub(super) fn parent_of(&self, timeline: Row, first: Position) -> Option<NodePlace> {
        match self.place(first)?.checked_sub(1) {
            Some(before) => Some(NodePlace {
                timeline,
                first: self.nodes.get(before)?.first,
            }),
            None => self.parent,
        }
    }
}

impl RunRow {
    pub(super) fn item(&self, no: ItemNo) -> Option<&ItemRow> {
        let place = usize::try_from(no).ok()?.checked_sub(1)?;
        self.items.get(place)?.as_ref()
    }

    /// The number of the last item or place.
    pub(super) fn last_item(&self) -> ItemNo {
        // `room` lets no run grow beyond this.
        u32::try_from(self.items.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn published(&self) -> Option<NodeId> {
        let step = self.nodes.last()?.step;
        Some(NodeId { run: self.id, step })
    }

    /// The last item that is in a node.
    pub(super) fn published_items(&self) -> ItemNo {
        self.nodes.last().map_or(0, |node| node.last_item)
    }

    /// The node that its next one continues.
    pub(super) fn tip(&self) -> Option<NodePlace> {
        self.nodes.last().map(|node| node.at).or(self.base)
    }

    fn call_place(&self, step: u32, position: u32) -> Option<usize> {
        let key = |call: &CallRow| (call.step, call.position);
        self.calls.binary_search_by_key(&(step, position), key).ok()
    }

    pub(super) fn call(&self, step: u32, position: u32) -> Option<&CallRow> {
        self.calls.get(self.call_place(step, position)?)
    }

    pub(super) fn call_mut(&mut self, step: u32, position: u32) -> Option<&mut CallRow> {
        let place = self.call_place(step, position)?;
        self.calls.get_mut(place)
    }

    /// Results that came after the last node.
    pub(super) fn last_unsent(&self) -> impl Iterator<Item = ItemNo> {
        // No step has this number: a run has fewer items.
        let step = self.nodes.last().map_or(u32::MAX, |node| node.step);
        self.unsent(step)
    }

    /// Results that are stored after a node and were never sent: those of a published run after
    /// its last node.
    pub(super) fn unsent(&self, step: u32) -> impl Iterator<Item = ItemNo> {
        let published = matches!(self.state, RunState::Committed | RunState::Cancelled);
        let last = self
            .nodes
            .last()
            .filter(|node| published && node.step == step);
        let after = last.map_or(u32::MAX, |node| node.last_item);
        let from = self.calls.partition_point(|call| call.result <= after);
        self.calls[from..]
            .iter()
            .map(|call| call.result)
            .filter(|no| self.item(*no).is_some())
    }
}
