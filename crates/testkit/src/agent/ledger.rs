//! Compares the reports of agents, which are kept outside of their processes, with the store.

use std::collections::{BTreeMap, BTreeSet};

use throughline_store::{
    At, Begin, Begun, Effect, Error, Idempotency, Leasing, Mode, NewItem, NewThread, NodeRef,
    RunId, RunState, Span, Store, TenantScope, ThreadId,
};

use super::{AgentEvent, Script};
use crate::record::{block_on, short, user, whole_runs};

/// What is known of one run.
#[derive(Clone, Debug, Default)]
struct Known {
    thread: Option<String>,
    mode: Option<Mode>,
    begun: bool,
    /// The step of the last remote call.
    remote: Option<u32>,
    steps: BTreeSet<u32>,
    results: BTreeSet<(u32, u32)>,
    events: u64,
    done: bool,
    closed: bool,
    failed: bool,
}

/// How often a tool was called for one call, and with which keys.
#[derive(Debug)]
struct Dispatched {
    effect: Effect,
    count: u64,
    keys: BTreeSet<String>,
}

/// The reports of all agents.
#[derive(Debug, Default)]
pub struct Ledger {
    runs: BTreeMap<RunId, Known>,
    keys: BTreeMap<String, RunId>,
    /// Tool calls.
    tools: BTreeMap<(RunId, u32, u32), Dispatched>,
    deleting: BTreeSet<String>,
    deleted: BTreeSet<String>,
    claimed: BTreeSet<RunId>,
    /// Runs and keys with reports since the last check.
    recent: BTreeSet<RunId>,
    /// Whether several processes report concurrently, so that the order of reports means nothing.
    unordered: bool,
    wrong: Vec<String>,
    audit: Audit,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Acknowledged operations.
    pub acknowledged: u64,
    /// Published runs.
    pub published: u64,
    /// Runs that were taken over.
    pub claimed: u64,
    /// Tool calls.
    pub dispatched: u64,
    /// Model calls.
    pub models: u64,
    /// Operations that were done, refused as documented, and failed because of the storage.
    pub operations: (u64, u64, u64),
    /// Requests that were repeated with their keys.
    pub retries: u64,
}

impl std::ops::AddAssign for Audit {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.published += other.published;
        self.claimed += other.claimed;
        self.dispatched += other.dispatched;
        self.models += other.models;
        self.operations.0 += other.operations.0;
        self.operations.1 += other.operations.1;
        self.operations.2 += other.operations.2;
        self.retries += other.retries;
    }
}

impl std::fmt::Display for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            acknowledged,
            published,
            claimed,
            dispatched,
            ..
        } = self;
        write!(
            f,
            "acknowledged={acknowledged} published={published} takeovers={claimed} dispatched={dispatched}"
        )
    }
}

impl Ledger {
    /// A ledger for several concurrent processes.
    pub fn unordered() -> Self {
        Self {
            unordered: true,
            ..Self::default()
        }
    }

    /// Calls of runs that were taken over.
    pub fn faulted_calls(&self) -> usize {
        let calls = self.tools.keys();
        calls.filter(|(run, ..)| self.claimed.contains(run)).count()
    }

    /// Records a line that an agent printed.
    pub fn line(&mut self, line: &str) {
        match line.parse() {
            Ok(event) => self.event(event),
            Err(error) => self.wrong.push(error),
        }
    }

    /// Records an event.
    pub fn event(&mut self, event: AgentEvent) {
        self.audit.acknowledged += u64::from(!matches!(
            event,
            AgentEvent::Ready
                | AgentEvent::Trying { .. }
                | AgentEvent::Model { .. }
                | AgentEvent::Tool { .. }
                | AgentEvent::Deleting { .. }
                | AgentEvent::Count { .. }
                | AgentEvent::Trouble { .. }
        ));
        match event {
            AgentEvent::Ready => {}
            AgentEvent::Trying { key, run } => {
                self.recent.insert(run);
                self.keys.insert(key, run);
            }
            AgentEvent::Begun { run, thread, mode } => {
                let known = self.runs.entry(run).or_default();
                known.begun = true;
                known.thread = Some(thread);
                known.mode = Some(mode);
            }
            AgentEvent::Claimed { run } => {
                self.audit.claimed += 1;
                self.claimed.insert(run);
            }
            AgentEvent::Model { run, step } => {
                self.audit.models += 1;
                self.check_not_repeated(run, step);
            }
            AgentEvent::RemoteCall { run, step } => {
                let known = self.run(run);
                known.remote = known.remote.max(Some(step));
            }
            AgentEvent::Step { run, step } => {
                self.run(run).steps.insert(step);
            }
            AgentEvent::Tool {
                run,
                step,
                position,
                effect,
                key,
            } => {
                self.audit.dispatched += 1;
                let fresh = || Dispatched {
                    effect,
                    count: 0,
                    keys: BTreeSet::new(),
                };
                let call = self
                    .tools
                    .entry((run, step, position))
                    .or_insert_with(fresh);
                call.count += 1;
                call.keys.insert(key);
            }
            AgentEvent::Result {
                run,
                step,
                position,
            } => {
                self.run(run).results.insert((step, position));
            }
            AgentEvent::Events { run, end } => {
                let known = self.run(run);
                known.events = known.events.max(end);
            }
            AgentEvent::Parked { .. } => {}
            AgentEvent::Done { run } => {
                self.audit.published += 1;
                self.run(run).done = true;
            }
            AgentEvent::Closed { run } => self.run(run).closed = true,
            AgentEvent::Failed { run } => self.run(run).failed = true,
            AgentEvent::Deleting { thread } => {
                self.deleting.insert(thread);
            }
            AgentEvent::Deleted { thread } => {
                self.deleted.insert(thread);
            }
            AgentEvent::Count {
                done,
                refused,
                failed,
            } => {
                self.audit.operations.0 += done;
                self.audit.operations.1 += refused;
                self.audit.operations.2 += failed;
            }
            AgentEvent::Trouble { what } => self.wrong.push(what),
        }
    }

