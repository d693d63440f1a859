//! The writes that start something: begin a run, add items by hand, and how items are stored.

use crate::rules;
use crate::rules::begin::{CurrentHead, Earlier, FoundHead, TakenCall};
use crate::rules::lease::WorkedTime;
use crate::{
    AfterTurn, Anchor, Append, Begin, Begun, CallRef, CallState, Flush, Lease, Leasing, Mode,
    Published, QueueNo, Result, RunId, RunKind, RunState, Started, Version,
};

use super::Transaction;
use super::schema::{NodePlace, Row, RunRow, Stage, ThreadRow, missing_row};
use crate::rules::exists;

impl Transaction<'_> {
    pub(super) fn begin(&mut self, begin: &Begin) -> Result<Begun> {
        rules::begin::check(begin)?;
        self.shared.renew(self.me, self.until);
        let keyed = self.known_key(begin.key.as_ref())?;
        let known = self.known_run(begin.run)?;
        let same = known.map(|run| self.is_begun(run, begin)).transpose()?;
        match (rules::begin::earlier(begin.run, same, keyed)?, known) {
            (Earlier::Same, Some(run)) => return Ok(Begun::Started(self.started(run)?)),
            (Earlier::ByKey(run), _) => {
                let run = self.tables.live_run(run)?;
                return Ok(Begun::Repeated(Box::new(self.run_view(run)?)));
            }
            _ => {}
        }
        // In this order: where it starts, the calls that it takes, then the head.
        let (thread, base) = match &begin.at {
            Anchor::New { thread, .. } => {
                self.tables.check_names(thread)?;
                (None, None)
            }
            Anchor::Head { thread, .. } => {
                let thread = self.tables.thread(thread)?;
                (Some(thread), thread.head)
            }
            Anchor::Node(node) => {
                let (thread, base) = self.node_of(*node)?;
                (Some(thread), Some(base))
            }
        };
        for (place, call) in begin.takes.iter().enumerate() {
            self.check_taken(*call, &begin.takes[..place])?;
        }
        if let Some(thread) = thread {
            if let Anchor::Head { expected, .. } = begin.at {
                let head = self.found_head(thread)?;
                rules::begin::at_head(&head, begin.run, Some(expected))?;
            }
            if let Some(expects) = &begin.expects {
                let same = thread.settings == expects.settings && thread.queue.is_empty();
                rules::begin::unchanged(&thread.id, same)?;
            }
            rules::begin::unredacted(&thread.id, begin.redactions, self.tables.redactions)?;
        }
        let items = self.items(begin.run, 1, &begin.input)?;
        let inputs = rules::items::after(0, items.len())?;
        rules::items::fingerprints(&begin.fingerprints, inputs)?;

        let version = thread.map_or(Version(0), |thread| thread.version);
        let row = thread.map(|thread| thread.row);
        let thread = match &begin.at {
            Anchor::New { thread, .. } => self.insert_thread(thread, Stage::Visible),
            Anchor::Head { .. } | Anchor::Node(_) => row.ok_or_else(|| missing_row(begin.run))?,
        };
        let mut run = self.new_run(begin.run, thread);
        run.mode = begin.mode;
        run.leased = match begin.at {
            Anchor::New { leasing, .. } => leasing == Leasing::Thread,
            Anchor::Head { .. } => true,
            Anchor::Node(_) => false,
        };
        run.version = version;
        run.key = begin.key.clone();
        run.inputs = inputs;
        let request = begin.request.clone();
        run.request = request.map(|request| self.tables.shared_request(request));
        run.add_events(begin.events.as_ref());
        self.base_on(&mut run, base)?;
        let started = self.started(&run)?;
        self.shared
            .running
            .insert(run.row, (self.tables.scope.clone(), run.id));
        let leased = run.leased;
        self.insert_run(run);
        self.put(begin.run, items);
        self.tables.add_fingerprints(begin.run, &begin.fingerprints);
        for call in &begin.takes {
            self.take(*call, begin.run);
        }
        self.dequeue(thread, &begin.dequeue);
        if leased {
            self.take_turn(thread, begin.run, AfterTurn::Leave);
        }
        if let Some(thread) = self.tables.threads.get_mut(&thread)
            && leased
        {
            thread.unsettled = Some(begin.run);
        }
        Ok(Begun::Started(started))
    }

    /// Take messages out of a thread's queue.
    pub(super) fn dequeue(&mut self, thread: Row, numbers: &[QueueNo]) {
        if numbers.is_empty() {
            return;
        }
        if let Some(thread) = self.tables.threads.get_mut(&thread) {
            thread.queue.retain(|queued| !numbers.contains(&queued.no));
        }
    }

    /// The run that has a key, if the request is the same.
    pub(super) fn known_key(&self, key: Option<&crate::Idempotency>) -> Result<Option<RunId>> {
        let Some(key) = key else { return Ok(None) };
        let Some(run) = self.tables.keys.get(&key.key) else {
            return Ok(None);
        };
        let row = self.tables.live_run(*run)?;
        let digest = row.key.as_ref().map(|known| known.request);
        rules::begin::key(key, *run, digest)?;
        Ok(Some(*run))
    }

    /// A run that is there; [`Error::NotFound`](crate::Error::NotFound) if its thread is not visible.
    fn known_run(&self, id: RunId) -> Result<Option<&RunRow>> {
        match self.tables.runs.contains_key(&id) {
            true => self.tables.live_run(id).map(Some),
            false => Ok(None),
        }
    }

    /// Whether a run was begun like this by this process.
    fn is_begun(&self, run: &RunRow, begin: &Begin) -> Result<bool> {
        let own = run.owner == Some(self.me) && run.inputs as usize == begin.input.len();
        Ok(rules::begin::is_same(&self.run_view(run)?, own, begin)
            && self.has_items(run, 1, &begin.input))
    }

    /// What the owner of a run is answered with when it begins or claims it.
    pub(super) fn started(&self, run: &RunRow) -> Result<Started> {
        Ok(Started {
            lease: Lease {
                run: run.id,
                epoch: run.epoch,
            },
            version: run.version,
            base: self.last_of(run.base)?,
        })
    }

    /// What a run finds that starts at the head of a thread.
    fn found_head<'t>(&self, thread: &'t ThreadRow) -> Result<FoundHead<'t>> {
        Ok(FoundHead {
            current: self.current_head(thread)?,
            holder: self.holder(thread),
            first_waiter: self.first_waiter(thread),
        })
    }

    /// The unsettled leased run of a thread, and its state now.
    pub(super) fn holder(&self, thread: &ThreadRow) -> Option<(RunId, RunState)> {
        let run = self.tables.holder(thread)?;
        Some((run.id, self.shared.state(run, self.now)))
    }

    pub(super) fn current_head<'t>(&self, thread: &'t ThreadRow) -> Result<CurrentHead<'t>> {
        let head = thread.head.map(|head| self.tables.node(head)).transpose()?;
        Ok(CurrentHead {
            thread: &thread.id,
            version: thread.version,
            head: head.map(|node| node.id),
        })
    }

    fn check_taken(&self, at: CallRef, earlier: &[CallRef]) -> Result<()> {
        let run = self.tables.run(at.run).ok();
        let call = run.and_then(|run| run.call(at.step, at.position));
        let call = call.map(|call| TakenCall {
            state: Some(call.state),
            taken_by: call.taken_by,
        });
        rules::begin::take(at, call.as_ref(), earlier)
    }

    fn take(&mut self, at: CallRef, by: RunId) {
        let run = self.tables.runs.get_mut(&at.run);
        if let Some(call) = run.and_then(|run| run.call_mut(at.step, at.position)) {
            call.state = CallState::Taken;
            call.taken_by = Some(by);
            if let Some(approval) = call.approval {
                self.use_up(approval);
            }
        }
    }

    pub(super) fn append(&mut self, append: &Append) -> Result<Published> {
        rules::begin::check_append(append)?;
        let keyed = self.known_key(append.key.as_ref())?;
        let known = self.known_run(append.run)?;
        let same = known.map(|run| {
            run.kind == RunKind::Append
                && run.inputs as usize == append.items.len()
                && self.has_items(run, 1, &append.items)
        });
        let earlier = match rules::begin::earlier(append.run, same, keyed)? {
            Earlier::Nothing => None,
            Earlier::Same => known,
            Earlier::ByKey(run) => Some(self.tables.live_run(run)?),
        };
        if let Some(run) = earlier {
            let published = run.answer.filter(|_| run.kind == RunKind::Append);
            return published.ok_or_else(|| exists("run", run.id));
        }
        let thread = self.tables.thread(&append.thread)?;
        let head = self.found_head(thread)?;
        rules::begin::at_head(&head, append.run, append.expected)?;
        let (row, base, version) = (thread.row, thread.head, thread.version);
        let base_id = head.current.head;
        let items = self.items(append.run, 1, &append.items)?;
        let count = rules::items::after(0, items.len())?;

        let mut run = self.new_run(append.run, row);
        run.kind = RunKind::Append;
        run.state = RunState::Committed;
        run.owner = None;
        run.version = version;
        run.next_step = 1;
        run.inputs = count;
        run.key = append.key.clone();
        run.base = base;
        run.base_id = base_id;
        self.insert_run(run);
        self.put(append.run, items);
        let state = append.state.as_ref();
        let published = self.publish_items(append.run, 0, count, state, Head::Moves)?;
        self.run_mut(append.run)?.answer = Some(published);
        Ok(published)
    }

    /// A run of this process, running, with nothing in it.
    pub(super) fn new_run(&mut self, id: RunId, thread: Row) -> RunRow {
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
            worked: WorkedTime {
                before: 0,
                since: self.now,
            },
            key: None,
            note: None,
            request: None,
            fingerprints: Vec::new(),
            inputs: 0,
            items: Vec::new(),
            steps: Vec::new(),
            calls: Vec::new(),
            unanswered: 0,
            remote: None,
            flushes: Vec::new(),
            answer: None,
        }
    }

    /// Let a run continue a node, which stays as long as the run may need it.
    fn base_on(&mut self, run: &mut RunRow, base: Option<NodePlace>) -> Result<()> {
        let Some(base) = base else { return Ok(()) };
        run.base_id = Some(self.tables.node(base)?.id);
        run.base = Some(base);
        run.pinned = true;
        self.tables.pin(base);
        Ok(())
    }

    pub(super) fn insert_run(&mut self, run: RunRow) {
        if let Some(key) = &run.key {
            self.tables.keys.insert(key.key.clone(), run.id);
        }
        self.tables.run_order.insert(run.row, run.id);
        if let Some(thread) = self.tables.threads.get_mut(&run.thread) {
            thread.runs.insert(run.row, run.id);
        }
        self.tables.runs.insert(run.id, run);
    }

    /// The last position of a branch; 0 if there is none.
    pub(super) fn last_of(&self, at: Option<NodePlace>) -> Result<u64> {
        match at {
            None => Ok(0),
            Some(at) => Ok(self.tables.node(at)?.last),
        }
    }

    /// A thread that must be there, because something else says so.
    pub(super) fn thread_of(&self, run: &RunRow) -> Result<&ThreadRow> {
        self.tables
            .threads
            .get(&run.thread)
            .ok_or_else(|| missing_row(run.id))
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
