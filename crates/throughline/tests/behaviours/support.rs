//! What the behaviours share: a scripted agent, tools that count, and a short way to write a
//! history down.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use throughline::model::json::RawJson;
use throughline::model::{Body, Message, Outcome as Ending, Role};
use throughline::{
    Agent, AgentBuilder, CallContext, Outcome, Run, RunEvent, RunFailed, Thread, Tool, ToolError,
    ToolOutput, ToolSpec,
};
use throughline_testkit::scripted::{ScriptedClient, Step};

/// How a run is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Whole,
    Streamed,
}

/// Run a test whole and streamed, on a clock that moves only when everything waits.
pub(crate) fn both(test: impl AsyncFn(How)) {
    for how in [How::Whole, How::Streamed] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(test(how));
    }
}

impl How {
    /// Read a run to its end.
    pub(crate) async fn finish(self, run: Run) -> Result<Outcome, RunFailed> {
        match self {
            Self::Whole => run.await,
            Self::Streamed => self.events(run).await.1,
        }
    }

    /// Read a run to its end, with its events.
    pub(crate) async fn events(self, run: Run) -> (Vec<RunEvent>, Result<Outcome, RunFailed>) {
        let mut stream = run.stream();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        let ends = |event: &RunEvent| matches!(event, RunEvent::Ended { .. });
        assert_eq!(events.iter().filter(|event| ends(event)).count(), 1);
        assert!(events.last().is_some_and(ends), "the end comes last");
        (events, stream.outcome().await)
    }
}

/// An agent with a script, and a thread.
pub(crate) struct Rig {
    pub(crate) client: Arc<ScriptedClient>,
    pub(crate) agent: Agent,
    pub(crate) thread: Thread,
    pub(crate) how: How,
}

impl Rig {
    pub(crate) fn new(
        how: How,
        steps: impl IntoIterator<Item = Step>,
        build: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        Self::of(how, ScriptedClient::new(steps), build)
    }

    pub(crate) fn of(
        how: How,
        client: ScriptedClient,
        build: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let client = Arc::new(client);
        let builder = build(Agent::builder(Arc::clone(&client)));
        Self {
            client,
            agent: builder.build().expect("an agent"),
            thread: Thread::new(),
            how,
        }
    }

    /// Run with an input.
    pub(crate) async fn run(&mut self, input: &str) -> Outcome {
        let run = self.agent.run_on(&mut self.thread, input);
        self.how
            .finish(run)
            .await
            .expect("a run that does not fail")
    }

    /// The history in short.
    pub(crate) fn history(&self) -> String {
        short(self.thread.history().iter().map(|message| &**message))
    }
}

/// What a fake tool does.
type Body_ =
    dyn Fn(RawJson, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool that counts how often it ran.
#[derive(Clone)]
pub(crate) struct Fake {
    spec: ToolSpec,
    body: Arc<Body_>,
    runs: Arc<AtomicUsize>,
}

impl Fake {
    /// A tool that does what it is told.
    pub(crate) fn doing<F>(
        name: &str,
        body: impl Fn(RawJson, CallContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self {
            spec: ToolSpec::named(name),
            body: Arc::new(move |arguments, context| Box::pin(body(arguments, context))),
            runs: Arc::default(),
        }
    }

    /// A tool that says its own name.
    pub(crate) fn named(name: &str) -> Self {
        let said = name.to_owned();
        Self::doing(name, move |_, _| {
            let said = said.clone();
            async move { Ok(ToolOutput::text(said)) }
        })
    }

    /// A tool that fails.
    pub(crate) fn failing(name: &str) -> Self {
        Self::doing(name, |_, _| async { Err("the pier is closed".into()) })
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (self.body)(arguments.clone(), context).await
    }
}

/// A history in short: `u a(c1,c2) t(c1,c2:error) a`, with outcomes other than `ok`.
pub(crate) fn short<'m>(messages: impl IntoIterator<Item = &'m Message>) -> String {
    let mut out = String::new();
    for message in messages {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(match message.role {
            Role::System | Role::Developer => "s",
            Role::User => "u",
            Role::Assistant => "a",
            Role::Tool => "t",
            Role::Other(_) => "?",
        });
        let inner: Vec<String> = message
            .contents
            .iter()
            .filter_map(|content| match &content.body {
                Body::ToolCall(call) => Some(call.call.to_string()),
                Body::ToolResult(result) if result.outcome == Ending::Ok => {
                    Some(result.call().to_string())
                }
                Body::ToolResult(result) => {
                    Some(format!("{}:{}", result.call(), result.outcome.as_str()))
                }
                _ => None,
            })
            .collect();
        if !inner.is_empty() {
            write!(out, "({})", inner.join(",")).expect("a string takes everything");
        }
    }
    out
}

/// The transcript of an outcome in short.
pub(crate) fn said(outcome: &Outcome) -> String {
    short(&outcome.messages)
}

/// The text of the result of a call.
pub(crate) fn result_text(messages: &[Message], call: &str) -> String {
    let results = messages.iter().flat_map(|message| &message.contents);
    results
        .filter_map(|content| content.as_tool_result())
        .filter(|result| result.call().value() == call)
        .map(|result| match &result.output {
            throughline::model::Output::Text(text) => text.clone(),
            other => format!("{other:?}"),
        })
        .next_back()
        .unwrap_or_default()
}