    /// A model call is not made again once its step, or the handle of the call, is stored.
    fn check_not_repeated(&mut self, run: RunId, step: u32) {
        if self.unordered {
            return;
        }
        let known = self.run(run);
        let (is_stored, is_remote) = (known.steps.contains(&step), known.remote == Some(step));
        if is_stored {
            self.wrong
                .push(format!("step {step} of {run} was repeated"));
        }
        if is_remote {
            self.wrong.push(format!(
                "the remote call of step {step} of {run} was repeated"
            ));
        }
    }

    fn run(&mut self, run: RunId) -> &mut Known {
        self.recent.insert(run);
        self.runs.entry(run).or_default()
    }

    /// The counts.
    pub fn audit(&self) -> Audit {
        self.audit
    }

    /// Whether a thread is, or may be, deleted.
    fn is_gone(&self, known: &Known) -> bool {
        let thread = known.thread.as_ref();
        thread.is_none_or(|thread| self.deleting.contains(thread))
    }

    /// Checks that everything acknowledged is stored unchanged, and that no tool was called that
    /// should not have been.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn check(&mut self, store: &Store) -> Result<(), String> {
        self.recent = self.runs.keys().copied().collect();
        self.check_recent(store)
    }

    /// Checks the runs with reports since the last check.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn check_recent(&mut self, store: &Store) -> Result<(), String> {
        let recent = std::mem::take(&mut self.recent);
        if let Some(wrong) = self.wrong.first() {
            return Err(wrong.clone());
        }
        for ((run, step, position), called) in &self.tools {
            let Dispatched {
                effect,
                count,
                keys,
            } = called;
            let call = format!("call {position} of step {step} of {run}");
            if *effect == Effect::Once && *count > 1 {
                return Err(format!("{call} was dispatched {count} times"));
            }
            if keys.len() > 1 {
                return Err(format!("{call} had the keys {keys:?}"));
            }
        }
        for run in &recent {
            if let Some(known) = self.runs.get(run).filter(|known| !self.is_gone(known)) {
                check_run(store, *run, known)?;
            }
        }
        for thread in &self.deleted {
            let Ok(id) = ThreadId::new(thread) else {
                continue;
            };
            // Another process may have recreated it; its old contents must be gone.
            let read = block_on(store.read(&TenantScope::local(), &At::Thread(id), Span::Tail, 1));
            match read {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(format!("deleted thread {thread}: {error}")),
            }
        }
        Ok(())
    }

    /// Repeats every request with its key, once: the answer must be its run.
    ///
    /// # Errors
    ///
    /// A key that has another run, or none although it was acknowledged.
    pub fn retry_keys(&mut self, store: &Store) -> Result<(), String> {
        let scope = TenantScope::local();
        for (key, run) in std::mem::take(&mut self.keys) {
            let (key, run) = (&key, &run);
            let known = self.runs.get(run);
            if known.is_some_and(|known| self.is_gone(known)) {
                continue;
            }
            let begun = known.is_some_and(|known| known.begun);
            let fresh = store.ids().run();
            let begin = |request: [u8; 16]| Begin {
                key: Some(Idempotency {
                    key: key.clone(),
                    request,
                }),
                ..Begin::new(
                    fresh,
                    throughline_store::Anchor::New {
                        thread: NewThread::new(store.ids().thread()),
                        leasing: Leasing::Free,
                    },
                    NewItem::of(&[user("again")]),
                )
            };
            if !begun && block_on(store.run(&scope, *run)).is_err() {
                // The run was never created, so the key is free.
                continue;
            }
            self.audit.retries += 1;
            match block_on(store.begin(&scope, &begin(*run.as_bytes()))) {
                Ok(Begun::Repeated(found)) if found.id == *run => {}
                other => return Err(format!("{key} of {run} gave {other:?}")),
            }
            match block_on(store.begin(&scope, &begin([0; 16]))) {
                Err(Error::KeyReused { .. }) => {}
                other => return Err(format!("{key} with another request gave {other:?}")),
            }
        }
        Ok(())
    }
}

