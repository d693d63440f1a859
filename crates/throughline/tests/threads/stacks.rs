//! Clients with and without added layers, and with and without publishing each call.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::StreamExt;
use throughline::client::{
    Abilities, ChatRequest, ClientError, ClientExt, EventStream, Layer, PersistEachCall,
    PersistMark,
};
use throughline::model::{Event, Response};
use throughline::store::{Claim, Publish, RunState};
use throughline::thread::Persistence;
use throughline::{Agent, ChatClient, StopReason};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Engine, Fake, How, Process, Stage, everywhere, said, short};

use crate::threads::snapshot::{newest, snapshot};
use crate::threads::warnings;

/// The layers that the caller brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    /// The client alone.
    Bare,
    /// With our layer around it.
    Layered,
    /// With a layer of the caller's own that declares that it persists each call.
    Own,
}

/// A row: the settings of the agent, and the outcome of a turn with one round of tools.
struct Row {
    as_is: bool,
    each_call: bool,
    stack: Stack,
    /// Whether the innermost client gets a mark with each call.
    marked: [bool; 2],
    /// What a reader sees while the tool runs, and at the end.
    seen: [&'static str; 2],
    run: &'static str,
    warnings: usize,
}

const TABLE: [Row; 6] = [
    Row {
        as_is: false,
        each_call: false,
        stack: Stack::Bare,
        marked: [false, false],
        seen: ["[] v0", "[u a(c1) t(c1) a] v1"],
        run: "committed",
        warnings: 0,
    },
    Row {
        as_is: false,
        each_call: true,
        stack: Stack::Bare,
        marked: [true, true],
        seen: ["[u a(c1)] v1 open", "[u a(c1) t(c1) a] v2"],
        run: "committed",
        warnings: 0,
    },
    Row {
        as_is: true,
        each_call: false,
        stack: Stack::Bare,
        marked: [false, false],
        seen: ["[] v0", "[u a(c1) t(c1) a] v1"],
        run: "committed",
        warnings: 0,
    },
    Row {
        as_is: true,
        each_call: true,
        stack: Stack::Layered,
        marked: [true, true],
        seen: ["[u a(c1)] v1 open", "[u a(c1) t(c1) a] v2"],
        run: "committed",
        warnings: 0,
    },
    Row {
        as_is: true,
        each_call: true,
        stack: Stack::Own,
        marked: [true, true],
        seen: ["[u a(c1)] v1 open", "[u a(c1) t(c1) a] v2"],
        run: "committed",
        warnings: 0,
    },
    Row {
        as_is: true,
        each_call: true,
        stack: Stack::Bare,
        marked: [true, true],
        seen: ["[] v0", "[] v0"],
        run: "unpublished",
        warnings: 1,
    },
];

/// The innermost client, which records the marks of its calls.
#[derive(Clone)]
struct Noting {
    inner: Arc<ScriptedClient>,
    /// Whether a call has a mark, and whether that was set already.
    marks: Arc<Mutex<Vec<(bool, bool)>>>,
}

impl Noting {
    fn note(&self, request: &ChatRequest<'_>) {
        let mark = request.persist;
        let seen = (mark.is_some(), mark.is_some_and(PersistMark::is_set));
        self.marks.lock().unwrap().push(seen);
    }
}

#[async_trait]
impl ChatClient for Noting {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        self.note(request);
        self.inner.respond(request).await
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        self.note(request);
        self.inner.stream(request).await
    }
}

/// A layer of an application that marks each call itself.
struct OwnLayer;

struct OwnPersisting {
    inner: Arc<dyn ChatClient>,
    abilities: Abilities,
}

impl Layer for OwnLayer {
    fn around(self, inner: Arc<dyn ChatClient>) -> Arc<dyn ChatClient> {
        let abilities = Abilities {
            persists_each_call: true,
            ..inner.abilities().clone()
        };
        Arc::new(OwnPersisting { inner, abilities })
    }
}

#[async_trait]
impl ChatClient for OwnPersisting {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        let response = self.inner.respond(request).await?;
        request.persist_call();
        Ok(response)
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let mark = request.persist.cloned();
        let events = self.inner.stream(request).await?;
        Ok(Box::pin(events.inspect(move |event| {
            if let (Ok(Event::Finished { .. }), Some(mark)) = (event, &mark) {
                mark.set();
            }
        })))
    }
}

