//! How a run ends, and what it leaves for the next one.

use throughline_model::json::RawJson;
use throughline_model::{Message, Response};
use throughline_store::{CallRef, Ending, Stopped, Through};

use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::outcome::{Left, Outcome, RunError, RunFailed};
use crate::thread::Pending;
use crate::thread::StopReason;
use crate::thread::journal::EndNote;
use crate::thread::{Closing, Leaving, OnPark, Parity, Persistence, is_refused_by_disk};
use crate::trials::planted;

/// What happens to results that no model call has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnsentResults {
    /// They become history.
    Publish,
    /// They stay in the journal, and the next run sends them.
    Keep,
}

/// How a run ended for its caller.
type EndResult = Result<StopReason, (Left, RunError)>;

impl Driver {
    /// End the run after its work, and leave the thread in order.
    pub(crate) async fn end(
        mut self: Box<Self>,
        worked: Result<StopReason, DriverError>,
    ) -> Result<Outcome, RunFailed> {
        let ended = match worked {
            Ok(StopReason::Parked) => match self.plan.policy.on_park {
                OnPark::Wait => self.park().await,
                OnPark::Publish => Box::pin(self.publish_open()).await,
            },
            Ok(stop) => self.publish(stop, self.unsent_results(stop)).await,
            Err(error) => Err(error),
        };
        let ended = match ended {
            Ok(stop) => Ok(stop),
            Err(error) => Box::pin(self.fail(error)).await,
        };
        self.into_result(ended)
    }

    fn unsent_results(&self, stop: StopReason) -> UnsentResults {
        let per_call = self.log.recorder.mode == Persistence::PerCall;
        let is_cancelled = stop == StopReason::Cancelled;
        match (per_call && !is_cancelled) || self.plan.policy.parity == Parity::Service {
            true => UnsentResults::Keep,
            false => UnsentResults::Publish,
        }
    }

    /// Whether an answer that was cut off leaves nothing in the history.
    pub(crate) fn drops_cut_answers(&self) -> bool {
        self.plan.policy.parity == Parity::Service && !planted("loop-parity-keeps-cut")
    }

    /// A model call was cut off. What is left of its answer is returned, unless the history is to
    /// equal that of a service, which stores whole calls: then neither that nor what was sent with
    /// the call becomes history, and messages of the queue stay there. What a run began with stays
    /// history if messages of the queue are among it, because no other place has them.
    pub(crate) fn cut(&mut self, partial: Option<Response>) -> Option<Response> {
        if !self.drops_cut_answers() {
            return partial;
        }
        self.details.cut_off = partial;
        if self.transcript.recorded() == 0 && self.inbox.may_begin_with_queued() {
            return None;
        }
        self.log.recorder.forget_messages();
        self.was_cut = true;
        None
    }

    fn into_result(mut self, ended: EndResult) -> Result<Outcome, RunFailed> {
        self.tools.abort();
        match ended {
            Ok(stop) => Ok(self.into_outcome(stop)),
            Err((left, source)) => {
                let outcome = self.into_outcome(StopReason::Failed);
                Err(RunFailed::new(outcome, left, source))
            }
        }
    }

    /// Publish a run whose open calls were closed without further work.
    pub(crate) async fn end_closed(mut self, stop: StopReason) -> Result<Outcome, RunFailed> {
        self.record_new_messages();
        let results = self.unsent_results(StopReason::Cancelled);
        let ended = match self.publish(stop, results).await {
            Ok(stop) => Ok(stop),
            Err(error) => self.fail(error).await,
        };
        self.into_result(ended)
    }

    async fn park(&mut self) -> Result<StopReason, DriverError> {
        let stop = StopReason::Parked;
        self.store_done().await?;
        // Context providers are told when the run is over: until then their state is not published.
        self.log.recorder.park().await?;
        self.log.events.release();
        // The run goes on later, so that it stops here is no event of the run.
        self.log.events.send_unstored(RunEvent::Ended { stop });
        Ok(stop)
    }

    /// Publish a run with waiting calls: the node is marked open, and a later run at this node brings
    /// the answers.
    async fn publish_open(&mut self) -> Result<StopReason, DriverError> {
        self.store_done().await?;
        if let Some(mut results) = self.turn.partial_results() {
            results.created = self.tools.round.answered_at;
            self.add_message(results);
        }
        self.publish(StopReason::Parked, UnsentResults::Publish)
            .await
    }

    async fn publish(
        &mut self,
        stop: StopReason,
        results: UnsentResults,
    ) -> Result<StopReason, DriverError> {
        // Calls that still run can no longer change the outcome.
        self.tools.cancel.cancel();
        self.record_new_messages();
        self.after_run(stop, None).await?;
        let is_cancelled = stop == StopReason::Cancelled;
        match is_cancelled {
            true => self.model.view.forget_summary(),
            false => self.take_summary(),
        }
        let unsent = self.transcript.has_unsent_results() && results == UnsentResults::Keep;
        let keeps = unsent || self.was_cut;
        let messages = match keeps {
            true => self.transcript.recorded(),
            false => self.transcript.messages().len(),
        };
        let note = EndNote {
            abandoned: is_cancelled && self.context.is_abandoned(),
            ..self.end_note(stop)
        };
        let note = note.to_json();
        if self.plan.is_unpublished(&self.context.agent) {
            return self.end_unpublished(stop, note).await;
        }
        self.record_before_append(stop).await?;
        self.append_external(messages).await?;
        self.publish_end(stop);
        let closing = Closing {
            through: match keeps {
                true => Through::LastStep,
                false => Through::Everything,
            },
            ending: match is_cancelled {
                true => Ending::Cancelled,
                false => Ending::Committed,
            },
            state: self.state.changed(),
            note,
        };
        if planted("loop-ends-early") {
            self.log.events.release();
        }
        if planted("loop-no-publish") {
            return Ok(stop);
        }
        self.pass_view_change();
        let published = self.log.recorder.publish(closing).await?;
        crate::trials::pass("terminal.pre");
        self.log.events.release();
        crate::trials::pass("terminal.post");
        self.transcript.run_published(&published, messages);
        self.state.mark_published();
        Ok(stop)
    }

