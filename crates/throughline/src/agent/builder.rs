use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::Settings;
use throughline_store::{Clock, Ids, Store, SystemClock};
use tokio_util::task::TaskTracker;

use super::Agent;
use crate::client::ChatClient;
use crate::prompt::Compaction;
use crate::run::setup::{AgentSetup, Answers, BuildError, Details, check_providers};
use crate::run::{Calling, Limits};
use crate::run::{ContextProvider, MessageFilter};
use crate::telemetry::{Metrics, Recording, Telemetry};
use crate::thread::{HistoryPolicy, MessageStore, Persistence, Threads};
use crate::tool::{Dependencies, Tool, ToolSet};

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
    threads: Option<Threads>,
    policy: HistoryPolicy,
    compaction: Compaction,
    narrator: Option<Arc<dyn ChatClient>>,
    recalls: bool,
    providers: Vec<Arc<dyn ContextProvider>>,
    filters: Vec<Arc<dyn MessageFilter>>,
    message_stores: BTreeMap<String, Arc<dyn MessageStore>>,
    sub_agent: String,
    as_is: bool,
    answers: Answers,
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
            as_is: false,
            answers: Answers::Streamed,
            approval_time: None,
        }
    }

    /// Where its new threads are kept. Threads that were opened elsewhere bring their own store.
    pub fn threads(mut self, threads: &Threads) -> Self {
        self.threads = Some(threads.clone());
        self
    }

    /// Where its new threads are kept, as those of tenant `local`.
    pub fn store(self, store: &Store) -> Self {
        self.threads(&Threads::of(store))
    }

    /// What is to become of history where one can choose.
    pub fn history(mut self, policy: HistoryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Whether older tool calls give way to digests of them in what the model is shown, and when. It
    /// is on by itself; the record keeps everything either way.
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

    /// Who writes the summaries that [`Policy::narrative`](crate::compact::Policy::narrative) asks for;
    /// without this the agent's own model does, which has most of what it reads in its cache.
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

    /// Give the model the tools `expand` and `recall`, with which it gets at what it is shown only as
    /// a digest: by the number of a digest line, or by words.
    pub fn recall_tools(mut self) -> Self {
        if !self.recalls {
            self.recalls = true;
            self.tools.extend(crate::run::recall::tools());
        }
        self
    }

    /// When the history moves: at the end of a run, or after each model call.
    pub fn persistence(mut self, persistence: Persistence) -> Self {
        self.policy.persistence = persistence;
        self
    }

    /// Something that adds to what the model is told, and learns from the result.
    pub fn provider(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Decides what of a conversation the model is shown.
    pub fn filter(mut self, filter: impl MessageFilter + 'static) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// A message store of the application, for threads whose owner is
    /// [`Owner::External`](crate::thread::Owner::External) with this name.
    pub fn message_store(
        mut self,
        name: impl Into<String>,
        store: impl MessageStore + 'static,
    ) -> Self {
        self.message_stores.insert(name.into(), Arc::new(store));
        self
    }

    /// Keep the ids that services give for this agent apart from those of others on the same
    /// thread, under a name.
    pub fn sub_agent(mut self, name: impl Into<String>) -> Self {
        self.sub_agent = name.into();
        self
    }

    /// Use the client as it is: put no layer around it. To publish each call, its own layers must
    /// have one that does; see [`PersistEachCall`](crate::client::PersistEachCall).
    pub fn client_as_is(mut self) -> Self {
        self.as_is = true;
        self
    }

    /// Ask for whole answers, not for streams. What a model had said when a run is cut off is then
    /// lost.
    pub fn whole_answers(mut self) -> Self {
        self.answers = Answers::Whole;
        self
    }

    /// How long an approval can be answered.
    pub fn approvals_expire_after(mut self, time: Duration) -> Self {
        self.approval_time = Some(time);
        self
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
    /// [`CallContext::dependency`](crate::tool::CallContext::dependency).
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

    /// The agent. Refused if two tools or two context providers share a name, or a limit allows
    /// nothing.
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
            as_is: self.as_is,
            answers: self.answers,
            approval_time: self
                .approval_time
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        }))
    }
}
