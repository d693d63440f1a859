//! One round: the calls of a model answer and what becomes of them.

use throughline_model::{
    ApprovalRequest, ApprovalResponse, Body, CallId, Content, Message, Outcome, Output, Role,
    Runner, Source, ToolCall, ToolResult, Wire, occurrence_in,
};
use throughline_store::Effect;

use super::words;
use crate::client::approval_answer;

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

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaits {
    /// Somebody's leave.
    Approval,
    /// Somebody's leave for a tool that the vendor runs: the answer goes back to the vendor.
    VendorApproval,
    /// A result from outside.
    Result,
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
    /// As [`Open::occurrence`].
    pub(super) occurrence: Option<u32>,
    /// Whether it waited for an approval and has it.
    pub(super) approved: bool,
}

/// A call of an answer that waits for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) call: ToolCall,
    /// The format in which the vendor's tool host asked, if it did.
    asked_in: Option<Wire>,
    /// How many calls of the same id stand before it in its message, if others share the id.
    pub(crate) occurrence: Option<u32>,
}

impl Open {
    /// A call of which only id and tool are known, because the run that made it was deleted. It
    /// can be answered, not run.
    pub(crate) fn lost(call: CallId, tool: &str) -> Self {
        Self {
            call: ToolCall::function(call, tool, "{}"),
            asked_in: None,
            occurrence: None,
        }
    }

    /// The result of this call.
    pub(crate) fn answer(&self, outcome: Outcome, output: Output) -> ToolResult {
        answer(&self.call, self.occurrence, outcome, output)
    }

    /// Whether a result is this call's, of all the calls of its message.
    pub(crate) fn is_answered_by(&self, result: &ToolResult) -> bool {
        result.call().value() == self.call.call.value() && result.occurrence() == self.occurrence
    }

    /// The same result for this call, of all that share its id.
    pub(crate) fn claim(&self, result: &ToolResult) -> ToolResult {
        match self.occurrence {
            Some(occurrence) => result.clone().with_occurrence(occurrence),
            None => result.clone(),
        }
    }
}

fn answer(
    call: &ToolCall,
    occurrence: Option<u32>,
    outcome: Outcome,
    output: Output,
) -> ToolResult {
    let result = call.answer(outcome, output);
    match occurrence {
        Some(occurrence) => result.with_occurrence(occurrence),
        None => result,
    }
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
    pub(super) fn new(open: Open, state: State) -> Self {
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

/// What of an answer waits for us, by position; see [`throughline_model::open_calls`].
pub(crate) fn open_calls(messages: &[Message]) -> Vec<Open> {
    let places = throughline_model::open_calls(messages).into_iter();
    let calls = places.filter_map(|place| {
        let message = &messages[place.message];
        let content = &message.contents[place.content];
        match &content.body {
            Body::ToolCall(call) => Some(Open {
                call: call.clone(),
                asked_in: None,
                occurrence: is_shared(message, call).then(|| occurrence_in(message, place.content)),
            }),
            Body::ApprovalRequest(request) => Some(Open {
                call: asked(request),
                asked_in: content.vendor.as_ref().map(|vendor| vendor.wire.clone()),
                occurrence: None,
            }),
            _ => None,
        }
    });
    calls.collect()
}

/// Whether other calls of a message have the id of this one.
fn is_shared(message: &Message, call: &ToolCall) -> bool {
    let calls = message.contents.iter().filter_map(Content::as_tool_call);
    let same = calls.filter(|one| one.call.value() == call.call.value());
    same.count() > 1
}

/// A question of the vendor's tool host in the shape of a call that the vendor runs.
fn asked(request: &ApprovalRequest) -> ToolCall {
    ToolCall {
        arguments: request.arguments.clone(),
        runner: Runner::Vendor,
        ..ToolCall::function(request.request.clone(), request.name.clone(), "{}")
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
