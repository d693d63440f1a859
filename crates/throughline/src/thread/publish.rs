//! Publishing a run that was left behind.

use throughline_model::{
    CallId, Content, Family, Message, Outcome, Output, Role, Source, ToolResult,
};
use throughline_store::{
    At, CallResult, CallState, Claim, End, Ending, Error, Execution, Journal, Publish, Published,
    Result, Run, RunId, RunState, Started, Stopped, ThreadId,
};
use tokio_util::sync::CancellationToken;

use super::live::RunningRun;
use super::scoped_store::ScopedStore;
use super::threads::Threads;

/// A run that was published after it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedRun {
    /// The run.
    pub run: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// Its last node, and whether that is the head now.
    pub published: Published,
    /// How many calls without a result were closed.
    pub calls_closed: u64,
}

impl Threads {
    /// Publishes a run that is parked, interrupted, held or unpublished: it ends, and what it has
    /// becomes history. Calls without a result get one that says what is known of them.
    ///
    /// Fails with [`Busy`](Error::Busy) while this or another process works on the run, with
    /// [`HeadMoved`](Error::HeadMoved) if its thread has moved on since it began, and with
    /// [`WrongState`](Error::WrongState) once it is settled. The run is unchanged then.
    ///
    /// ```
    /// use throughline::store::Store;
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
    /// let thread = agent.new_thread();
    /// let parked = agent.run_on(&thread, "use open_sluice").await?;
    /// assert_eq!(parked.stop, StopReason::Parked);
    ///
    /// let published = threads.publish(parked.run).await?;
    /// assert_eq!(published.calls_closed, 1);
    /// assert_eq!(threads.open(thread.id().clone()).await?.history().len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn publish(&self, run: RunId) -> Result<PublishedRun> {
        let ScopedStore { store, scope, .. } = self.home();
        let before = store.run(scope, run).await?;
        self.check_not_moved(&before).await?;
        // Keeps other tasks of this process from resuming the run meanwhile.
        let Some(_at_work) = RunningRun::try_register(store, run, CancellationToken::new()) else {
            return Err(Error::Busy {
                thread: before.thread,
                run,
                state: before.state,
            });
        };
        let claim = match before.state {
            // This process gave the run up, or another works on it; then the store says `Busy`.
            RunState::Running => Claim::Own,
            _ => Claim::Settle,
        };
        let started = store.claim(scope, run, before.epoch, claim).await?;
        // No other worker can write to the run any more, so its journal is complete.
        let journal = store.journal(scope, run).await?;
        let calls = journal.calls.iter();
        let results: Vec<CallResult> = calls
            .filter_map(|call| known_result(&journal, call))
            .collect();
        let calls_closed = results.len() as u64;
        let publish = Publish {
            results,
            // What ended well and was only never published is done; all else was cut off.
            ending: match before.state {
                RunState::Unpublished => Ending::Committed,
                _ => Ending::Cancelled,
            },
            note: before.note.clone(),
            ..Publish::new(journal.run.next_step, Vec::new())
        };
        match store.publish(scope, started.lease, &publish).await {
            Ok(published) => Ok(PublishedRun {
                run,
                thread: before.thread,
                published,
                calls_closed,
            }),
            Err(error) => {
                self.put_run_back(&before, started).await;
                Err(error)
            }
        }
    }

    /// Refuse before the run is taken over, so that another process can still resume it unchanged.
    async fn check_not_moved(&self, run: &Run) -> Result<()> {
        let ScopedStore { store, scope, .. } = self.home();
        let opened = store
            .open(scope, &At::Thread(run.thread.clone()), 0)
            .await?;
        if run.leased && opened.thread.version != run.version {
            return Err(Error::HeadMoved {
                thread: run.thread.clone(),
                expected: run.version,
                actual: opened.thread.version,
                head: opened.thread.head.map(|head| head.node),
            });
        }
        Ok(())
    }

    /// A run that could not be published goes back to where it waited, so that no worker continues
    /// with it unasked.
    async fn put_run_back(&self, run: &Run, started: Started) {
        let ScopedStore { store, scope, .. } = self.home();
        // If this fails too, the run is interrupted once this process is gone.
        let _ = match run.state {
            RunState::Unpublished => {
                let end = End {
                    how: Stopped::Unpublished,
                    note: run.note.clone(),
                    events: None,
                };
                store.end(scope, started.lease, &end).await
            }
            RunState::Parked | RunState::Held => store.park(scope, started.lease, None).await,
            RunState::Running
            | RunState::Interrupted
            | RunState::Committed
            | RunState::Cancelled
            | RunState::Failed
            | RunState::Discarded => Ok(()),
        };
    }
}

/// What is known of a call without a result.
fn known_result(journal: &Journal, call: &Execution) -> Option<CallResult> {
    let (outcome, words) = match call.state {
        CallState::Done | CallState::Taken => return None,
        CallState::Planned => (
            Outcome::Terminated,
            "[The run was ended; the call did not run.]",
        ),
        CallState::Intent => (
            Outcome::Unknown,
            "[The result of this call was lost; whether it ran is unknown.]",
        ),
        CallState::Approval => (
            Outcome::Withdrawn,
            "[The call was withdrawn and did not run.]",
        ),
        CallState::Client => (
            Outcome::Unknown,
            "[No result was recorded for this call; whether it ran is unknown.]",
        ),
    };
    let output = Output::Text(words.to_owned());
    let placed = journal.call_at(call.at);
    let placed = placed.and_then(|placed| Some((placed.call.clone()?, placed)));
    let result = match placed {
        Some((asked, placed)) if placed.shares_id => asked
            .answer(outcome, output)
            .with_occurrence(placed.occurrence),
        Some((asked, _)) => asked.answer(outcome, output),
        None => {
            let id = CallId::natural(&call.call)?;
            let mut result = ToolResult::answering(id, Family::FUNCTION, output);
            result.name = Some(call.tool.clone());
            result.outcome = outcome;
            result
        }
    };
    let message = Message {
        source: Some(Source::Repair),
        ..Message::new(Role::Tool, vec![Content::from(result)])
    };
    Some(CallResult::new(call.at.step, call.at.position, &message))
}
