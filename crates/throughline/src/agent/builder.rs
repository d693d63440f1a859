use std::any::Any;
use std::sync::Arc;

use throughline_model::Settings;
use throughline_store::{Clock, Ids, SystemClock};
use tokio_util::task::TaskTracker;

use super::Agent;
use super::agent::{Details, Inner};
use super::limits::{BadLimit, Calling, Limits};
use crate::client::ChatClient;
use crate::telemetry::{Metrics, Recording, Telemetry};
use crate::tool::{Dependencies, SetError, Tool, ToolSet};

/// Why an agent cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Its tools do not fit together.
    #[error(transparent)]
    Tools(#[from] SetError),
    /// A limit allows nothing.
    #[error(transparent)]
    Limits(#[from] BadLimit),
}

/// Puts an [`Agent`] together.
#[must_use = "call build() to get the agent"]
pub struct AgentBuilder {
    client: Arc<dyn ChatClient>,
    name: String,
    instructions: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    dependencies: Dependencies,
    settings: Settings,
    model: Option<String>,
    limits: Limits,
    calling: Calling,
    details: Details,
    clock: Arc<dyn Clock>,
    ids: Option<Ids>,
    recording: Recording,
    metrics: Option<Metrics>,
}

impl AgentBuilder {
    pub(super) fn new(client: Arc<dyn ChatClient>) -> Self {
        Self {
            client,
            name: "agent".to_owned(),
            instructions: None,
            tools: Vec::new(),
            dependencies: Dependencies::default(),
            settings: Settings::default(),
            model: None,
            limits: Limits::default(),
            calling: Calling::default(),
            details: Details::Hidden,
            clock: Arc::new(SystemClock),
            ids: None,
            recording: Recording::default(),
            metrics: None,
        }
    }

    /// Its name, for telemetry and as author.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What it is told above everyone.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// A tool it may call.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Tools it may call.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Something its tools depend on, found by its type in
    /// [`CallContext::dependency`](crate::CallContext::dependency).
    pub fn dependency<T: Any + Send + Sync>(mut self, dependency: T) -> Self {
        self.dependencies.insert(dependency);
        self
    }

    /// How its model is to answer.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The model to ask, if not the client's own.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How far its runs may go.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Run the calls of a round one after the other.
    pub fn serial_calls(mut self) -> Self {
        self.calling = Calling::Serial;
        self
    }

    /// Show the model the whole text of a tool's error, not only that there was one.
    pub fn show_tool_errors(mut self) -> Self {
        self.details = Details::Shown;
        self
    }

    /// Where dates come from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where ids come from.
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Where its runs, model calls and tools are counted and measured.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Let spans hold what is said: instructions, messages, arguments, results and error texts.
    /// Without this they have names, numbers and kinds only.
    pub fn record_content(mut self) -> Self {
        self.recording = Recording::Content;
        self
    }

    /// The agent. Refused if two tools share a name or a limit allows nothing.
    pub fn build(self) -> Result<Agent, BuildError> {
        self.limits.check()?;
        let ids = self
            .ids
            .unwrap_or_else(|| Ids::new(Arc::clone(&self.clock)));
        let telemetry = Telemetry::of(&self.name, self.recording, self.metrics);
        Ok(Agent::of(Inner {
            client: self.client,
            name: self.name,
            instructions: self.instructions,
            tools: ToolSet::new(self.tools)?,
            dependencies: Arc::new(self.dependencies),
            settings: self.settings,
            model: self.model,
            limits: self.limits,
            calling: self.calling,
            details: self.details,
            clock: self.clock,
            ids,
            tasks: TaskTracker::new(),
            telemetry,
        }))
    }
}
