//! A turn as the record tells it: the same decisions over again, with the answers and results that
//! are known.

use throughline_model::{Message, Response, ToolCall};

use super::order::{Ask, Order};
use super::round::Verdict;
use super::{Phase, Turn};
use crate::thread::StopReason;

/// One step of the record.
pub(crate) struct Recorded<'r> {
    /// What was delivered with the call.
    pub(crate) delivered: Vec<Message>,
    /// What the model answered.
    pub(crate) response: Response,
    /// What became of each call, by position, or is to become of it now.
    pub(crate) judge: &'r mut dyn FnMut(&ToolCall) -> Verdict,
}

impl Turn {
    /// Stand where the input was recorded: behind so many items, about to call the model.
    pub(crate) fn stand_after(&mut self, items: usize) -> Order {
        self.carry(items);
        self.ask(Ask::First)
    }

    /// Go through a step again. What it orders is what was to be done next.
    pub(crate) fn replay(&mut self, recorded: Recorded<'_>) -> Order {
        for message in recorded.delivered {
            self.say(message);
        }
        match self.answered(recorded.response, recorded.judge) {
            // An answer that ends a run is recorded with its end: one that stands in a step of its
            // own, without calls, was gone on from.
            Order::End(StopReason::Done) if matches!(self.phase, Phase::Over) => {
                self.ask(Ask::Next)
            }
            order => order,
        }
    }
}
