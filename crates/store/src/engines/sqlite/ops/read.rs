//! Opening threads and reading their messages.

use rusqlite::Connection;

use crate::cursor::Seal;
use crate::digest::{self, Digest};
use crate::engines::sqlite::cache::{Caches, Ended, Head, Line, StateAt, lock};
use crate::engines::sqlite::events::Ends;
use crate::engines::sqlite::fault::{Done, corrupt, invalid, missing};
use crate::engines::sqlite::ops::opening::{Found, found};
use crate::engines::sqlite::rows::branch::{Branch, journal_entries, run_items};
use crate::engines::sqlite::rows::find::{aliases, line, place, shown_thread, unsettled};
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::rows::{NodeRow, ThreadRow, flag, num};
use crate::trials;
use crate::{
    At, Cursor, Entry, Error, Increment, Millis, NodeRef, Opened, Page, Position, RunId, Span,
    State, TenantScope, ThreadId, Version, window,
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
    fn branch(&self, node: &NodeRow) -> Done<Branch<'a>> {
        Branch::to(self.conn, self.caches, self.scope.tenant(), node)
    }

    /// Open a thread or the branch that ends in a node.
    pub(crate) fn open(&self, at: &At, window: usize) -> Done<Opened> {
        let found = found(self.conn, self.tenant, at, self.now)?;
        self.remember(at, &found);
        let opened = self.opened(&found, window);
        opened.map_err(|stop| stop.in_thread(&found.thread.id))
    }

    fn opened(&self, found: &Found, window: usize) -> Done<Opened> {
        let Found { thread, node, .. } = found;
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
                Ends::default().tell(self.conn, &mut run)?;
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
            true => crate::engines::sqlite::ops::line::first(self.conn, thread.row, self.now)?,
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
        })
    }

    /// Remember what a run that begins here will ask for.
    fn remember(&self, at: &At, found: &Found) {
        let thread = &found.thread;
        match (at, self.tenant, &found.node) {
            (At::Thread(id), Some(tenant), _) => {
                let head = Head {
                    thread: thread.row,
                    version: thread.version,
                    base: thread.base(),
                };
                lock(&self.caches.heads).insert((tenant, id.clone()), head);
            }
            (At::Node(NodeRef::Run(run)), Some(tenant), Some(node)) => {
                let ended = Ended {
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

    fn tail(&self, node: &NodeRow, limit: usize) -> Done<Vec<Entry>> {
        let branch = self.branch(node)?;
        let (entries, _) = window::before(node.last, limit, |lo, hi| branch.fetch(lo, hi))?;
        Ok(entries)
    }

    fn unsent(&self, node: &NodeRow) -> Done<Vec<Entry>> {
        let run = (node.run, node.id.run);
        let from = node.item_hi() + 1;
        let tenant = self.scope.tenant();
        let items = run_items(self.conn, tenant, run, from, u32::MAX, usize::MAX >> 1)?;
        journal_entries(&items)
    }

    /// The state that a node has.
    pub(crate) fn state(&self, at: StateAt) -> Done<State> {
        if let Some(state) = lock(&self.caches.states).get(&at.digest) {
            return Ok(state);
        }
        let sql = "SELECT s.body, s.digest, r.id FROM state s CROSS JOIN run r ON r.run=s.run WHERE s.run=? AND s.step=?";
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
    pub(crate) fn read(&self, at: &At, span: Span, limit: usize) -> Done<Page> {
        let (thread, node) = place(self.conn, self.tenant, at, self.now)?;
        let page = self.page(node, span, limit);
        page.map_err(|stop| stop.in_thread(&thread.id))
    }

    fn page(&self, node: Option<NodeRow>, span: Span, limit: usize) -> Done<Page> {
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
        let (entries, more) = match span {
            Span::Tail => window::before(node.last, limit, fetch)?,
            Span::After(position) => window::after(position, node.last, limit, fetch)?,
            Span::Before(position) => {
                let last = end_before(&branch, position)?;
                window::before(last, limit, fetch)?
            }
        };
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
    ) -> Done<Increment> {
        let found = self.new_after(id, after, limit);
        found.map_err(|stop| stop.in_thread(id))
    }

    fn new_after(&self, id: &ThreadId, after: Option<&Cursor>, limit: usize) -> Done<Increment> {
        let thread = shown_thread(self.conn, self.tenant, id)?;
        if let Some(cursor) = after
            && trials::unless("cursor-unsealed", !self.seal.fits(self.scope, id, cursor))
        {
            return Err(Error::BadCursor { thread: id.clone() }.into());
        }
        let position = after.map_or(0, |cursor| cursor.position);
        let Some(head) = &thread.head else {
            return Ok(Increment {
                entries: Vec::new(),
                next: self.seal.cursor(self.scope, id, 0, 0),
                more: false,
            });
        };
        let branch = self.branch(head)?;
        if let Some(cursor) = after.filter(|cursor| cursor.position > 0) {
            let common = self.common(&branch, cursor)?;
            if trials::unless("cursor-moved", common < cursor.position) {
                return Err(Error::CursorMoved {
                    thread: id.clone(),
                    common,
                }
                .into());
            }
        }
        let (entries, more) =
            window::after(position, head.last, limit, |lo, hi| branch.fetch(lo, hi))?;
        let end = entries.last().map_or(position, |entry| entry.last);
        Ok(Increment {
            entries,
            next: self.stand(&thread, &branch, end),
            more,
        })
    }

    /// A cursor after a position of a branch.
    fn stand(&self, thread: &ThreadRow, branch: &Branch<'_>, position: Position) -> Cursor {
        let timeline = match position {
            0 => 0,
            _ => at_position(&branch.line, position),
        };
        self.seal.cursor(self.scope, &thread.id, timeline, position)
    }

    /// The last position that a cursor's branch shares with another.
    fn common(&self, branch: &Branch<'_>, cursor: &Cursor) -> Done<Position> {
        let known = one(
            self.conn,
            "SELECT 1 FROM timeline WHERE tl=?",
            [cursor.timeline],
            |_| Ok(()),
        )?;
        if known.is_none() {
            return Ok(0);
        }
        let own = line(self.conn, self.caches, cursor.timeline)?;
        // Where the head's branch leaves each of its timelines.
        let mut ends = std::collections::HashMap::new();
        let mut at = Some(&branch.line);
        let mut end = branch.last;
        while let Some(line) = at {
            ends.insert(line.tl, end);
            end = end.min(line.fork);
            at = line.parent.as_ref();
        }
        let mut at = Some(&own);
        let mut end = cursor.position;
        while let Some(line) = at {
            if let Some(shared) = ends.get(&line.tl) {
                return Ok(end.min(*shared));
            }
            end = end.min(line.fork);
            at = line.parent.as_ref();
        }
        Ok(0)
    }

    /// A cursor of the caller's choice.
    pub(crate) fn cursor(&self, id: &ThreadId, position: Position) -> Done<Cursor> {
        let thread = shown_thread(self.conn, self.tenant, id)?;
        let last = thread.head.as_ref().map_or(0, |head| head.last);
        if trials::unless("cursor-beyond", position > last) {
            let why = format!("thread {id} ends at {last}, before {position}");
            return Err(invalid("a position", why));
        }
        match &thread.head {
            Some(head) => Ok(self.stand(&thread, &self.branch(head)?, position)),
            None => Ok(self.seal.cursor(self.scope, id, 0, 0)),
        }
    }

    /// The row and the version of a thread.
    pub(crate) fn version(&self, id: &ThreadId) -> Done<(i64, Version)> {
        let sql = "SELECT thread, version FROM thread WHERE tenant=? AND id=? AND stage=0";
        let key = (self.tenant.unwrap_or(0), id.as_str());
        let found = one(self.conn, sql, key, |row| {
            Ok((row.get(0)?, Version(num(row.get(1)?))))
        })?;
        found.ok_or_else(|| missing("thread", id))
    }
}

/// The timeline that holds a position.
fn at_position(line: &std::sync::Arc<Line>, position: Position) -> i64 {
    let mut line = line;
    while trials::unless("line-position", position <= line.fork) {
        match &line.parent {
            Some(parent) => line = parent,
            None => break,
        }
    }
    line.tl
}

/// The end of the last message that is whole before a position.
fn end_before(branch: &Branch<'_>, position: Position) -> Done<Position> {
    if position > branch.last {
        return Ok(branch.last);
    }
    if position == 0 {
        return Ok(0);
    }
    // Back to where a message starts for certain, then see whether one goes over the position.
    let mut first = position;
    let mut items = branch.fetch(position, position)?;
    while first > 1
        && items
            .first()
            .is_some_and(|item| item.kind != crate::ItemKind::Message)
    {
        let lo = first.saturating_sub(32).max(1);
        let mut earlier = branch.fetch(lo, first - 1)?;
        earlier.append(&mut items);
        items = earlier;
        first = lo;
    }
    let entries = crate::item::located(&items, first)?;
    let across = entries
        .iter()
        .find(|entry| entry.first < position && entry.last >= position);
    Ok(across.map_or(position, |entry| entry.first) - 1)
}
