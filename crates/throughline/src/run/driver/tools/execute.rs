//! Running the calls of a round.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use throughline_model::{Outcome, Output, ToolCall};
use throughline_store::{CallRef, Effect, call_key};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::judge::PreparedCall;
use super::record::Round;
use super::run_tools::RunTools;
use crate::run::driver::cutoff::until;
use crate::run::driver::{Driver, DriverError, RunContext};
use crate::run::event::RunEvent;
use crate::run::machine::{Ended, Order};
use crate::run::outcome::Step;
use crate::run::setup::Details;
use crate::telemetry::ToolEnd;
use crate::thread::{Mailbox, StopReason};
use crate::tool::{CallContext, ToolError, ToolFault, ToolOutput, ToolSet};
use crate::trials::planted;

/// The tools of a run, and the calls of the current round.
pub(crate) struct ToolExecution {
    /// The tools, which the calls may change.
    pub(crate) available: Arc<RunTools>,
    /// What the journal has of the current round.
    pub(crate) round: Round,
    /// Calls that may be dispatched, by position.
    pub(crate) ready: HashMap<u32, PreparedCall>,
    /// The calls that run.
    tasks: JoinSet<Finished>,
    /// The position of the call that a task runs.
    positions: HashMap<Id, u32>,
    /// Cancelled when the calls that run are to stop.
    pub(crate) cancel: CancellationToken,
}

impl ToolExecution {
    pub(crate) fn new(tools: ToolSet, context: &RunContext) -> Self {
        let mailbox = Mailbox::on(&context.thread);
        Self {
            available: Arc::new(RunTools::new(tools, mailbox)),
            round: Round::default(),
            ready: HashMap::new(),
            tasks: JoinSet::new(),
            positions: HashMap::new(),
            cancel: context.cancel.child_token(),
        }
    }

    /// The tools as they are now.
    pub(crate) fn set(&self) -> ToolSet {
        self.available.set()
    }

    /// Stop all calls that run.
    pub(crate) fn abort(&mut self) {
        self.cancel.cancel();
        self.tasks.abort_all();
    }

    /// Note an intent for the calls that need one before they are dispatched. Returns those without.
    fn note_intents(&mut self, positions: &[u32]) -> Vec<u32> {
        let mut missing = Vec::new();
        for position in positions {
            let Some(PreparedCall { tool, .. }) = self.ready.get(position) else {
                continue;
            };
            // An approval is used up by the dispatch, also of a tool that needs no intent.
            let was_approved = self.round.approvals.contains_key(position);
            let needs = was_approved || tool.spec().effect != Effect::ReadOnly;
            let needs = needs && !(was_approved && planted("loop-approval-kept"));
            if needs && self.round.intended.insert(*position) {
                missing.push(*position);
            }
        }
        missing
    }
}

/// How a task that ran a tool ended.
enum Finished {
    Returned(Result<ToolOutput, ToolError>, Effect),
    TimedOut(Duration, Effect),
}

impl Finished {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Returned(Ok(_), _) => Outcome::Ok,
            Self::Returned(Err(error), effect) => match error.fault() {
                ToolFault::Lost => lost(*effect),
                ToolFault::Failed
                | ToolFault::Arguments
                | ToolFault::Reported
                | ToolFault::Cancelled => Outcome::Error,
            },
            Self::TimedOut(_, effect) => lost(*effect),
        }
    }

    /// Report the end of the call to telemetry.
    fn report(&self, report: &mut dyn FnMut(ToolEnd<'_>)) {
        let (error, output) = match self {
            Self::Returned(Ok(output), _) => (None, Some(&output.output)),
            Self::Returned(Err(error), _) => (Some(error.fault().as_str()), None),
            Self::TimedOut(..) => (Some("timeout"), None),
        };
        report(ToolEnd {
            outcome: self.outcome(),
            error,
            output,
            text: &|| match self {
                Self::Returned(Err(error), _) => Some(error.to_string()),
                Self::Returned(Ok(_), _) | Self::TimedOut(..) => None,
            },
        });
    }
}

impl Driver {
    /// Start calls, after the journal says that they may have their effect.
    pub(crate) async fn dispatch(&mut self, positions: &[u32]) -> Result<(), DriverError> {
        let missing = self.tools.note_intents(positions);
        if !missing.is_empty() && !planted("loop-no-intent") {
            let step = self.tools.round.step;
            self.log.recorder.intend(step, &missing).await?;
        }
        if self.context.agent.recalls {
            self.tools.available.show(self.model.view.record());
        }
        for position in positions {
            self.start(*position);
        }
        Ok(())
    }

