//! How a turn is left before its end, and gone on with.

use throughline_model::{Outcome, Output, Response};

use super::order::{Ask, NotPending, Order, Resolution};
use super::round::{Round, Slot, State, Verdict};
use super::words::rejected;
use super::{Phase, Turn};
use crate::thread::StopReason;
use crate::thread::journal::{Awaits, OpenCall, open_calls};

impl Turn {
    /// Something was decided about a call that waits.
    pub(crate) fn resolve(
        &mut self,
        position: u32,
        resolution: Resolution,
    ) -> Result<(), NotPending> {
        let (Phase::Parked(round) | Phase::Tools(round)) = &mut self.phase else {
            return Err(NotPending);
        };
        let slot = round.slots.get_mut(position as usize).ok_or(NotPending)?;
        let State::Waiting(awaits) = slot.state else {
            return Err(NotPending);
        };
        match (awaits, resolution) {
            (Awaits::Approval, Resolution::Approved(verdict)) => match verdict {
                Verdict::Run(effect) | Verdict::Ask(effect) => {
                    if self.limits.calls.is_some_and(|most| self.executed >= most) {
                        round.over_budget = true;
                        slot.close(Outcome::Limit);
                    } else {
                        self.executed += 1;
                        slot.state = State::Planned(effect);
                        slot.approved = true;
                    }
                }
                Verdict::Outside => slot.state = State::Waiting(Awaits::Result),
                Verdict::Refuse(why) => slot.end(Outcome::Error, Output::Text(why)),
                Verdict::Again(effect) => slot.state = State::Planned(effect),
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
            // The vendor has words of its own for it.
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

    /// Go on with a parked turn after something was decided, or with a failed one.
    pub(crate) fn resume(&mut self) -> Order {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Parked(round) => self.go_on(round),
            Phase::Failed(ask) => self.ask(ask),
            Phase::New => self.ask(Ask::First),
            other => {
                self.phase = other;
                Order::Wait
            }
        }
    }

    /// The conversation went on without a parked turn: its open calls are closed.
    pub(crate) fn withdraw(&mut self) {
        if let Phase::Parked(round) = &mut self.phase {
            round.close_all(Outcome::Withdrawn);
            if let Some(message) = round.message() {
                self.phase = Phase::Over;
                self.say_results(message);
            }
        }
        self.phase = Phase::Over;
    }

    /// The model could not be called, for good.
    pub(crate) fn failed(&mut self) -> Order {
        if let Phase::Asking(ask) = self.phase {
            self.phase = Phase::Failed(ask);
        }
        Order::End(StopReason::Failed)
    }

    /// Somebody cancelled, or the time is up. `partial` is what the model had said.
    pub(crate) fn cut(&mut self, stop: StopReason, partial: Option<Response>) -> Order {
        self.planned.clear();
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Asking(_) => {
                if let Some(response) = partial {
                    self.usage.add(response.usage.as_ref());
                    let calls = open_calls(&response.messages);
                    self.heard(response.messages, response.usage, true);
                    self.close_calls(calls, Outcome::Cancelled);
                }
            }
            Phase::Tools(mut round) | Phase::Parked(mut round) => {
                for slot in &mut round.slots {
                    slot.cut();
                }
                if let Some(message) = round.message() {
                    self.say_results(message);
                }
            }
            Phase::New | Phase::Failed(_) | Phase::Over => {}
        }
        self.end(stop)
    }

    /// Answer calls that will not run, and be over. They are a round all the same: the record keeps
    /// a place for each result.
    pub(super) fn close_calls(&mut self, calls: Vec<OpenCall>, outcome: Outcome) {
        let mut round = Round::default();
        for call in calls {
            let mut slot = Slot::new(call, State::Waiting(Awaits::Result));
            slot.close(outcome);
            self.planned.push(slot.planned());
            round.slots.push(slot);
        }
        if let Some(message) = round.message() {
            self.say_results(message);
        }
        self.phase = Phase::Over;
    }
}
