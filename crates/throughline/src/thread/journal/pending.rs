//! Calls that wait for an approval, or for a result of the application.

use throughline_model::{Arguments, CallId, Runner};
use throughline_store::{ApprovalId, CallRef, CallState, Journal};

use super::calls::Calls;

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The id of the call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The exact arguments.
    pub arguments: Arguments,
    /// What it waits for.
    pub awaits: Awaits,
    /// The position: run, step, and index among the calls of its response. Answers are addressed by
    /// position, because ids may repeat, also within one response.
    pub at: CallRef,
    /// How many calls with the same id precede it in its response.
    pub occurrence: u32,
    /// The approval record to answer, if the call waits for an approval.
    pub approval: Option<ApprovalId>,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaits {
    /// An approval.
    Approval,
    /// An approval for a tool that the vendor runs: the answer is sent to the vendor.
    VendorApproval,
    /// A result of the application.
    Result,
}

/// The calls for which a run waits, from its journal.
pub(crate) fn pending_of(journal: &Journal, calls: &Calls<'_>) -> Vec<Pending> {
    let waits = journal.calls.iter().filter_map(|execution| {
        let open = calls.at(execution.at)?;
        let (call, occurrence) = (open.call, open.occurrence.unwrap_or(0));
        let awaits = match (execution.state, call.runner) {
            (CallState::Approval, Runner::Client) => Awaits::Approval,
            (CallState::Approval, Runner::Vendor) => Awaits::VendorApproval,
            // A call that was dispatched and lost waits for an operator who reports its outcome.
            (CallState::Client | CallState::Intent, _) => Awaits::Result,
            (CallState::Planned | CallState::Done | CallState::Taken, _) => return None,
        };
        Some(Pending {
            call: call.call.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            awaits,
            at: execution.at,
            occurrence,
            approval: execution.approval,
        })
    });
    waits.collect()
}
