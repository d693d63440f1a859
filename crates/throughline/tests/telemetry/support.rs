//! Shared by these tests.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use throughline::agent::order::Order;
use throughline::agent::{AgentBuilder, Run, RunFailed};
use throughline::model::json::RawJson;
use throughline::tool::{CallContext, Parameters, ToolError, ToolOutput, ToolSpec};
use throughline::{Agent, ChatClient, Outcome, Tool};

use crate::telemetry::capture::Capture;

/// How a run is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Whole,
    Streamed,
}

impl How {
    /// An agent that makes its model calls in the same way.
    pub(crate) fn builder(self, client: impl ChatClient + 'static) -> AgentBuilder {
        let agent = Agent::builder(client);
        match self {
            Self::Whole => agent.whole_answers(),
            Self::Streamed => agent,
        }
    }

    pub(crate) async fn finish(self, run: Run<impl Order>) -> Result<Outcome, RunFailed> {
        match self {
            Self::Whole => run.await,
            Self::Streamed => {
                let mut stream = run.stream();
                while stream.next().await.is_some() {}
                stream.outcome().await
            }
        }
    }
}

/// Runs a test whole and streamed, on a clock that advances only when all tasks wait, with a
/// subscriber that records all spans and events.
pub(crate) fn both(test: impl AsyncFn(How, Capture)) {
    for how in [How::Whole, How::Streamed] {
        watched(async |capture| test(how, capture).await);
    }
}

/// Runs a test on a clock that advances only when all tasks wait, with a subscriber that records
/// all spans and events.
pub(crate) fn watched(test: impl AsyncFn(Capture)) {
    let capture = Capture::default();
    tracing::subscriber::with_default(capture.clone(), || alone(async || test(capture).await));
}

/// Runs a test on a clock that advances only when all tasks wait.
pub(crate) fn alone(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(test());
}

type Work =
    dyn Fn(RawJson, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A scripted tool that takes any object.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) spec: ToolSpec,
    work: Arc<Work>,
}

impl Fake {
    pub(crate) fn doing<F>(
        name: &str,
        work: impl Fn(RawJson, CallContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let mut spec = ToolSpec::named(name);
        spec.parameters = Parameters::any();
        Self {
            spec,
            work: Arc::new(move |arguments, context| Box::pin(work(arguments, context))),
        }
    }

    /// A tool that returns a text.
    pub(crate) fn saying(name: &str, text: &'static str) -> Self {
        Self::doing(name, move |_, _| async move { Ok(ToolOutput::text(text)) })
    }

    /// A tool that fails with a text.
    pub(crate) fn failing(name: &str, text: &'static str) -> Self {
        Self::doing(name, move |_, _| async move { Err(text.into()) })
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
        (self.work)(arguments.clone(), context).await
    }
}
