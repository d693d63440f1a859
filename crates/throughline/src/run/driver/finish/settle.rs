//! How a run ends, and what it leaves.

use std::sync::Arc;

use throughline_model::{Message, Source};
use throughline_store::{CallRef, Ending, RunId, State, Stopped, Through};

use crate::run::driver::{Driver, DriverError, EventBatch, Job};
use crate::run::event::RunEvent;
use crate::run::outcome::{Left, Outcome, RunError, RunFailed};
use crate::run::usage::RunUsage;
use crate::thread::Pending;
use crate::thread::StopReason;
use crate::thread::journal::EndNote;
use crate::thread::{Closing, Leaving, OnPark, Parity, Persistence, is_refused_by_disk};
use crate::trials::planted;

/// A run that never began.
pub(in crate::run::driver) fn refused(run: RunId, job: &Job, source: RunError) -> RunFailed {
    if let Some(events) = &job.events {
        let stop = StopReason::Failed;
        drop(events.send(EventBatch::unstored(RunEvent::Ended { stop })));
    }
    let outcome = Outcome {
        run,
        thread: job.id().clone(),
        stop: StopReason::Failed,
        messages: Vec::new(),
        usage: RunUsage::default(),
        pending: Vec::new(),
        finish: None,
        compaction: None,
        losses: Vec::new(),
        steps: Vec::new(),
    };
    RunFailed::new(outcome, Left::Refused, source)
}

/// What the record says of an error: the name of its kind, and what people read.
pub(crate) fn told(error: &RunError) -> (&'static str, String) {
    match error {
        RunError::Client(client) => (client.kind().as_str(), client.to_string()),
        error => ("run", error.to_string()),
    }
}

/// What becomes of results that no model was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trailing {
    /// They are history.
    History,
    /// They stay in the journal and go out with the next run.
    Unsent,
}

/// How a run ended for its caller.
type EndResult = Result<StopReason, (Left, RunError)>;

impl Driver {
    /// End as the work ended, and leave the thread in order.
    pub(in crate::run::driver) async fn end(
        mut self: Box<Self>,
        worked: Result<StopReason, DriverError>,
    ) -> Result<Outcome, RunFailed> {
        let ended = match worked {
            Ok(StopReason::Parked) => match self.plan.policy.on_park {
                OnPark::Wait => self.park().await,
                OnPark::Publish => Box::pin(self.publish_open()).await,
            },
            Ok(StopReason::Cancelled) => {
                self.publish(StopReason::Cancelled, Trailing::History).await
            }
            Ok(stop) => self.publish(stop, self.trailing_results()).await,
            Err(broken) => Err(broken),
        };
        let ended = match ended {
            Ok(stop) => Ok(stop),
            Err(broken) => Box::pin(self.fail(broken)).await,
        };
        self.give(ended)
    }

    /// What becomes of results that no model was shown.
    fn trailing_results(&self) -> Trailing {
        let per_call = self.recorder.mode == Persistence::PerCall;
        match per_call || self.plan.policy.parity == Parity::Service {
            true => Trailing::Unsent,
            false => Trailing::History,
        }
    }

    fn give(mut self, ended: EndResult) -> Result<Outcome, RunFailed> {
        self.stop_tools.cancel();
        self.running.abort_all();
        let (stop, failed) = match ended {
            Ok(stop) => (stop, None),
            Err(failed) => (StopReason::Failed, Some(failed)),
        };
        let outcome = self.leave(stop);
        match failed {
            None => Ok(outcome),
            Some((left, source)) => Err(RunFailed::new(outcome, left, source)),
        }
    }

    /// Publish what was closed by others.
    pub(in crate::run::driver) async fn end_closed(
        mut self,
        stop: StopReason,
    ) -> Result<Outcome, RunFailed> {
        self.tell();
        let ended = match self.publish(stop, Trailing::History).await {
            Ok(stop) => Ok(stop),
            Err(broken) => self.fail(broken).await,
        };
        self.give(ended)
    }

    async fn park(&mut self) -> Result<StopReason, DriverError> {
        let stop = StopReason::Parked;
        self.store_done().await?;
        // Context providers hear of it when the run is over: its state is not published before that.
        self.recorder.park().await?;
        self.publisher.stored();
        // The run is not over: that it stops here is no part of its events.
        self.publisher.say_unstored(RunEvent::Ended { stop });
        Ok(stop)
    }

    /// End with calls that wait: what was said becomes a node marked open, and answers begin the
    /// next run.
    async fn publish_open(&mut self) -> Result<StopReason, DriverError> {
        self.store_done().await?;
        if let Some(mut results) = self.turn.partial_results() {
            results.created = self.round.at;
            self.enter(Arc::new(results));
        }
        self.publish(StopReason::Parked, Trailing::History).await
    }

