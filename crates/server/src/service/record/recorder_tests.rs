use std::collections::HashMap;
use std::sync::Arc;

use throughline::client::MemoryBudget;
use throughline_model::json::RawJson;
use throughline_model::{
    Body, CallId, Content, Family, Message, Output, Role, Source, ToolCall, ToolResult,
};
use throughline_store::{At, NodeId, RunId, RunState, Store, TenantScope, ThreadFilter, ThreadId};
use throughline_testkit::recorded::{
    By, Placed as Expected, Placement, Reference, Said, Session, prose,
};
use throughline_testkit::{Rng, property};

use super::{Placed, Recorder, Recording};
use crate::config::{Config, Sources};
use crate::service::Runs;
use crate::service::record::RecordedRequest;
use crate::stopping::Stopping;

const ABOUT: RecordedRequest<'_> = RecordedRequest {
    api: "chat/completions",
    model: "m",
    settings: None,
};

struct World {
    recorder: Recorder,
    store: Store,
    scope: TenantScope,
}

impl World {
    async fn new() -> Self {
        let config = Config::load(&Sources::default()).unwrap();
        let store = Store::open("memory:").await.unwrap();
        let memory = MemoryBudget::new(1 << 30);
        let runs = Runs::new(&config.limits, &memory, &store, &Stopping::default());
        Self {
            recorder: Recorder::new(&Arc::new(runs)),
            store,
            scope: TenantScope::local(),
        }
    }

    async fn begin(&self, messages: &[Message]) -> Recording {
        let messages: Vec<&Message> = messages.iter().collect();
        let messages = messages.as_slice();
        let begun = self.recorder.begin(&self.scope, ABOUT, messages).await;
        begun.unwrap()
    }

    async fn texts(&self, at: impl Into<At>) -> Vec<String> {
        let opened = self.store.open(&self.scope, &at.into(), 10_000).await;
        let entries = opened.unwrap().entries;
        entries.iter().map(|entry| short(&entry.message)).collect()
    }
}

fn note() -> RawJson {
    RawJson::object(|object| {
        object.str("stop", "done");
    })
}

fn short(message: &Message) -> String {
    let word = |content: &Content| match &content.body {
        Body::Text(text) => text.text.clone(),
        Body::ToolCall(call) => format!("call {}", call.call.value()),
        Body::ToolResult(result) => match &result.output {
            Output::Text(text) => format!("result {} {text}", result.call().value()),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    };
    message.contents.iter().map(word).collect()
}

fn message(said: &Said) -> Message {
    let id = |call: &Option<String>| CallId::natural(call.as_deref().unwrap()).unwrap();
    match (said.by, &said.call) {
        (By::User, _) => Message::user(&said.text),
        (By::Model, None) => Message::assistant(&said.text),
        (By::Model, call) => {
            let arguments = RawJson::object(|object| {
                object.str("at", &said.text);
            });
            let call = ToolCall::function(id(call), "look", arguments.get());
            Message::new(Role::Assistant, vec![call.into()])
        }
        (By::Tool, call) => {
            let output = Output::Text(said.text.clone());
            let result = ToolResult::answering(id(call), Family::FUNCTION, output);
            Message::new(Role::Tool, vec![result.into()])
        }
    }
}

fn placed(placed: Placed) -> Placement {
    match placed {
        Placed::New => Placement::New,
        Placed::Continued => Placement::Continued,
        Placed::Branched => Placement::Branched,
        Placed::Retried => Placement::Retried,
    }
}

/// Sessions through a recorder and through the reference.
struct Pair<'w> {
    world: &'w World,
    reference: Reference,
    threads: Vec<ThreadId>,
    runs: Vec<RunId>,
    rng: Rng,
}

