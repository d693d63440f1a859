use std::fmt;
use std::sync::Arc;

use throughline_store::{At, NewThread, RunId};

use super::builder::AgentBuilder;
use crate::client::ChatClient;
use crate::run::setup::AgentSetup;
use crate::run::{Input, Run, order};
use crate::thread::{Thread, Threads};

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
    inner: Arc<AgentSetup>,
}

impl Agent {
    /// Start to put an agent together.
    pub fn builder(client: impl ChatClient + 'static) -> AgentBuilder {
        AgentBuilder::new(Arc::new(client))
    }

    pub(super) fn of(inner: AgentSetup) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Run on a new thread of its own, in the agent's store if it has one. Await it for the
    /// outcome, or take [`Run::stream`].
    pub fn run(&self, input: impl Into<Input>) -> Run {
        Run::begin(&self.inner, &self.new_thread(), input.into())
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
        Run::begin(&self.inner, thread, input.into())
    }

    /// Run where a node is marked open ([`OnPark::Publish`](crate::thread::OnPark::Publish)): what is said
    /// about the calls that wait there, with [`Run::approve`], [`Run::reject`] and [`Run::answer`] or
    /// as results in the input, and then the input. A call that somebody agrees to runs here, once,
    /// whatever other branches say. What nothing is said about goes by
    /// [`OnOpenCalls`](crate::thread::OnOpenCalls).
    ///
    /// ```
    /// use throughline::thread::{HistoryPolicy, OnPark};
    /// use throughline::tool::declare_args;
    /// use throughline::{Agent, Demo, StopReason, Thread};
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
        Run::reply(&self.inner, thread, input.into())
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
        Ok(Run::take_over(&self.inner, &thread, run))
    }

    /// Go on with a run that is parked, died or failed: nothing that has finished is done again.
    pub fn resume(&self, thread: &Thread) -> Run<order::Resume> {
        Run::resume(&self.inner, thread)
    }

    /// Cancel the run on a thread, wherever it is at work, or parked: what waits is closed, its
    /// approvals are withdrawn, and what had finished is published. A run that ended before the order
    /// came stays as it is, and its outcome is the answer; see
    /// [`Outcome::had_finished`](crate::Outcome::had_finished).
    pub fn cancel(&self, thread: &Thread) -> Run<order::Cancel> {
        Run::cancel(&self.inner, thread)
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