    fn start(&mut self, position: u32) {
        let ready = self.tools.ready.remove(&position);
        let (Some(call), Some(PreparedCall { tool, arguments })) =
            (self.turn.call(position), ready)
        else {
            return;
        };
        let step = self.tools.round.step;
        let context = self.call_context(call, position);
        let dispatched = RunEvent::Dispatched {
            step,
            position,
            call: call.call.clone(),
            tool: call.name.clone(),
        };
        let effect = tool.spec().effect;
        let telemetry = &self.context.agent.telemetry;
        let watch = telemetry.tool(self.run, call, arguments.get(), effect);
        let time = tool.spec().timeout.or(self.plan.limits.tool_time);
        let work = async move {
            crate::trials::pass("tool.mid");
            let call = tool.call(&arguments, context.clone());
            let work = context.clone().scope(call);
            let Some(time) = time else {
                return Finished::Returned(work.await, effect);
            };
            match tokio::time::timeout(time, work).await {
                Ok(result) => Finished::Returned(result, effect),
                Err(_) => {
                    context.cancel.cancel();
                    Finished::TimedOut(time, effect)
                }
            }
        };
        let task = self.tools.tasks.spawn(watch.over(work, Finished::report));
        self.tools.positions.insert(task.id(), position);
        self.log.publish(|| dispatched);
    }

    /// The context of a call for its tool.
    pub(crate) fn call_context(&self, call: &ToolCall, position: u32) -> CallContext {
        let step = self.tools.round.step;
        let tenant = self.log.recorder.home().scope.tenant();
        // A call that was taken over keeps the key of its first place.
        let taken = self.tools.round.taken.get(position as usize).copied();
        let first = taken.unwrap_or(CallRef {
            run: self.run,
            step,
            position,
        });
        CallContext {
            thread: self.context.thread_id().clone(),
            run: self.run,
            step,
            round: self.turn.round(),
            position,
            call: call.call.clone(),
            idempotency_key: call_key(
                tenant,
                first.run,
                first.step,
                first.position,
                call.call.value(),
            ),
            cancel: self.tools.cancel.child_token(),
            dependencies: self.context.agent.dependencies.clone(),
            handle: self.tools.available.clone(),
        }
    }

    /// Wait for calls to end, unless the run is cut off first.
    pub(crate) async fn wait(&mut self) -> Result<Order, DriverError> {
        let first = loop {
            let next = tokio::select! {
                biased;
                stop = self.cutoff.reached() => return Ok(self.turn.cut(stop, None)),
                ended = self.tools.tasks.join_next_with_id() => Some(ended),
                () = until(self.log.events.due()) => None,
            };
            match next {
                Some(ended) => break ended,
                None => self.log.flush().await?,
            }
        };
        let mut finished = Vec::new();
        let mut next = first;
        while let Some(ended) = next {
            finished.push(self.finished(ended));
            next = self.tools.tasks.try_join_next_with_id();
        }
        if finished.is_empty() {
            // No call runs although one should: close the round rather than wait for ever.
            return Ok(self.turn.cut(StopReason::Failed, None));
        }
        self.ended(finished).await
    }

    /// The store refuses results. The calls that run have been dispatched: wait for their results and
    /// keep them in memory, for the worker that resumes the run in this process.
    pub(crate) async fn keep_results_of_running(&mut self) {
        loop {
            let ended = tokio::select! {
                biased;
                _ = self.cutoff.reached() => return,
                ended = self.tools.tasks.join_next_with_id() => ended,
            };
            let Some(ended) = ended else {
                return;
            };
            let (position, ended, _) = self.finished(ended);
            let output = ended.output.clone();
            let result = position.and_then(|position| {
                Some((position, self.turn.result(position, ended.outcome, output)?))
            });
            if let Some((position, result)) = result {
                let mut stored = self.tools.round.call_result(position, result.into());
                stored.ends = ended.terminate;
                self.log.recorder.keep_results(vec![stored]);
            }
        }
    }

