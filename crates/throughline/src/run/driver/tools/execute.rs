//! Running the calls of a round.

use std::time::Duration;

use throughline_model::{Outcome, Output, ToolCall};
use throughline_store::{CallRef, CallResult, Effect, call_key};
use tokio::task::{Id, JoinError};

use super::judge::Prepared;
use crate::run::driver::model::until;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::machine::{Ended, Order};
use crate::run::outcome::Step;
use crate::run::setup::Details;
use crate::telemetry::ToolEnd;
use crate::thread::StopReason;
use crate::tool::{CallContext, ToolError, ToolFault, ToolOutput};
use crate::trials::planted;

/// What a task that ran a tool says.
pub(in crate::run::driver) enum Finished {
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

    /// What is told to whoever watches.
    fn told(&self, tell: &mut dyn FnMut(ToolEnd<'_>)) {
        let (error, output) = match self {
            Self::Returned(Ok(output), _) => (None, Some(&output.output)),
            Self::Returned(Err(error), _) => (Some(error.fault().as_str()), None),
            Self::TimedOut(..) => (Some("timeout"), None),
        };
        tell(ToolEnd {
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
    /// Start calls, after it is recorded that they may have their effect from now on.
    pub(in crate::run::driver) async fn dispatch(
        &mut self,
        positions: &[u32],
    ) -> Result<(), DriverError> {
        let mut missing = Vec::new();
        for position in positions {
            let asked = self.round.approvals.contains_key(position);
            let Some(Prepared { tool, .. }) = self.prepared.get(position) else {
                continue;
            };
            // An answer is used up even where an intent is not needed.
            let needs = asked || tool.spec().effect != Effect::ReadOnly;
            let needs = needs && !(asked && planted("loop-approval-kept"));
            if needs && self.round.intended.insert(*position) {
                missing.push(*position);
            }
        }
        if !missing.is_empty() && !planted("loop-no-intent") {
            self.recorder.intend(self.round.step, &missing).await?;
        }
        if self.agent.recalls {
            self.tools.show(self.prompt.record());
        }
        for position in positions {
            self.start(*position);
        }
        Ok(())
    }

    fn start(&mut self, position: u32) {
        let (Some(call), Some(Prepared { tool, arguments })) =
            (self.turn.call(position), self.prepared.remove(&position))
        else {
            return;
        };
        let step = self.round.step;
        let context = self.context(call, position);
        let told = RunEvent::Dispatched {
            step,
            position,
            call: call.call.clone(),
            tool: call.name.clone(),
        };
        let effect = tool.spec().effect;
        let watch = &self.agent.telemetry;
        let watch = watch.tool(self.run, call, arguments.get(), effect);
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
        let task = self.running.spawn(watch.over(work, Finished::told));
        self.tasks.insert(task.id(), position);
        self.publisher.say(&mut self.recorder, || told);
    }

    /// What a tool knows of a call.
    pub(in crate::run::driver) fn context(&self, call: &ToolCall, position: u32) -> CallContext {
        let step = self.round.step;
        let tenant = self.recorder.home().scope.tenant();
        // One that was taken over keeps the key of where it was called.
        let of = self.round.taken.get(position as usize).copied();
        let of = of.unwrap_or(CallRef {
            run: self.run,
            step,
            position,
        });
        CallContext {
            thread: self.job.thread.id.clone(),
            run: self.run,
            step,
            round: self.turn.round(),
            position,
            call: call.call.clone(),
            idempotency_key: call_key(tenant, of.run, of.step, of.position, call.call.value()),
            cancel: self.stop_tools.child_token(),
            dependencies: self.agent.dependencies.clone(),
            handle: self.tools.clone(),
        }
    }

    /// Wait for calls to end, unless the run is cut off first.
    pub(in crate::run::driver) async fn wait(&mut self) -> Result<Order, DriverError> {
        let first = loop {
            let next = tokio::select! {
                biased;
                () = self.job.cancel.cancelled() => return Ok(self.turn.cut(StopReason::Cancelled, None)),
                () = until(self.deadline) => return Ok(self.turn.cut(StopReason::Budget, None)),
                ended = self.running.join_next_with_id() => Some(ended),
                () = until(self.publisher.due()) => None,
            };
            match next {
                Some(ended) => break ended,
                None => self.pump().await?,
            }
        };
        let mut finished = Vec::new();
        let mut next = first;
        while let Some(ended) = next {
            finished.push(self.finished(ended));
            next = self.running.try_join_next_with_id();
        }
        if finished.is_empty() {
            // Nothing runs although something should: close what is open rather than wait for ever.
            return Ok(self.turn.cut(StopReason::Failed, None));
        }
        self.ended(finished).await
    }

    /// The store does not take results. The calls that still run have been dispatched: their results
    /// are waited for and kept in memory, for the worker that resumes the run in this process.
    pub(in crate::run::driver) async fn keep_results_of_running(&mut self) {
        loop {
            let ended = tokio::select! {
                biased;
                () = self.job.cancel.cancelled() => return,
                () = until(self.deadline) => return,
                ended = self.running.join_next_with_id() => ended,
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
                let one = self.result_item(result.into());
                let mut stored = CallResult::new(self.round.step, position, &one);
                stored.ends = ended.terminate;
                self.recorder.keep_results(vec![stored]);
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
                let position = self.tasks.remove(&task);
                self.read(position, finished)
            }
            Err(error) => {
                let position = self.tasks.remove(&error.id());
                self.read_panic(position, error)
            }
        }
    }

    /// Calls ended: their results are stored before anybody hears of them.
    async fn ended(
        &mut self,
        finished: Vec<(Option<u32>, Ended, Option<String>)>,
    ) -> Result<Order, DriverError> {
        crate::trials::pass("tool.returned");
        let step = self.round.step;
        let mut known = Vec::new();
        for (position, ended, error) in finished {
            let call = position.and_then(|position| self.turn.call(position));
            let (Some(position), Some(call)) = (position, call) else {
                continue;
            };
            let output = ended.output.clone();
            let Some(result) = self.turn.result(position, ended.outcome, output) else {
                continue;
            };
            self.steps.push(Step::Tool {
                step,
                position,
                call: call.call.clone(),
                tool: call.name.clone(),
                outcome: ended.outcome,
                error,
            });
            let one = self.result_item(result.clone().into());
            let mut stored = CallResult::new(step, position, &one);
            stored.ends = ended.terminate;
            if self.round.stored.insert(position) {
                self.recorder.result(stored);
            }
            known.push((position, ended, result));
        }
        self.store_results().await?;
        self.mail().await?;
        let mut order = Order::Wait;
        for (position, ended, result) in known {
            self.publisher.say(&mut self.recorder, || RunEvent::Result {
                step,
                position,
                result,
            });
            order = self.turn.tool_ended(position, ended);
        }
        Ok(order)
    }

    /// What a finished task means, and the whole error for the trace.
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
                let text = match (error.fault(), self.agent.details) {
                    // These are for the model to read.
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
        let text = match self.agent.details {
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

/// What a call is whose result is lost.
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
