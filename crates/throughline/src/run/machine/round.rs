//! One round: the calls of a model answer and their states.

use throughline_model::{
    ApprovalResponse, Body, Content, Message, Outcome, Output, Role, Runner, Source, ToolCall,
    ToolResult, Wire,
};
use throughline_store::Effect;

use super::result_texts::closed_text;
use crate::client::approval_answer;
use crate::thread::journal::{Awaits, OpenCall, answer};

/// What the driver decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its arguments are valid: run it here.
    Run(Effect),
    /// It must be approved first.
    NeedsApproval(Effect),
    /// Its result comes from outside.
    Outside,
    /// It cannot run, for a reason that the model reads.
    Refuse(String),
    /// The journal has its result. A call that ran counts against the limit of calls.
    Ended { ended: Ended, ran: bool },
    /// It was dispatched before, its result is lost, and its tool may be called again.
    Retry(Effect),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) output: Output,
    /// Whether the tool asked for the end of the run.
    pub(crate) terminate: bool,
}

impl Ended {
    /// The end of a call without a result of its own.
    pub(crate) fn closed(outcome: Outcome) -> Self {
        Self {
            outcome,
            output: Output::Text(closed_text(outcome).to_owned()),
            terminate: false,
        }
    }
}

/// The state of a call in its round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Planned(Effect),
    Running(Effect),
    Waiting(Awaits),
    Done { outcome: Outcome, output: Output },
}

/// A call and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) call: ToolCall,
    pub(super) state: SlotState,
    /// The wire format of the approval request, if the vendor's tool host sent one.
    asked_in: Option<Wire>,
    /// As [`OpenCall::occurrence`].
    pub(super) occurrence: Option<u32>,
    /// Whether it was approved in this turn.
    pub(super) approved: bool,
}

/// A call as a step records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) call: ToolCall,
    /// What it waits for, if it does.
    pub(crate) awaits: Option<Awaits>,
}

impl Slot {
    pub(super) fn new(open: OpenCall, state: SlotState) -> Self {
        Self {
            call: open.call,
            state,
            asked_in: open.asked_in,
            occurrence: open.occurrence,
            approved: false,
        }
    }

    /// The result of this call.
    pub(super) fn answer(&self, outcome: Outcome, output: Output) -> ToolResult {
        answer(&self.call, self.occurrence, outcome, output)
    }

    pub(super) fn planned(&self) -> Planned {
        Planned {
            call: self.call.clone(),
            awaits: match self.state {
                SlotState::Waiting(awaits) => Some(awaits),
                SlotState::Planned(_) | SlotState::Running(_) | SlotState::Done { .. } => None,
            },
        }
    }

    /// Its result, or the answer to its approval request, as a message has it.
    pub(super) fn content(&self) -> Option<Content> {
        let SlotState::Done { outcome, output } = &self.state else {
            return None;
        };
        Some(match self.call.runner {
            Runner::Client => self.answer(*outcome, output.clone()).into(),
            Runner::Vendor => {
                let answer = ApprovalResponse {
                    request: self.call.call.clone(),
                    approved: *outcome == Outcome::Ok,
                    reason: match output {
                        Output::Text(text) => Some(text.clone()),
                        _ => None,
                    },
                };
                match &self.asked_in {
                    Some(wire) => approval_answer(wire, answer),
                    None => Content::new(Body::ApprovalResponse(answer)),
                }
            }
        })
    }

    pub(super) fn end(&mut self, outcome: Outcome, output: Output) {
        self.state = SlotState::Done { outcome, output };
    }

    /// End it with the fixed text of an outcome, if it has not ended.
    pub(super) fn close(&mut self, outcome: Outcome) {
        if !matches!(self.state, SlotState::Done { .. }) {
            self.end(outcome, Output::Text(closed_text(outcome).to_owned()));
        }
    }

    /// End it because the run was cancelled or ran out of time.
    pub(super) fn cut(&mut self) {
        let outcome = match self.state {
            SlotState::Running(Effect::ReadOnly)
            | SlotState::Planned(_)
            | SlotState::Waiting(_) => Outcome::Cancelled,
            SlotState::Running(_) => Outcome::Unknown,
            SlotState::Done { .. } => return,
        };
        self.close(outcome);
    }
}

/// The calls of one answer that need a result, in call order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) slots: Vec<Slot>,
    pub(super) terminate: bool,
    /// Whether a call was refused because the limit of calls was reached.
    pub(super) over_budget: bool,
}

impl Round {
    /// Mark the calls that start now as running, and return their positions.
    pub(super) fn start(&mut self, serial: bool) -> Vec<u32> {
        let mut started = Vec::new();
        let busy = |slot: &Slot| matches!(slot.state, SlotState::Running(_));
        if serial && self.slots.iter().any(busy) {
            return started;
        }
        let held: Vec<bool> = self.slots.iter().map(|slot| self.holds(slot)).collect();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let (SlotState::Planned(effect), false) = (&slot.state, held[place]) {
                let effect = *effect;
                slot.state = SlotState::Running(effect);
                started.push(u32::try_from(place).unwrap_or(u32::MAX));
                if serial {
                    break;
                }
            }
        }
        started
    }

    pub(super) fn is_running(&self) -> bool {
        let live = |slot: &Slot| match slot.state {
            SlotState::Running(_) => true,
            SlotState::Planned(_) => !self.holds(slot),
            SlotState::Waiting(_) | SlotState::Done { .. } => false,
        };
        self.slots.iter().any(live)
    }

    /// Whether an approved call does not start yet. While another call with its id waits for an
    /// approval, a client that answers by id may mean the other one.
    fn holds(&self, slot: &Slot) -> bool {
        let waits = |other: &Slot| {
            matches!(other.state, SlotState::Waiting(Awaits::Approval))
                && other.call.call.value() == slot.call.call.value()
        };
        slot.approved && slot.occurrence.is_some() && self.slots.iter().any(waits)
    }

    pub(super) fn is_waiting(&self) -> bool {
        let waits = |slot: &Slot| matches!(slot.state, SlotState::Waiting(_));
        self.slots.iter().any(waits)
    }

    /// Whether a call failed.
    pub(super) fn failed(&self) -> bool {
        self.slots.iter().any(|slot| match &slot.state {
            SlotState::Done { outcome, .. } => matches!(outcome, Outcome::Error | Outcome::Unknown),
            SlotState::Planned(_) | SlotState::Running(_) | SlotState::Waiting(_) => false,
        })
    }

    pub(super) fn close_all(&mut self, outcome: Outcome) {
        for slot in &mut self.slots {
            slot.close(outcome);
        }
    }

    /// The results so far, in call order; `None` if there is none.
    pub(super) fn message(&self) -> Option<Message> {
        let results: Vec<Content> = self.slots.iter().filter_map(Slot::content).collect();
        (!results.is_empty()).then(|| {
            let mut message = Message::new(Role::Tool, results);
            message.source = Some(Source::Tool);
            message
        })
    }
}
