//! Opening threads and reading their messages.

use crate::engines::sqlite::ops::wait_queue;
use rusqlite::Connection;

use crate::cursor::Seal;
use crate::digest::{self, Digest};
use crate::engines::sqlite::cache::{CachedHead, Caches, EndedRun, StateAt, lock};
use crate::engines::sqlite::events::EventEnds;
use crate::engines::sqlite::op_error::{OpResult, corrupt, not_found};
use crate::engines::sqlite::ops::open::{OpenedRows, find};
use crate::engines::sqlite::rows::branch::{Branch, journal_entries, run_items, stretches};
use crate::engines::sqlite::rows::find::{
    aliases, redactions, shown_thread, thread_and_node, timeline_chain, unsettled,
};
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::rows::{NodeRow, flag, num};
use crate::rules::cursors;
use crate::{
    At, Cursor, Entry, Increment, Millis, NodeRef, Opened, Page, Position, RunId, Span, State,
    TenantScope, ThreadId, Version, window,
};

/// From so many bytes on a state is remembered, because reading it would cost more than a turn.
const LONG_STATE: usize = 4096;

/// What every read needs.
pub(crate) struct Reading<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) caches: &'a Caches,
    pub(crate) scope: &'a TenantScope,
    pub(crate) tenant: Option<i64>,
    pub(crate) now: Millis,
    pub(crate) seal: &'a Seal,
}

