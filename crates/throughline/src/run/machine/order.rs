//! What the machine orders, and what it is told about calls that wait.

use throughline_model::{Message, Outcome, Output, ToolCall};

use super::round::Verdict;
use crate::thread::StopReason;
use crate::thread::journal::Awaits;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Call the model.
    Ask(Ask),
    /// Start these calls of the round, then wait for one to end.
    Dispatch(Vec<u32>),
    /// Wait for a call to end.
    Wait,
    /// It is over: stop whatever still runs.
    End(StopReason),
}

/// Something that entered the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// A message.
    Said(Message),
    /// The results of a round, one content for each of its calls, for which the record keeps
    /// places.
    Results(Message),
}

impl Fresh {
    #[cfg(test)]
    pub(crate) fn into_message(self) -> Message {
        match self {
            Self::Said(message) | Self::Results(message) => message,
        }
    }
}

/// How to call the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// For the first time in the run: what the caller chose about tools holds.
    First,
    /// With tools, as the model sees fit.
    Next,
    /// Without tools, for the last time.
    Last,
}

/// What was decided about a call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// It may run; this is what is to become of it now.
    Approved(Verdict),
    /// It may not run.
    Rejected { reason: Option<String> },
    /// Nobody said anything in time.
    Expired,
    /// Its result.
    Result { outcome: Outcome, output: Output },
}

/// A call that waits, or runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting<'t> {
    pub(crate) position: u32,
    pub(crate) call: &'t ToolCall,
    /// How many calls of the same id stand before it in its message.
    pub(crate) occurrence: u32,
    pub(crate) awaits: Awaits,
}

/// An answer that does not fit where the turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotPending;
