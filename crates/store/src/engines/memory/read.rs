//! Reading branches: windows, pages, increments.

use crate::item::located;
use crate::rules::cursors;
use crate::{
    At, Cursor, Error, Increment, Item, ItemKind, ItemRef, NodeRef, Opened, Page, Position, Result,
    Span, State, TenantScope, ThreadId, rules, window,
};

use super::schema::{
    ItemRow, Node, NodePlace, Row, RunRow, Stage, StoredContent, TenantTables, ThreadRow, Timeline,
    missing_row,
};
use super::threads::Aliases;
use super::{MAX_READ, Transaction};
use crate::rules::not_found;

impl Transaction<'_> {
    /// The thread and the node that a name stands for.
    pub(super) fn find(&self, at: &At) -> Result<(&ThreadRow, Option<NodePlace>)> {
        let thread = match at {
            At::Thread(id) => self.tables.thread(id)?,
            At::Alias(alias) => {
                let row = self.tables.aliases.get(alias);
                let thread = row.and_then(|row| self.tables.threads.get(row));
                thread
                    .filter(|thread| thread.stage == Stage::Visible)
                    .ok_or_else(|| not_found("thread", &alias.name))?
            }
            At::Node(node) => {
                let (thread, at) = self.node_of(*node)?;
                return Ok((thread, Some(at)));
            }
        };
        Ok((thread, thread.head))
    }

    /// The node that a name stands for, and the thread that it belongs to.
    pub(super) fn node_of(&self, node: NodeRef) -> Result<(&ThreadRow, NodePlace)> {
        let run = self.tables.run(node.run())?;
        let thread = self.thread_of(run)?;
        let Some(last) = run.nodes.last() else {
            return Err(Error::NotFinal {
                run: run.id,
                state: self.shared.state(run, self.now),
            });
        };
        match node {
            NodeRef::Run(_) => Ok((thread, last.at)),
            NodeRef::Node(id) => {
                let named = run.nodes.iter().rev().find(|node| node.step == id.step);
                let named = named.ok_or_else(|| not_found("node", id))?;
                Ok((thread, named.at))
            }
        }
    }

    pub(super) fn open(&self, at: &At, window: usize) -> Result<Opened> {
        let (thread, at) = self.find(at)?;
        let opened = self.opened(thread, at, window);
        opened.map_err(|damage| rules::in_thread(damage, &thread.id))
    }

    fn opened(&self, thread: &ThreadRow, at: Option<NodePlace>, window: usize) -> Result<Opened> {
        let tip = at.map(|at| self.tables.tip(at)).transpose()?;
        let mut opened = Opened {
            thread: self.tables.thread_view(thread, Aliases::ArgumentsDigest)?,
            tip,
            entries: Vec::new(),
            unsent: Vec::new(),
            state: State::default(),
            unsettled: None,
            queued: thread.queue.len() as u64,
            next: self.first_waiter(thread),
            redactions: self.tables.redactions,
        };
        if let Some(holder) = self.tables.holder(thread) {
            opened.unsettled = Some(self.run_view(holder)?);
        }
        if let (Some(at), Some(tip)) = (at, tip) {
            let node = self.tables.node(at)?;
            let fetch = |lo, hi| self.tables.fetch(at, lo, hi);
            (opened.entries, _) = window::before(tip.last, window.min(MAX_READ), fetch)?;
            opened.state = state_of(node);
            if tip.unsent {
                let run = self.tables.run_of(node)?;
                opened.unsent = self.journaled(run, run.unsent(node.id.step))?;
            }
        }
        Ok(opened)
    }

    pub(super) fn read(&self, at: &At, span: Span, limit: usize) -> Result<Page> {
        let (thread, at) = self.find(at)?;
        let page = self.page(at, span, limit);
        page.map_err(|damage| rules::in_thread(damage, &thread.id))
    }

    fn page(&self, at: Option<NodePlace>, span: Span, limit: usize) -> Result<Page> {
        let Some(at) = at else {
            return Ok(Page {
                entries: Vec::new(),
                more: false,
                node: None,
                last: 0,
            });
        };
        let node = self.tables.node(at)?;
        let last = node.last;
        let limit = limit.min(MAX_READ);
        let fetch = |lo, hi| self.tables.fetch(at, lo, hi);
        let (entries, more) = window::page(span, last, limit, fetch)?;
        Ok(Page {
            entries,
            more,
            node: Some(node.id),
            last,
        })
    }

    pub(super) fn increment(
        &self,
        scope: &TenantScope,
        id: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Increment> {
        let found = self.new_after(scope, id, after, limit);
        found.map_err(|damage| rules::in_thread(damage, id))
    }

    fn new_after(
        &self,
        scope: &TenantScope,
        id: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Increment> {
        let thread = self.tables.thread(id)?;
        let last = self.last_of(thread.head)?;
        let seal = &self.shared.seal;
        if let Some(cursor) = after {
            cursors::sealed(id, seal.fits(scope, id, cursor))?;
            let head = self
                .tables
                .stretches(thread.head.map(|head| (head.timeline, last)));
            let own = Some((cursor.timeline, cursor.position));
            cursors::unmoved(id, &head, &self.tables.stretches(own))?;
        }
        let mut increment = Increment {
            entries: Vec::new(),
            next: after.copied().unwrap_or(seal.cursor(scope, id, 0, 0)),
            more: false,
        };
        if let Some(head) = thread.head {
            let fetch = |lo, hi| self.tables.fetch(head, lo, hi);
            (increment.entries, increment.more) =
                window::after(increment.next.position, last, limit.min(MAX_READ), fetch)?;
        }
        if let Some(entry) = increment.entries.last() {
            increment.next = self.cursor(scope, id, entry.last)?;
        }
        Ok(increment)
    }

    pub(super) fn cursor(
        &self,
        scope: &TenantScope,
        id: &ThreadId,
        position: Position,
    ) -> Result<Cursor> {
        let thread = self.tables.thread(id)?;
        let last = self.last_of(thread.head)?;
        cursors::within(id, position, last)?;
        let head = thread.head.map(|head| (head.timeline, last));
        let timeline = cursors::holding(&self.tables.stretches(head), position);
        let seal = &self.shared.seal;
        Ok(seal.cursor(scope, id, timeline, position))
    }
}

/// The part of a timeline that belongs to a branch: from after its fork to `top`.
pub(super) struct Stretch<'a> {
    pub(super) row: Row,
    pub(super) timeline: &'a Timeline,
    pub(super) top: Position,
}

