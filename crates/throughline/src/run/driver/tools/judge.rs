//! What is to become of a call: pure, by the tools of the run.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::json::RawJson;
use throughline_model::{Body, Outcome as Ending, Response, Runner, ToolCall};
use throughline_store::{CallRef, Journal, RunId};

use crate::run::driver::Driver;
use crate::run::handle::{Answered, Reply};
use crate::run::machine::{Order, Resolution, Turn, Verdict, gone, unknown_tool};
use crate::run::outcome::RunError;
use crate::thread::journal::Awaits;
use crate::thread::journal::result_of;
use crate::tool::{Runs, Tool, ToolSet, prepare};

/// A call that may run.
pub(in crate::run::driver) struct Prepared {
    pub(in crate::run::driver) tool: Arc<dyn Tool>,
    pub(in crate::run::driver) arguments: RawJson,
}

/// What is to become of a call, and what it takes to run it.
fn judge(tools: &ToolSet, call: &ToolCall) -> (Verdict, Option<Prepared>) {
    // The vendor runs it; only the question is ours to pass on.
    if call.runner == Runner::Vendor {
        return (Verdict::Outside, None);
    }
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

impl Driver {
    /// Decide about the calls of an answer.
    pub(in crate::run::driver) fn judged(&mut self, response: Response) -> Order {
        let tools = self.tools.set();
        let mut prepared = HashMap::new();
        let mut position = 0;
        let order = self.turn.answered(response, &mut |call| {
            let verdict = judge_into(&tools, call, position, &mut prepared);
            position += 1;
            verdict
        });
        self.prepared = prepared;
        order
    }
}

/// What is to become of a call, with what it takes to run it.
pub(in crate::run::driver) fn judge_into(
    tools: &ToolSet,
    call: &ToolCall,
    position: u32,
    prepared: &mut HashMap<u32, Prepared>,
) -> Verdict {
    let (verdict, ready) = judge(tools, call);
    if let (Verdict::Run(_), Some(ready)) = (&verdict, ready) {
        prepared.insert(position, ready);
    }
    verdict
}

/// What is to become of a call to which somebody agreed: it runs, if it can.
pub(in crate::run::driver) fn agreed(
    tools: &ToolSet,
    call: &ToolCall,
    position: u32,
    prepared: &mut HashMap<u32, Prepared>,
) -> Verdict {
    match (approved(tools, Some(call)), tools.find(&call.name)) {
        ((Verdict::Run(_) | Verdict::Ask(_), Some(ready)), Some(tool)) => {
            prepared.insert(position, ready);
            Verdict::Run(tool.spec().effect)
        }
        ((verdict, _), _) => verdict,
    }
}

/// What it takes to run a call again that was dispatched before; why it cannot if it cannot.
pub(in crate::run::driver) fn again(tools: &ToolSet, call: &ToolCall) -> Result<Prepared, String> {
    if tools.find(&call.name).is_none() {
        return Err(gone(&call.name));
    }
    let (verdict, ready) = judge(tools, call);
    match (verdict, ready) {
        (_, Some(ready)) => Ok(ready),
        (Verdict::Refuse(why), None) => Err(why),
        _ => Err(gone(&call.name)),
    }
}

/// What a reply comes to: the position of the call, and what is to become of it.
pub(in crate::run::driver) struct Resolved {
    pub(in crate::run::driver) position: u32,
    pub(in crate::run::driver) resolution: Resolution,
}

/// What was said about waiting calls: all of it or, when something does not fit, nothing. What was
/// said before in the same words says nothing new.
pub(in crate::run::driver) fn replies(
    (run, step, turn): (RunId, u32, &Turn),
    tools: &ToolSet,
    journal: &Journal,
    replies: &[Answered],
) -> Result<(Vec<Resolved>, HashMap<u32, Prepared>), RunError> {
    let mut turn = turn.clone();
    let mut prepared = HashMap::new();
    let mut resolved = Vec::new();
    for answered in replies {
        let CallRef {
            run: of,
            step: at,
            position,
        } = answered.at;
        let here = (of, at) == (run, step);
        if !here || !awaits(&turn, position, &answered.reply) {
            said_before(journal, tools, &pending(&turn), answered)?;
            continue;
        }
        let resolution = match &answered.reply {
            Reply::Approve => {
                let (verdict, ready) = approved(tools, turn.call(position));
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
        turn.resolve(position, resolution.clone())
            .map_err(|_| answered.not_pending(pending(&turn)))?;
        resolved.push(Resolved {
            position,
            resolution,
        });
    }
    Ok((resolved, prepared))
}

/// A call that does not wait: fine if the journal has exactly this answer.
pub(in crate::run::driver) fn said_before(
    journal: &Journal,
    tools: &ToolSet,
    pending: &[String],
    answered: &Answered,
) -> Result<(), RunError> {
    let outside = |name: &str| {
        let tool = tools.find(name);
        tool.is_none_or(|tool| tool.spec().runs == Runs::Outside)
    };
    // Only what comes from outside can be said again: not what a tool of ours returned.
    let known = journal.calls.iter().find(|one| one.at == answered.at);
    let known = known.filter(|one| one.approval.is_some() || outside(&one.tool));
    let Some(content) = known.and_then(|one| result_of(journal, one)) else {
        return Err(answered.not_pending(pending.to_vec()));
    };
    let same = match (&answered.reply, &content.body) {
        (Reply::Result(outcome, output), Body::ToolResult(result)) => {
            result.outcome == *outcome && result.output == *output
        }
        (Reply::Reject(_), Body::ToolResult(result)) => result.outcome == Ending::Rejected,
        (Reply::Expire, Body::ToolResult(result)) => result.outcome == Ending::Expired,
        (Reply::Approve, Body::ToolResult(result)) => !matches!(
            result.outcome,
            Ending::Rejected | Ending::Expired | Ending::Withdrawn
        ),
        (Reply::Approve, Body::ApprovalResponse(answer)) => answer.approved,
        (Reply::Reject(_), Body::ApprovalResponse(answer)) => !answer.approved,
        _ => false,
    };
    match same {
        true => Ok(()),
        false => Err(RunError::AlreadyAnswered {
            call: answered.call.to_string(),
        }),
    }
}

/// The requirement at the moment of dispatch decides, and so do the tools of that moment.
pub(in crate::run::driver) fn approved(
    tools: &ToolSet,
    call: Option<&ToolCall>,
) -> (Verdict, Option<Prepared>) {
    match call {
        Some(call) if tools.find(&call.name).is_some() => judge(tools, call),
        Some(call) => (Verdict::Refuse(gone(&call.name)), None),
        None => (Verdict::Outside, None),
    }
}

/// Whether the call at a position waits for such a reply.
fn awaits(turn: &Turn, position: u32, reply: &Reply) -> bool {
    let waiting = turn.waiting();
    let found = waiting.iter().find(|one| one.position == position);
    found.is_some_and(|one| match reply {
        Reply::Approve | Reply::Reject(_) => {
            matches!(one.awaits, Awaits::Approval | Awaits::VendorApproval)
        }
        Reply::Result(..) => one.awaits == Awaits::Result,
        Reply::Expire => true,
    })
}

/// The ids of the calls that wait, for the error about another.
fn pending(turn: &Turn) -> Vec<String> {
    let waiting = turn.waiting();
    waiting
        .iter()
        .map(|one| one.call.call.to_string())
        .collect()
}
