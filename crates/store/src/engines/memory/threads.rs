//! Threads: making, forking, changing and listing them, and their queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use throughline_model::json::RawJson;
use tokio::sync::watch;

use crate::{
    Alias, Fork, Listing, Millis, NewThread, Opened, PageToken, QueueNo, Queued, Result, Thread,
    ThreadFilter, ThreadId, ThreadPatch, Tip, Version, rules,
};

use super::schema::{NodePlace, Row, RunRow, Stage, TenantTables, ThreadRow, missing_row};
use super::{MAX_READ, Transaction};
use crate::rules::exists;

impl Transaction<'_> {
    pub(super) fn open_or_create(&mut self, new: &NewThread, window: usize) -> Result<Opened> {
        let id = &new.id;
        match self.tables.names.get(id).copied() {
            Some(row) => {
                // A thread that is being imported has the name, but cannot be opened.
                self.tables.thread(id).map_err(|_| exists("thread", id))?;
                self.tables.check_aliases(&new.aliases, Some(row))?;
            }
            None => {
                self.tables.check_names(new)?;
                self.insert_thread(new, Stage::Visible);
            }
        }
        self.open(&crate::At::Thread(id.clone()), window)
    }

    pub(super) fn fork(&mut self, fork: &Fork) -> Result<Thread> {
        let (_, head) = self.find(&fork.from)?;
        let new = &fork.thread;
        if let Ok(made) = self.tables.thread(&new.id) {
            let thread = self.tables.thread_view(made, Aliases::ArgumentsDigest)?;
            let base = head.map(|head| self.tables.node(head)).transpose()?;
            let is_shared = made
                .head
                .is_some_and(|head| !made.timelines.contains(&head.timeline));
            if rules::threads::is_fork(&thread, is_shared, base.map(|base| base.id), fork) {
                return Ok(thread);
            }
        }
        self.tables.check_names(new)?;
        let row = self.insert_thread(new, Stage::Visible);
        if let Some(head) = head {
            self.tables.pin(head);
        }
        self.tables.change_thread(row, |thread| thread.head = head);
        let made = self.tables.thread_row(row)?;
        self.tables.thread_view(made, Aliases::ArgumentsDigest)
    }

    pub(super) fn patch(&mut self, id: &ThreadId, patch: &ThreadPatch) -> Result<Thread> {
        let thread = self.tables.thread(id)?;
        let row = thread.row;
        self.tables.check_aliases(&patch.add_aliases, Some(row))?;
        let before = self.tables.thread_view(thread, Aliases::ArgumentsDigest)?;
        for alias in &before.aliases {
            self.tables.aliases.remove(alias);
        }
        let after = rules::threads::patched(before, patch);
        for alias in &after.aliases {
            self.tables.aliases.insert(alias.clone(), row);
        }
        let new = after.clone();
        self.tables.change_thread(row, |thread| {
            thread.aliases = new.aliases.into_iter().collect();
            thread.title = new.title;
            thread.meta = new.meta;
            thread.settings = new.settings;
            thread.moved_by = new.moved_by;
            thread.keep = new.keep;
        });
        Ok(after)
    }

    pub(super) fn threads(
        &self,
        filter: &ThreadFilter,
        after: Option<PageToken>,
        limit: usize,
    ) -> Result<Listing<Thread>> {
        let limit = limit.min(MAX_READ);
        let before = after.map(|token| (token.key, token.row));
        let until = filter.touched_before.map(|time| (time, Row::MIN));
        let end = match (before, until) {
            (Some(before), Some(until)) => Bound::Excluded(before.min(until)),
            (Some(end), None) | (None, Some(end)) => Bound::Excluded(end),
            (None, None) => Bound::Unbounded,
        };
        let from = (filter.touched_from.unwrap_or(0), Row::MIN);
        if matches!(end, Bound::Excluded(end) if end <= from) {
            return Ok(Listing {
                found: Vec::new(),
                next: None,
            });
        }
        let mut found = Vec::new();
        let mut next = None;
        for (key, row) in self.tables.recent.range((Bound::Included(from), end)).rev() {
            let thread = self.tables.thread_row(*row)?;
            if !self.fits(thread, filter) {
                continue;
            }
            if found.len() == limit {
                // The page is full, and this one shows that there is another.
                return Ok(Listing { found, next });
            }
            found.push(self.tables.thread_view(thread, Aliases::LeftOut)?);
            next = Some(PageToken {
                key: *key,
                row: *row,
            });
        }
        Ok(Listing { found, next: None })
    }

    pub(super) fn enqueue(&mut self, id: &ThreadId, body: &RawJson) -> Result<QueueNo> {
        let row = self.tables.thread(id)?.row;
        let thread = self.tables.threads.get_mut(&row);
        let thread = thread.ok_or_else(|| missing_row(id))?;
        thread.last_queued += 1;
        thread.queue.push_back(Queued {
            no: thread.last_queued,
            body: body.clone(),
        });
        Ok(thread.last_queued)
    }

    pub(super) fn queue(&self, id: &ThreadId) -> Result<Vec<Queued>> {
        let thread = self.tables.thread(id)?;
        Ok(thread.queue.iter().cloned().collect())
    }

    /// Wait for a thread to change.
    pub(super) fn watch(&mut self, id: &ThreadId) -> Result<watch::Receiver<Version>> {
        let row = self.tables.thread(id)?.row;
        let thread = self.tables.threads.get_mut(&row);
        let thread = thread.ok_or_else(|| missing_row(id))?;
        let version = thread.version;
        let changes = thread
            .changes
            .get_or_insert_with(|| watch::Sender::new(version));
        Ok(changes.subscribe())
    }

    /// Make a thread that has said nothing; its names were checked.
    pub(super) fn insert_thread(&mut self, new: &NewThread, stage: Stage) -> Row {
        let row = self.shared.row();
        let thread = ThreadRow {
            row,
            id: new.id.clone(),
            stage,
            aliases: new.aliases.iter().cloned().collect(),
            title: new.title.clone(),
            meta: new.meta.clone(),
            settings: new.settings.clone(),
            moved_by: new.moved_by,
            keep: new.keep,
            head: None,
            version: Version(0),
            created: self.now,
            touched: self.now,
            unsettled: None,
            queue: VecDeque::new(),
            last_queued: 0,
            waiters: Vec::new(),
            timelines: BTreeSet::new(),
            runs: BTreeMap::new(),
            changes: None,
        };
        self.tables.names.insert(new.id.clone(), row);
        for alias in &thread.aliases {
            self.tables.aliases.insert(alias.clone(), row);
        }
        self.tables.index_thread(&thread);
        self.tables.threads.insert(row, thread);
        row
    }

    /// Move a thread's head.
    pub(super) fn move_head(&mut self, row: Row, to: NodePlace) {
        let now = self.now;
        self.tables.pin(to);
        let mut before = None;
        self.tables.change_thread(row, |thread| {
            before = thread.head.replace(to);
            thread.version.0 += 1;
            thread.touched = now;
            match &thread.changes {
                Some(changes) if changes.receiver_count() > 0 => {
                    changes.send_replace(thread.version);
                }
                // No caller waits any more: most threads need no channel.
                _ => thread.changes = None,
            }
        });
        if let Some(before) = before {
            self.tables.unpin(before);
        }
    }
}

