//! How a run begins on a thread, and what it leaves there.

use throughline_model::Message;
use throughline_store::RunId;

use super::{Driver, Job, Parked, Plan};
use crate::agent::inner::Inner;
use crate::agent::limits::Calling;
use crate::agent::options::RunOptions;
use crate::agent::outcome::{Outcome, Pending, RunError, RunFailed};
use crate::agent::stop::StopReason;
use crate::agent::turn::Turn;
use crate::agent::usage::RunUsage;
use crate::history::Held;
use crate::tool::ToolSet;

/// What the agent and the options say together.
pub(super) fn plan(
    agent: &Inner,
    options: RunOptions,
) -> Result<(Plan, ToolSet, Calling), RunError> {
    let limits = options.limits.unwrap_or_else(|| agent.limits.clone());
    limits.check().map_err(RunError::Limits)?;
    let tools = match options.tools.is_empty() {
        true => agent.tools.clone(),
        false => ToolSet::new(options.tools)
            .map_err(RunError::Tools)?
            .over(&agent.tools),
    };
    let instructions = match (&agent.instructions, options.instructions) {
        (Some(first), Some(more)) => Some(format!("{first}\n\n{more}")),
        (first, more) => more.or_else(|| first.clone()),
    };
    let plan = Plan {
        instructions,
        settings: options.settings.unwrap_or_else(|| agent.settings.clone()),
        model: options.model.or_else(|| agent.model.clone()),
        choice: options.choice,
        limits,
    };
    Ok((plan, tools, options.calling.unwrap_or(agent.calling)))
}

/// A run that never began.
pub(super) fn refused(run: RunId, job: &Job, source: RunError) -> RunFailed {
    RunFailed {
        outcome: Box::new(Outcome {
            run,
            thread: job.thread.clone(),
            stop: StopReason::Failed,
            messages: Vec::new(),
            usage: RunUsage::default(),
            pending: Vec::new(),
            finish: None,
            steps: Vec::new(),
        }),
        source,
    }
}

/// New input settles what was left: a parked run is closed and published, a failed one goes.
pub(super) fn before(held: &mut Held) {
    let Some(mut unsettled) = held.unsettled.take() else {
        return;
    };
    if unsettled.turn.is_parked() {
        unsettled.turn.withdraw();
        for message in unsettled.turn.take_fresh() {
            held.view.push(message);
        }
        held.publish();
    } else {
        held.discard();
    }
}

/// The calls that wait.
fn pending(turn: &Turn) -> Vec<Pending> {
    let waiting = turn.waiting().into_iter();
    waiting
        .map(|one| Pending {
            call: one.call.call.clone(),
            tool: one.call.name.clone(),
            arguments: one.call.arguments.clone(),
            awaits: one.awaits,
            position: one.position,
        })
        .collect()
}

impl Driver<'_> {
    /// Leave the thread in order.
    pub(super) fn settle(mut self, stop: StopReason) -> Outcome {
        self.job.mailbox.put_back(self.turn.take_undelivered());
        let said = &self.held.view.messages()[self.base..];
        let mut messages: Vec<Message> = said.iter().map(|one| Message::clone(one)).collect();
        messages.extend(self.turn.partial_results());
        let outcome = Outcome {
            run: self.run,
            thread: self.job.thread,
            stop,
            messages,
            usage: self.turn.usage().clone(),
            pending: pending(&self.turn),
            finish: self.turn.finish().cloned(),
            steps: self.steps.clone(),
        };
        let keeps = match stop {
            StopReason::Parked => true,
            // A run of which nothing finished leaves nothing.
            StopReason::Failed => !self.steps.is_empty(),
            StopReason::Done
            | StopReason::RoundLimit
            | StopReason::ErrorLimit
            | StopReason::Budget
            | StopReason::Terminated
            | StopReason::Cancelled => {
                self.held.publish();
                return outcome;
            }
        };
        if keeps {
            let unsettled = Parked {
                run: self.run,
                turn: self.turn,
                tools: self.tools.set(),
                plan: self.plan,
                steps: self.steps,
                base: self.base,
            };
            let waits = outcome.pending.clone();
            self.held.keep(Box::new(unsettled), waits);
        } else {
            self.held.discard();
        }
        outcome
    }
}
