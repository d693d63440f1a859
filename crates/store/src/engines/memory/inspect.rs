//! Reading what is not a branch: runs, journals, events, trees.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Bound;

use crate::digest;
use crate::{
    CallRef, EventNo, Execution, Flush, ItemKind, ItemNo, Journal, Listing, Millis, NodeId,
    NodeRecord, Orphan, PageToken, Result, Run, RunFilter, RunId, RunState, StepRecord, ThreadId,
    TreeNode,
};

use super::read::state_of;
use super::schema::{CallRow, Database, Node, NodePlace, Row, RunRow, Stage, Timeline};
use super::{MAX_READ, Transaction};
use crate::rules::not_found;

impl Transaction<'_> {
    pub(super) fn run(&self, id: RunId) -> Result<Run> {
        self.run_view(self.tables.run(id)?)
    }

    pub(super) fn run_view(&self, run: &RunRow) -> Result<Run> {
        Ok(Run {
            id: run.id,
            thread: self.thread_of(run)?.id.clone(),
            kind: run.kind,
            mode: run.mode,
            state: self.shared.state(run, self.now),
            leased: run.leased,
            epoch: run.epoch,
            attempt: run.attempt,
            base: run.base_id,
            version: run.version,
            next_step: run.next_step,
            next_item: run.last_item() + 1,
            next_event: run.next_event,
            published: run.published(),
            cancelling: run.cancelling,
            delivered: run.delivered,
            created: run.created,
            progress: run.progress,
            worked: run.worked.until(run.progress),
            key: run.key.as_ref().map(|key| key.key.clone()),
            note: run.note.clone(),
        })
    }

    pub(super) fn journal(&self, id: RunId) -> Result<Journal> {
        let run = self.tables.run(id)?;
        let stored = (1..=run.last_item()).filter(|no| run.item(*no).is_some());
        let step = |(no, step): (u32, &super::schema::StepRow)| StepRecord {
            no,
            first: step.first,
            items: step.items,
            node: step.node,
            note: step.note.clone(),
        };
        Ok(Journal {
            run: self.run_view(run)?,
            request: run.request.as_deref().cloned(),
            inputs: run.inputs,
            entries: self.journaled(run, stored)?,
            steps: (0..).zip(&run.steps).map(step).collect(),
            calls: run
                .calls
                .iter()
                .map(|call| self.execution(id, call))
                .collect(),
            remote: self.tables.remote_call(run)?,
        })
    }

    fn execution(&self, run: RunId, call: &CallRow) -> Execution {
        let (step, position) = (call.step, call.position);
        Execution {
            at: CallRef {
                run,
                step,
                position,
            },
            call: call.call.clone(),
            tool: call.tool.clone(),
            effect: call.effect,
            state: call.state,
            key: digest::call_key(&self.tables.tenant, run, step, position, &call.call),
            result: call.result,
            approval: call.approval,
            taken_by: call.taken_by,
            ends: call.ends,
        }
    }

    pub(super) fn runs(
        &self,
        filter: &RunFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Run>> {
        let limit = limit.min(MAX_READ);
        let rows = match &filter.thread {
            None => &self.tables.run_order,
            Some(thread) => match self.tables.thread(thread) {
                Ok(thread) => &thread.runs,
                Err(_) => {
                    return Ok(Listing {
                        found: Vec::new(),
                        next: None,
                    });
                }
            },
        };
        let end = after.map_or(Bound::Unbounded, |token| Bound::Excluded(token.row));
        let mut found = Vec::new();
        let mut next = None;
        for (row, id) in rows.range((Bound::Unbounded, end)).rev() {
            // Hidden runs, and those of threads that are not visible, are left out.
            let Ok(run) = self.tables.run(*id) else {
                continue;
            };
            let state = self.shared.state(run, self.now);
            if !filter.states.is_empty() && !filter.states.contains(&state) {
                continue;
            }
            if found.len() == limit {
                return Ok(Listing { found, next });
            }
            found.push(self.run_view(run)?);
            next = Some(PageToken { key: 0, row: *row });
        }
        Ok(Listing { found, next: None })
    }

    pub(super) fn events(&self, id: RunId, from: EventNo, limit: usize) -> Result<Vec<Flush>> {
        let flushes = &self.tables.run(id)?.flushes;
        let first = flushes.partition_point(|flush| flush.end() <= from);
        let mut count = 0;
        let mut found = Vec::new();
        for flush in &flushes[first..] {
            if count >= limit {
                break;
            }
            count = count.saturating_add(flush.count as usize);
            found.push(flush.clone());
        }
        Ok(found)
    }

    pub(super) fn tree(
        &self,
        id: &ThreadId,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<TreeNode>> {
        let thread = self.tables.thread(id)?;
        let limit = limit.min(MAX_READ);
        let after = match after {
            None => Row::MIN,
            Some(node) => self.stored_node(node)?.2.row,
        };
        // Whole timelines of the thread; of others what lies on the way to the head.
        let mut tops: HashMap<Row, u64> = HashMap::new();
        if let Some(head) = thread.head {
            for stretch in self.tables.branch(head)? {
                let stretch = stretch?;
                tops.insert(stretch.row, stretch.top);
            }
        }
        for row in &thread.timelines {
            tops.insert(*row, u64::MAX);
        }
        // Row numbers grow from parent to child and along timelines: merge these by them.
        let mut heads = BinaryHeap::new();
        for (timeline, top) in &tops {
            let nodes = &self.tables.timeline(*timeline)?.nodes;
            let place = nodes.partition_point(|node| node.row <= after);
            if let Some(node) = nodes.get(place).filter(|node| node.last <= *top) {
                heads.push(Reverse((node.row, *timeline, place)));
            }
        }
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(Reverse((_, row, place))) = heads.pop() else {
                break;
            };
            let timeline = self.tables.timeline(row)?;
            let Some(node) = timeline.nodes.get(place) else {
                break;
            };
            found.push(self.tree_node(row, timeline, node)?);
            let top = tops.get(&row).copied().unwrap_or_default();
            let next = timeline.nodes.get(place + 1);
            if let Some(next) = next.filter(|node| node.last <= top) {
                heads.push(Reverse((next.row, row, place + 1)));
            }
        }
        Ok(found)
    }

    fn tree_node(&self, row: Row, timeline: &Timeline, node: &Node) -> Result<TreeNode> {
        let parent = timeline.parent_of(row, node.first);
        let parent = parent.map(|at| self.tables.node(at)).transpose()?;
        let count = u32::try_from(node.last - node.first).unwrap_or(u32::MAX);
        let last = node.first_item.saturating_add(count);
        let run = self.tables.run_of(node)?;
        let begins = |no: &u32| self.tables.kind_of(run, *no) == Some(ItemKind::Message);
        let messages = (node.first_item..=last).filter(begins).count() as u64;
        Ok(TreeNode {
            node: node.id,
            parent: parent.map(|parent| parent.id),
            first: node.first,
            last: node.last,
            first_item: node.first_item,
            messages,
            open: node.open,
            created: node.created,
        })
    }

    /// A node that some thread reaches, hidden or not.
    fn stored_node(&self, id: NodeId) -> Result<(&RunRow, Row, &Node)> {
        let missing = || not_found("node", id);
        let run = self.tables.runs.get(&id.run).ok_or_else(missing)?;
        let place = run.nodes.iter().rev().find(|node| node.step == id.step);
        let at: NodePlace = place.ok_or_else(missing)?.at;
        if !self.tables.is_reached(at) {
            return Err(missing());
        }
        Ok((run, at.timeline, self.tables.node(at)?))
    }

    pub(super) fn node(&self, id: NodeId, from: ItemNo, limit: usize) -> Result<NodeRecord> {
        let (run, row, node) = self.stored_node(id)?;
        let timeline = self.tables.timeline(row)?;
        self.tables.check_node(row, timeline, node)?;
        let count = u32::try_from(node.last - node.first).unwrap_or(u32::MAX);
        let last = node.first_item.saturating_add(count);
        let mut items = Vec::new();
        let first = from.max(node.first_item);
        for no in (first..=last).take(limit.min(MAX_READ)) {
            items.push(self.tables.item_view(run, no)?);
        }
        let read = u64::from(first) + items.len() as u64;
        let set_here = node.state.as_ref().is_some_and(|state| state.at == id);
        Ok(NodeRecord {
            kind: run.kind,
            mode: run.mode,
            run: self.shared.state(run, self.now),
            begun: run.created,
            note: run.note.clone(),
            hidden: run.hidden,
            state: set_here.then(|| state_of(node)),
            items,
            more: read <= u64::from(last),
        })
    }
}

impl Database {
    /// Runs whose owners are gone.
    pub(super) fn orphans(&self, now: Millis, limit: usize) -> Vec<Orphan> {
        let runs = self.shared.running.values().filter_map(|(scope, id)| {
            let tables = self.tenants.get(scope.tenant())?;
            let run = tables.runs.get(id)?;
            let visible = tables.stage(run.thread) == Some(Stage::Visible);
            let orphan = self.shared.state(run, now) == RunState::Interrupted;
            (visible && orphan).then(|| Orphan {
                scope: scope.clone(),
                run: run.id,
                epoch: run.epoch,
                attempt: run.attempt,
            })
        });
        runs.take(limit).collect()
    }

    /// Forget processes that are gone and own nothing.
    pub(super) fn forget_owners(&mut self, now: Millis) {
        let mut owning = std::collections::HashSet::new();
        for (scope, run) in self.shared.running.values() {
            let run = self
                .tenants
                .get(scope.tenant())
                .and_then(|tables| tables.runs.get(run));
            owning.extend(run.and_then(|run| run.owner));
        }
        self.shared
            .owners
            .retain(|id, owner| owning.contains(id) || owner.is_alive(now));
    }
}