fn check_run(store: &Store, run: RunId, known: &Known) -> Result<(), String> {
    let scope = TenantScope::local();
    let said = |error: Error| format!("{run}: {error} ({error:?})");
    let journal = block_on(store.journal(&scope, run)).map_err(said)?;
    if let Some(step) = known
        .steps
        .iter()
        .find(|step| **step >= journal.run.next_step)
    {
        return Err(format!("step {step} of {run} is lost"));
    }
    if let Some(step) = known.remote
        && step >= journal.run.next_step
        && journal.remote != Some(Script::remote_call(run, step))
    {
        let found = &journal.remote;
        return Err(format!(
            "the remote call of step {step} of {run} is {found:?}"
        ));
    }
    for (step, position) in &known.results {
        let call = journal
            .calls
            .iter()
            .find(|call| (call.at.step, call.at.position) == (*step, *position));
        if call.is_none_or(|call| call.state != throughline_store::CallState::Done) {
            return Err(format!(
                "the result of call {position} of step {step} of {run} is lost"
            ));
        }
    }
    if journal.run.next_event < known.events {
        let (has, said) = (journal.run.next_event, known.events);
        return Err(format!("{run} has {has} events of {said}"));
    }
    check_events(store, run, journal.run.next_event)?;
    let state = journal.run.state;
    let fits = match (known.done, known.closed, known.failed) {
        (true, _, _) => state == RunState::Committed,
        (_, true, _) => state == RunState::Cancelled,
        (_, _, true) => state == RunState::Failed,
        (false, false, false) => true,
    };
    if !fits {
        return Err(format!("{run} is {state:?}, and {known:?}"));
    }
    if known.done {
        let texts = Script::of(run, journal.run.mode).texts();
        let at = At::Node(NodeRef::Run(run));
        let opened = block_on(store.open(&scope, &at, texts.len())).map_err(said)?;
        let found: Vec<String> = opened
            .entries
            .iter()
            .map(|entry| short(&entry.message))
            .collect();
        if found != texts {
            return Err(format!("{run} reads {found:?}, expected {texts:?}"));
        }
    }
    Ok(())
}

/// Checks that the events of a run are numbered without gaps, and that each has its number.
fn check_events(store: &Store, run: RunId, end: u64) -> Result<(), String> {
    let scope = TenantScope::local();
    let flushes = block_on(store.events(&scope, run, 0, 10_000))
        .map_err(|error| format!("{run}: {error}"))?;
    let mut next = 0;
    for flush in flushes {
        if flush.first() != next {
            return Err(format!("event {next} of {run} is missing"));
        }
        for event in flush.events().unwrap_or_default() {
            if event.body != next.to_string().into_bytes() {
                return Err(format!("event {next} of {run} is another one"));
            }
            next += 1;
        }
    }
    if next != end {
        return Err(format!("{run} has {next} events, and says {end}"));
    }
    Ok(())
}

impl Ledger {
    /// Checks what a reader sees of a thread: whole runs, each contiguous, and all or nothing of a
    /// `per_run` run.
    ///
    /// # Errors
    ///
    /// A partially visible run.
    pub fn poll(store: &Store, thread: &str, limit: usize) -> Result<usize, String> {
        let scope = TenantScope::local();
        let Ok(id) = ThreadId::new(thread) else {
            return Ok(0);
        };
        let page = match block_on(store.read(&scope, &At::Thread(id), Span::Tail, limit)) {
            Ok(page) => page,
            Err(Error::NotFound { .. }) => return Ok(0),
            Err(error) => return Err(format!("{thread}: {error}")),
        };
        let runs = whole_runs(&page.entries)?;
        let seen = runs.len();
        for (place, (run, texts)) in runs.into_iter().enumerate() {
            let hex = run.to_hex();
            let first = texts.first().map_or("", String::as_str);
            // The first run may be cut by the limit.
            let cut = place == 0 && page.more;
            let whole = cut || first.starts_with(&format!("{hex} ask"));
            let last = texts.last().map_or("", String::as_str);
            let ended = last.starts_with(&format!("{hex} answer"))
                || last.starts_with(&format!("{hex} closed"));
            if whole && ended {
                continue;
            }
            let found = block_on(store.run(&scope, run));
            let found = found.map_err(|error| format!("{run}: {error}"))?;
            if !whole || found.mode == Mode::PerRun {
                return Err(format!("{run} ({:?}) is visible as {texts:?}", found.state));
            }
        }
        Ok(seen)
    }
}
