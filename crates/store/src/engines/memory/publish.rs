//! Steps and publications: how items become nodes, and nodes the head.

use std::cell::Cell;
use std::sync::Arc;

use crate::digest::{self, NodeFields};
use crate::{
    Ending, ItemNo, ItemRef, Lease, MovedBy, NodeId, PlannedCall, Publish, Published, Result,
    RunId, State, Step, rules,
};

use super::Transaction;
use super::append::Head;
use super::schema::{
    CallRow, ItemRow, Node, NodePlace, Row, RunNode, RunRow, StateRow, StepRow, StoredContent,
    Timeline, missing_row,
};

impl Transaction<'_> {
    pub(super) fn step(&mut self, lease: Lease, step: &Step) -> Result<Option<Published>> {
        rules::step::check(step)?;
        let run = self.leased(lease)?;
        let content = rules::step::content(step);
        let known = run.steps.get(step.no as usize);
        if let Some(known) = known.filter(|known| known.content == content) {
            return Ok(known.published);
        }
        rules::lease::running(run.id, run.state)?;
        rules::lease::next_step(run.id, run.next_step, step.no)?;
        rules::lease::next_events(run.id, run.next_event, step.events.as_ref())?;
        if step.node.is_some() {
            self.check_unmoved(run)?;
        }
        for approval in &step.approvals {
            self.check_new_approval(approval.id)?;
        }
        let first = run.last_item() + 1;
        let items = self.items(run.id, first, &step.items)?;
        let said = rules::items::after(run.last_item(), items.len())?;
        rules::items::after(said, step.calls.len())?;

        let id = run.id;
        let thread = run.thread;
        let said_anything = !items.is_empty();
        self.put(id, items);
        self.dequeue(thread, &step.dequeue);
        for approval in &step.approvals {
            self.insert_approval(thread, id, approval);
        }
        let now = self.now;
        let run = self.run_mut(id)?;
        run.steps.push(StepRow {
            first,
            items: said + 1 - first,
            note: step.note.clone(),
            node: None,
            content,
            published: None,
        });
        for (position, call) in (0..).zip(&step.calls) {
            let approval = step.approvals.iter().find(|one| one.position == position);
            let result = said + 1 + position;
            let approval = approval.map(|approval| approval.id);
            run.calls.push(CallRow {
                approval,
                ..call_row(step.no, position, call, lease.epoch, result)
            });
            run.items.push(None);
            run.unanswered += 1;
        }
        run.add_events(step.events.as_ref());
        run.next_step = step.no + 1;
        run.progress = now;
        let Some(node) = &step.node else {
            return Ok(None);
        };
        let end = if said_anything {
            said
        } else {
            run.last_of_steps()
        };
        let published = self.publish_items(id, step.no, end, node.state.as_ref(), Head::ByRun)?;
        let made = NodeId {
            run: id,
            step: step.no,
        };
        let run = self.run_mut(id)?;
        if let Some(step) = run.steps.last_mut() {
            step.node = published.node.filter(|node| *node == made);
            step.published = Some(published);
        }
        Ok(Some(published))
    }

    pub(super) fn publish(&mut self, lease: Lease, publish: &Publish) -> Result<Published> {
        let run = self.leased(lease)?;
        if self.is_published(run, publish)?
            && let Some(published) = run.answer
        {
            return Ok(published);
        }
        rules::lease::running(run.id, run.state)?;
        rules::lease::next_step(run.id, run.next_step, publish.step)?;
        rules::lease::next_events(run.id, run.next_event, publish.events.as_ref())?;
        self.check_unmoved(run)?;
        let results = self.check_results(run, &publish.results)?;
        let first = run.last_item() + 1;
        let items = self.items(run.id, first, &publish.items)?;
        let last = rules::items::after(run.last_item(), items.len())?;
        rules::items::fingerprints(&publish.fingerprints, last)?;
        let end = match rules::publish::is_to_last_step(publish) {
            true => match run.has_steps() {
                true => run.last_of_steps(),
                false => 0,
            },
            false => {
                let filled = results.iter().map(|result| result.no);
                let added = if items.is_empty() { 0 } else { last };
                filled.fold(run.last_stored().max(added), ItemNo::max)
            }
        };

        let (id, thread) = (run.id, run.thread);
        self.store_results(id, results);
        self.put(id, items);
        self.tables.add_fingerprints(id, &publish.fingerprints);
        self.dequeue(thread, &publish.dequeue);
        let now = self.now;
        let run = self.run_mut(id)?;
        run.add_events(publish.events.as_ref());
        run.next_step = publish.step + 1;
        run.note.clone_from(&publish.note);
        run.progress = now;
        let state = publish.state.as_ref();
        let published = self.publish_items(id, publish.step, end, state, Head::ByRun)?;
        let state = rules::publish::state_of(publish.ending);
        self.settle(id, state)?;
        if publish.ending == Ending::Cancelled {
            self.withdraw(id);
        }
        self.run_mut(id)?.answer = Some(published);
        Ok(published)
    }

    /// Whether a run was ended by this very publication.
    fn is_published(&self, run: &RunRow, publish: &Publish) -> Result<bool> {
        let count = u32::try_from(publish.items.len()).unwrap_or(u32::MAX);
        let Some(before) = run.last_item().checked_sub(count) else {
            return Ok(false);
        };
        let thread = self.thread_of(run)?;
        let mut queued = thread.queue.iter().map(|queued| queued.no);
        if !rules::publish::is_same(&self.run_view(run)?, publish)
            || !self.has_items(run, before + 1, &publish.items)
            || queued.any(|no| publish.dequeue.contains(&no))
        {
            return Ok(false);
        }
        for result in &publish.results {
            if !self.is_stored(run, result).unwrap_or(false) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A leased run publishes on the head that it started from.
    fn check_unmoved(&self, run: &RunRow) -> Result<()> {
        if !run.leased {
            return Ok(());
        }
        let thread = self.thread_of(run)?;
        rules::begin::unmoved(&self.current_head(thread)?, run.version)
    }

    /// Make a node of the items up to `end` that are in none, and move the head if it is to move.
    pub(super) fn publish_items(
        &mut self,
        id: RunId,
        step: u32,
        end: ItemNo,
        state: Option<&State>,
        head: Head,
    ) -> Result<Published> {
        let run = self.tables.runs.get(&id).ok_or_else(|| missing_row(id))?;
        let thread = run.thread;
        let first_item = run.published_items() + 1;
        if end < first_item {
            let version = self.thread_of(run)?.version;
            let current = self.thread_of(run)?.head;
            let tip = run.tip();
            return Ok(Published {
                node: run.published().or(run.base_id),
                last: self.last_of(tip)?,
                moved: tip.is_some() && tip == current,
                version,
            });
        }
        let open = run.unanswered > 0;
        let before = run.tip();
        let made = NewNode {
            id: NodeId { run: id, step },
            first_item,
            last_item: end,
            open,
            created: self.now,
        };
        let at = self.insert_node(thread, before, made, state)?;
        let owner = self.tables.thread_row(thread)?;
        let leased = self.tables.runs.get(&id).is_some_and(|run| run.leased);
        let moves = head == Head::Moves
            || leased
            || (owner.moved_by == MovedBy::AnyRun
                && owner.head == before
                && owner.unsettled.is_none());
        if moves {
            self.move_head(thread, at);
        }
        let version = self.tables.thread_row(thread)?.version;
        let last = self.tables.node(at)?.last;
        if let Some(run) = self.tables.runs.get_mut(&id)
            && moves
        {
            run.version = version;
        }
        Ok(Published {
            node: Some(made.id),
            last,
            moved: moves,
            version,
        })
    }

    /// Store a node that continues another, in its timeline or in a new one.
    pub(super) fn insert_node(
        &mut self,
        thread: Row,
        before: Option<NodePlace>,
        new: NewNode,
        state: Option<&State>,
    ) -> Result<NodePlace> {
        let id = new.id;
        self.fill_gaps(id.run, new.first_item, new.last_item);
        let tenant = &self.tables.tenant;
        let run = self
            .tables
            .runs
            .get(&id.run)
            .ok_or_else(|| missing_row(id.run))?;
        let parent = before.map(|at| self.tables.node(at)).transpose()?;
        let state = match state {
            None => parent.and_then(|parent| parent.state.clone()),
            Some(state) => Some(Arc::new(StateRow {
                at: id,
                digest: digest::state(tenant, id.run, id.step, &state.to_json()),
                state: state.clone(),
                left: None,
            })),
        };
        let mut tokens = parent.map_or(0, |parent| parent.tokens);
        let mut digests = Vec::new();
        for no in new.first_item..=new.last_item {
            let item = run
                .item(no)
                .ok_or_else(|| missing_row(format_args!("item {no} of {}", id.run)))?;
            tokens += u64::from(self.tables.tokens(item));
            digests.push(item.digest);
        }
        let first = parent.map_or(0, |parent| parent.last) + 1;
        let fields = NodeFields {
            id,
            first,
            last: first + u64::from(new.last_item - new.first_item),
            first_item: new.first_item,
            flags: u8::from(new.open),
            tokens,
        };
        let before_digest = parent.map(|parent| &parent.digest);
        let state_digest = state.as_ref().map(|state| &state.digest);
        let digest = digest::node(tenant, before_digest, &fields, state_digest, digests);
        let node = Node {
            row: self.shared.row(),
            id,
            first,
            last: fields.last,
            first_item: new.first_item,
            open: new.open,
            tokens,
            state,
            created: new.created,
            digest,
            checked: Cell::new(false),
        };
        let joins = before.filter(|at| {
            let timeline = self.tables.timelines.get(&at.timeline);
            timeline.is_some_and(|timeline| {
                timeline.thread == thread
                    && timeline
                        .nodes
                        .last()
                        .is_some_and(|last| last.first == at.first)
            })
        });
        let timeline = match joins {
            Some(at) => at.timeline,
            None => self.new_timeline(thread, before, first - 1),
        };
        let at = NodePlace { timeline, first };
        if let Some(timeline) = self.tables.timelines.get_mut(&timeline) {
            timeline.nodes.push(node);
        }
        if let Some(run) = self.tables.runs.get_mut(&id.run) {
            run.nodes.push(RunNode {
                step: id.step,
                at,
                first_item: new.first_item,
                last_item: new.last_item,
            });
        }
        Ok(at)
    }

    fn new_timeline(&mut self, thread: Row, parent: Option<NodePlace>, fork: u64) -> Row {
        let row = self.shared.row();
        if let Some(parent) = parent {
            self.tables.pin(parent);
        }
        let timeline = Timeline {
            thread,
            parent,
            fork,
            nodes: Vec::new(),
            pins: std::collections::BTreeMap::new(),
            released: false,
        };
        self.tables.timelines.insert(row, timeline);
        if let Some(thread) = self.tables.threads.get_mut(&thread) {
            thread.timelines.insert(row);
        }
        row
    }

    /// Places in a range that were kept in vain become gaps.
    fn fill_gaps(&mut self, run: RunId, first: ItemNo, last: ItemNo) {
        let tenant = &self.tables.tenant;
        let Some(row) = self.tables.runs.get_mut(&run) else {
            return;
        };
        for (no, slot) in (1..=last).zip(&mut row.items).skip(first as usize - 1) {
            if slot.is_none() {
                *slot = Some(ItemRow {
                    what: StoredContent::Gap,
                    digest: digest::gap(tenant, ItemRef { run, no }),
                    refs: 0,
                });
            }
        }
    }
}

/// A node that is to be stored.
#[derive(Clone, Copy)]
pub(super) struct NewNode {
    pub(super) id: NodeId,
    pub(super) first_item: ItemNo,
    pub(super) last_item: ItemNo,
    pub(super) open: bool,
    pub(super) created: u64,
}

fn call_row(step: u32, position: u32, call: &PlannedCall, epoch: u32, result: ItemNo) -> CallRow {
    CallRow {
        step,
        position,
        call: call.call.clone(),
        tool: call.tool.clone(),
        effect: call.effect,
        state: call.state,
        intent: epoch,
        result,
        approval: None,
        taken_by: None,
        ends: false,
    }
}

impl RunRow {
    /// The last item that is stored, not merely kept.
    fn last_stored(&self) -> ItemNo {
        let stored = |no: &ItemNo| self.item(*no).is_some();
        (1..=self.last_item()).rev().find(stored).unwrap_or(0)
    }

    /// The last item of the last step that has any, or of the input.
    fn has_steps(&self) -> bool {
        self.steps.iter().any(|step| step.items > 0)
    }

    fn last_of_steps(&self) -> ItemNo {
        let step = self.steps.iter().rev().find(|step| step.items > 0);
        step.map_or(self.inputs, |step| step.first + step.items - 1)
    }
}