    /// End a run that nothing publishes, because the client's own layers were to do that.
    async fn end_unpublished(
        &mut self,
        stop: StopReason,
        note: RawJson,
    ) -> Result<StopReason, DriverError> {
        tracing::warn!(
            run = %self.run,
            "each call was to be published by the client's own layers, and none of them does; \
             the run is kept unpublished"
        );
        if self.log.recorder.has_items() {
            let (calls, approvals) = (Vec::new(), Vec::new());
            let step = self.log.recorder.step(calls, approvals, None, None);
            step.await?;
        }
        self.store_results().await?;
        self.publish_end(stop);
        self.log.recorder.end(Stopped::Unpublished, note).await?;
        self.log.events.release();
        Ok(stop)
    }

    fn end_note(&self, stop: StopReason) -> EndNote<'_> {
        EndNote {
            stop,
            finish: self.turn.finish(),
            tokens: self.turn.usage().tokens(),
            error: None,
            abandoned: false,
            losses: self.details.losses(),
            service: self
                .details
                .last_service
                .as_ref()
                .map(|(id, upstream)| (upstream.as_str(), id.as_str())),
        }
    }

    fn publish_end(&mut self, stop: StopReason) {
        self.log.publish(|| RunEvent::Ended { stop });
    }

    /// Record that the run cannot go on.
    async fn fail(&mut self, error: DriverError) -> EndResult {
        let stop = StopReason::Failed;
        let (error, is_parked) = match error {
            DriverError::Client(error) => (RunError::Client(error), false),
            DriverError::Run(error) => (error, false),
            DriverError::Wait(error) => (error, true),
            DriverError::Journal(error) => {
                if is_refused_by_disk(&error) {
                    self.keep_results_of_running().await;
                }
                // Either the journal cannot be written or another worker owns it.
                self.log.events.send_unstored(RunEvent::Ended { stop });
                return Err((Left::Interrupted, RunError::Store(error)));
            }
        };
        self.record_new_messages();
        if let Err(second) = self.after_run(stop, Some(&error)).await {
            tracing::warn!(run = %self.run, error = %second, "a context provider failed when it was told of a failure");
        }
        let ended = match is_parked {
            true => self.log.recorder.park().await,
            false => self.record_failure(&error).await,
        };
        if let Err(unstored) = ended {
            tracing::warn!(run = %self.run, error = %unstored, "the end of a failed run could not be stored");
            self.log.events.send_unstored(RunEvent::Ended { stop });
            return Err((Left::Interrupted, error));
        }
        self.log.events.release();
        if is_parked {
            self.log.events.send_unstored(RunEvent::Ended { stop });
            return Err((Left::Parked, error));
        }
        let finished = self.log.recorder.next_step() > 0 || self.transcript.has_answer();
        Err((Left::Failed { finished }, error))
    }

    async fn record_failure(&mut self, error: &RunError) -> throughline_store::Result<()> {
        let stop = StopReason::Failed;
        let note = EndNote {
            error: Some(error.recorded()),
            ..self.end_note(stop)
        };
        let note = note.to_json();
        let results = self.store_results().await;
        self.publish_end(stop);
        results?;
        self.log.recorder.end(Stopped::Failed, note).await
    }

    fn pending(&self) -> Vec<Pending> {
        let round = &self.tools.round;
        let waiting = self.turn.waiting().into_iter();
        let pending = waiting.map(|one| Pending {
            call: one.call.call.clone(),
            tool: one.call.name.clone(),
            arguments: one.call.arguments.clone(),
            awaits: one.awaits,
            at: CallRef {
                run: self.run,
                step: round.step,
                position: one.position,
            },
            occurrence: one.occurrence,
            approval: round.approvals.get(&one.position).map(|(id, _)| *id),
        });
        pending.collect()
    }

    /// The outcome for the caller. The thread's handle keeps what the next run needs.
    pub(crate) fn into_outcome(self, stop: StopReason) -> Outcome {
        let own = self.transcript.own().iter();
        let mut messages: Vec<Message> = own.map(|one| Message::clone(one)).collect();
        if self.plan.policy.on_park == OnPark::Wait {
            messages.extend(self.turn.partial_results());
        }
        let pending = self.pending();
        let details = self.details.into_parts();
        let outcome = Outcome {
            run: self.run,
            thread: self.context.thread_id().clone(),
            stop,
            messages,
            usage: self.turn.usage().clone(),
            pending: pending.clone(),
            finish: self.turn.finish().cloned(),
            compaction: details.compaction,
            losses: details.losses,
            steps: details.steps,
            cut_off: details.cut_off,
        };
        let is_complete = self.transcript.is_complete();
        self.context.thread.keep(Leaving {
            closed: stop == StopReason::Done && pending.is_empty() && is_complete,
            node: self.transcript.node(),
            view: self.model.view.into_history(self.transcript.published()),
            state: self.state.into_published(),
            pending: match stop {
                StopReason::Parked => pending,
                _ => Vec::new(),
            },
        });
        outcome
    }
}