/// A turn with the settings of a row. Returns the process, for further checks.
async fn turn(stage: &Stage, how: How, row: &Row) -> (Process, Agent, throughline::Thread) {
    warnings::listen();
    let process = stage.process().await;
    let inner = ScriptedClient::new([
        Step::calls([("c1", "tide", "{}")]),
        Step::text("at four"),
        Step::text("yes"),
    ]);
    let client = Noting {
        inner: Arc::new(inner),
        marks: Arc::default(),
    };
    let stack: Arc<dyn ChatClient> = match row.stack {
        Stack::Bare => Arc::new(client.clone()),
        Stack::Layered => client.clone().layer(PersistEachCall),
        Stack::Own => client.clone().layer(OwnLayer),
    };
    let builder = Agent::builder(stack)
        .store(&process.store)
        .tool(Fake::named("tide"))
        .persistence(match row.each_call {
            true => Persistence::PerCall,
            false => Persistence::PerRun,
        });
    let agent = match row.as_is {
        true => builder.client_as_is(),
        false => builder,
    };
    let agent = agent.build().unwrap();
    let thread = agent.new_thread();
    let id = thread.id().clone();
    let reader = Arc::new(stage.process().await);
    let during: Arc<Mutex<Vec<String>>> = Arc::default();
    let seeing = Arc::clone(&during);
    process.faulty.on("results", move || {
        let (reader, seeing, id) = (Arc::clone(&reader), Arc::clone(&seeing), id.clone());
        async move {
            let seen = seen(&reader, &id).await;
            seeing.lock().unwrap().push(seen);
        }
    });
    let outcome = how.finish(agent.run_on(&thread, "when?")).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.stop, StopReason::Done);
    assert_eq!(said(&outcome), "u a(c1) t(c1) a");
    assert_eq!(*during.lock().unwrap(), row.seen[..1]);
    assert_eq!(seen(&process, thread.id()).await, row.seen[1]);
    // No mark is set before the answer, and at most one layer has set it.
    let marks = client.marks.lock().unwrap().clone();
    assert_eq!(marks, row.marked.map(|marked| (marked, false)));
    let journal = newest(&process, thread.id()).await;
    assert_eq!(journal.run.state.as_str(), row.run);
    assert_eq!(
        short(journal.entries.iter().map(|entry| &entry.message)),
        "u a(c1) t(c1) a"
    );
    let warned = warnings::of(outcome.run);
    assert_eq!(warned.len(), row.warnings, "{warned:?}");
    (process, agent, thread)
}

async fn seen(process: &Process, thread: &throughline::store::ThreadId) -> String {
    let look = snapshot(process, thread).await;
    let open = if look.open { " open" } else { "" };
    format!("[{}] v{}{open}", look.history, look.version)
}

fn everywhere_as(rows: &[Row]) {
    for row in rows {
        everywhere(async |stage, how| {
            turn(stage, how, row).await;
            if (stage.engine, how) == (Engine::Memory, How::Whole) {
                println!(
                    "table stacks: as is {}, each call {}, {:?} -> {} then {}, {}, {} warnings",
                    row.as_is,
                    row.each_call,
                    row.stack,
                    row.seen[0],
                    row.seen[1],
                    row.run,
                    row.warnings
                );
            }
        });
    }
}

#[test]
fn b104_not_as_is_and_not_each_call_adds_no_layer_and_moves_once() {
    everywhere_as(&TABLE[..1]);
}

#[test]
fn b105_not_as_is_and_each_call_adds_one_layer_and_moves_after_each_call() {
    everywhere_as(&TABLE[1..2]);
    // An existing layer is enough.
    everywhere_as(&[
        Row {
            stack: Stack::Layered,
            ..TABLE[1]
        },
        Row {
            stack: Stack::Own,
            ..TABLE[1]
        },
    ]);
}

#[test]
fn b106_as_is_and_not_each_call_leaves_the_stack_and_moves_once() {
    everywhere_as(&TABLE[2..3]);
    everywhere_as(&[Row {
        stack: Stack::Layered,
        ..TABLE[2]
    }]);
}

#[test]
fn b107_as_is_and_each_call_with_the_layer_moves_after_each_call() {
    everywhere_as(&TABLE[3..5]);
}

#[test]
fn b108_as_is_and_each_call_without_the_layer_warns_and_publishes_nothing() {
    everywhere_as(&TABLE[5..]);
    everywhere(async |stage, how| {
        for publish in [true, false] {
            let (process, agent, thread) = turn(stage, how, &TABLE[5]).await;
            let scope = process.scope();
            let run = newest(&process, thread.id()).await.run;
            // Neither another process nor a resume may settle it.
            let other = stage.process().await;
            assert!(other.store.orphans(10).await.unwrap().is_empty());
            let nothing = how.finish(agent.resume(&thread)).await;
            assert!(nothing.is_err());
            assert_eq!(newest(&process, thread.id()).await.run, run);

            let store = &process.store;
            let (state, history) = match publish {
                true => {
                    let claimed = store.claim(&scope, run.id, run.epoch, Claim::Settle).await;
                    let lease = claimed.unwrap().lease;
                    let publish = Publish::new(run.next_step, Vec::new());
                    store.publish(&scope, lease, &publish).await.unwrap();
                    (RunState::Committed, "u a(c1) t(c1) a")
                }
                false => {
                    process.threads().discard(run.id).await.unwrap();
                    (RunState::Discarded, "")
                }
            };
            assert_eq!(store.run(&scope, run.id).await.unwrap().state, state);
            assert_eq!(process.history(thread.id()).await, history);
        }
    });
    // The next run continues from the old head, and the run does not change.
    everywhere(async |stage, how| {
        let (process, agent, thread) = turn(stage, how, &TABLE[5]).await;
        let run = newest(&process, thread.id()).await.run;
        let next = agent.run_on(&thread, "sure?");
        let next = next.persistence(Persistence::PerRun);
        how.finish(next).await.unwrap();
        assert_eq!(process.history(thread.id()).await, "u a");
        let kept = process.store.run(&process.scope(), run.id).await.unwrap();
        assert_eq!(kept, run);
    });
}
