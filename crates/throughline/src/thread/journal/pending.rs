//! Calls that wait for an approval or for a result from outside.

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
    /// Its place: run, step and position among the calls of its response. This, not the id, is what
    /// an answer goes to: ids may repeat, also within one response.
    pub at: CallRef,
    /// How many calls of the same id stand before it in its response.
    pub occurrence: u32,
    /// The record that is to be answered, if it waits for an approval.
    pub approval: Option<ApprovalId>,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaits {
    /// Somebody's leave.
    Approval,
    /// Somebody's leave for a tool that the vendor runs: the answer goes back to the vendor.
    VendorApproval,
    /// A result from outside.
    Result,
}

/// The calls that a run of the journal waits for.
pub(crate) fn pending_of(journal: &Journal, calls: &Calls<'_>) -> Vec<Pending> {
    let waits = journal.calls.iter().filter_map(|execution| {
        let open = calls.at(execution.at)?;
        let (call, occurrence) = (open.call, open.occurrence.unwrap_or(0));
        let awaits = match (execution.state, call.runner) {
            (CallState::Approval, Runner::Client) => Awaits::Approval,
            (CallState::Approval, Runner::Vendor) => Awaits::VendorApproval,
            // One that was dispatched and lost waits for somebody who knows what came of it.
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
