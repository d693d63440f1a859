//! Parking, resuming and cutting off a turn.

use throughline_model::{Outcome, Output, Response};

use super::order::{ModelCall, NotPending, Order, Resolution};
use super::result_texts::rejected;
use super::round::{Round, Slot, SlotState, Verdict};
use super::{Phase, Turn};
use crate::thread::StopReason;
use crate::thread::journal::{Awaits, OpenCall, open_calls};

impl Turn {
    /// Take a decision about a call that waits.
    pub(crate) fn resolve(
        &mut self,
        position: u32,
        resolution: Resolution,
    ) -> Result<(), NotPending> {
        let (Phase::Parked(round) | Phase::Tools(round)) = &mut self.phase else {
            return Err(NotPending);
        };
        let slot = round.slots.get_mut(position as usize).ok_or(NotPending)?;
        let SlotState::Waiting(awaits) = slot.state else {
            return Err(NotPending);
        };
        match (awaits, resolution) {
            (Awaits::Approval, Resolution::Approved(verdict)) => match verdict {
                Verdict::Run(effect) | Verdict::NeedsApproval(effect) => {
                    if self.limits.calls.is_some_and(|most| self.executed >= most) {
                        round.over_budget = true;
                        slot.close(Outcome::Limit);
                    } else {
                        self.executed += 1;
                        slot.state = SlotState::Planned(effect);
                        slot.approved = true;
                    }
                }
                Verdict::Outside => slot.state = SlotState::Waiting(Awaits::Result),
                Verdict::Refuse(why) => slot.end(Outcome::Error, Output::Text(why)),
                Verdict::Retry(effect) => slot.state = SlotState::Planned(effect),
                Verdict::Ended { ended, .. } => {
                    round.terminate |= ended.terminate;
                    slot.end(ended.outcome, ended.output);
                }
            },
            (Awaits::VendorApproval, Resolution::Approved(_)) => {
                slot.end(Outcome::Ok, Output::None);
            }
            (Awaits::Approval, Resolution::Rejected { reason }) => {
                let text = rejected(reason.as_deref());
                slot.end(Outcome::Rejected, Output::Text(text));
            }
            // The vendor tells its model about the rejection.
            (Awaits::VendorApproval, Resolution::Rejected { reason }) => {
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                slot.end(Outcome::Rejected, reason.map_or(Output::None, Output::Text));
            }
            (_, Resolution::Expired) => slot.close(Outcome::Expired),
            (Awaits::Result, Resolution::Result { outcome, output }) => slot.end(outcome, output),
            (Awaits::Approval | Awaits::VendorApproval, Resolution::Result { .. })
            | (Awaits::Result, Resolution::Approved(_) | Resolution::Rejected { .. }) => {
                return Err(NotPending);
            }
        }
        Ok(())
    }

    /// Continue a parked turn after decisions, or a failed one.
    pub(crate) fn resume(&mut self) -> Order {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Parked(round) => self.advance(round),
            Phase::Failed(ask) => self.call_model(ask),
            Phase::New => self.call_model(ModelCall::First),
            other => {
                self.phase = other;
                Order::Wait
            }
        }
    }

    /// Close the waiting calls of a parked turn, because the thread continued without it.
    pub(crate) fn withdraw(&mut self) {
        if let Phase::Parked(round) = &mut self.phase {
            round.close_all(Outcome::Withdrawn);
            if let Some(message) = round.message() {
                self.phase = Phase::Over;
                self.push_results(message);
            }
        }
        self.phase = Phase::Over;
    }

    /// The model call failed, and was not or may not be retried.
    pub(crate) fn model_failed(&mut self) -> Order {
        if let Phase::CallingModel(ask) = self.phase {
            self.phase = Phase::Failed(ask);
        }
        Order::End(StopReason::Failed)
    }

    /// End the turn because it was cancelled or ran out of time. `partial` is the answer so far.
    pub(crate) fn cut(&mut self, stop: StopReason, partial: Option<Response>) -> Order {
        self.planned.clear();
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::CallingModel(_) => {
                if let Some(response) = partial {
                    self.usage.add(response.usage.as_ref());
                    let calls = open_calls(&response.messages);
                    self.push_answer(response.messages, response.usage, true);
                    self.close_calls(calls, Outcome::Cancelled);
                }
            }
            Phase::Tools(mut round) | Phase::Parked(mut round) => {
                for slot in &mut round.slots {
                    slot.cut();
                }
                if let Some(message) = round.message() {
                    self.push_results(message);
                }
            }
            Phase::New | Phase::Failed(_) | Phase::Over => {}
        }
        self.end(stop)
    }

    /// Close calls that will not run, and end the turn. They form a round like any other, because
    /// the store reserves an item for each result.
    pub(super) fn close_calls(&mut self, calls: Vec<OpenCall>, outcome: Outcome) {
        let mut round = Round::default();
        for call in calls {
            let mut slot = Slot::new(call, SlotState::Waiting(Awaits::Result));
            slot.close(outcome);
            self.planned.push(slot.planned());
            round.slots.push(slot);
        }
        if let Some(message) = round.message() {
            self.push_results(message);
        }
        self.phase = Phase::Over;
    }
}
