//! Shorthands for agents of processes, and for what readers received.

use std::sync::Arc;

use throughline::agent::order::Order;
use throughline::agent::{AgentBuilder, Run, RunFailed};
use throughline::model::Role;
use throughline::store::{Journal, RunFilter, ThreadId};
use throughline::tool::ToolOutput;
use throughline::{Agent, Outcome, RunEvent};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, How, Process};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub(crate) type Client = Arc<ScriptedClient>;

pub(crate) fn client(steps: impl IntoIterator<Item = Step>) -> Client {
    Arc::new(ScriptedClient::new(steps))
}

/// An agent of a process.
pub(crate) fn agent(process: &Process, client: &Client, tools: &[&Fake]) -> Agent {
    built(process, client, tools, |builder| builder)
}

/// An agent of a process with further settings.
pub(crate) fn built(
    process: &Process,
    client: &Client,
    tools: &[&Fake],
    change: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> Agent {
    let mut builder = Agent::builder(Arc::clone(client)).store(&process.store);
    for tool in tools {
        builder = builder.tool((*tool).clone());
    }
    change(builder).build().unwrap()
}

/// Starts a run that continues while the test does something else.
pub(crate) fn start(how: How, run: Run<impl Order>) -> JoinHandle<Result<Outcome, RunFailed>> {
    tokio::spawn(async move { how.finish(run).await })
}

/// Reports when a task arrives at a place, and holds it there until it is released.
#[derive(Clone)]
pub(crate) struct Gate {
    reached: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            reached: Arc::new(Semaphore::new(0)),
            opened: Arc::new(Semaphore::new(0)),
        }
    }

    /// Reports an arrival.
    pub(crate) fn reach(&self) {
        self.reached.add_permits(1);
    }

    /// Waits until the gate is open.
    pub(crate) async fn pass(&self) {
        self.reach();
        self.opened.acquire().await.unwrap().forget();
    }

    /// Waits for one more arrival.
    pub(crate) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Lets all tasks through from now on.
    pub(crate) fn open(&self) {
        self.opened.add_permits(1000);
    }

    /// Holds calls of a method of the process.
    pub(crate) fn at(process: &Process, method: &str) -> Self {
        let gate = Self::new();
        let kept = gate.clone();
        process.faulty.on(method, move || {
            let kept = kept.clone();
            async move { kept.pass().await }
        });
        gate
    }
}

/// A tool that waits at a gate, and then returns its own name.
pub(crate) fn gated(name: &str) -> (Fake, Gate) {
    let gate = Gate::new();
    let (kept, said) = (gate.clone(), name.to_owned());
    let tool = Fake::doing(name, move |_, _| {
        let (kept, said) = (kept.clone(), said.clone());
        async move {
            kept.pass().await;
            Ok(ToolOutput::text(said))
        }
    });
    (tool, gate)
}

/// The journals of a thread's runs, newest first.
pub(crate) async fn journals(process: &Process, thread: &ThreadId) -> Vec<Journal> {
    let filter = RunFilter {
        thread: Some(thread.clone()),
        states: Vec::new(),
    };
    let (store, scope) = (&process.store, process.scope());
    let listing = store.runs(&scope, &filter, None, 100).await.unwrap();
    let mut journals = Vec::new();
    for run in listing.found {
        journals.push(store.journal(&scope, run.id).await.unwrap());
    }
    journals
}

/// The state of a run and of its calls, from its journal.
pub(crate) fn standing(journal: &Journal) -> String {
    let mut out = journal.run.state.as_str().to_owned();
    for call in &journal.calls {
        out.push_str(&format!(" {}:{}", call.call, call.state.as_str()));
    }
    out
}

/// Events in short form; consecutive deltas of one content are one word.
pub(crate) fn told<'e>(events: impl IntoIterator<Item = &'e RunEvent>) -> String {
    let mut words: Vec<String> = Vec::new();
    for event in events {
        let word = match event {
            RunEvent::Started { .. } => "started".to_owned(),
            RunEvent::Asked { step } => format!("asked{step}"),
            RunEvent::Compacted { step, .. } => format!("compacted{step}"),
            RunEvent::Narrated { .. } => "narrated".to_owned(),
            RunEvent::Text { .. } => "text".to_owned(),
            RunEvent::Refusal { .. } => "refusal".to_owned(),
            RunEvent::Summary { .. } => "summary".to_owned(),
            RunEvent::Reasoning { .. } => "reasoning".to_owned(),
            RunEvent::Content { .. } => "content".to_owned(),
            RunEvent::Incomplete { step, .. } => format!("incomplete{step}"),
            RunEvent::Dispatched { call, .. } => format!("dispatched:{call}"),
            RunEvent::Result { result, .. } => format!("result:{}", result.call()),
            RunEvent::Message(message) => match message.role {
                Role::User => "u".to_owned(),
                Role::Assistant => "a".to_owned(),
                Role::Tool => "t".to_owned(),
                _ => "?".to_owned(),
            },
            RunEvent::Ended { stop } => format!("ended:{stop}"),
        };
        if words.last() != Some(&word) || word != "text" {
            words.push(word);
        }
    }
    words.join(" ")
}
