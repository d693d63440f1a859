//! Orders of the machine to the driver, and decisions about waiting calls that the driver reports.

use throughline_model::{Message, Outcome, Output, ToolCall};

use super::round::Verdict;
use crate::thread::StopReason;
use crate::thread::journal::Awaits;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Call the model.
    CallModel(ModelCall),
    /// Start these calls of the round, then wait for one to end.
    Dispatch(Vec<u32>),
    /// Wait for a call to end.
    Wait,
    /// The turn is over, or parked or failed: stop the calls that still run.
    End(StopReason),
}

/// A message that was added to the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewMessage {
    /// A message of the caller, a provider or the model.
    Message(Message),
    /// The results of a round, one content for each call. The store has reserved their items with
    /// the step.
    Results(Message),
}

impl NewMessage {
    #[cfg(test)]
    pub(crate) fn into_message(self) -> Message {
        match self {
            Self::Message(message) | Self::Results(message) => message,
        }
    }
}

/// Which model call of the run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelCall {
    /// The first one: the tool choice of the caller holds.
    First,
    /// A later one: the model chooses.
    Next,
    /// The last one, without tools.
    Last,
}

/// What was decided about a call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// It was approved; the verdict says whether it can still run.
    Approved(Verdict),
    /// It was rejected.
    Rejected { reason: Option<String> },
    /// No answer came in time.
    Expired,
    /// Its result from outside.
    Result { outcome: Outcome, output: Output },
}

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting<'t> {
    pub(crate) position: u32,
    pub(crate) call: &'t ToolCall,
    /// How many earlier calls of the message have the same id.
    pub(crate) occurrence: u32,
    pub(crate) awaits: Awaits,
}

/// A resolution for a call that does not wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotPending;
