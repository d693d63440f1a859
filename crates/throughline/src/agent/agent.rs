use std::fmt;
use std::sync::Arc;

use throughline_model::Settings;
use throughline_store::{Clock, Ids};
use tokio_util::task::TaskTracker;

use super::builder::AgentBuilder;
use super::input::Input;
use super::limits::{Calling, Limits};
use super::run::Run;
use crate::client::ChatClient;
use crate::history::Thread;
use crate::telemetry::Telemetry;
use crate::tool::{Dependencies, ToolSet};

/// How much a model reads of a tool's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    Hidden,
    Shown,
}

pub(crate) struct Inner {
    pub(super) client: Arc<dyn ChatClient>,
    pub(super) name: String,
    pub(super) instructions: Option<String>,
    pub(super) tools: ToolSet,
    pub(super) dependencies: Arc<Dependencies>,
    pub(super) settings: Settings,
    pub(super) model: Option<String>,
    pub(super) limits: Limits,
    pub(super) calling: Calling,
    pub(super) details: Details,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Ids,
    pub(super) tasks: TaskTracker,
    pub(super) telemetry: Telemetry,
}

/// Something with instructions, tools and a client that can run on threads, many at once. Cloning
/// it is cheap and gives the same agent.
///
/// ```
/// use throughline::{Agent, Demo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new())
///     .instructions("You know the harbour.")
///     .build()?;
/// let outcome = agent.run("How many messages are there?").await?;
/// println!("{}", outcome.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

impl Agent {
    /// Start to put an agent together.
    pub fn builder(client: impl ChatClient + 'static) -> AgentBuilder {
        AgentBuilder::new(Arc::new(client))
    }

    pub(super) fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Run on a new thread of its own. Await it for the outcome, or take [`Run::stream`].
    pub fn run(&self, input: impl Into<Input>) -> Run {
        Run::begin(
            self,
            &Thread::with_id(self.inner.ids.thread()),
            input.into(),
        )
    }

    /// Run on a thread.
    pub fn run_on(&self, thread: &mut Thread, input: impl Into<Input>) -> Run {
        Run::begin(self, thread, input.into())
    }

    /// Go on with a run that is parked, or that failed: nothing that has finished is done again.
    pub fn resume(&self, thread: &mut Thread) -> Run {
        Run::resume(self, thread)
    }

    /// Wait until every run has left its thread in order, those included whose callers went away.
    pub async fn settled(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.tasks.reopen();
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.inner.name)
            .field("tools", &self.inner.tools.names())
            .finish_non_exhaustive()
    }
}
