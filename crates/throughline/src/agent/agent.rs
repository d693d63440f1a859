use std::fmt;
use std::sync::Arc;

use throughline_store::{At, NewThread, RunId};

use super::builder::AgentBuilder;
use crate::client::ChatClient;
use crate::run::setup::AgentSetup;
use crate::run::{Input, Run, order};
use crate::thread::{Thread, Threads};

/// An agent: instructions, tools and a client that run on threads, on many threads concurrently.
/// Clones are cheap and share everything.
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
    /// Starts building an agent.
    pub fn builder(client: impl ChatClient + 'static) -> AgentBuilder {
        AgentBuilder::new(Arc::new(client))
    }

    pub(super) fn of(inner: AgentSetup) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Runs on a new thread, in the agent's store if it has one. Await it for the outcome, or call
    /// [`Run::stream`].
    pub fn run(&self, input: impl Into<Input>) -> Run {
        Run::begin(&self.inner, &self.new_thread(), input.into())
    }

    /// Makes a new thread in the agent's store, or in memory if the agent has none. Its history has
    /// the owner that [`AgentBuilder::new_threads_owned_by`] chose.
    pub fn new_thread(&self) -> Thread {
        let id = self.inner.ids.thread();
        let owner = self.inner.owner.as_ref().map(|owner| owner(&id));
        let thread = match &self.inner.threads {
            Some(threads) => threads.make(NewThread::new(id)),
            None => Thread::with_id(id),
        };
        if let Some(owner) = owner {
            thread.set_first_owner(owner);
        }
        thread
    }

    /// The threads of the agent's store.
    pub fn threads(&self) -> Option<&Threads> {
        self.inner.threads.as_ref()
    }

    /// Opens a thread of the agent's store in one round trip: by its id or an alias to continue at
    /// its head, or by a node or a run (a response id) to continue there.
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

    /// Runs on a thread.
    pub fn run_on(&self, thread: &Thread, input: impl Into<Input>) -> Run {
        Run::begin(&self.inner, thread, input.into())
    }

    /// Runs at a node that is marked open ([`OnPark::Publish`](crate::thread::OnPark::Publish)):
    /// first the answers to the calls that wait there, from [`Run::approve`], [`Run::reject`] and
    /// [`Run::answer`] or from results in the input, and then the input. An approved call runs
    /// here, once, whatever other branches decide. Calls without an answer are treated by
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
    /// // The run has ended, and its answer is history. The calls that wait begin the next run.
    /// let call = &asked.pending[0];
    /// let told = agent.reply_on(&thread, Vec::new()).answer(call, "at four").await?;
    /// assert_eq!(told.stop, StopReason::Done);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reply_on(&self, thread: &Thread, input: impl Into<Input>) -> Run<order::Reply> {
        Run::reply(&self.inner, thread, input.into())
    }

    /// Resumes a run by its id, in any state: an interrupted run is finished under the same id. A
    /// run that a worker has is refused as busy, and one that killed its workers too often is
    /// marked as failed.
    pub async fn resume_run(
        &self,
        threads: &Threads,
        run: RunId,
    ) -> Result<Run<order::Resume>, throughline_store::Error> {
        let run = threads.store().run(threads.scope(), run).await?;
        let thread = threads.open_run(&run).await?;
        Ok(Run::take_over(&self.inner, &thread, run))
    }

    /// Resumes a run that is parked, interrupted or failed. Finished model calls and tools are not
    /// repeated.
    pub fn resume(&self, thread: &Thread) -> Run<order::Resume> {
        Run::resume(&self.inner, thread)
    }

    /// Cancels the run on a thread, in whichever process it runs, or parked: open calls are closed,
    /// waiting approvals are withdrawn, and what had finished is published. A run that ended before
    /// the cancellation arrived does not change, and its outcome is returned; see
    /// [`Outcome::had_finished`](crate::Outcome::had_finished).
    pub fn cancel(&self, thread: &Thread) -> Run<order::Cancel> {
        Run::cancel(&self.inner, thread)
    }

    /// Waits until every run has released its thread, including runs whose futures were dropped.
    pub async fn settled(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.tasks.reopen();
    }

    /// Waits until no summary is being written; see [`AgentBuilder::narrator`]. Runs never wait for
    /// summaries.
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
