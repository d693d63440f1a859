//! Running the calls of a round.

use std::time::Duration;

use throughline_model::{Outcome, Output};
use throughline_store::{Effect, TenantScope, call_key};
use tokio::task::JoinError;

use super::Driver;
use super::ask::until;
use super::judge::Prepared;
use crate::agent::agent::Details;
use crate::agent::event::RunEvent;
use crate::agent::outcome::Step;
use crate::agent::stop::StopReason;
use crate::agent::turn::{Ended, Order};
use crate::telemetry::ToolEnd;
use crate::tool::{CallContext, ToolError, ToolFault, ToolOutput};

/// What a task that ran a tool says.
pub(super) enum Finished {
    Returned(Result<ToolOutput, ToolError>),
    TimedOut(Duration, Effect),
}

impl Finished {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Returned(Ok(_)) => Outcome::Ok,
            Self::Returned(Err(_)) | Self::TimedOut(_, Effect::ReadOnly) => Outcome::Error,
            Self::TimedOut(
                _,
                Effect::Idempotent
                | Effect::Keyed
                | Effect::Probe
                | Effect::Transactional
                | Effect::Once,
            ) => Outcome::Unknown,
        }
    }

    /// What is told to whoever watches.
    fn told(&self, tell: &mut dyn FnMut(ToolEnd<'_>)) {
        let (error, output) = match self {
            Self::Returned(Ok(output)) => (None, Some(&output.output)),
            Self::Returned(Err(error)) => (Some(error.fault().as_str()), None),
            Self::TimedOut(..) => (Some("timeout"), None),
        };
        tell(ToolEnd {
            outcome: self.outcome(),
            error,
            output,
            text: &|| match self {
                Self::Returned(Err(error)) => Some(error.to_string()),
                Self::Returned(Ok(_)) | Self::TimedOut(..) => None,
            },
        });
    }
}

impl Driver<'_> {
    /// Start a call.
    pub(super) fn dispatch(&mut self, position: u32) {
        let (Some(call), Some(Prepared { tool, arguments })) =
            (self.turn.call(position), self.prepared.remove(&position))
        else {
            return;
        };
        let step = self.turn.step();
        let tenant = TenantScope::local();
        let context = CallContext {
            thread: self.job.thread.clone(),
            run: self.run,
            step,
            round: self.turn.round(),
            position,
            call: call.call.clone(),
            idempotency_key: call_key(tenant.tenant(), self.run, step, position, call.call.value()),
            cancel: self.stop_tools.child_token(),
            dependencies: self.agent.dependencies.clone(),
            handle: self.tools.clone(),
        };
        self.job.emit(|| RunEvent::Dispatched {
            step,
            position,
            call: call.call.clone(),
            tool: call.name.clone(),
        });
        let effect = tool.spec().effect;
        let watch = &self.agent.telemetry;
        let watch = watch.tool(self.run, call, arguments.get(), effect);
        let time = tool.spec().timeout.or(self.plan.limits.tool_time);
        let work = async move {
            let call = tool.call(&arguments, context.clone());
            let work = context.clone().scope(call);
            let Some(time) = time else {
                return Finished::Returned(work.await);
            };
            match tokio::time::timeout(time, work).await {
                Ok(result) => Finished::Returned(result),
                Err(_) => {
                    context.cancel.cancel();
                    Finished::TimedOut(time, effect)
                }
            }
        };
        let task = self.running.spawn(watch.over(work, Finished::told));
        self.tasks.insert(task.id(), position);
    }

    /// Wait for a call to end, unless the run is cut off first.
    pub(super) async fn wait(&mut self) -> Order {
        let ended = tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => return self.turn.cut(StopReason::Cancelled, None),
            () = until(self.deadline) => return self.turn.cut(StopReason::Budget, None),
            ended = self.running.join_next_with_id() => ended,
        };
        let (position, ended, error) = match ended {
            Some(Ok((task, finished))) => {
                let position = self.tasks.remove(&task);
                self.read(position, finished)
            }
            Some(Err(error)) => {
                let position = self.tasks.remove(&error.id());
                self.read_panic(position, error)
            }
            // Nothing runs although something should: close what is open rather than wait for ever.
            None => return self.turn.cut(StopReason::Failed, None),
        };
        self.ended(position, ended, error)
    }

    fn ended(&mut self, position: Option<u32>, ended: Ended, error: Option<String>) -> Order {
        self.mail();
        let known = position.and_then(|position| Some((position, self.turn.call(position)?)));
        let Some((position, call)) = known else {
            return Order::Wait;
        };
        let step = self.turn.step();
        self.steps.push(Step::Tool {
            step,
            position,
            call: call.call.clone(),
            tool: call.name.clone(),
            outcome: ended.outcome,
            error,
        });
        self.job.emit(|| RunEvent::Result {
            step,
            position,
            result: call.answer(ended.outcome, ended.output.clone()),
        });
        self.turn.tool_ended(position, ended)
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
            Finished::Returned(Ok(output)) => {
                let ended = Ended {
                    outcome,
                    output: output.output,
                    terminate: output.terminate,
                };
                (position, ended, None)
            }
            Finished::Returned(Err(error)) => {
                let whole = error.to_string();
                let text = match (error.fault(), self.agent.details) {
                    // It is for the model to correct.
                    (ToolFault::Arguments, _) => whole.clone(),
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
                let shown = match outcome {
                    Outcome::Unknown => format!("{text}; it may or may not have had its effect"),
                    _ => text.clone(),
                };
                (position, failed(outcome, shown), Some(text))
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

fn failed(outcome: Outcome, text: String) -> Ended {
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
