//! Taking over threads from elsewhere, step by step, out of sight until the last.

use crate::digest;
use crate::{
    Import, ImportItem, ImportNode, ItemRef, Millis, NewItem, NewThread, NodeId, Purged, Result,
    RunKind, ThreadId, rules,
};

use super::items::room;
use super::publish::NewNode;
use super::schema::{Ended, ItemRow, NodeAt, Row, RunRow, Stage, ThreadRow, What, lost};
use super::threads::thread_row;
use super::{Desk, print};
use crate::rules::{exists, not_found};

impl Desk<'_> {
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
        if let Ok(thread) = self.imported(&new.id)
            && thread.created == created
            && thread.is_as(new)
        {
            return Ok(());
        }
        self.realm.check_names(new)?;
        let row = self.shared.row();
        let mut thread = thread_row(row, new, self.now, Stage::Importing(self.now));
        thread.created = created;
        self.realm.insert_thread(thread);
        Ok(())
    }

    /// A thread that is being imported.
    fn imported(&self, id: &ThreadId) -> Result<&ThreadRow> {
        let row = self.realm.names.get(id);
        let thread = row.and_then(|row| self.realm.threads.get(row));
        thread
            .filter(|thread| matches!(thread.stage, Stage::Importing(_)))
            .ok_or_else(|| not_found("import of thread", id))
    }

    fn import_node(&mut self, id: &ThreadId, new: &ImportNode) -> Result<()> {
        rules::import::check(new)?;
        let thread = self.imported(id)?.row;
        let print = print::import(&self.realm.tenant, new);
        let run = self.realm.runs.get(&new.node.run);
        if let Some(run) = run {
            if run.thread != thread {
                return Err(exists("run", run.id));
            }
            if run.ended.is_some_and(|ended| ended.print == print) {
                return Ok(());
            }
            rules::import::next(new, run.published(), run.next_step)?;
        }
        let parent = match new.parent {
            None => None,
            Some(parent) => Some(self.imported_node(thread, parent)?),
        };
        let first = run.map_or(0, RunRow::last_item);
        let items = self.imported_items(thread, first, new)?;
        let last = room(first, items.len())?;

        if run.is_none() {
            let mut run = self.new_run(new.node.run, thread, print);
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
        run.since = new.created;
        run.next_step = new.node.step.saturating_add(1);
        if run.kind == RunKind::Append {
            run.inputs = last;
        }
        run.ended = Some(Ended {
            epoch: run.epoch,
            print,
            published: None,
        });
        let now = self.now;
        self.realm
            .change_thread(thread, |thread| thread.stage = Stage::Importing(now));
        Ok(())
    }

    /// A node of the thread that is being imported.
    fn imported_node(&self, thread: Row, id: NodeId) -> Result<NodeAt> {
        let run = self.realm.runs.get(&id.run);
        let run = run.filter(|run| run.thread == thread);
        let node = run.and_then(|run| run.nodes.iter().rev().find(|node| node.step == id.step));
        node.map(|node| node.at)
            .ok_or_else(|| not_found("node", id))
    }

    fn imported_items(&self, thread: Row, before: u32, new: &ImportNode) -> Result<Vec<ItemRow>> {
        let tenant = &self.realm.tenant;
        let run = new.node.run;
        let mut rows: Vec<ItemRow> = Vec::with_capacity(new.items.len());
        for (no, item) in (before.saturating_add(1)..).zip(&new.items) {
            let at = ItemRef { run, no };
            let (what, digest) = match item {
                ImportItem::Said(NewItem::Again(of)) if of.run == run && of.no > before => {
                    // Something of this very node.
                    let place = (of.no - before) as usize - 1;
                    let of = match rows.get(place).map(|row| &row.what) {
                        Some(What::Said(_) | What::Redacted(..)) => *of,
                        Some(What::Again(first)) => *first,
                        Some(What::Gap) | None => {
                            return Err(not_found("item", format_args!("{} of {run}", of.no)));
                        }
                    };
                    (What::Again(of), digest::again(tenant, at, of))
                }
                ImportItem::Said(item) => {
                    rows.push(self.item(at, thread, item)?);
                    continue;
                }
                ImportItem::Redacted(left, redaction) => {
                    let left = left.clone().emptied();
                    let digest = digest::item(tenant, at, &left);
                    (What::Redacted(left, redaction.clone()), digest)
                }
                ImportItem::Gap => (What::Gap, digest::gap(tenant, at)),
            };
            rows.push(ItemRow {
                what,
                digest,
                refs: 0,
            });
        }
        Ok(rows)
    }

    fn import_finish(
        &mut self,
        id: &ThreadId,
        head: Option<NodeId>,
        touched: Millis,
    ) -> Result<()> {
        if let Ok(done) = self.realm.thread(id) {
            let node = done.head.map(|head| self.realm.node(head)).transpose()?;
            if node.map(|node| node.id) == head && done.touched == touched {
                return Ok(());
            }
            return Err(exists("thread", id));
        }
        let thread = self.imported(id)?.row;
        let head = match head {
            None => None,
            Some(head) => Some(self.imported_node(thread, head)?),
        };
        if let Some(head) = head {
            self.realm.pin(head);
        }
        self.realm.change_thread(thread, |thread| {
            thread.stage = Stage::Visible;
            thread.head = head;
            thread.touched = touched;
        });
        Ok(())
    }

    fn import_abort(&mut self, id: &ThreadId) -> Result<()> {
        if self.realm.thread(id).is_ok() {
            return Err(exists("thread", id));
        }
        // One that is not there was aborted before.
        let Ok(thread) = self.imported(id) else {
            return Ok(());
        };
        let row = thread.row;
        // Its rows were never visible. They go at once, so that the same runs can be
        // imported again; what else waits to be swept goes on waiting.
        let others = std::mem::take(&mut self.realm.sweep);
        self.bury(row);
        let mut unbounded = usize::MAX;
        self.realm.sweep(&mut unbounded, &mut Purged::default());
        self.realm.sweep = others;
        match self.realm.threads.contains_key(&row) {
            true => Err(lost(id)),
            false => Ok(()),
        }
    }
}
