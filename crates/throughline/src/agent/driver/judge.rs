//! What is to become of a call: pure, by the tools of the run.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::{CallId, Response, ToolCall};

use super::{Driver, Parked};
use crate::agent::outcome::{RunError, Step};
use crate::agent::run::Reply;
use crate::agent::turn::{Awaits, Order, Resolution, Turn, Verdict, gone, unknown_tool};
use crate::tool::{Runs, Tool, ToolSet, prepare};

/// A call that may run.
pub(super) struct Prepared {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: RawJson,
}

/// What is to become of a call, and what it takes to run it.
fn judge(tools: &ToolSet, call: &ToolCall) -> (Verdict, Option<Prepared>) {
    let Some(tool) = tools.find(&call.name) else {
        let why = unknown_tool(&call.name, &tools.names());
        return (Verdict::Refuse(why), None);
    };
    let spec = tool.spec();
    // A declared tool takes what it takes; whoever runs it says so if arguments do not fit.
    if spec.runs == Runs::Outside {
        return (Verdict::Outside, None);
    }
    let arguments = match prepare(spec, call) {
        Ok(arguments) => arguments,
        Err(error) => return (Verdict::Refuse(error.to_string()), None),
    };
    let prepared = Prepared {
        tool: Arc::clone(tool),
        arguments,
    };
    let verdict = match tools.needs_approval(spec) {
        true => Verdict::Ask(spec.effect),
        false => Verdict::Run(spec.effect),
    };
    (verdict, Some(prepared))
}

impl Driver<'_> {
    /// The model answered: note it, and decide about its calls.
    pub(super) fn answered(&mut self, response: Response) -> Order {
        self.mail();
        let tools = self.tools.set();
        let mut prepared = HashMap::new();
        let mut position = 0;
        self.steps.push(Step::Model {
            step: self.turn.asked(),
            response: response.id.clone(),
            model: response.model.clone(),
            finish: response.stop.clone(),
            usage: response.usage.clone(),
        });
        let order = self.turn.answered(response, &mut |call| {
            let (verdict, ready) = judge(&tools, call);
            if let (Verdict::Run(_), Some(ready)) = (&verdict, ready) {
                prepared.insert(position, ready);
            }
            position += 1;
            verdict
        });
        self.prepared = prepared;
        order
    }
}

/// Apply what was said about waiting calls: all of it or, when something does not fit, nothing.
pub(super) fn replies(
    parked: &mut Parked,
    replies: &[(CallId, Reply)],
) -> Result<HashMap<u32, Prepared>, RunError> {
    let mut turn = parked.turn.clone();
    let mut prepared = HashMap::new();
    for (call, reply) in replies {
        let position = find(&turn, call, reply).ok_or_else(|| not_pending(&turn, call))?;
        let resolution = match reply {
            Reply::Approve => {
                let (verdict, ready) = approved(&parked.tools, turn.call(position));
                if let Some(ready) = ready {
                    prepared.insert(position, ready);
                }
                Resolution::Approved(verdict)
            }
            Reply::Reject(reason) => Resolution::Rejected {
                reason: reason.clone(),
            },
            Reply::Expire => Resolution::Expired,
            Reply::Result(outcome, output) => Resolution::Result {
                outcome: *outcome,
                output: output.clone(),
            },
        };
        turn.resolve(position, resolution)
            .map_err(|_| not_pending(&turn, call))?;
    }
    parked.turn = turn;
    Ok(prepared)
}

/// The requirement at the moment of dispatch decides, and so do the tools of that moment.
fn approved(tools: &ToolSet, call: Option<&ToolCall>) -> (Verdict, Option<Prepared>) {
    match call {
        Some(call) if tools.find(&call.name).is_some() => judge(tools, call),
        Some(call) => (Verdict::Refuse(gone(&call.name)), None),
        None => (Verdict::Outside, None),
    }
}

/// The first call of an id that waits for such a reply: ids may repeat.
fn find(turn: &Turn, call: &CallId, reply: &Reply) -> Option<u32> {
    let fits = |awaits| match reply {
        Reply::Approve | Reply::Reject(_) => awaits == Awaits::Approval,
        Reply::Result(..) => awaits == Awaits::Result,
        Reply::Expire => true,
    };
    let waiting = turn.waiting();
    let mut found = waiting
        .iter()
        .filter(|one| one.call.call.value() == call.value());
    found
        .find(|one| fits(one.awaits))
        .map(|waiting| waiting.position)
}

fn not_pending(turn: &Turn, call: &CallId) -> RunError {
    RunError::NotPending {
        call: call.to_string(),
        pending: turn
            .waiting()
            .iter()
            .map(|one| one.call.call.to_string())
            .collect(),
    }
}
