use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Settings;
use throughline_store::{Clock, Ids, Store, SystemClock, ThreadId};
use tokio_util::task::TaskTracker;

use super::Agent;
use crate::client::{ChatClient, MemoryBudget};
use crate::prompt::Compaction;
use crate::run::setup::{AgentSetup, Answers, BuildError, Details, OwnerOfThread, check_providers};
use crate::run::{Calling, Limits};
use crate::run::{ContextProvider, MessageFilter};
use crate::telemetry::{Metrics, Recording, Telemetry};
use crate::thread::{HistoryPolicy, MessageStore, Owner, Persistence, Threads};
use crate::tool::{Dependencies, Tool, ToolSet};

/// Builds an [`Agent`].
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
    threads: Option<Threads>,
    policy: HistoryPolicy,
    compaction: Compaction,
    narrator: Option<Arc<dyn ChatClient>>,
    recalls: bool,
    providers: Vec<Arc<dyn ContextProvider>>,
    filters: Vec<Arc<dyn MessageFilter>>,
    message_stores: BTreeMap<String, Arc<dyn MessageStore>>,
    sub_agent: String,
    owner: Option<OwnerOfThread>,
    as_is: bool,
    answers: Answers,
    memory: Option<MemoryBudget>,
    approval_time: Option<Duration>,
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
            threads: None,
            policy: HistoryPolicy::default(),
            compaction: Compaction::default(),
            narrator: None,
            recalls: false,
            providers: Vec::new(),
            filters: Vec::new(),
            message_stores: BTreeMap::new(),
            sub_agent: String::new(),
            owner: None,
            as_is: false,
            answers: Answers::Streamed,
            memory: None,
            approval_time: None,
        }
    }

    /// Sets where new threads are stored. Threads that were opened elsewhere keep their own store.
    pub fn threads(mut self, threads: &Threads) -> Self {
        self.threads = Some(threads.clone());
        self
    }

    /// Stores new threads in a store, as tenant `local`.
    pub fn store(self, store: &Store) -> Self {
        self.threads(&Threads::of(store))
    }

    /// Sets the history policy: persistence mode, and what happens to unfinished runs.
    pub fn history(mut self, policy: HistoryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether and when older tool calls are replaced by digests in what the model is shown.
    /// On by default; the record keeps everything in any case.
    ///
    /// ```
    /// use throughline::compact::Policy;
    /// use throughline::agent::Compaction;
    /// use throughline::{Agent, Demo};
    ///
    /// let within = Agent::builder(Demo::new()).compaction(Policy::with_budget(32_000)).build()?;
    /// let never = Agent::builder(Demo::new()).compaction(Compaction::Off).build()?;
    /// # let _ = (within, never);
    /// # Ok::<(), throughline::agent::BuildError>(())
    /// ```
    pub fn compaction(mut self, compaction: impl Into<Compaction>) -> Self {
        self.compaction = compaction.into();
        self
    }

    /// Sets the client that writes the summaries of
    /// [`Policy::narrative`](crate::compact::Policy::narrative). The default is the agent's own
    /// client, whose prompt cache has most of what it reads.
    ///
    /// ```
    /// use throughline::compact::Policy;
    /// use throughline::{Agent, Demo};
    ///
    /// let agent = Agent::builder(Demo::new())
    ///     .compaction(Policy::with_budget(32_000).narrated(600))
    ///     .narrator(Demo::new())
    ///     .build()?;
    /// # let _ = agent;
    /// # Ok::<(), throughline::agent::BuildError>(())
    /// ```
    pub fn narrator(mut self, client: impl ChatClient + 'static) -> Self {
        self.narrator = Some(Arc::new(client));
        self
    }

    /// Offers the model the tools `expand` and `recall`, which return the full messages behind
    /// digests: by the number of a digest line, or by words.
    pub fn recall_tools(mut self) -> Self {
        if !self.recalls {
            self.recalls = true;
            self.tools.extend(crate::run::recall::tools());
        }
        self
    }

    /// Sets when the history moves: at the end of a run, or after each model call.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.policy.persistence = persistence;
        self
    }

    /// Adds a context provider.
    pub fn provider(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Adds a filter that decides which messages of a conversation the model is shown.
    pub fn filter(mut self, filter: impl MessageFilter + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Adds a message store of the application, for threads whose owner is
    /// [`Owner::External`](crate::thread::Owner::External) with this name.
    pub fn message_store(
        mut self,
        name: impl Into<String>,
        store: impl MessageStore + 'static,
    ) -> Self {
        self.message_stores.insert(name.into(), Arc::new(store));
        self
    }

    /// Sets who owns the history of new threads ([`Agent::new_thread`]), by their ids. Without it,
    /// new threads are [`Owner::Local`].
    ///
    /// ```
    /// use throughline::model::json::RawJson;
    /// use throughline::thread::Owner;
    /// use throughline::{Agent, Demo};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new())
    ///     .new_threads_owned_by(|id| Owner::External {
    ///         store: "crm".to_owned(),
    ///         key: RawJson::object(|key| {
    ///             key.str("case", id.as_str());
    ///         }),
    ///     })
    ///     .build()?;
    /// assert_eq!(agent.new_thread().owner().kind(), "external");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new_threads_owned_by(
        mut self,
        owner: impl Fn(&ThreadId) -> Owner + Send + Sync + 'static,
    ) -> Self {
        self.owner = Some(Arc::new(owner));
        self
    }

    /// Stores the ids that services issue for this agent under a name, separately from those of
    /// other agents on the same thread.
    pub fn sub_agent(mut self, name: impl Into<String>) -> Self {
        self.sub_agent = name.into();
        self
    }

    /// Uses the client without adding a layer. To publish each call, its own layers must include
    /// one that does; see [`PersistEachCall`](crate::client::PersistEachCall).
    pub fn client_as_is(mut self) -> Self {
        self.as_is = true;
        self
    }

    /// Requests whole answers instead of streams. When a run is cut off, the partial answer is then
    /// lost.
    pub fn whole_answers(mut self) -> Self {
        self.answers = Answers::Whole;
        self
    }

    /// Counts what models and tools say in a budget that other parts of the process share, until the run
    /// is over. The runs neither wait nor fail for it; the client of
    /// [`ClientBuilder::memory`](crate::client::ClientBuilder::memory) does, which reads the answers.
    ///
    /// ```
    /// use throughline::client::MemoryBudget;
    /// use throughline::{Agent, Demo};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let budget = MemoryBudget::new(64 << 20);
    /// let agent = Agent::builder(Demo::new()).memory(&budget).build()?;
    /// agent.run("hello").await?;
    /// assert_eq!(budget.held(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory(mut self, budget: &MemoryBudget) -> Self {
        self.memory = Some(budget.clone());
        self
    }

    /// Sets how long an approval can be answered.
    pub fn approvals_expire_after(mut self, time: Duration) -> Self {
        self.approval_time = Some(time);
        self
    }

    /// Sets the name, for telemetry and as the author of messages.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the instructions, which the model gets as its system prompt.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a value that tools depend on, found by its type with
    /// [`CallContext::dependency`](crate::tool::CallContext::dependency).
    pub fn dependency<T: Any + Send + Sync>(mut self, dependency: T) -> Self {
        self.dependencies.insert(dependency);
        self
    }

    /// Sets the settings of model calls.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the model, if it is not the client's own.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the limits of runs.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs the calls of a round one after the other.
    pub fn serial_calls(mut self) -> Self {
        self.calling = Calling::Serial;
        self
    }

    /// Shows the model the text of a tool's error, and not only that the tool failed.
    pub fn show_tool_errors(mut self) -> Self {
        self.details = Details::Shown;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets where ids come from.
    pub fn ids(mut self, ids: Ids) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Sets the metrics that count and measure runs, model calls and tools.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Records content in spans: instructions, messages, arguments, results and error texts. By
    /// default spans have names, numbers and kinds only.
    pub fn record_content(mut self) -> Self {
        self.recording = Recording::Content;
        self
    }

    /// Builds the agent. Fails if two tools or two context providers share a name, or if a limit is
    /// zero.
    pub fn build(self) -> Result<Agent, BuildError> {
        self.limits.check()?;
        check_providers(&self.providers)?;
        let ids = self
            .ids
            .unwrap_or_else(|| Ids::new(Arc::clone(&self.clock)));
        let telemetry = Telemetry::of(&self.name, self.recording, self.metrics);
        Ok(Agent::of(AgentSetup {
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
            threads: self.threads,
            policy: self.policy,
            compaction: self.compaction,
            narrator: self.narrator,
            narratives: TaskTracker::new(),
            recalls: self.recalls,
            providers: self.providers,
            filters: self.filters,
            message_stores: self.message_stores,
            sub_agent: self.sub_agent,
            owner: self.owner,
            as_is: self.as_is,
            answers: self.answers,
            memory: self.memory,
            approval_time: self
                .approval_time
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        }))
    }
}
