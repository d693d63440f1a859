//! Replaying the journal of a run: the machine takes the recorded answers and results and makes the
//! same decisions again.

use throughline_model::{Message, Response, ToolCall};

use super::order::{ModelCall, Order};
use super::round::Verdict;
use super::{Phase, Turn};
use crate::thread::StopReason;

/// One recorded step.
pub(crate) struct Recorded<'r> {
    /// Injected messages that went out with the model call.
    pub(crate) delivered: Vec<Message>,
    /// The answer of the model.
    pub(crate) response: Response,
    /// Gives the verdict on each call, by position: its recorded result, or what to do now.
    pub(crate) judge: &'r mut dyn FnMut(&ToolCall) -> Verdict,
}

impl Turn {
    /// Start behind the recorded input, which has so many items.
    pub(crate) fn start_after(&mut self, items: usize) -> Order {
        self.skip_items(items);
        self.call_model(ModelCall::First)
    }

    /// Replay a step. The order is what came, or comes, after it.
    pub(crate) fn replay(&mut self, recorded: Recorded<'_>) -> Order {
        for message in recorded.delivered {
            self.push(message);
        }
        match self.answered(recorded.response, recorded.judge) {
            // A final answer is recorded with the end of the run. An answer without calls that has a
            // step of its own was followed by another model call.
            Order::End(StopReason::Done) if matches!(self.phase, Phase::Over) => {
                self.call_model(ModelCall::Next)
            }
            order => order,
        }
    }
}
