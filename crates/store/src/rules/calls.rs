//! Tool calls of a run: dispatch, approval, result.

use crate::trials;
use crate::{ApprovalState, CallRef, CallState, Error, NewApproval, Result};

use super::{exists, invalid, not_found};

/// A call that its run did not plan.
pub(crate) fn unknown(at: CallRef) -> Error {
    let id = format!("{} of step {} of {}", at.position, at.step, at.run);
    not_found("call", id)
}

/// A call that is in a state for something else.
pub(crate) fn wrong(at: CallRef, state: &'static str, wanted: &'static str) -> Error {
    Error::WrongCall {
        run: at.run,
        step: at.step,
        position: at.position,
        state,
        wanted,
    }
}

/// A call that is about to be dispatched.
pub(crate) struct IntendedCall {
    pub(crate) state: CallState,
    /// The epoch that planned or intended it.
    pub(crate) epoch: u32,
    /// The state of its approval, if it has one.
    pub(crate) approval: Option<ApprovalState>,
}

/// What an intent writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Nothing: this owner intended it before.
    Repeated,
    New,
    /// A new one that uses up the approval of the call.
    Approved,
}

/// A call may be dispatched: it is planned, or it was approved and the approval is not used up.
pub(crate) fn intend(at: CallRef, call: &IntendedCall, epoch: u32) -> Result<Intent> {
    let approved = call.approval == Some(ApprovalState::Approved);
    let wanted = match call.state {
        CallState::Planned => return Ok(Intent::New),
        CallState::Approval if !trials::unless("approval-unasked", !approved) => {
            return Ok(Intent::Approved);
        }
        CallState::Approval => "it needs an approval that says yes",
        CallState::Intent if !trials::unless("intend-again", call.epoch != epoch) => {
            return Ok(Intent::Repeated);
        }
        CallState::Intent | CallState::Done | CallState::Client | CallState::Taken => {
            "it must be planned"
        }
    };
    Err(wrong(at, call.state.as_str(), wanted))
}

/// What is known of an approval that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedBefore {
    No,
    /// For this very call.
    ForThisCall,
    ForAnother,
}

/// A call may wait for an approval: it is planned, and neither it nor the approval is used yet. Says
/// whether it is new. `fresh` are the new approvals of the same request.
pub(crate) fn ask(
    at: CallRef,
    state: CallState,
    new: &NewApproval,
    before: AskedBefore,
    fresh: &[NewApproval],
) -> Result<bool> {
    match (state, before) {
        (CallState::Planned, AskedBefore::No) => {}
        (CallState::Approval, AskedBefore::ForThisCall) => return Ok(false),
        (CallState::Planned, _) => return Err(exists("approval", new.id)),
        (state, _) => {
            let wanted = "it must be planned to wait for leave";
            return Err(wrong(at, state.as_str(), wanted));
        }
    }
    let same = |one: &NewApproval| {
        one.id == new.id || (one.step, one.position) == (new.step, new.position)
    };
    if fresh.iter().any(same) {
        return Err(invalid("an approval", "its call has another one"));
    }
    Ok(true)
}

/// What stands at the place of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredResult {
    Nothing,
    /// A node was published without it.
    Gap,
    /// The result that is given.
    Same,
    Other,
}

/// A call may get a result: it has none, and no node was published without it. Says whether the
/// result is new. `is_given` says that the same request has another result for the call.
pub(crate) fn result(
    at: CallRef,
    state: CallState,
    stored: StoredResult,
    is_given: bool,
) -> Result<bool> {
    if trials::unless("result-twice", is_given) {
        let wanted = "it has one result, and two were given";
        return Err(wrong(at, state.as_str(), wanted));
    }
    match state {
        CallState::Done => match trials::unless("result-other", stored != StoredResult::Same) {
            true => Err(wrong(at, state.as_str(), "it has another result already")),
            false => Ok(false),
        },
        CallState::Taken => Err(wrong(at, state.as_str(), "its run must have it")),
        CallState::Planned | CallState::Intent | CallState::Approval | CallState::Client => {
            match trials::unless("result-gap", stored == StoredResult::Gap) {
                true => Err(wrong(
                    at,
                    "published without a result",
                    "it must come before its node",
                )),
                false => Ok(true),
            }
        }
    }
}
