//! How an approval is answered, and what becomes of it.

use crate::trials;
use crate::{
    Answer, ApprovalState, ArgumentsDigest, Decision, Error, Millis, Result, Unanswerable,
};

/// The state of an approval at a time, by its stored state.
pub(crate) fn state_at(
    stored: ApprovalState,
    expires: Option<Millis>,
    now: Millis,
) -> ApprovalState {
    match stored {
        ApprovalState::Waiting if expires.is_some_and(|expires| expires <= now) => {
            ApprovalState::Expired
        }
        state => state,
    }
}

/// The state of an approval whose call another run takes over: an approval that was given is used
/// up, one that was not answered is withdrawn.
pub(crate) fn taken_over(stored: ApprovalState) -> ApprovalState {
    match stored {
        ApprovalState::Approved => ApprovalState::Used,
        ApprovalState::Waiting => ApprovalState::Withdrawn,
        state => state,
    }
}

/// An approval as it stands.
pub(crate) struct AskedApproval<'a> {
    /// Its state now.
    pub(crate) state: ApprovalState,
    pub(crate) shown: &'a ArgumentsDigest,
    pub(crate) answered_by: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
}

/// The state that an answer leads to; `None` if the approval has this very answer already.
pub(crate) fn answer(known: &AskedApproval<'_>, answer: &Answer) -> Result<Option<ApprovalState>> {
    let decided = match answer.decision {
        Decision::Approved => ApprovalState::Approved,
        Decision::Denied => ApprovalState::Denied,
    };
    let same = *known.shown == answer.shown
        && known.reason == answer.reason.as_deref()
        && known.answered_by == Some(answer.by.as_str());
    let why = match known.state {
        ApprovalState::Withdrawn => Unanswerable::Withdrawn,
        state if state == decided && same => return Ok(None),
        // The approval was given by this answer, and used since.
        ApprovalState::Used if decided == ApprovalState::Approved && same => return Ok(None),
        ApprovalState::Approved | ApprovalState::Denied | ApprovalState::Used => {
            Unanswerable::Answered
        }
        ApprovalState::Expired if trials::unless("approval-late", true) => Unanswerable::Expired,
        ApprovalState::Waiting
            if trials::unless("approval-other", *known.shown != answer.shown) =>
        {
            Unanswerable::OtherArguments
        }
        ApprovalState::Waiting | ApprovalState::Expired => return Ok(Some(decided)),
    };
    Err(Error::NotAnswerable {
        approval: answer.approval,
        why,
    })
}