impl Pair<'_> {
    async fn request(&mut self, session: &mut Session) -> Result<(), String> {
        let (action, request) = session.request();
        let expected: Expected = self.reference.begin(&request);
        let messages: Vec<Message> = request.iter().map(message).collect();
        let recording = self.world.begin(&messages).await;
        if expected.thread == self.threads.len() {
            self.threads.push(recording.thread().clone());
        }
        let thread = self.threads.iter().position(|id| id == recording.thread());
        let got = (thread, placed(recording.placed()));
        if got != (Some(expected.thread), expected.kind) {
            return Err(format!(
                "{action:?}: {got:?}, not {expected:?}: {request:?}"
            ));
        }
        self.runs.push(recording.run());
        if self.rng.chance(0.08) {
            recording.fail("upstream", "it broke off").await.unwrap();
            return Ok(());
        }
        let name = format!("a{}", expected.run);
        let bytes = *self.rng.pick(&[50, 300, 2_000]);
        let text = prose(&mut self.rng, &name, bytes);
        let answer = Said {
            call: self.rng.chance(0.15).then(|| format!("call_{name}")),
            ..Said::model(text)
        };
        self.reference.answer(expected.run, answer.clone());
        let said = Message {
            source: Some(Source::Model),
            ..message(&answer)
        };
        recording.publish(&[said], note()).await.unwrap();
        session.answered(answer);
        Ok(())
    }

    /// Compare all that is stored with what must be.
    async fn check(&self) -> Result<(), String> {
        let (world, reference) = (self.world, &self.reference);
        let mut full = 0;
        for (run, id) in reference.runs.iter().zip(&self.runs) {
            let stored = world.store.run(&world.scope, *id).await.unwrap();
            let state = match run.answer {
                Some(_) => RunState::Committed,
                None => RunState::Failed,
            };
            if stored.state != state || stored.thread != self.threads[run.thread] {
                return Err(format!("{stored:?} is not {run:?}"));
            }
            if run.base.map(|base| self.runs[base]) != stored.base.map(|base| base.run) {
                return Err(format!("{stored:?} has another base than {run:?}"));
            }
            if let Some(node) = stored.published {
                let expected = run.conversation();
                let expected: Vec<String> =
                    expected.iter().map(|said| short(&message(said))).collect();
                let texts = world
                    .texts(At::Node(throughline_store::NodeRef::Node(node)))
                    .await;
                if texts != expected {
                    return Err(format!("{id}: {texts:?} is not {expected:?}"));
                }
            }
            let node = NodeId { run: *id, step: 0 };
            if let Ok(record) = world.store.node(&world.scope, node, 1, 10_000).await {
                full += record
                    .items
                    .iter()
                    .filter(|item| item.again.is_none())
                    .count();
            } else {
                full += unpublished(world, *id).await;
            }
        }
        if full != reference.stored {
            let stored = reference.stored;
            return Err(format!("{full} messages are stored, {stored} were said"));
        }
        let filter = ThreadFilter::default();
        let listed = world
            .store
            .threads(&world.scope, &filter, None, 100_000)
            .await;
        let listed = listed.unwrap().found;
        if listed.len() != reference.threads.len() {
            return Err(format!("{} threads", listed.len()));
        }
        let by_id: HashMap<&ThreadId, _> = listed.iter().map(|one| (&one.id, one)).collect();
        for (thread, id) in reference.threads.iter().zip(&self.threads) {
            let stored = by_id[id];
            let head = thread.head.map(|run| self.runs[run]);
            if stored.head.as_ref().map(|tip| tip.node.run) != head {
                return Err(format!("{id}: its head is {:?}, not {head:?}", stored.head));
            }
            let meta = stored.meta.as_ref().map(RawJson::value);
            let origin = meta
                .as_ref()
                .and_then(|meta| meta.get("origin_thread")?.as_str());
            let expected = thread.origin.map(|origin| self.threads[origin].as_str());
            if origin.as_deref() != expected {
                return Err(format!("{id}: it comes from {origin:?}, not {expected:?}"));
            }
        }
        let checked = world.store.check(&mut |_| {}).await.unwrap();
        match checked.damage.first() {
            None => Ok(()),
            Some(damage) => Err(format!("{damage:?}")),
        }
    }
}

/// Items of a run without a node that are stored in full. Its journal shows repeated ones too, which
/// have the message id of what they repeat.
async fn unpublished(world: &World, run: RunId) -> usize {
    let journal = world.store.journal(&world.scope, run).await.unwrap();
    let own = journal
        .entries
        .iter()
        .filter(|entry| entry.message.id.as_ref() == Some(&entry.at.message_id()));
    own.count()
}

#[test]
fn sessions_are_recorded_as_the_reference_says() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    property("recorded sessions", 60, |rng, size| {
        runtime.block_on(async {
            let world = World::new().await;
            let mut pair = Pair {
                world: &world,
                reference: Reference::default(),
                threads: Vec::new(),
                runs: Vec::new(),
                rng: rng.fork(),
            };
            let mut sessions: Vec<_> = (0..1 + size / 10)
                .map(|place| Session::new(&format!("s{place}"), rng.fork()))
                .collect();
            for _ in 0..5 + size * 2 {
                let session = rng.below(sessions.len());
                pair.request(&mut sessions[session]).await?;
            }
            pair.check().await
        })
    });
}
