use std::fmt;
use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::{Settings, ToolChoice, ToolDef};
use throughline_store::{Idempotency, RunId};

use super::limits::{Calling, Limits};
use crate::prompt::Compaction;
use crate::run::ContextProvider;
use crate::thread::{OnBusy, OnInterrupt, OnOpenCalls, OnPark, Persistence};
use crate::tool::Tool;

/// What somebody gets who asks again with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum OnRepeat {
    /// The answer of the first run, once it has ended.
    #[default]
    Wait,
    /// At once the name of the first run, as [`RunError::Repeated`](crate::agent::RunError::Repeated).
    Tell,
}

/// What a caller may choose for one run; what is absent is the agent's.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Tools for this run. One that has the name of an agent's tool stands in for it.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools that the service runs itself, such as a search of the web. One that it does not have is
    /// listed in [`Outcome::losses`](crate::Outcome::losses).
    pub hosted: Vec<ToolDef>,
    /// Whether and which tools to call, for the first model call of the run; after that the model
    /// chooses.
    pub choice: ToolChoice,
    /// How the model is to answer.
    pub settings: Option<Settings>,
    /// The model to ask.
    pub model: Option<String>,
    /// How far the run may go.
    pub limits: Option<Limits>,
    /// Whether what a failed run has used counts for the run that goes on with its journal although
    /// that one names limits. A retry of the same request names the same limits, and lifts none.
    pub keeps_spent: bool,
    /// Whether calls of a round run at once.
    pub calling: Option<Calling>,
    /// What the application says behind the agent's instructions.
    pub instructions: Option<String>,
    /// Context providers for this run. One that has the name of an agent's stands in for it.
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// When the history moves.
    pub persistence: Option<Persistence>,
    /// What to do when another run works on the thread.
    pub on_busy: Option<OnBusy>,
    /// What to do with a run that died.
    pub on_interrupt: Option<OnInterrupt>,
    /// What to do with calls that wait.
    pub on_open_calls: Option<OnOpenCalls>,
    /// What becomes of the run when it has to wait.
    pub on_park: Option<OnPark>,
    /// Whether older tool calls give way to digests of them.
    pub compaction: Option<Compaction>,
    /// The id that the service is expected to have for this conversation; another one is refused
    /// before the call.
    pub service_id: Option<String>,
    /// A key under which the store begins one run, however often the request is sent, and a digest
    /// of the request: the same key with another digest is refused.
    /// [`Run::idempotency_key`](crate::agent::Run::idempotency_key) takes the digest of the input.
    pub key: Option<Idempotency>,
    /// What a request gets whose key has a run already.
    pub on_repeat: OnRepeat,
    /// The id that the run is to have.
    pub run: Option<RunId>,
    /// What a host needs to go on with the run in another process: an object that is kept with it,
    /// once for each distinct content. Where it is given, the rest of these options is the host's
    /// to make again, and none of it is kept.
    pub host: Option<RawJson>,
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
