//! Verdicts on calls and replies, by the tools of the run. Nothing here has an effect.

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

/// The tool and the validated arguments of a call that may run.
pub(crate) struct PreparedCall {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) arguments: RawJson,
}

/// The verdict on a call, and what running it needs.
fn judge(tools: &ToolSet, call: &ToolCall) -> (Verdict, Option<PreparedCall>) {
    // The vendor runs it. Only its approval request is answered here.
    if call.runner == Runner::Vendor {
        return (Verdict::Outside, None);
    }
    let Some(tool) = tools.find(&call.name) else {
        let why = unknown_tool(&call.name, &tools.names());
        return (Verdict::Refuse(why), None);
    };
    let spec = tool.spec();
    // The application that runs a declared tool validates the arguments.
    if spec.runs == Runs::Outside {
        return (Verdict::Outside, None);
    }
    let arguments = match prepare(spec, call) {
        Ok(arguments) => arguments,
        Err(error) => return (Verdict::Refuse(error.to_string()), None),
    };
    let prepared = PreparedCall {
        tool: Arc::clone(tool),
        arguments,
    };
    let verdict = match tools.needs_approval(spec) {
        true => Verdict::NeedsApproval(spec.effect),
        false => Verdict::Run(spec.effect),
    };
    (verdict, Some(prepared))
}

impl Driver {
    /// Hand an answer to the turn, with verdicts on its calls.
    pub(crate) fn judge_answer(&mut self, response: Response) -> Order {
        let tools = self.tools.set();
        let mut ready = HashMap::new();
        let mut position = 0;
        let order = self.turn.answered(response, &mut |call| {
            let verdict = judge_into(&tools, call, position, &mut ready);
            position += 1;
            verdict
        });
        self.tools.ready = ready;
        order
    }
}

/// The verdict on a call of an answer. A call that runs is added to the ready ones.
pub(crate) fn judge_into(
    tools: &ToolSet,
    call: &ToolCall,
    position: u32,
    ready: &mut HashMap<u32, PreparedCall>,
) -> Verdict {
    let (verdict, prepared) = judge(tools, call);
    if let (Verdict::Run(_), Some(prepared)) = (&verdict, prepared) {
        ready.insert(position, prepared);
    }
    verdict
}

/// The verdict on an approved call that this run has taken over: it runs, if it can.
pub(crate) fn judge_taken(
    tools: &ToolSet,
    call: &ToolCall,
    position: u32,
    ready: &mut HashMap<u32, PreparedCall>,
) -> Verdict {
    match (judge_approved(tools, Some(call)), tools.find(&call.name)) {
        ((Verdict::Run(_) | Verdict::NeedsApproval(_), Some(prepared)), Some(tool)) => {
            ready.insert(position, prepared);
            Verdict::Run(tool.spec().effect)
        }
        ((verdict, _), _) => verdict,
    }
}

/// What calling a tool again needs, for a call that was dispatched before, or why it cannot run.
pub(crate) fn prepare_retry(tools: &ToolSet, call: &ToolCall) -> Result<PreparedCall, String> {
    if tools.find(&call.name).is_none() {
        return Err(gone(&call.name));
    }
    match judge(tools, call) {
        (_, Some(prepared)) => Ok(prepared),
        (Verdict::Refuse(why), None) => Err(why),
        _ => Err(gone(&call.name)),
    }
}

/// A reply as a decision for the turn.
pub(crate) struct Resolved {
    pub(crate) position: u32,
    pub(crate) resolution: Resolution,
}

/// Turn replies into decisions: all of them or, if one does not fit, none. A reply that the journal
/// has already is skipped.
pub(crate) fn resolve_replies(
    (run, step, turn): (RunId, u32, &Turn),
    tools: &ToolSet,
    journal: &Journal,
    replies: &[Answered],
) -> Result<(Vec<Resolved>, HashMap<u32, PreparedCall>), RunError> {
    let mut turn = turn.clone();
    let mut ready = HashMap::new();
    let mut resolved = Vec::new();
    for answered in replies {
        let CallRef {
            run: of,
            step: at,
            position,
        } = answered.at;
        let here = (of, at) == (run, step);
        if !here || !awaits(&turn, position, &answered.reply) {
            check_repeated(journal, tools, &pending(&turn), answered)?;
            continue;
        }
        let resolution = match &answered.reply {
            Reply::Approve => {
                let (verdict, prepared) = judge_approved(tools, turn.call(position));
                if let Some(prepared) = prepared {
                    ready.insert(position, prepared);
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
    Ok((resolved, ready))
}

/// Accept a reply for a call that does not wait, if the journal has exactly this answer.
pub(crate) fn check_repeated(
    journal: &Journal,
    tools: &ToolSet,
    pending: &[String],
    answered: &Answered,
) -> Result<(), RunError> {
    let outside = |name: &str| {
        let tool = tools.find(name);
        tool.is_none_or(|tool| tool.spec().runs == Runs::Outside)
    };
    // Only an answer from outside can come again, not the result of a tool that ran here.
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

/// The verdict on an approved call, by the tools that the run has at dispatch.
pub(crate) fn judge_approved(
    tools: &ToolSet,
    call: Option<&ToolCall>,
) -> (Verdict, Option<PreparedCall>) {
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
