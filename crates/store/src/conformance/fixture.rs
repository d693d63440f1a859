//! What the cases share.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Source, ToolCall};

use super::Harness;
use crate::{
    Anchor, At, Begin, Begun, CallResult, CallState, Effect, Entry, Heartbeat, Lease, ManualClock,
    Mode, NewItem, NewThread, NodeRef, Opened, Options, PlannedCall, Publish, Published, RunId,
    Started, Step, Store, TenantScope, ThreadId,
};

/// How long a process counts as alive in the suite.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// A store with a clock that is set by hand.
pub struct Fixture<'h> {
    harness: &'h dyn Harness,
    pub(super) clock: Arc<ManualClock>,
    pub(super) store: Store,
    pub(super) scope: TenantScope,
}

impl<'h> Fixture<'h> {
    pub(super) async fn new(harness: &'h dyn Harness) -> Self {
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let store = open(harness, &clock).await;
        Self {
            harness,
            clock,
            store,
            scope: TenantScope::local(),
        }
    }

    /// The same store for another tenant.
    pub(super) fn scoped(&self, scope: TenantScope) -> Self {
        Self {
            harness: self.harness,
            clock: Arc::clone(&self.clock),
            store: self.store.clone(),
            scope,
        }
    }

    /// Another process on the same store.
    pub(super) async fn other(&self) -> Store {
        open(self.harness, &self.clock).await
    }

    /// A new thread.
    pub(super) async fn thread(&self, id: &str) -> ThreadId {
        let id = ThreadId::new(id).unwrap();
        let new = NewThread::new(id.clone());
        self.store
            .open_or_create(&self.scope, &new, 0)
            .await
            .unwrap();
        id
    }

    pub(super) async fn open(&self, thread: &ThreadId) -> Opened {
        let at = At::Thread(thread.clone());
        self.store.open(&self.scope, &at, 1000).await.unwrap()
    }

    /// What a reader of a thread sees.
    pub(super) async fn texts(&self, thread: &ThreadId) -> Vec<String> {
        texts(&self.open(thread).await.entries)
    }

    /// What a reader of a node sees.
    pub(super) async fn texts_at(&self, node: NodeRef) -> Vec<String> {
        let opened = self.store.open(&self.scope, &At::Node(node), 1000).await;
        texts(&opened.unwrap().entries)
    }

    /// Begin a leased run at the head.
    pub(super) async fn begin(&self, thread: &ThreadId, text: &str) -> Started {
        self.begin_in(thread, text, Mode::PerRun).await
    }

    /// Begin a leased run at the head in a mode.
    pub(super) async fn begin_in(&self, thread: &ThreadId, text: &str, mode: Mode) -> Started {
        let opened = self.open(thread).await;
        let begin = Begin {
            mode,
            ..self.begin_at(
                Anchor::Head {
                    thread: thread.clone(),
                    expected: opened.thread.version,
                },
                text,
            )
        };
        self.started(&begin).await
    }

    /// The value that begins a run somewhere.
    pub(super) fn begin_at(&self, at: Anchor, text: &str) -> Begin {
        Begin::new(self.store.ids().run(), at, said_by_user(text))
    }

    pub(super) async fn started(&self, begin: &Begin) -> Started {
        match self.store.begin(&self.scope, begin).await.unwrap() {
            Begun::Started(started) => started,
            Begun::Repeated(run) => panic!("a repetition of {}", run.id),
        }
    }

    /// End a run with an answer.
    pub(super) async fn publish(&self, lease: Lease, step: u32, text: &str) -> Published {
        let publish = Publish::new(step, said_by_model(text));
        self.store
            .publish(&self.scope, lease, &publish)
            .await
            .unwrap()
    }

    /// A plain turn at the head.
    pub(super) async fn turn(&self, thread: &ThreadId, ask: &str, answer: &str) -> RunId {
        let started = self.begin(thread, ask).await;
        let published = self.publish(started.lease, 0, answer).await;
        assert!(published.moved);
        started.lease.run
    }

    /// A plain turn without a lease at a node.
    pub(super) async fn turn_at(
        &self,
        node: NodeRef,
        ask: &str,
        answer: &str,
    ) -> (RunId, Published) {
        let begin = self.begin_at(Anchor::Node(node), ask);
        let started = self.started(&begin).await;
        (begin.run, self.publish(started.lease, 0, answer).await)
    }
}

async fn open(harness: &dyn Harness, clock: &Arc<ManualClock>) -> Store {
    let options = Options {
        clock: Arc::<ManualClock>::clone(clock),
        heartbeat: Heartbeat::Manual,
        lease: LEASE,
    };
    harness.open(options).await
}

pub(super) fn said_by_user(text: &str) -> Vec<NewItem> {
    let message = Message {
        source: Some(Source::Caller),
        ..Message::user(text)
    };
    NewItem::of(&[message])
}

pub(super) fn said_by_model(text: &str) -> Vec<NewItem> {
    NewItem::of(&[model(text)])
}

pub(super) fn model(text: &str) -> Message {
    Message {
        source: Some(Source::Model),
        ..Message::new(Role::Assistant, vec![Content::text(text)])
    }
}

/// A call with an id.
pub(super) fn call(id: &str) -> ToolCall {
    ToolCall::function(CallId::natural(id).unwrap(), "get_tide", "{}")
}

/// A message of the model that makes calls.
pub(super) fn calling(ids: &[&str]) -> Vec<NewItem> {
    let contents = ids.iter().map(|id| call(id).into()).collect();
    let message = Message {
        source: Some(Source::Model),
        ..Message::new(Role::Assistant, contents)
    };
    NewItem::of(&[message])
}

/// A step in which the model makes calls.
pub(super) fn step(no: u32, ids: &[&str], state: CallState) -> Step {
    let planned = |id: &&str| PlannedCall {
        call: (*id).to_owned(),
        tool: "get_tide".to_owned(),
        effect: Effect::Once,
        state,
    };
    Step {
        no,
        items: calling(ids),
        calls: ids.iter().map(planned).collect(),
        ..Step::default()
    }
}

/// The result of the call at a place.
pub(super) fn result(step: u32, position: u32, id: &str) -> CallResult {
    CallResult::new(step, position, &answered(id))
}

/// A tool message with the result of one call.
pub(super) fn answered(id: &str) -> Message {
    let answer = call(id).answer(Outcome::Ok, Output::Text(format!("result {id}")));
    Message {
        source: Some(Source::Tool),
        ..Message::new(Role::Tool, vec![answer.into()])
    }
}

/// Messages in short: the text, or the calls and results in it.
pub(super) fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| short(&entry.message)).collect()
}

pub(super) fn short(message: &Message) -> String {
    use throughline_model::Body;
    let word = |content: &Content| match &content.body {
        Body::Text(text) => text.text.clone(),
        Body::ToolCall(call) => format!("call {}", call.call.value()),
        Body::ToolResult(result) => format!("result {}", result.call().value()),
        other => format!("{other:?}"),
    };
    message
        .contents
        .iter()
        .map(word)
        .collect::<Vec<_>>()
        .join("+")
}
