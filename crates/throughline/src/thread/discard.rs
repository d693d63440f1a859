//! Discarding an unfinished run.

use throughline_store::{At, Claim, Error, NodeId, Result, RunId, RunState, ThreadId};
use tokio_util::sync::CancellationToken;

use super::handle::Thread;
use super::live::RunningRun;
use super::scoped_store::ScopedStore;
use super::threads::Threads;
use crate::trials::planted;

/// A discarded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedRun {
    /// The run.
    pub run: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// The last node that the run published before; it remains in the history. `None` if nothing of
    /// the run is visible.
    pub published: Option<NodeId>,
}

impl Threads {
    /// Discards a run that is parked, interrupted, held or unpublished: the run ends, and its
    /// unpublished messages never become history. Its waiting approvals are withdrawn. Messages in
    /// the thread's queue stay there. The next run on the thread starts at its head.
    ///
    /// Fails with [`Busy`](Error::Busy) while this or another process works on the run, and with
    /// [`WrongState`](Error::WrongState) once it is settled: committed, cancelled, failed or
    /// discarded. Dropping the future leaves the run discarded, unchanged, or claimed by this
    /// process; discarding it again is safe.
    ///
    /// ```
    /// use throughline::store::{Error, Store};
    /// use throughline::{Agent, Demo, StopReason, Threads, tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let open = tool("open_sluice", "Opens the sluice.", || async { "open" });
    /// let agent = Agent::builder(Demo::new())
    ///     .threads(&threads)
    ///     .tool(open.needs_approval())
    ///     .build()?;
    /// let parked = agent.run("use open_sluice").await?;
    /// assert_eq!(parked.stop, StopReason::Parked);
    ///
    /// let discarded = threads.discard(parked.run).await?;
    /// assert_eq!(discarded.published, None);
    /// let again = threads.discard(parked.run).await;
    /// assert!(matches!(again, Err(Error::WrongState { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn discard(&self, run: RunId) -> Result<DiscardedRun> {
        let ScopedStore { store, scope, .. } = self.home();
        let seen = store.run(scope, run).await?;
        // Keeps other tasks of this process from resuming the run meanwhile.
        let at_work = RunningRun::try_register(store, run, CancellationToken::new());
        if at_work.is_none() && !planted("loop-discards-working") {
            return Err(Error::Busy {
                thread: seen.thread,
                run,
                state: seen.state,
            });
        }
        let claim = match seen.state {
            // Either this process gave the run up after a storage error, or another process works
            // on it, in which case the store returns `Busy`.
            RunState::Running => Claim::Own,
            RunState::Interrupted
            | RunState::Parked
            | RunState::Held
            | RunState::Unpublished
            | RunState::Committed
            | RunState::Cancelled
            | RunState::Failed
            | RunState::Discarded => Claim::Settle,
        };
        store.discard_run(scope, &seen, claim).await?;
        Ok(DiscardedRun {
            run,
            thread: seen.thread,
            published: seen.published,
        })
    }
}

impl Thread {
    /// Discards the unfinished run of this thread: one that is parked, interrupted or held.
    /// [`Threads::discard`] also discards runs that do not hold the thread, by their ids.
    ///
    /// Returns `None` if there is no such run. Afterwards the handle shows the thread without the
    /// run.
    ///
    /// ```
    /// use throughline::{Agent, Demo, StopReason, Thread, tool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let open = tool("open_sluice", "Opens the sluice.", || async { "open" });
    /// let agent = Agent::builder(Demo::new()).tool(open.needs_approval()).build()?;
    /// let thread = Thread::new();
    /// let parked = agent.run_on(&thread, "use open_sluice").await?;
    /// assert_eq!(parked.stop, StopReason::Parked);
    ///
    /// let discarded = thread.discard().await?;
    /// assert_eq!(discarded.map(|one| one.run), Some(parked.run));
    /// assert_eq!((thread.pending().len(), thread.history().len()), (0, 0));
    /// assert!(thread.discard().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn discard(&self) -> Result<Option<DiscardedRun>> {
        if self.shared.is_new() {
            return Ok(None);
        }
        let ScopedStore { store, scope, .. } = &self.shared.home;
        let at = At::Thread(self.shared.id.clone());
        let Some(left) = store.open(scope, &at, 0).await?.unsettled else {
            return Ok(None);
        };
        let threads = Threads::at(self.shared.home.clone());
        let discarded = threads.discard(left.id).await?;
        self.refresh().await?;
        Ok(Some(discarded))
    }
}
