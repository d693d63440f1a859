//! Short ways to put agents on a stage, and to say what readers heard.

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

/// An agent of a process that is something special.
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

/// Begin a run that goes on while the test does something else.
pub(crate) fn start(how: How, run: Run<impl Order>) -> JoinHandle<Result<Outcome, RunFailed>> {
    tokio::spawn(async move { how.finish(run).await })
}

/// Tells when something got to a place, and keeps it there until it is let go.
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

    /// Say that something got here.
    pub(crate) fn reach(&self) {
        self.reached.add_permits(1);
    }

    /// Go through, once that is allowed.
    pub(crate) async fn pass(&self) {
        self.reach();
        self.opened.acquire().await.unwrap().forget();
    }

    /// Wait until one more got here.
    pub(crate) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Let everybody through from now on.
    pub(crate) fn open(&self) {
        self.opened.add_permits(1000);
    }

    /// Keep calls of a method of the process back.
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

/// A tool that waits at a gate, then says its own name.
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

/// What a journal says of a run: its state, and where its calls stand.
pub(crate) fn standing(journal: &Journal) -> String {
    let mut out = journal.run.state.as_str().to_owned();
    for call in &journal.calls {
        out.push_str(&format!(" {}:{}", call.call, call.state.as_str()));
    }
    out
}

/// Events in short; deltas of one content in a row are one word.
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
