//! What an agent is made of, as its runs use it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use throughline_model::Settings;
use throughline_store::{Clock, Ids, Millis, ThreadId};
use tokio_util::task::TaskTracker;

use super::limits::{BadLimit, Calling, Limits};
use super::provider::{ContextProvider, MessageFilter};
use crate::client::{ChatClient, MemoryBudget};
use crate::prompt::Compaction;
use crate::telemetry::Telemetry;
use crate::thread::{HistoryPolicy, MessageStore, Owner, Threads};
use crate::tool::{Dependencies, SetError, ToolSet};

/// How much a model reads of a tool's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    Hidden,
    Shown,
}

/// Says who owns the history of a new thread.
pub(crate) type OwnerOfThread = Arc<dyn Fn(&ThreadId) -> Owner + Send + Sync>;

/// The parts of an agent. All handles of one agent and its runs share one value.
pub(crate) struct AgentSetup {
    pub(crate) client: Arc<dyn ChatClient>,
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    pub(crate) tools: ToolSet,
    pub(crate) dependencies: Arc<Dependencies>,
    pub(crate) settings: Settings,
    pub(crate) model: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) calling: Calling,
    pub(crate) details: Details,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) tasks: TaskTracker,
    pub(crate) telemetry: Telemetry,
    pub(crate) threads: Option<Threads>,
    pub(crate) policy: HistoryPolicy,
    pub(crate) compaction: Compaction,
    /// The client that writes summaries, if not the agent's own.
    pub(crate) narrator: Option<Arc<dyn ChatClient>>,
    /// Summaries that are being written.
    pub(crate) narratives: TaskTracker,
    /// Whether the tools `expand` and `recall` are offered.
    pub(crate) recalls: bool,
    pub(crate) providers: Vec<Arc<dyn ContextProvider>>,
    pub(crate) filters: Vec<Arc<dyn MessageFilter>>,
    pub(crate) message_stores: BTreeMap<String, Arc<dyn MessageStore>>,
    /// The name under which service ids of this agent are stored.
    pub(crate) sub_agent: String,
    /// Who owns the history of new threads; our store if this is not set.
    pub(crate) owner: Option<OwnerOfThread>,
    /// Whether the client is used without layers of this library.
    pub(crate) as_is: bool,
    pub(crate) answers: Answers,
    /// Counts what its runs hold.
    pub(crate) memory: Option<MemoryBudget>,
    /// How long an approval can be answered.
    pub(crate) approval_time: Option<Millis>,
}

/// How model calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// As streams, so that what came is kept when a run is cut off.
    Streamed,
    /// Whole.
    Whole,
}

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
    /// Two context providers have one name, and so one state.
    #[error("two context providers are called {name:?}; their state would be one")]
    ProviderClash {
        /// The name.
        name: String,
    },
    /// A context provider has a name that state cannot be kept under.
    #[error("a context provider cannot be called {name:?}; the name is empty or reserved")]
    ProviderName {
        /// The name.
        name: String,
    },
}

/// Refuse providers that would share a state, or whose name is reserved.
pub(crate) fn check_providers(providers: &[Arc<dyn ContextProvider>]) -> Result<(), BuildError> {
    let mut names = BTreeSet::new();
    for provider in providers {
        let name = &provider.spec().name;
        if !names.insert(name) {
            return Err(BuildError::ProviderClash { name: name.clone() });
        }
        // The library stores its own state under names with this prefix.
        if name.is_empty() || name.starts_with("throughline.") {
            return Err(BuildError::ProviderName { name: name.clone() });
        }
    }
    Ok(())
}