impl TenantTables {
    /// The timelines of a branch, from its end backwards.
    pub(super) fn branch(
        &self,
        tip: NodePlace,
    ) -> Result<impl Iterator<Item = Result<Stretch<'_>>>> {
        let mut next = Some((tip.timeline, self.node(tip)?.last));
        Ok(std::iter::from_fn(move || {
            let (row, top) = next.take()?;
            let timeline = match self.timeline(row) {
                Ok(timeline) => timeline,
                Err(error) => return Some(Err(error)),
            };
            next = timeline
                .parent
                .map(|parent| (parent.timeline, timeline.fork));
            Some(Ok(Stretch { row, timeline, top }))
        }))
    }

    /// The parts of the branch that ends at a position of a timeline, as far as they are known.
    fn stretches(&self, end: Option<cursors::Stretch>) -> Vec<cursors::Stretch> {
        std::iter::successors(end, |(row, last)| {
            let timeline = self.timelines.get(row)?;
            Some((timeline.parent?.timeline, timeline.fork.min(*last)))
        })
        .collect()
    }

    /// The items at the positions from `lo` to `hi` of a branch.
    fn fetch(&self, tip: NodePlace, lo: Position, hi: Position) -> Result<Vec<Item>> {
        let mut stretches = Vec::new();
        for stretch in self.branch(tip)? {
            let stretch = stretch?;
            let fork = stretch.timeline.fork;
            if fork < hi {
                stretches.push(stretch);
            }
            if fork < lo {
                break;
            }
        }
        let mut items = Vec::new();
        for stretch in stretches.iter().rev() {
            let nodes = &stretch.timeline.nodes;
            let from = nodes.partition_point(|node| node.last < lo);
            for node in &nodes[from..] {
                if node.first > hi.min(stretch.top) {
                    break;
                }
                self.check_node_once(stretch, node)?;
                let run = self.run_of(node)?;
                for position in node.first.max(lo)..=node.last.min(hi) {
                    let no = u64::from(node.first_item) + (position - node.first);
                    let no = u32::try_from(no).map_err(|_| missing_row("an item"))?;
                    let item = self.item_view(run, no);
                    items.push(item.map_err(|damage| damage.at_position(position))?);
                }
            }
        }
        Ok(items)
    }

    pub(super) fn run_of(&self, node: &Node) -> Result<&RunRow> {
        self.runs
            .get(&node.id.run)
            .ok_or_else(|| missing_row(node.id.run))
    }

    /// An item as it is read.
    pub(super) fn item_view(&self, run: &RunRow, no: u32) -> Result<Item> {
        let at = ItemRef { run: run.id, no };
        let missing = || Error::corrupt(at, "it is not there");
        let item = run.item(no).ok_or_else(missing)?;
        let again = match item.what {
            StoredContent::Repeat(of) => Some(of),
            StoredContent::Present(_) | StoredContent::Gap | StoredContent::Redacted(..) => None,
        };
        let (said, body) = match &self.said(item).ok_or_else(missing)?.what {
            StoredContent::Present(said) => (said, Ok(said.body.clone())),
            StoredContent::Redacted(left, redaction) => (left, Err(redaction.clone())),
            StoredContent::Repeat(_) => return Err(missing()),
            StoredContent::Gap => {
                return Ok(Item {
                    at,
                    again: None,
                    kind: ItemKind::Gap,
                    tokens: 0,
                    body: Ok([].into()),
                    source: 0,
                });
            }
        };
        Ok(Item {
            at,
            again,
            kind: said.kind,
            tokens: said.tokens,
            body,
            source: said.source,
        })
    }

    /// The item that holds what an item says.
    fn said<'a>(&'a self, item: &'a ItemRow) -> Option<&'a ItemRow> {
        match item.what {
            StoredContent::Repeat(of) => self.item(of),
            StoredContent::Present(_) | StoredContent::Gap | StoredContent::Redacted(..) => {
                Some(item)
            }
        }
    }

    /// What an item of a run is.
    pub(super) fn kind_of(&self, run: &RunRow, no: u32) -> Option<ItemKind> {
        match &self.said(run.item(no)?)?.what {
            StoredContent::Present(said) | StoredContent::Redacted(said, _) => Some(said.kind),
            StoredContent::Repeat(_) => None,
            StoredContent::Gap => Some(ItemKind::Gap),
        }
    }

    pub(super) fn tokens(&self, item: &ItemRow) -> u32 {
        match self.said(item).map(|item| &item.what) {
            Some(StoredContent::Present(said) | StoredContent::Redacted(said, _)) => said.tokens,
            Some(StoredContent::Repeat(_) | StoredContent::Gap) | None => 0,
        }
    }
}

/// The state at a node.
pub(super) fn state_of(node: &Node) -> State {
    let row = node.state.as_ref();
    row.map_or_else(State::default, |row| row.state.clone())
}

impl Transaction<'_> {
    /// Items of the journal as messages.
    pub(super) fn journaled(
        &self,
        run: &RunRow,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Vec<crate::Entry>> {
        let mut items = Vec::new();
        for no in numbers {
            self.tables.check_item(run, no)?;
            items.push(self.tables.item_view(run, no)?);
        }
        located(&items, 0)
    }
}