impl<'a> Reading<'a> {
    fn branch(&self, node: &NodeRow) -> OpResult<Branch<'a>> {
        Branch::to(self.conn, self.caches, self.scope.tenant(), node)
    }

    /// Open a thread or the branch that ends in a node.
    pub(crate) fn open(&self, at: &At, window: usize) -> OpResult<Opened> {
        let found = find(self.conn, self.tenant, at, self.now)?;
        self.remember(at, &found);
        let opened = self.opened(&found, window);
        opened.map_err(|error| error.in_thread(&found.thread.id))
    }

    fn opened(&self, found: &OpenedRows, window: usize) -> OpResult<Opened> {
        let OpenedRows { thread, node, .. } = found;
        let entries = match &node {
            Some(node) if window > 0 => self.tail(node, window)?,
            _ => Vec::new(),
        };
        let unsent = match &node {
            Some(node) if node.is_last && node.run_flags & flag::UNSENT != 0 => {
                self.unsent(node)?
            }
            _ => Vec::new(),
        };
        let state = match node.as_ref().and_then(|node| node.state) {
            Some(state) => self.state(state)?,
            None => State::default(),
        };
        let unsettled = match found.unsettled {
            true => unsettled(self.conn, thread.row)?,
            false => None,
        };
        let unsettled = match unsettled {
            Some(mut run) => {
                EventEnds::default().set_next_event(self.conn, &mut run)?;
                Some(run.run(self.now)?)
            }
            None => None,
        };
        let queued = match found.queued {
            true => {
                let sql = "SELECT count(*) FROM queue WHERE thread=?";
                one(self.conn, sql, [thread.row], |row| row.get(0))?
            }
            false => None,
        };
        let names = match found.named {
            true => aliases(self.conn, thread.row)?,
            false => Vec::new(),
        };
        let next = match found.awaited {
            true => wait_queue::first(self.conn, thread.row, self.now)?,
            false => None,
        };
        Ok(Opened {
            tip: node.as_ref().map(NodeRow::tip),
            thread: thread.thread(names)?,
            entries,
            unsent,
            state,
            unsettled,
            queued: queued.map_or(0, num),
            next: next.map(|next| next.run),
            redactions: redactions(self.conn, self.tenant)?,
        })
    }

    /// Remember what a run that begins here will ask for.
    fn remember(&self, at: &At, found: &OpenedRows) {
        let thread = &found.thread;
        match (at, self.tenant, &found.node) {
            (At::Thread(id), Some(tenant), _) => {
                let head = CachedHead {
                    thread: thread.row,
                    version: thread.version,
                    base: thread.base(),
                };
                lock(&self.caches.heads).insert((tenant, id.clone()), head);
            }
            (At::Node(NodeRef::Run(run)), Some(tenant), Some(node)) => {
                let ended = EndedRun {
                    run: node.run,
                    thread: thread.row,
                    thread_id: thread.id.clone(),
                    base: node.base(true),
                };
                lock(&self.caches.ended).insert((tenant, *run), ended);
            }
            _ => {}
        }
    }

    fn tail(&self, node: &NodeRow, limit: usize) -> OpResult<Vec<Entry>> {
        let branch = self.branch(node)?;
        let (entries, _) = window::before(node.last, limit, |lo, hi| branch.fetch(lo, hi))?;
        Ok(entries)
    }

    fn unsent(&self, node: &NodeRow) -> OpResult<Vec<Entry>> {
        let run = (node.run, node.id.run);
        let from = node.item_hi() + 1;
        let tenant = self.scope.tenant();
        let items = run_items(self.conn, tenant, run, from, u32::MAX, usize::MAX >> 1)?;
        journal_entries(&items)
    }

    /// The state that a node has.
    pub(crate) fn state(&self, at: StateAt) -> OpResult<State> {
        let known = at.left.unwrap_or(at.digest);
        if let Some(state) = lock(&self.caches.states).get(&known) {
            return Ok(state);
        }
        let sql = "SELECT s.body, coalesce(s.rest, s.digest), r.id FROM state s CROSS JOIN run r ON r.run=s.run WHERE s.run=? AND s.step=?";
        let found = one(self.conn, sql, (at.run, at.step), |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Digest>(1)?,
                RunId::from_bytes(row.get(2)?),
            ))
        })?;
        let Some((body, stored, run)) = found else {
            return Err(corrupt(
                format!("the state of step {}", at.step),
                "it is missing",
            ));
        };
        let place = || format!("the state of step {} of {run}", at.step);
        if digest::state(self.scope.tenant(), run, at.step, &body) != stored {
            return Err(corrupt(place(), "its digest does not fit its bytes"));
        }
        let state = State::from_json(&body).map_err(|error| corrupt(place(), error.to_string()))?;
        if body.len() >= LONG_STATE {
            lock(&self.caches.states).insert(stored, state.clone());
        }
        Ok(state)
    }

    /// Read messages of a branch.
    pub(crate) fn read(&self, at: &At, span: Span, limit: usize) -> OpResult<Page> {
        let (thread, node) = thread_and_node(self.conn, self.tenant, at, self.now)?;
        let page = self.page(node, span, limit);
        page.map_err(|error| error.in_thread(&thread.id))
    }

    fn page(&self, node: Option<NodeRow>, span: Span, limit: usize) -> OpResult<Page> {
        let Some(node) = node else {
            return Ok(Page {
                entries: Vec::new(),
                more: false,
                node: None,
                last: 0,
            });
        };
        let branch = self.branch(&node)?;
        let fetch = |lo, hi| branch.fetch(lo, hi);
        let (entries, more) = window::page(span, node.last, limit, fetch)?;
        Ok(Page {
            entries,
            more,
            node: Some(node.id),
            last: node.last,
        })
    }

    /// What is new after a cursor.
    pub(crate) fn increment(
        &self,
        id: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> OpResult<Increment> {
        let found = self.new_after(id, after, limit);
        found.map_err(|error| error.in_thread(id))
    }

    fn new_after(
        &self,
        id: &ThreadId,
        after: Option<&Cursor>,
        limit: usize,
    ) -> OpResult<Increment> {
        let thread = shown_thread(self.conn, self.tenant, id)?;
        let branch = match &thread.head {
            Some(head) => Some(self.branch(head)?),
            None => None,
        };
        let stretches = branch.as_ref().map_or_else(Vec::new, Branch::stretches);
        if let Some(cursor) = after {
            cursors::sealed(id, self.seal.fits(self.scope, id, cursor))?;
            cursors::unmoved(id, &stretches, &self.cursor_branch(cursor)?)?;
        }
        let position = after.map_or(0, |cursor| cursor.position);
        let (entries, more) = match &branch {
            Some(branch) => {
                let fetch = |lo, hi| branch.fetch(lo, hi);
                window::after(position, branch.last, limit, fetch)?
            }
            None => (Vec::new(), false),
        };
        let end = entries.last().map_or(position, |entry| entry.last);
        let timeline = cursors::holding(&stretches, end);
        Ok(Increment {
            entries,
            next: self.seal.cursor(self.scope, id, timeline, end),
            more,
        })
    }

    /// The branch that ends at a cursor.
    fn cursor_branch(&self, cursor: &Cursor) -> OpResult<Vec<cursors::Stretch>> {
        let end = (cursor.timeline, cursor.position);
        let sql = "SELECT 1 FROM timeline WHERE tl=?";
        match one(self.conn, sql, [cursor.timeline], |_| Ok(()))? {
            Some(()) => Ok(stretches(
                &timeline_chain(self.conn, self.caches, end.0)?,
                end.1,
            )),
            // The thread that had it was deleted.
            None => Ok(vec![end]),
        }
    }

    /// A cursor of the caller's choice.
    pub(crate) fn cursor(&self, id: &ThreadId, position: Position) -> OpResult<Cursor> {
        let thread = shown_thread(self.conn, self.tenant, id)?;
        let last = thread.head.as_ref().map_or(0, |head| head.last);
        cursors::within(id, position, last)?;
        let branch = match &thread.head {
            Some(head) => self.branch(head)?.stretches(),
            None => Vec::new(),
        };
        let timeline = cursors::holding(&branch, position);
        Ok(self.seal.cursor(self.scope, id, timeline, position))
    }

    /// The row and the version of a thread.
    pub(crate) fn version(&self, id: &ThreadId) -> OpResult<(i64, Version)> {
        let sql = "SELECT thread, version FROM thread WHERE tenant=? AND id=? AND stage=0";
        let key = (self.tenant.unwrap_or(0), id.as_str());
        let found = one(self.conn, sql, key, |row| {
            Ok((row.get(0)?, Version(num(row.get(1)?))))
        })?;
        found.ok_or_else(|| not_found("thread", id))
    }
}
