use std::fmt;
use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::{Settings, ToolChoice, ToolDef};
use throughline_store::{Idempotency, NodeId, RunId};

use super::host::LeftRuns;
use super::limits::{Calling, Limits};
use crate::prompt::Compaction;
use crate::run::ContextProvider;
use crate::thread::{OnBusy, OnInterrupt, OnOpenCalls, OnPark, Persistence};
use crate::tool::Tool;

/// The answer to a request whose idempotency key has a run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnRepeat {
    /// The outcome of the first run, once it has ended.
    #[default]
    Wait,
    /// At once the id of the first run, as [`RunError::Repeated`](crate::agent::RunError::Repeated).
    Tell,
}

/// What the head of the thread must be for a run to begin. It is compared when the run has the
/// thread, so that a run that waited for others is refused if they moved the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ExpectedHead {
    /// Anything.
    #[default]
    Any,
    /// The thread must be empty.
    Empty,
    /// It must be this node.
    Node(NodeId),
}

impl ExpectedHead {
    /// Whether a head is as expected.
    pub fn is_met(self, head: Option<NodeId>) -> bool {
        match self {
            Self::Any => true,
            Self::Empty => head.is_none(),
            Self::Node(node) => head == Some(node),
        }
    }
}

/// Settings for one run. What is absent is the agent's.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Tools for this run. One with the name of an agent's tool replaces it.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools that the service runs itself, such as web search. A tool that it does not have is listed in [`Outcome::losses`](crate::Outcome::losses).
    pub hosted: Vec<ToolDef>,
    /// Which tools the first model call may or must use. For later calls the model chooses.
    pub choice: ToolChoice,
    /// Settings of the model calls.
    pub settings: Option<Settings>,
    /// The model to call.
    pub model: Option<String>,
    /// How far the run may go.
    pub limits: Option<Limits>,
    /// Whether what a failed run has used of its limits counts for the run that continues it, although
    /// these options name limits. A retry of the same request names the same limits.
    pub keeps_spent: bool,
    /// Whether calls of a round run at once.
    pub calling: Option<Calling>,
    /// Instructions behind those of the agent.
    pub instructions: Option<String>,
    /// Context providers for this run. One with the name of an agent's provider replaces it.
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// When the history is published.
    pub persistence: Option<Persistence>,
    /// What to do when another run works on the thread.
    pub on_busy: Option<OnBusy>,
    /// What to do with an interrupted run.
    pub on_interrupt: Option<OnInterrupt>,
    /// What to do with calls that wait on the thread.
    pub on_open_calls: Option<OnOpenCalls>,
    /// What to do when calls of the run have to wait.
    pub on_park: Option<OnPark>,
    /// Whether digests replace older tool calls in prompts.
    pub compaction: Option<Compaction>,
    /// The id that the service must have for this conversation. The run is refused if the thread has
    /// another one.
    pub service_id: Option<String>,
    /// A key under which the store begins one run, however often the request is sent, and a digest
    /// of the request: the same key with another digest is refused.
    /// [`Run::idempotency_key`](crate::agent::Run::idempotency_key) takes the digest of the input.
    pub key: Option<Idempotency>,
    /// What a request gets whose key has a run already.
    pub on_repeat: OnRepeat,
    /// What the head of the thread must be; else the run is
    /// [`RunError::HeadMoved`](crate::agent::RunError::HeadMoved).
    pub expected_head: ExpectedHead,
    /// The id that the run is to have.
    pub run: Option<RunId>,
    /// What a host needs to resume the run in another process: an object that is stored with the run,
    /// once for each distinct content. With it the host makes the other options again, and none of
    /// them are stored.
    pub host: Option<RawJson>,
    /// The agent that listings of threads know the run by. Without it that is the name of the agent that
    /// makes the run; with `host` there is none.
    pub listed_agent: Option<String>,
    /// How to make a run again that was left on the thread, if its host keeps its options. Without it
    /// this run's agent resumes it.
    pub left_runs: Option<Arc<dyn LeftRuns>>,
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| &*tool.spec().name).collect();
        f.debug_struct("RunOptions")
            .field("tools", &tools)
            .field("choice", &self.choice)
            .field("settings", &self.settings)
            .field("model", &self.model)
            .field("limits", &self.limits)
            .field("calling", &self.calling)
            .finish_non_exhaustive()
    }
}
