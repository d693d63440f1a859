//! The writes that start something: begin a run, add items by hand, and how items are stored.

use std::sync::Arc;

use crate::digest;
use crate::rules;
use crate::rules::begin::{CurrentHead, Earlier, TakenCall};
use crate::{
    Anchor, Append, Begin, Begun, CallRef, CallState, Expects, Flush, Lease, Leasing, Mode,
    NewThread, Place, Published, QueueNo, Result, RunId, RunKind, RunState, Started, Version,
};

use super::items::room;
use super::schema::{BegunBy, Ended, NodeAt, Row, RunRow, Stage, ThreadRow, lost};
use super::threads::thread_row;
use super::{Desk, print};
use crate::rules::{exists, invalid};

/// Where a run that may begin starts.
struct Start<'a> {
    /// The thread to make first.
    new: Option<&'a NewThread>,
    thread: Row,
    base: Option<NodeAt>,
    version: Version,
    leased: bool,
}

impl Desk<'_> {
    pub(super) fn begin(&mut self, begin: &Begin) -> Result<Begun> {
        let keyed = self.known_key(begin.key.as_ref())?;
        let before = match self.realm.runs.contains_key(&begin.run) {
            true => self.begun_before(self.realm.live_run(begin.run)?, begin)?,
            false => None,
        };
        let found = self.realm.runs.contains_key(&begin.run);
        let same = found.then_some(before.is_some());
        match (
            rules::begin::earlier(begin.run, same, keyed)?,
            before,
            keyed,
        ) {
            (Earlier::Same, Some(started), _) => return Ok(Begun::Started(started)),
            (Earlier::ByKey, _, Some(run)) => {
                let run = self.realm.live_run(run)?;
                return Ok(Begun::Repeated(Box::new(self.run_view(run)?)));
            }
            _ => {}
        }
        // In this order: the thread, the calls it takes, then lease and head, then the node.
        self.check_anchor(&begin.at)?;
        for (place, call) in begin.takes.iter().enumerate() {
            self.check_taken(*call, &begin.takes[..place])?;
        }
        let start = self.start(begin)?;
        if let Some(expects) = &begin.expects {
            self.check_unchanged(start.thread, expects)?;
        }
        let items = self.items(begin.run, start.thread, 1, &begin.input)?;
        let inputs = room(0, items.len())?;
        rules::lease::next_events(begin.run, 0, begin.events.as_ref())?;

        let mut thread = start.thread;
        if let Some(new) = start.new {
            thread = self.shared.row();
            let row = thread_row(thread, new, self.now, Stage::Visible);
            self.realm.insert_thread(row);
        }
        let mut run = self.new_run(begin.run, thread, print::begin(&self.realm.tenant, begin));
        run.mode = begin.mode;
        run.leased = start.leased;
        run.version = start.version;
        run.begun.version = start.version;
        run.key = begin.key.clone();
        run.inputs = inputs;
        run.request = begin.request.as_ref().map(|request| {
            let digest = digest::request(request.get());
            let requests = &mut self.realm.requests;
            let shared = requests
                .entry(digest)
                .or_insert_with(|| Arc::new(request.clone()));
            Arc::clone(shared)
        });
        run.add_events(begin.events.as_ref());
        let started = Started {
            lease: Lease {
                run: begin.run,
                epoch: run.epoch,
            },
            version: run.version,
            base: self.last_of(start.base)?,
        };
        self.base_on(&mut run, start.base)?;
        self.shared
            .running
            .insert(run.row, (self.realm.scope.clone(), run.id));
        let leased = run.leased;
        self.insert_run(run);
        self.put(begin.run, items);
        for call in &begin.takes {
            self.take(*call, begin.run);
        }
        self.dequeue(thread, &begin.dequeue);
        if leased {
            self.take_turn(thread, begin.run, Place::Leave);
        }
        if let Some(thread) = self.realm.threads.get_mut(&thread)
            && leased
        {
            thread.unsettled = Some(begin.run);
        }
        self.shared.renew(self.me, self.until);
        Ok(Begun::Started(started))
    }

    /// Take messages out of a thread's queue.
    pub(super) fn dequeue(&mut self, thread: Row, numbers: &[QueueNo]) {
        if numbers.is_empty() {
            return;
        }
        if let Some(thread) = self.realm.threads.get_mut(&thread) {
            thread.queue.retain(|queued| !numbers.contains(&queued.no));
        }
    }

    /// The run that has a key, if the request is the same.
    pub(super) fn known_key(&self, key: Option<&crate::Idempotency>) -> Result<Option<RunId>> {
        let Some(key) = key else { return Ok(None) };
        let Some(run) = self.realm.keys.get(&key.key) else {
            return Ok(None);
        };
        let row = self.realm.live_run(*run)?;
        let digest = row.key.as_ref().map(|known| known.request);
        rules::begin::key(key, *run, digest)?;
        Ok(Some(*run))
    }

    /// The answer to a begin that was sent again, by the same process with the same content.
    fn begun_before(&self, run: &RunRow, begin: &Begin) -> Result<Option<Started>> {
        let print = print::begin(&self.realm.tenant, begin);
        if run.begun.owner != self.me || run.begun.print != print {
            return Ok(None);
        }
        // A lease of the first epoch, as it was; if another process took the run over, it is fenced.
        let lease = Lease {
            run: run.id,
            epoch: 1,
        };
        Ok(Some(Started {
            lease,
            version: run.begun.version,
            base: self.last_of(run.base)?,
        }))
    }

    fn check_anchor(&self, at: &Anchor) -> Result<()> {
        match at {
            Anchor::New { thread, .. } => self.realm.check_names(thread),
            Anchor::Head { thread, .. } => self.realm.thread(thread).map(drop),
            Anchor::Node(node) => self.realm.live_run(node.run()).map(drop),
        }
    }

    fn start<'a>(&self, begin: &'a Begin) -> Result<Start<'a>> {
        let run = begin.run;
        match &begin.at {
            Anchor::New { thread, leasing } => Ok(Start {
                new: Some(thread),
                thread: 0,
                base: None,
                version: Version(0),
                leased: *leasing == Leasing::Thread,
            }),
            Anchor::Head { thread, expected } => {
                let thread = self.realm.thread(thread)?;
                self.check_free(thread)?;
                self.check_turn(thread, run)?;
                self.check_version(thread, *expected)?;
                Ok(Start {
                    new: None,
                    thread: thread.row,
                    base: thread.head,
                    version: thread.version,
                    leased: true,
                })
            }
            Anchor::Node(node) => {
                let (thread, base) = self.node_of(*node)?;
                Ok(Start {
                    new: None,
                    thread: thread.row,
                    base: Some(base),
                    version: thread.version,
                    leased: false,
                })
            }
        }
    }

    /// No leased run of the thread is unsettled.
    pub(super) fn check_free(&self, thread: &ThreadRow) -> Result<()> {
        let holder = self.realm.holder(thread);
        let holder = holder.map(|run| (run.id, self.shared.state(run, self.now)));
        rules::begin::free(&thread.id, holder)
    }

    pub(super) fn check_version(&self, thread: &ThreadRow, expected: Version) -> Result<()> {
        let head = thread.head.map(|head| self.realm.node(head)).transpose()?;
        let current = CurrentHead {
            thread: &thread.id,
            version: thread.version,
            head: head.map(|node| node.id),
        };
        rules::begin::unmoved(&current, expected)
    }

    /// A thread is as the caller remembers it. One that is new always is.
    fn check_unchanged(&self, thread: Row, expects: &Expects) -> Result<()> {
        let Some(thread) = self.realm.threads.get(&thread) else {
            return Ok(());
        };
        let same = thread.settings == expects.settings && thread.queue.is_empty();
        rules::begin::unchanged(&thread.id, same)
    }

    fn check_taken(&self, at: CallRef, earlier: &[CallRef]) -> Result<()> {
        let run = self.realm.run(at.run).ok();
        let call = run.and_then(|run| run.call(at.step, at.position));
        let call = call.map(|call| TakenCall {
            state: Some(call.state),
            taken_by: call.taken_by,
        });
        rules::begin::take(at, call.as_ref(), earlier)
    }

    fn take(&mut self, at: CallRef, by: RunId) {
        let run = self.realm.runs.get_mut(&at.run);
        if let Some(call) = run.and_then(|run| run.call_mut(at.step, at.position)) {
            call.state = CallState::Taken;
            call.taken_by = Some(by);
            if let Some(approval) = call.approval {
                self.use_up(approval);
            }
        }
    }

    pub(super) fn append(&mut self, append: &Append) -> Result<Published> {
        let print = print::append(&self.realm.tenant, append);
        let keyed = self.known_key(append.key.as_ref())?;
        let before = match self.realm.runs.contains_key(&append.run) {
            true => self.realm.live_run(append.run)?.ended,
            false => None,
        };
        let found = self.realm.runs.contains_key(&append.run);
        let before = before.filter(|ended| ended.print == print);
        let same = found.then_some(before.is_some());
        match (
            rules::begin::earlier(append.run, same, keyed)?,
            before,
            keyed,
        ) {
            (Earlier::Same, Some(ended), _) => {
                return ended.published.ok_or_else(|| exists("run", append.run));
            }
            (Earlier::ByKey, _, Some(known)) => {
                let run = self.realm.live_run(known)?;
                let ended = run.ended.filter(|_| run.kind == RunKind::Append);
                return ended
                    .and_then(|ended| ended.published)
                    .ok_or_else(|| exists("run", known));
            }
            _ => {}
        }
        let thread = self.realm.thread(&append.thread)?;
        self.check_free(thread)?;
        self.check_turn(thread, append.run)?;
        if let Some(expected) = append.expected {
            self.check_version(thread, expected)?;
        }
        let (row, base, version) = (thread.row, thread.head, thread.version);
        if append.items.is_empty() {
            return Err(invalid("an append", "it has no items"));
        }
        let items = self.items(append.run, row, 1, &append.items)?;
        let count = room(0, items.len())?;

        let mut run = self.new_run(append.run, row, print);
        run.kind = RunKind::Append;
        run.state = RunState::Committed;
        run.owner = None;
        run.version = version;
        run.next_step = 1;
        run.inputs = count;
        run.key = append.key.clone();
        run.base = base;
        run.base_id = base
            .map(|base| self.realm.node(base))
            .transpose()?
            .map(|node| node.id);
        self.insert_run(run);
        self.put(append.run, items);
        let published =
            self.publish_items(append.run, 0, count, append.state.as_ref(), Head::Moves)?;
        if let Some(run) = self.realm.runs.get_mut(&append.run) {
            run.ended = Some(Ended {
                epoch: run.epoch,
                print,
                published: Some(published),
            });
        }
        Ok(published)
    }

    /// A run of this process, running, with nothing in it.
    pub(super) fn new_run(&mut self, id: RunId, thread: Row, print: digest::Digest) -> RunRow {
        RunRow {
            row: self.shared.row(),
            id,
            thread,
            kind: RunKind::Turn,
            mode: Mode::PerRun,
            state: RunState::Running,
            leased: false,
            epoch: 1,
            attempt: 0,
            owner: Some(self.me),
            base: None,
            base_id: None,
            pinned: false,
            version: Version(0),
            next_step: 0,
            next_event: 0,
            nodes: Vec::new(),
            cancelling: false,
            hidden: false,
            delivered: false,
            created: self.now,
            progress: self.now,
            worked_before: 0,
            since: self.now,
            key: None,
            note: None,
            request: None,
            inputs: 0,
            items: Vec::new(),
            steps: Vec::new(),
            calls: Vec::new(),
            unanswered: 0,
            flushes: Vec::new(),
            begun: BegunBy {
                owner: self.me,
                print,
                version: Version(0),
            },
            ended: None,
        }
    }

    /// Let a run continue a node, which stays as long as the run may need it.
    fn base_on(&mut self, run: &mut RunRow, base: Option<NodeAt>) -> Result<()> {
        let Some(base) = base else { return Ok(()) };
        run.base_id = Some(self.realm.node(base)?.id);
        run.base = Some(base);
        run.pinned = true;
        self.realm.pin(base);
        Ok(())
    }

    pub(super) fn insert_run(&mut self, run: RunRow) {
        if let Some(key) = &run.key {
            self.realm.keys.insert(key.key.clone(), run.id);
        }
        self.realm.run_order.insert(run.row, run.id);
        if let Some(thread) = self.realm.threads.get_mut(&run.thread) {
            thread.runs.insert(run.row, run.id);
        }
        self.realm.runs.insert(run.id, run);
    }

    /// The last position of a branch; 0 if there is none.
    pub(super) fn last_of(&self, at: Option<NodeAt>) -> Result<u64> {
        match at {
            None => Ok(0),
            Some(at) => Ok(self.realm.node(at)?.last),
        }
    }

    /// A thread that must be there, because something else says so.
    pub(super) fn thread_of(&self, run: &RunRow) -> Result<&ThreadRow> {
        self.realm
            .threads
            .get(&run.thread)
            .ok_or_else(|| lost(run.id))
    }
}

/// Who decides whether a publication moves the head.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// It does.
    Moves,
    /// The rules for the run.
    ByRun,
}

impl RunRow {
    pub(super) fn add_events(&mut self, events: Option<&Flush>) {
        if let Some(events) = events.filter(|events| events.count > 0) {
            self.next_event = events.end();
            self.flushes.push(events.clone());
        }
    }
}