    async fn publish(
        &mut self,
        stop: StopReason,
        trailing: Trailing,
    ) -> Result<StopReason, DriverError> {
        // Whatever still runs has no say any more.
        self.stop_tools.cancel();
        self.tell();
        self.after_run(stop, None).await.map_err(DriverError::Run)?;
        let cut = stop == StopReason::Cancelled;
        match cut {
            true => self.prompt.forget_summary(),
            false => self.look_for_summary(),
        }
        let unsent = self.trailing && trailing == Trailing::Unsent;
        let published = self.said.len() - usize::from(unsent);
        let note = EndNote {
            stop,
            finish: self.turn.finish(),
            tokens: self.turn.usage().tokens(),
            error: None,
            abandoned: cut && self.job.is_abandoned(),
            losses: &self.losses,
        };
        let note = note.to_json();
        if self.plan.is_unpublished(&self.agent) {
            tracing::warn!(
                run = %self.run,
                "each call was to be published by the client's own layers, and none of them does; \
                 the run is kept unpublished"
            );
            if self.recorder.has_items() {
                self.recorder
                    .step(Vec::new(), Vec::new(), None, None)
                    .await?;
            }
            self.store_results().await?;
            self.say_ended(stop);
            self.recorder.end(Stopped::Unpublished, note).await?;
            self.publisher.stored();
            return Ok(stop);
        }
        self.append_external(published).await?;
        self.say_ended(stop);
        let closing = Closing {
            through: match unsent {
                true => Through::LastStep,
                false => Through::Everything,
            },
            ending: match cut {
                true => Ending::Cancelled,
                false => Ending::Committed,
            },
            state: self.changed_state(),
            note,
        };
        if planted("loop-ends-early") {
            self.publisher.stored();
        }
        if planted("loop-no-publish") {
            return Ok(stop);
        }
        self.swaps_view();
        let made = self.recorder.publish(closing).await?;
        crate::trials::pass("terminal.pre");
        self.publisher.stored();
        crate::trials::pass("terminal.post");
        // A run that said nothing more makes none, and its state is stored nowhere.
        self.ends_here = made.node.is_some() && made.node != self.node;
        self.node = made.node.or(self.node);
        self.published = published;
        self.has_published();
        Ok(stop)
    }

    /// The state, if the node before has another.
    pub(in crate::run::driver) fn changed_state(&self) -> Option<State> {
        let changed = self.held.as_ref() != Some(&self.state);
        changed.then(|| self.state.clone())
    }

    /// The state holds at a node now.
    pub(in crate::run::driver) fn has_published(&mut self) {
        self.published_state = Some(self.state.clone());
        self.held = Some(self.state.clone());
    }

    fn say_ended(&mut self, stop: StopReason) {
        let publisher = &mut self.publisher;
        publisher.say(&mut self.recorder, || RunEvent::Ended { stop });
    }

    /// The run cannot go on.
    async fn fail(&mut self, broken: DriverError) -> EndResult {
        let stop = StopReason::Failed;
        let (error, waits) = match broken {
            DriverError::Client(error) => (RunError::Client(error), false),
            DriverError::Run(error) => (error, false),
            DriverError::Wait(error) => (error, true),
            DriverError::Journal(error) => {
                if is_refused_by_disk(&error) {
                    self.keep_results_of_running().await;
                }
                // The journal says what is done, or another owner does: nothing more from here.
                let error = RunError::Store(error);
                self.publisher.say_unstored(RunEvent::Ended { stop });
                return Err((Left::Interrupted, error));
            }
        };
        self.tell();
        if let Err(second) = self.after_run(stop, Some(&error)).await {
            tracing::warn!(run = %self.run, error = %second, "a context provider failed when it was told of a failure");
        }
        let ended = match waits {
            true => self.recorder.park().await,
            false => {
                let note = EndNote {
                    stop,
                    finish: self.turn.finish(),
                    tokens: self.turn.usage().tokens(),
                    error: Some(told(&error)),
                    abandoned: false,
                    losses: &self.losses,
                };
                let note = note.to_json();
                let results = self.store_results().await;
                self.say_ended(stop);
                match results {
                    Ok(()) => self.recorder.end(Stopped::Failed, note).await,
                    Err(DriverError::Journal(error)) => Err(error),
                    Err(_) => Ok(()),
                }
            }
        };
        let left = match ended {
            Ok(()) if waits => {
                self.publisher.stored();
                self.publisher.say_unstored(RunEvent::Ended { stop });
                Left::Parked
            }
            Ok(()) => {
                self.publisher.stored();
                let by_model = |one: &Arc<Message>| one.source == Some(Source::Model);
                Left::Failed {
                    finished: self.recorder.next_step() > 0 || self.said.iter().any(by_model),
                }
            }
            Err(error) => {
                tracing::warn!(run = %self.run, %error, "the end of a failed run could not be stored");
                self.publisher.say_unstored(RunEvent::Ended { stop });
                Left::Interrupted
            }
        };
        Err((left, error))
    }

    /// The calls that wait.
    fn pending(&self) -> Vec<Pending> {
        let waiting = self.turn.waiting().into_iter();
        let pending = waiting.map(|one| Pending {
            call: one.call.call.clone(),
            tool: one.call.name.clone(),
            arguments: one.call.arguments.clone(),
            awaits: one.awaits,
            at: CallRef {
                run: self.run,
                step: self.round.step,
                position: one.position,
            },
            occurrence: one.occurrence,
            approval: self.round.approvals.get(&one.position).map(|(id, _)| *id),
        });
        pending.collect()
    }

    /// What the caller gets, and what the next run finds.
    pub(in crate::run::driver) fn leave(self, stop: StopReason) -> Outcome {
        let said = self.said[self.carried..].iter();
        let mut messages: Vec<Message> = said.map(|one| Message::clone(one)).collect();
        if self.plan.policy.on_park == OnPark::Wait {
            messages.extend(self.turn.partial_results());
        }
        let pending = self.pending();
        let outcome = Outcome {
            run: self.run,
            thread: self.job.thread.id.clone(),
            stop,
            messages,
            usage: self.turn.usage().clone(),
            pending: pending.clone(),
            finish: self.turn.finish().cloned(),
            compaction: self.compaction,
            losses: self.losses,
            steps: self.steps,
        };
        self.job.thread.keep(Leaving {
            closed: stop == StopReason::Done
                && pending.is_empty()
                && self.ends_here
                && self.published == self.said.len(),
            node: self.node,
            view: self.prompt.leave(&self.said, self.published),
            // What was not published does not hold.
            state: self.published_state,
            pending: match stop {
                StopReason::Parked => pending,
                _ => Vec::new(),
            },
        });
        outcome
    }
}
