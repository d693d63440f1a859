use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use throughline_model::Settings;
use throughline_store::{At, Clock, Ids, Millis, NewThread, RunId};
use tokio_util::task::TaskTracker;

use super::builder::AgentBuilder;
use super::input::Input;
use super::limits::{Calling, Limits};
use super::order;
use super::run::Run;
use crate::client::ChatClient;
use crate::history::{
    Compaction, ContextProvider, HistoryPolicy, MessageFilter, MessageStore, Thread, Threads,
};
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
    pub(super) threads: Option<Threads>,
    pub(super) policy: HistoryPolicy,
    pub(super) compaction: Compaction,
    /// Who writes summaries, if not the model itself.
    pub(super) narrator: Option<Arc<dyn ChatClient>>,
    /// Summaries that are being written.
    pub(super) narratives: TaskTracker,
    /// Whether tools of ours look into the conversation.
    pub(super) recalls: bool,
    pub(super) providers: Vec<Arc<dyn ContextProvider>>,
    pub(super) filters: Vec<Arc<dyn MessageFilter>>,
    pub(super) message_stores: BTreeMap<String, Arc<dyn MessageStore>>,
    /// Under which name services keep conversations of this agent.
    pub(super) sub_agent: String,
    /// Whether no layer of ours is put around the client.
    pub(super) as_is: bool,
    pub(super) answers: Answers,
    /// How long an approval can be answered.
    pub(super) approval_time: Option<Millis>,
}

/// How model calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// As streams, so that what came is kept when a run is cut off.
    Streamed,
    /// Whole.
    Whole,
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

    /// Run on a new thread of its own, in the agent's store if it has one. Await it for the
    /// outcome, or take [`Run::stream`].
    pub fn run(&self, input: impl Into<Input>) -> Run {
        Run::begin(self, &self.new_thread(), input.into())
    }

    /// A new thread in the agent's store; without a store, one in memory.
    pub fn new_thread(&self) -> Thread {
        let id = self.inner.ids.thread();
        match &self.inner.threads {
            Some(threads) => threads.make(NewThread::new(id)),
            None => Thread::with_id(id),
        }
    }

    /// The threads of the agent's store.
    pub fn threads(&self) -> Option<&Threads> {
        self.inner.threads.as_ref()
    }

    /// Open a thread of the agent's store by its id or an alias, to go on at its head; or by a node
    /// or a run (a response id), to go on there. One round trip.
    pub async fn open(&self, at: impl Into<At>) -> Result<Thread, throughline_store::Error> {
        let at = at.into();
        match &self.inner.threads {
            Some(threads) => threads.open(at).await,
            None => Err(throughline_store::Error::NotFound {
                what: "thread",
                id: format!("{at:?}, since the agent has no store"),
            }),
        }
    }

    /// Run on a thread.
    pub fn run_on(&self, thread: &Thread, input: impl Into<Input>) -> Run {
        Run::begin(self, thread, input.into())
    }

    /// Run where a node is marked open ([`OnPark::Publish`](crate::OnPark::Publish)): what is said
    /// about the calls that wait there, with [`Run::approve`], [`Run::reject`] and [`Run::answer`] or
    /// as results in the input, and then the input. A call that somebody agrees to runs here, once,
    /// whatever other branches say. What nothing is said about goes by
    /// [`OnOpenCalls`](crate::OnOpenCalls).
    ///
    /// ```
    /// use throughline::{Agent, Demo, HistoryPolicy, OnPark, StopReason, Thread, declare_args};
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Place { place: String }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = HistoryPolicy {
    ///     on_park: OnPark::Publish,
    ///     ..HistoryPolicy::default()
    /// };
    /// let tide = declare_args::<Place>("tide", "When it is high.");
    /// let agent = Agent::builder(Demo::new()).tool(tide).history(policy).build()?;
    /// let thread = Thread::new();
    /// let asked = agent.run_on(&thread, r#"Call tide with {"place":"Sines"}"#).await?;
    /// assert_eq!(asked.stop, StopReason::Parked);
    /// // The run is over, and its answer is history. What it waits for begins the next one.
    /// let call = &asked.pending[0];
    /// let told = agent.reply_on(&thread, Vec::new()).answer(call, "at four").await?;
    /// assert_eq!(told.stop, StopReason::Done);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reply_on(&self, thread: &Thread, input: impl Into<Input>) -> Run<order::Reply> {
        Run::reply(self, thread, input.into())
    }

    /// Go on with a run by its id, wherever it stands: what died is finished, under the same id. One
    /// that somebody works on is refused as busy; one that killed its worker too often is sealed.
    pub async fn resume_run(
        &self,
        threads: &Threads,
        run: RunId,
    ) -> Result<Run<order::Resume>, throughline_store::Error> {
        let run = threads.store().run(threads.scope(), run).await?;
        let thread = threads.open_run(&run).await?;
        Ok(Run::take_over(self, &thread, run))
    }

    /// Go on with a run that is parked, died or failed: nothing that has finished is done again.
    pub fn resume(&self, thread: &Thread) -> Run<order::Resume> {
        Run::resume(self, thread)
    }

    /// Cancel the run on a thread, wherever it is at work, or parked: what waits is closed, its
    /// approvals are withdrawn, and what had finished is published. A run that ended before the order
    /// came stays as it is, and its outcome is the answer; see
    /// [`Outcome::had_finished`](crate::Outcome::had_finished).
    pub fn cancel(&self, thread: &Thread) -> Run<order::Cancel> {
        Run::cancel(self, thread)
    }

    /// Wait until every run has left its thread in order, those included whose callers went away.
    pub async fn settled(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.tasks.reopen();
    }

    /// Wait until no summary is being written; see [`AgentBuilder::narrator`]. Runs never wait for
    /// one.
    pub async fn narrated(&self) {
        self.inner.narratives.close();
        self.inner.narratives.wait().await;
        self.inner.narratives.reopen();
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