    /// Which call a task answered, and how.
    fn finished(
        &mut self,
        ended: Result<(Id, Finished), JoinError>,
    ) -> (Option<u32>, Ended, Option<String>) {
        match ended {
            Ok((task, finished)) => {
                let position = self.tools.positions.remove(&task);
                self.read(position, finished)
            }
            Err(error) => {
                let position = self.tools.positions.remove(&error.id());
                self.read_panic(position, error)
            }
        }
    }

    /// Calls ended: store their results, then publish them.
    async fn ended(
        &mut self,
        finished: Vec<(Option<u32>, Ended, Option<String>)>,
    ) -> Result<Order, DriverError> {
        crate::trials::pass("tool.returned");
        let step = self.tools.round.step;
        let mut results = Vec::new();
        for (position, ended, error) in finished {
            let call = position.and_then(|position| self.turn.call(position));
            let (Some(position), Some(call)) = (position, call) else {
                continue;
            };
            let output = ended.output.clone();
            let Some(result) = self.turn.result(position, ended.outcome, output) else {
                continue;
            };
            self.details.steps.push(Step::Tool {
                step,
                position,
                call: call.call.clone(),
                tool: call.name.clone(),
                outcome: ended.outcome,
                error,
            });
            let round = &mut self.tools.round;
            let mut stored = round.call_result(position, result.clone().into());
            stored.ends = ended.terminate;
            if round.stored.insert(position) {
                self.log.recorder.result(stored);
            }
            results.push((position, ended, result));
        }
        self.store_results().await?;
        self.read_own_queue().await?;
        let mut order = Order::Wait;
        for (position, ended, result) in results {
            self.log.publish(|| RunEvent::Result {
                step,
                position,
                result,
            });
            order = self.turn.tool_ended(position, ended);
        }
        Ok(order)
    }

    /// The result of a finished task, and its whole error for the outcome.
    fn read(
        &self,
        position: Option<u32>,
        finished: Finished,
    ) -> (Option<u32>, Ended, Option<String>) {
        let name = self.tool_name(position);
        let outcome = finished.outcome();
        match finished {
            Finished::Returned(Ok(output), _) => {
                let ended = Ended {
                    outcome,
                    output: output.output,
                    terminate: output.terminate,
                };
                (position, ended, None)
            }
            Finished::Returned(Err(error), _) => {
                let whole = error.to_string();
                let text = match (error.fault(), self.context.agent.details) {
                    // Tools word these for the model.
                    (ToolFault::Arguments | ToolFault::Reported, _) => whole.clone(),
                    (_, Details::Shown) => format!("the tool {name} failed: {whole}"),
                    (_, Details::Hidden) => format!("the tool {name} failed"),
                };
                (position, failed(outcome, text), Some(whole))
            }
            Finished::TimedOut(time, _) => {
                let text = format!(
                    "the tool {name} did not end within {} s",
                    time.as_secs_f64()
                );
                (position, failed(outcome, text.clone()), Some(text))
            }
        }
    }

    fn read_panic(
        &self,
        position: Option<u32>,
        error: JoinError,
    ) -> (Option<u32>, Ended, Option<String>) {
        let name = self.tool_name(position);
        let whole = match error.try_into_panic() {
            Ok(payload) => format!("panicked: {}", panic_text(&payload)),
            Err(error) => error.to_string(),
        };
        let text = match self.context.agent.details {
            Details::Shown => format!("the tool {name} stopped unexpectedly: {whole}"),
            Details::Hidden => format!("the tool {name} stopped unexpectedly"),
        };
        (position, failed(Outcome::Error, text), Some(whole))
    }

    fn tool_name(&self, position: Option<u32>) -> String {
        let call = position.and_then(|position| self.turn.call(position));
        call.map(|call| call.name.clone()).unwrap_or_default()
    }
}

/// The outcome of a call whose result is lost.
fn lost(effect: Effect) -> Outcome {
    match effect {
        Effect::ReadOnly => Outcome::Error,
        Effect::Idempotent
        | Effect::Keyed
        | Effect::Probe
        | Effect::Transactional
        | Effect::Once => Outcome::Unknown,
    }
}

fn failed(outcome: Outcome, text: String) -> Ended {
    let text = match outcome {
        Outcome::Unknown => format!("{text}; it may or may not have had its effect"),
        _ => text,
    };
    Ended {
        outcome,
        output: Output::Text(text),
        terminate: false,
    }
}

fn panic_text(payload: &Box<dyn std::any::Any + Send>) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("without a text")
}
