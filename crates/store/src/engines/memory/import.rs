//! Taking over threads from elsewhere, step by step, out of sight until the last.

use crate::digest;
use crate::rules::import::FoundRun;
use crate::{
    Import, ImportItem, ImportNode, ItemNo, ItemRef, Millis, NewThread, NodeId, Purged, Result,
    ThreadId, rules,
};

use super::Transaction;
use super::publish::NewNode;
use super::schema::{
    ItemRow, NodePlace, Row, RunNode, RunRow, Stage, StoredContent, ThreadRow, missing_row,
};
use super::threads::Aliases;
use crate::rules::{exists, not_found};

impl Transaction<'_> {
    pub(super) fn import(&mut self, import: &Import) -> Result<()> {
        match import {
            Import::Open { thread, created } => self.import_open(thread, *created),
            Import::Node { thread, node } => self.import_node(thread, node),
            Import::Finish {
                thread,
                head,
                touched,
            } => self.import_finish(thread, *head, *touched),
            Import::Abort { thread } => self.import_abort(thread),
        }
    }

    fn import_open(&mut self, new: &NewThread, created: Millis) -> Result<()> {
        if let Ok(thread) = self.imported(&new.id) {
            let has_nodes = !thread.timelines.is_empty();
            let thread = self.tables.thread_view(thread, Aliases::ArgumentsDigest)?;
            if rules::import::is_opened(&thread, has_nodes, new, created) {
                return Ok(());
            }
        }
        self.tables.check_names(new)?;
        let row = self.insert_thread(new, Stage::Importing(self.now));
        let thread = self.tables.threads.get_mut(&row);
        thread.ok_or_else(|| missing_row(&new.id))?.created = created;
        Ok(())
    }

    /// A thread that is being imported.
    fn imported(&self, id: &ThreadId) -> Result<&ThreadRow> {
        let row = self.tables.names.get(id);
        let thread = row.and_then(|row| self.tables.threads.get(row));
        thread
            .filter(|thread| matches!(thread.stage, Stage::Importing(_)))
            .ok_or_else(|| not_found("import of thread", id))
    }

    fn import_node(&mut self, id: &ThreadId, new: &ImportNode) -> Result<()> {
        rules::import::check(new)?;
        let thread = self.imported(id)?.row;
        let run = self.tables.runs.get(&new.node.run);
        if let Some(run) = run {
            if run.thread != thread {
                return Err(exists("run", run.id));
            }
            let node = run.nodes.iter().find(|node| node.step == new.node.step);
            let found = FoundRun {
                has_node: node.map(|node| self.has_imported(run, node, new)),
                last: run.published(),
                next_step: run.next_step,
            };
            if !rules::import::node(new, &found)? {
                return Ok(());
            }
        }
        let parent = match new.parent {
            None => None,
            Some(parent) => Some(self.imported_node(thread, parent)?),
        };
        let first = run.map_or(0, RunRow::last_item);
        let last = rules::items::after(first, new.items.len())?;
        let items = self.imported_items(first + 1, new);

        if run.is_none() {
            let mut run = self.new_run(new.node.run, thread);
            run.owner = None;
            run.created = new.begun;
            run.base = parent;
            run.base_id = new.parent;
            self.insert_run(run);
        }
        self.put(new.node.run, items);
        let node = NewNode {
            id: new.node,
            first_item: first + 1,
            last_item: last,
            open: new.open,
            created: new.created,
        };
        self.insert_node(thread, parent, node, new.state.as_ref())?;
        let run = self.run_mut(new.node.run)?;
        run.kind = new.kind;
        run.mode = new.mode;
        run.state = new.ended;
        run.note.clone_from(&new.note);
        run.hidden = new.hidden;
        run.progress = new.created;
        run.worked.since = new.begun;
        run.next_step = new.node.step.saturating_add(1);
        Ok(())
    }

    /// Whether a node has the items that are given.
    fn has_imported(&self, run: &RunRow, node: &RunNode, new: &ImportNode) -> bool {
        let stored = (node.first_item..=node.last_item).map(|no| run.item(no));
        let given = (node.first_item..).zip(&new.items).map(|(no, item)| {
            let at = ItemRef { run: run.id, no };
            Some(digest::imported(&self.tables.tenant, at, item))
        });
        stored.map(|item| item.map(|item| item.digest)).eq(given)
    }

    /// A node of the thread that is being imported.
    fn imported_node(&self, thread: Row, id: NodeId) -> Result<NodePlace> {
        let run = self.tables.runs.get(&id.run);
        let run = run.filter(|run| run.thread == thread);
        let node = run.and_then(|run| run.nodes.iter().rev().find(|node| node.step == id.step));
        node.map(|node| node.at)
            .ok_or_else(|| not_found("node", id))
    }

    fn imported_items(&self, first: ItemNo, new: &ImportNode) -> Vec<ItemRow> {
        let row = |(no, item): (ItemNo, &ImportItem)| {
            let run = new.node.run;
            ItemRow {
                what: match item {
                    ImportItem::Content(said) => StoredContent::Present(said.clone()),
                    ImportItem::Redacted(left, redaction) => {
                        StoredContent::Redacted(left.clone().emptied(), redaction.clone())
                    }
                    ImportItem::Gap => StoredContent::Gap,
                },
                digest: digest::imported(&self.tables.tenant, ItemRef { run, no }, item),
                refs: 0,
            }
        };
        (first..).zip(&new.items).map(row).collect()
    }

    fn import_finish(
        &mut self,
        id: &ThreadId,
        head: Option<NodeId>,
        touched: Millis,
    ) -> Result<()> {
        if let Ok(shown) = self.tables.thread(id) {
            let shown = self.tables.thread_view(shown, Aliases::LeftOut)?;
            return rules::import::finished(&shown, head, touched);
        }
        let thread = self.imported(id)?.row;
        let head = match head {
            None => None,
            Some(head) => Some(self.imported_node(thread, head)?),
        };
        if let Some(head) = head {
            self.tables.pin(head);
        }
        self.tables.change_thread(thread, |thread| {
            thread.stage = Stage::Visible;
            thread.head = head;
            thread.touched = touched;
        });
        Ok(())
    }

    fn import_abort(&mut self, id: &ThreadId) -> Result<()> {
        rules::import::abort(id, self.tables.thread(id).is_ok())?;
        // One that is not there was aborted before.
        let Ok(thread) = self.imported(id) else {
            return Ok(());
        };
        let row = thread.row;
        // Its rows were never visible. They go at once, so that the same runs can be
        // imported again; what else waits to be swept goes on waiting.
        let others = std::mem::take(&mut self.tables.sweep);
        self.delete_thread(row);
        let mut unbounded = usize::MAX;
        self.tables.sweep(&mut unbounded, &mut Purged::default());
        self.tables.sweep = others;
        match self.tables.threads.contains_key(&row) {
            true => Err(missing_row(id)),
            false => Ok(()),
        }
    }
}
