//! One round: the calls of a model answer and what becomes of them.

use throughline_model::{
    ApprovalResponse, Body, Content, Message, Outcome, Output, Role, Runner, Source, ToolCall,
    ToolResult, Wire,
};
use throughline_store::Effect;

use super::words;
use crate::client::approval_answer;
use crate::thread::journal::{Awaits, OpenCall, answer};

/// What is to become of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its arguments fit: run it here.
    Run(Effect),
    /// Somebody must agree first.
    Ask(Effect),
    /// Its result comes from outside.
    Outside,
    /// It cannot run; the model reads why.
    Refuse(String),
    /// The record has its result; whether the call ran for it counts against the budget.
    Ended { ended: Ended, ran: bool },
    /// It was dispatched before, its result is lost, and it may run again.
    Again(Effect),
}

/// How a call that ran ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) output: Output,
    /// Whether the tool asked for the end of the run.
    pub(crate) terminate: bool,
}

/// Where a call stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Planned(Effect),
    Running(Effect),
    Waiting(Awaits),
    Done { outcome: Outcome, output: Output },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) call: ToolCall,
    pub(super) state: State,
    /// The format in which the vendor's tool host asked, if it did.
    asked_in: Option<Wire>,
    /// As [`OpenCall::occurrence`].
    pub(super) occurrence: Option<u32>,
    /// Whether it waited for an approval and has it.
    pub(super) approved: bool,
}

/// A call as a step records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) call: ToolCall,
    /// What it waits for, if it does.
    pub(crate) awaits: Option<Awaits>,
}

/// A call that has its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done<'t> {
    pub(crate) position: u32,
    pub(crate) call: &'t ToolCall,
    pub(crate) content: Content,
}

impl Slot {
    pub(super) fn new(open: OpenCall, state: State) -> Self {
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
                State::Waiting(awaits) => Some(awaits),
                State::Planned(_) | State::Running(_) | State::Done { .. } => None,
            },
        }
    }

    pub(super) fn done(&self, position: u32) -> Option<Done<'_>> {
        Some(Done {
            position,
            call: &self.call,
            content: self.content()?,
        })
    }

    /// What the record says of its end.
    fn content(&self) -> Option<Content> {
        let State::Done { outcome, output } = &self.state else {
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
        self.state = State::Done { outcome, output };
    }

    /// End it without a result of its own, if it has not ended.
    pub(super) fn close(&mut self, outcome: Outcome) {
        if !matches!(self.state, State::Done { .. }) {
            self.end(outcome, Output::Text(words::closed(outcome).to_owned()));
        }
    }

    /// The run is cut off here.
    pub(super) fn cut(&mut self) {
        let outcome = match self.state {
            State::Running(Effect::ReadOnly) | State::Planned(_) | State::Waiting(_) => {
                Outcome::Cancelled
            }
            State::Running(_) => Outcome::Unknown,
            State::Done { .. } => return,
        };
        self.close(outcome);
    }
}

/// The calls of one answer that are ours, in call order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) slots: Vec<Slot>,
    pub(super) terminate: bool,
    /// A call was refused because the budget of calls is used up.
    pub(super) over_budget: bool,
}

impl Round {
    /// The calls that are to be started now.
    pub(super) fn start(&mut self, serial: bool) -> Vec<u32> {
        let mut started = Vec::new();
        let busy = |slot: &Slot| matches!(slot.state, State::Running(_));
        if serial && self.slots.iter().any(busy) {
            return started;
        }
        let held: Vec<bool> = self.slots.iter().map(|slot| self.holds(slot)).collect();
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let (State::Planned(effect), false) = (&slot.state, held[place]) {
                let effect = *effect;
                slot.state = State::Running(effect);
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
            State::Running(_) => true,
            State::Planned(_) => !self.holds(slot),
            State::Waiting(_) | State::Done { .. } => false,
        };
        self.slots.iter().any(live)
    }

    /// Whether an approved call does not start yet: as long as another call of its id waits for an
    /// approval, somebody may still take one for the other.
    fn holds(&self, slot: &Slot) -> bool {
        let waits = |other: &Slot| {
            matches!(other.state, State::Waiting(Awaits::Approval))
                && other.call.call.value() == slot.call.call.value()
        };
        slot.approved && slot.occurrence.is_some() && self.slots.iter().any(waits)
    }

    pub(super) fn is_waiting(&self) -> bool {
        let waits = |slot: &Slot| matches!(slot.state, State::Waiting(_));
        self.slots.iter().any(waits)
    }

    /// Whether a call failed.
    pub(super) fn failed(&self) -> bool {
        self.slots.iter().any(|slot| match &slot.state {
            State::Done { outcome, .. } => matches!(outcome, Outcome::Error | Outcome::Unknown),
            State::Planned(_) | State::Running(_) | State::Waiting(_) => false,
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

/// How a call ends that has no result of its own.
pub(crate) fn closed(outcome: Outcome) -> Ended {
    Ended {
        outcome,
        output: Output::Text(words::closed(outcome).to_owned()),
        terminate: false,
    }
}
