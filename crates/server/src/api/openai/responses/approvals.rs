//! Calls of a run that wait or waited for an approval, by their places in its journal.

use throughline_model::ToolCall;
use throughline_store::{Execution, Journal, RunId};

use crate::api::openai::items::{AwaitingApproval, KnownCall};

/// The call at the place of an execution, as the model made it.
pub(crate) fn call_at(journal: &Journal, execution: &Execution) -> Option<KnownCall> {
    let placed = journal.call_at(execution.at)?;
    Some(KnownCall {
        call: placed.call.unwrap_or_else(|| question(execution)),
        occurrence: placed.occurrence,
    })
}

/// A question of a vendor's tool host: nothing of it runs here.
fn question(execution: &Execution) -> ToolCall {
    let id = throughline_model::CallId::natural(&execution.call);
    let id = id.unwrap_or_else(|| {
        throughline_model::CallId::minted(throughline_model::Scope::Response(&execution.key), 0)
    });
    ToolCall::function(id, execution.tool.clone(), "{}")
}

/// The approvals that a run asked for, for the executions that are meant.
pub(crate) fn awaiting_approval(
    journal: &Journal,
    meant: impl Fn(&Execution) -> bool,
) -> Vec<AwaitingApproval> {
    let calls = journal.calls.iter().filter(|call| meant(call));
    let asked = calls.filter_map(|call| {
        let approval = call.approval?;
        Some(AwaitingApproval {
            step: call.at.step,
            call: call.call.clone(),
            occurrence: call_at(journal, call)?.occurrence,
            approval,
        })
    });
    asked.collect()
}

/// The calls of a run that another one took over, by position.
pub(crate) fn taken_by(origin: &Journal, run: RunId) -> Vec<KnownCall> {
    let calls = origin.calls.iter();
    let mine = calls.filter(|call| call.taken_by == Some(run));
    mine.filter_map(|call| call_at(origin, call)).collect()
}
