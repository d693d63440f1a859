//! Random threads with everything that a thread can have.

use throughline_model::json::RawJson;
use throughline_model::{CallId, MessageId};
use throughline_model::{Content, Message, Outcome, Output, Role, Source, ToolCall};
use throughline_store::{
    Alias, Anchor, Append, At, Begin, Begun, CallResult, CallState, Effect, Ending, Fork, ItemRef,
    Lease, Mode, MovedBy, NewItem, NewThread, NodeId, NodeRef, PlannedCall, Publish, Published,
    RunId, ServiceId, State, Step, StepNode, Store, TenantScope, ThreadId, Through,
};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, messages};

/// A store with threads in it.
pub(crate) struct Grown {
    pub(crate) store: Store,
    pub(crate) threads: Vec<ThreadId>,
    /// All nodes of all threads.
    pub(crate) nodes: Vec<NodeId>,
    /// Items that are published.
    items: Vec<ItemRef>,
    calls: usize,
}

fn scope() -> TenantScope {
    TenantScope::local()
}

impl Grown {
    /// A store with an empty thread.
    pub(crate) fn empty() -> Self {
        Self::empty_on("memory:")
    }

    fn empty_on(url: &str) -> Self {
        let store = block_on(Store::open(url)).unwrap();
        let thread = ThreadId::new("t").unwrap();
        let new = NewThread {
            title: Some("Ebb & flow".into()),
            meta: Some(RawJson::new(r#"{"team":"a","n":1.50}"#).unwrap()),
            keep: Some(1 << 40),
            aliases: vec![Alias::new("b", "2"), Alias::new("a", "1")],
            ..NewThread::new(thread.clone())
        };
        block_on(store.open_or_create(&scope(), &new, 0)).unwrap();
        Self {
            store,
            threads: vec![thread],
            nodes: Vec::new(),
            items: Vec::new(),
            calls: 0,
        }
    }

    /// A store in which some things have happened.
    pub(crate) fn new(rng: &mut Rng, size: usize) -> Self {
        Self::on("memory:", rng, size)
    }

    /// The same on another engine.
    pub(crate) fn on(url: &str, rng: &mut Rng, size: usize) -> Self {
        let mut grown = Self::empty_on(url);
        for _ in 0..1 + size / 3 {
            match rng.below(10) {
                0 if !grown.items.is_empty() => {
                    let item = *rng.pick(&grown.items);
                    // It may be a place without a result.
                    let _ = block_on(grown.store.redact(&scope(), item, "ada"));
                }
                1 if !grown.nodes.is_empty() && rng.chance(0.5) => {
                    let node = *rng.pick(&grown.nodes);
                    // It may be hidden already.
                    let _ = block_on(grown.store.hide(&scope(), node.run));
                }
                2 => grown.fork(rng),
                _ => grown.publish_something(rng),
            }
        }
        grown
    }

    /// One more publication somewhere.
    pub(crate) fn publish_something(&mut self, rng: &mut Rng) {
        let thread = rng.pick(&self.threads).clone();
        match rng.below(4) {
            0 => {
                let count = rng.range(1..=4);
                self.append(rng, &thread, count);
            }
            1 if !self.nodes.is_empty() => {
                let node = *rng.pick(&self.nodes);
                self.turn(rng, Anchor::Node(NodeRef::Node(node)), Vec::new());
            }
            _ => {
                let (at, unsent) = self.head(&thread);
                self.turn(rng, at, unsent);
            }
        }
    }

    fn head(&self, thread: &ThreadId) -> (Anchor, Vec<NewItem>) {
        let at = At::Thread(thread.clone());
        let opened = block_on(self.store.open(&scope(), &at, 0)).unwrap();
        let unsent = opened.unsent.iter().map(|entry| NewItem::Repeat(entry.at));
        let at = Anchor::Head {
            thread: thread.clone(),
            expected: opened.thread.version,
        };
        (at, unsent.collect())
    }

    fn fork(&mut self, rng: &mut Rng) {
        let from = match self.nodes.is_empty() || rng.bool() {
            true => At::Thread(rng.pick(&self.threads).clone()),
            false => At::Node(NodeRef::Node(*rng.pick(&self.nodes))),
        };
        let id = ThreadId::new(&format!("fork-{}", self.threads.len())).unwrap();
        let moved_by = match rng.bool() {
            true => MovedBy::AnyRun,
            false => MovedBy::LeasedRuns,
        };
        let thread = NewThread {
            moved_by,
            ..NewThread::new(id.clone())
        };
        // The node may be hidden, the thread empty.
        if block_on(self.store.fork(&scope(), &Fork { from, thread })).is_ok() {
            self.threads.push(id);
        }
    }

    /// Add messages by hand.
    pub(crate) fn append(&mut self, rng: &mut Rng, thread: &ThreadId, count: usize) {
        let mut items = Vec::new();
        for _ in 0..count {
            NewItem::push(&mut items, &messages::anything(rng, 3));
        }
        items.truncate(count);
        let append = Append {
            run: self.store.ids().run(),
            thread: thread.clone(),
            expected: None,
            items,
            state: state(rng),
            key: None,
        };
        let published = block_on(self.store.append(&scope(), &append)).unwrap();
        let count = append.items.len() as u32;
        self.published(append.run, &published, count);
    }

    fn published(&mut self, run: RunId, published: &Published, items: u32) {
        let Some(node) = published.node.filter(|node| node.run == run) else {
            return;
        };
        self.nodes.push(node);
        let fresh = (1..=items).map(|no| ItemRef { run, no });
        self.items.extend(fresh);
    }

    fn begin(&self, at: Anchor, mode: Mode, input: Vec<NewItem>) -> Option<Lease> {
        let begin = Begin {
            mode,
            ..Begin::new(self.store.ids().run(), at, input)
        };
        // A node may be hidden.
        match block_on(self.store.begin(&scope(), &begin)).ok()? {
            Begun::Started(started) => Some(started.lease),
            Begun::Repeated(run) => panic!("a repetition of {}", run.id),
        }
    }

    fn planned(&mut self, rng: &mut Rng) -> (Vec<ToolCall>, Vec<PlannedCall>) {
        let mut asked = Vec::new();
        let mut planned = Vec::new();
        for _ in 0..rng.below(4) {
            self.calls += 1;
            let id = format!("call_{}", self.calls);
            asked.push(ToolCall::function(
                CallId::natural(&id).unwrap(),
                "tide",
                "{}",
            ));
            planned.push(PlannedCall {
                call: id,
                tool: "tide".into(),
                effect: Effect::ReadOnly,
                state: CallState::Planned,
            });
        }
        (asked, planned)
    }

    /// A leased run that has published one node and goes on.
    pub(crate) fn begin_per_call(&mut self, rng: &mut Rng, thread: &ThreadId) {
        let (at, _) = self.head(thread);
        let lease = self
            .begin(at, Mode::PerCall, said(rng, Source::Caller))
            .unwrap();
        let call = ToolCall::function(CallId::natural("call_x").unwrap(), "tide", "{}");
        let step = Step {
            items: asking(&[call]),
            calls: vec![PlannedCall {
                call: "call_x".into(),
                tool: "tide".into(),
                effect: Effect::Once,
                state: CallState::Planned,
            }],
            node: Some(StepNode::default()),
            ..Step::default()
        };
        let published = block_on(self.store.step(&scope(), lease, &step)).unwrap();
        assert!(published.unwrap().moved);
    }

    /// A run with some rounds.
    fn turn(&mut self, rng: &mut Rng, at: Anchor, mut input: Vec<NewItem>) {
        let mode = match rng.bool() {
            true => Mode::PerRun,
            false => Mode::PerCall,
        };
        input.extend(said(rng, Source::Caller));
        let mut count = input.len() as u32;
        let Some(lease) = self.begin(at, mode, input) else {
            return;
        };
        let rounds = rng.below(3) as u32;
        for no in 0..rounds {
            let (asked, calls) = self.planned(rng);
            let items = asking(&asked);
            count += items.len() as u32;
            let step = Step {
                no,
                items,
                calls,
                node: (mode == Mode::PerCall).then(|| StepNode { state: state(rng) }),
                ..Step::default()
            };
            let published = block_on(self.store.step(&scope(), lease, &step)).unwrap();
            if let Some(published) = published {
                self.published(lease.run, &published, count);
            }
            count += asked.len() as u32;
            let mut results: Vec<CallResult> = asked
                .iter()
                .enumerate()
                .filter(|_| rng.chance(0.7))
                .map(|(position, call)| result(no, position as u32, call))
                .collect();
            rng.shuffle(&mut results);
            block_on(self.store.results(&scope(), lease, &results)).unwrap();
        }
        let last = match rng.chance(0.7) {
            true => said(rng, Source::Model),
            false => Vec::new(),
        };
        let publish = Publish {
            through: match rng.bool() {
                true => Through::Everything,
                false => Through::LastStep,
            },
            state: state(rng),
            ending: match rng.chance(0.8) {
                true => Ending::Committed,
                false => Ending::Cancelled,
            },
            note: rng
                .bool()
                .then(|| RawJson::new(r#"{"stop":"done"}"#).unwrap()),
            ..Publish::new(rounds, last)
        };
        let published = block_on(self.store.publish(&scope(), lease, &publish)).unwrap();
        // Only what is surely there: the input.
        self.published(lease.run, &published, 1);
    }
}

fn said(rng: &mut Rng, source: Source) -> Vec<NewItem> {
    let role = match source {
        Source::Model => Role::Assistant,
        _ => Role::User,
    };
    let mut message = Message::new(role, vec![Content::text(format!("say {}", rng.below(100)))]);
    message.source = Some(source);
    if rng.chance(0.2) {
        message.id = Some(MessageId::new(&format!("own_{}", rng.below(1000))).unwrap());
    }
    vec![NewItem::whole(&message)]
}

fn asking(calls: &[ToolCall]) -> Vec<NewItem> {
    let mut contents: Vec<Content> = calls.iter().cloned().map(Content::from).collect();
    if contents.is_empty() {
        contents.push(Content::text("thinking"));
    }
    let message = Message {
        source: Some(Source::Model),
        ..Message::new(Role::Assistant, contents)
    };
    NewItem::of(&[message])
}

fn result(step: u32, position: u32, call: &ToolCall) -> CallResult {
    let answer = call.answer(Outcome::Ok, Output::Text("04:12".into()));
    let message = Message {
        source: Some(Source::Tool),
        ..Message::new(Role::Tool, vec![answer.into()])
    };
    CallResult::new(step, position, &message)
}

fn state(rng: &mut Rng) -> Option<State> {
    rng.chance(0.3).then(|| {
        let mut state = State::default();
        state.set_service(ServiceId {
            upstream: "openai".into(),
            agent: String::new(),
            id: format!("resp_{}", rng.below(1000)),
        });
        if rng.bool() {
            let kept = RawJson::new(r#"{"seen":[1,2.0]}"#).unwrap();
            state.set_provider("memory", Some(kept));
        }
        state
    })
}