/// Whether a thread is shown with its other names.
#[derive(Clone, Copy)]
pub(super) enum Aliases {
    ArgumentsDigest,
    LeftOut,
}

impl ThreadRow {
    /// When its time is over.
    fn expires(&self) -> Option<Millis> {
        Some(self.touched.saturating_add(self.keep?))
    }
}

impl TenantTables {
    /// Whether a new thread's names are free.
    pub(super) fn check_names(&self, new: &NewThread) -> Result<()> {
        if self.names.contains_key(&new.id) {
            return Err(exists("thread", &new.id));
        }
        self.check_aliases(&new.aliases, None)
    }

    /// Whether names are free, or belong to the thread that is to have them.
    fn check_aliases(&self, aliases: &[Alias], own: Option<Row>) -> Result<()> {
        aliases.iter().try_for_each(|alias| {
            rules::threads::alias(alias, self.aliases.get(alias).copied(), own)
        })
    }

    /// Change a thread, and where it stands in the orders of threads.
    pub(super) fn change_thread(&mut self, row: Row, change: impl FnOnce(&mut ThreadRow)) {
        let Some(mut thread) = self.threads.remove(&row) else {
            return;
        };
        self.recent.remove(&(thread.touched, row));
        if let Some(expires) = thread.expires() {
            self.expiring.remove(&(expires, row));
        }
        if let Stage::Importing(since) = thread.stage {
            self.importing.remove(&(since, row));
        }
        change(&mut thread);
        self.index_thread(&thread);
        self.threads.insert(row, thread);
    }

    fn index_thread(&mut self, thread: &ThreadRow) {
        match thread.stage {
            Stage::Visible => {
                self.recent.insert((thread.touched, thread.row));
                if let Some(expires) = thread.expires() {
                    self.expiring.insert((expires, thread.row));
                }
            }
            Stage::Importing(since) => {
                self.importing.insert((since, thread.row));
            }
            Stage::Deleted => {}
        }
    }

    pub(super) fn thread_view(&self, thread: &ThreadRow, aliases: Aliases) -> Result<Thread> {
        let aliases = match aliases {
            Aliases::ArgumentsDigest => thread.aliases.iter().cloned().collect(),
            Aliases::LeftOut => Vec::new(),
        };
        Ok(Thread {
            id: thread.id.clone(),
            aliases,
            title: thread.title.clone(),
            meta: thread.meta.clone(),
            settings: thread.settings.clone(),
            moved_by: thread.moved_by,
            keep: thread.keep,
            head: thread.head.map(|head| self.tip(head)).transpose()?,
            version: thread.version,
            created: thread.created,
            touched: thread.touched,
        })
    }

    /// A node as the end of a branch.
    pub(super) fn tip(&self, at: NodePlace) -> Result<Tip> {
        let node = self.node(at)?;
        let run = self.runs.get(&node.id.run);
        let run = run.ok_or_else(|| missing_row(node.id.run))?;
        Ok(Tip {
            node: node.id,
            last: node.last,
            tokens: node.tokens,
            open: node.open,
            unsent: run.unsent(node.id.step).next().is_some(),
        })
    }

    /// The thread's leased run that is not settled.
    pub(super) fn holder(&self, thread: &ThreadRow) -> Option<&RunRow> {
        self.runs.get(&thread.unsettled?)
    }
}
