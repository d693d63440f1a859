//! The decisions of a run as a pure state machine: no clock, no store, no network.
//!
//! The driver reports each event to a [`Turn`] (a model answered, a tool ended, the run was
//! cancelled) and gets the next [`Order`]. Every sequence of events ends with a stop reason and a
//! transcript in which each call has a result, unless the turn is parked or failed and can be
//! resumed.

mod order;
mod restore;
mod result_texts;
mod round;
mod spent;
mod suspend;

#[cfg(test)]
mod simulation;

use std::collections::VecDeque;

use throughline_model::{
    Content, Message, Outcome, Output, Response, Role, Runner, Source, Status, Stop, ToolCall,
    ToolResult, Usage,
};
use throughline_store::{ItemNo, ItemRef, NewItem, RunId};

use super::limits::{Calling, Limits};
use super::usage::RunUsage;
use crate::thread::StopReason;
use crate::thread::journal::{Awaits, OpenCall, open_calls};
pub(crate) use order::{ModelCall, NewMessage, Order, Resolution, Waiting};
pub(crate) use restore::Recorded;
pub(crate) use result_texts::{gone, unknown_tool};
pub(crate) use round::{Ended, Planned, Verdict};
use round::{Round, Slot, SlotState};
pub(crate) use spent::Spent;

/// What a turn is waiting for, or where it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    New,
    CallingModel(ModelCall),
    Tools(Round),
    Parked(Round),
    Failed(ModelCall),
    Over,
}

/// The state machine of one run.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    run: RunId,
    limits: Limits,
    calling: Calling,
    phase: Phase,
    /// Messages that the driver has not taken yet.
    new_messages: Vec<NewMessage>,
    next_item: ItemNo,
    /// Messages that are added to the transcript with the next model call.
    injected: VecDeque<Message>,
    /// Model calls that were answered.
    model_calls: u32,
    rounds: u32,
    /// Failed rounds in a row.
    failed_rounds: u32,
    /// Calls that ran, for the limit of calls.
    executed: u32,
    usage: RunUsage,
    /// Tokens of the failed runs that this one continues.
    tokens_before: u64,
    finish: Option<Stop>,
    /// Why the next model call is the last.
    closing: Option<StopReason>,
    /// The calls of the newest answer.
    planned: Vec<Planned>,
}

impl Turn {
    pub(crate) fn new(run: RunId, limits: Limits, calling: Calling) -> Self {
        Self {
            run,
            limits,
            calling,
            phase: Phase::New,
            new_messages: Vec::new(),
            next_item: 1,
            injected: VecDeque::new(),
            model_calls: 0,
            rounds: 0,
            failed_rounds: 0,
            executed: 0,
            usage: RunUsage::default(),
            tokens_before: 0,
            finish: None,
            closing: None,
            planned: Vec::new(),
        }
    }

    /// Number messages from behind so many items, which are in the transcript already.
    pub(crate) fn skip_items(&mut self, items: usize) {
        self.next_item += ItemNo::try_from(items).unwrap_or(ItemNo::MAX - self.next_item);
    }

    /// Begin with the first messages, whose sources the driver has set.
    pub(crate) fn start(&mut self, input: Vec<Message>) -> Order {
        for message in input {
            self.push(message);
        }
        self.call_model(ModelCall::First)
    }

    /// The messages that were added to the transcript since this was last called.
    pub(crate) fn take_new(&mut self) -> Vec<NewMessage> {
        std::mem::take(&mut self.new_messages)
    }

    /// Add a message to the transcript with the next model call.
    pub(crate) fn inject(&mut self, message: Message) {
        self.injected.push_back(message);
    }

    /// How many messages were injected and not delivered yet.
    pub(crate) fn injected(&self) -> usize {
        self.injected.len()
    }

    pub(crate) fn usage(&self) -> &RunUsage {
        &self.usage
    }

    /// Why the model stopped in its last answer.
    pub(crate) fn finish(&self) -> Option<&Stop> {
        self.finish.as_ref()
    }

    /// How many model calls were answered.
    pub(crate) fn model_calls(&self) -> u32 {
        self.model_calls
    }

    /// Whether the turn waits for approvals or for results from outside.
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.phase, Phase::Parked(_))
    }

    /// The number of the current round, from 0.
    pub(crate) fn round(&self) -> u32 {
        self.rounds.saturating_sub(1)
    }

    /// A call of the current round.
    pub(crate) fn call(&self, position: u32) -> Option<&ToolCall> {
        let slot = self.open_round()?.slots.get(position as usize)?;
        Some(&slot.call)
    }

    /// A result for a call of the current round.
    pub(crate) fn result(
        &self,
        position: u32,
        outcome: Outcome,
        output: Output,
    ) -> Option<ToolResult> {
        let slot = self.open_round()?.slots.get(position as usize)?;
        Some(slot.answer(outcome, output))
    }

    /// The calls of the newest answer as a step records them: planned, waiting, or with a result.
    pub(crate) fn planned(&self) -> &[Planned] {
        &self.planned
    }

    /// The results of the current round, by position.
    pub(crate) fn results(&self) -> Vec<(u32, Content)> {
        let slots = self.open_round().map_or(&[][..], |round| &round.slots);
        let results = (0..).zip(slots.iter().map(Slot::content));
        results
            .filter_map(|(position, content)| Some((position, content?)))
            .collect()
    }

    fn open_round(&self) -> Option<&Round> {
        match &self.phase {
            Phase::Tools(round) | Phase::Parked(round) => Some(round),
            Phase::New | Phase::CallingModel(_) | Phase::Failed(_) | Phase::Over => None,
        }
    }

    /// The calls that wait.
    pub(crate) fn waiting(&self) -> Vec<Waiting<'_>> {
        let slots = self.open_round().map_or(&[][..], |round| &round.slots);
        slots
            .iter()
            .zip(0..)
            .filter_map(|(slot, position)| match slot.state {
                SlotState::Waiting(awaits) => Some(Waiting {
                    position,
                    call: &slot.call,
                    occurrence: slot.occurrence.unwrap_or(0),
                    awaits,
                }),
                SlotState::Planned(_) | SlotState::Running(_) | SlotState::Done { .. } => None,
            })
            .collect()
    }

    /// The results of a round that is not complete, for readers of a parked run.
    pub(crate) fn partial_results(&self) -> Option<Message> {
        let mut message = self.open_round()?.message()?;
        message.id = Some(self.id());
        Some(message)
    }

    fn id(&self) -> throughline_model::MessageId {
        let place = ItemRef {
            run: self.run,
            no: self.next_item,
        };
        place.message_id()
    }

    fn push(&mut self, mut message: Message) {
        message.id = Some(self.id());
        self.next_item += NewItem::count(&message);
        self.new_messages.push(NewMessage::Message(message));
    }

    /// Add the results of a round. The store has reserved an item number for each call, so that a
    /// result takes one item.
    fn push_results(&mut self, mut message: Message) {
        message.id = Some(self.id());
        self.next_item += ItemNo::try_from(message.contents.len()).unwrap_or(0);
        self.new_messages.push(NewMessage::Results(message));
    }

    /// Add the injected messages to the transcript.
    fn deliver(&mut self) {
        while let Some(mut message) = self.injected.pop_front() {
            message.source = Some(Source::Caller);
            self.push(message);
        }
    }

    /// Add injected messages before the model call that was ordered and has not been sent.
    pub(crate) fn deliver_now(&mut self) {
        if matches!(self.phase, Phase::CallingModel(_)) {
            self.deliver();
        }
    }

    fn call_model(&mut self, call: ModelCall) -> Order {
        self.deliver();
        self.phase = Phase::CallingModel(call);
        Order::CallModel(call)
    }

    fn end(&mut self, stop: StopReason) -> Order {
        self.phase = Phase::Over;
        Order::End(stop)
    }

    /// The model answered. `judge` gives the verdict on each of its calls.
    pub(crate) fn answered(
        &mut self,
        mut response: Response,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Order {
        // A custom client may not have marked the call that the output limit cut off.
        response.mark_cut_off();
        let last = self.phase == Phase::CallingModel(ModelCall::Last);
        self.model_calls += 1;
        self.planned.clear();
        self.usage.add(response.usage.as_ref());
        let cut_short = response.stop == Stop::Length;
        let paused = response.stop == Stop::Paused;
        self.finish = Some(response.stop);
        let calls = open_calls(&response.messages);
        self.push_answer(response.messages, response.usage, cut_short);
        let over_tokens = self.limits.tokens.is_some_and(|most| self.tokens() >= most);
        if calls.is_empty() {
            return self.answered_without_calls(last, paused, over_tokens);
        }
        if last || over_tokens {
            let stop = self.closing.filter(|_| last);
            self.close_calls(calls, Outcome::Limit);
            return match stop {
                Some(stop) => Order::End(stop),
                None => self.out_of_tokens(),
            };
        }
        self.rounds += 1;
        let judge = &mut |call: &ToolCall| match judge(call) {
            // Its arguments are invalid because the output limit cut them off.
            Verdict::Refuse(_) if cut_short && call.status == Some(Status::Incomplete) => {
                Verdict::Refuse(result_texts::cut_off(&call.name))
            }
            verdict => verdict,
        };
        let mut round = Round::default();
        for call in calls {
            let slot = match call.call.runner {
                // The vendor runs the tool and asks for an approval.
                Runner::Vendor => self.plan_vendor_call(call, judge),
                Runner::Client => {
                    self.plan_call(call, &mut round.over_budget, &mut round.terminate, judge)
                }
            };
            self.planned.push(slot.planned());
            round.slots.push(slot);
        }
        self.advance(round)
    }

    /// Begin with calls of an earlier run, as a round before any model call.
    pub(crate) fn take(
        &mut self,
        calls: Vec<OpenCall>,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Order {
        self.planned.clear();
        self.rounds += 1;
        let mut round = Round::default();
        for open in calls {
            let slot = self.plan_call(open, &mut round.over_budget, &mut round.terminate, judge);
            self.planned.push(slot.planned());
            round.slots.push(slot);
        }
        self.advance(round)
    }

    /// Add the messages of an answer to the transcript.
    fn push_answer(&mut self, messages: Vec<Message>, usage: Option<Usage>, cut_short: bool) {
        let count = messages.len();
        // The usage of a call is stored with its first message.
        let mut usage = usage.filter(|_| messages.iter().all(|message| message.usage.is_none()));
        for (place, mut message) in messages.into_iter().enumerate() {
            if message.contents.is_empty() {
                continue;
            }
            message.source = Some(match message.role {
                Role::Tool => Source::Tool,
                _ => Source::Model,
            });
            message.usage = message.usage.or_else(|| usage.take());
            if cut_short && place + 1 == count {
                message.status = Some(Status::Incomplete);
            }
            self.push(message);
        }
    }

    /// An answer without calls.
    fn answered_without_calls(&mut self, last: bool, paused: bool, over_tokens: bool) -> Order {
        if last && let Some(stop) = self.closing {
            return self.end(stop);
        }
        if !paused && self.injected.is_empty() {
            return self.end(StopReason::Done);
        }
        if over_tokens {
            return self.out_of_tokens();
        }
        if paused {
            // A pause counts as a round, so that a model that always pauses reaches the limit.
            self.rounds += 1;
            if self.rounds >= self.limits.rounds {
                return self.call_last(StopReason::RoundLimit);
            }
        }
        self.call_model(ModelCall::Next)
    }

    /// The token limit ends the run before its model is done. The outcome says `Length`, as for an
    /// answer that reached the output limit.
    fn out_of_tokens(&mut self) -> Order {
        self.finish = Some(Stop::Length);
        self.end(StopReason::Budget)
    }

    fn call_last(&mut self, stop: StopReason) -> Order {
        self.closing = Some(stop);
        self.call_model(ModelCall::Last)
    }

    fn plan_call(
        &mut self,
        call: OpenCall,
        over_budget: &mut bool,
        terminates: &mut bool,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Slot {
        let verdict = judge(&call.call);
        let mut slot = Slot::new(call, SlotState::Waiting(Awaits::Result));
        match verdict {
            Verdict::Run(effect) => {
                if self.limits.calls.is_some_and(|most| self.executed >= most) {
                    *over_budget = true;
                    slot.close(Outcome::Limit);
                } else {
                    self.executed += 1;
                    slot.state = SlotState::Planned(effect);
                }
            }
            Verdict::NeedsApproval(_) => slot.state = SlotState::Waiting(Awaits::Approval),
            Verdict::Outside => slot.state = SlotState::Waiting(Awaits::Result),
            Verdict::Refuse(why) => slot.end(Outcome::Error, Output::Text(why)),
            Verdict::Ended { ended, ran } => {
                self.executed += u32::from(ran);
                *terminates |= ended.terminate;
                // Only the budget of calls refuses a call in a round that is not the last.
                *over_budget |= ended.outcome == Outcome::Limit;
                slot.end(ended.outcome, ended.output);
            }
            Verdict::Retry(effect) => {
                self.executed += 1;
                slot.state = SlotState::Planned(effect);
            }
        }
        slot
    }

    /// An approval request of the vendor's tool host, which may be answered already.
    fn plan_vendor_call(
        &mut self,
        call: OpenCall,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Slot {
        let verdict = judge(&call.call);
        let mut slot = Slot::new(call, SlotState::Waiting(Awaits::VendorApproval));
        if let Verdict::Ended { ended, .. } = verdict {
            slot.end(ended.outcome, ended.output);
        }
        slot
    }

    /// Start the calls that can start. When nothing runs, park or call the model.
    fn advance(&mut self, mut round: Round) -> Order {
        let started = round.start(self.calling == Calling::Serial);
        if !started.is_empty() || round.is_running() {
            self.phase = Phase::Tools(round);
            return match started.is_empty() {
                true => Order::Wait,
                false => Order::Dispatch(started),
            };
        }
        if round.terminate {
            round.close_all(Outcome::Terminated);
        }
        if round.is_waiting() {
            self.phase = Phase::Parked(round);
            return Order::End(StopReason::Parked);
        }
        self.finish_round(&round)
    }

    /// Every call of the round has its result.
    fn finish_round(&mut self, round: &Round) -> Order {
        if let Some(message) = round.message() {
            self.push_results(message);
        }
        if round.terminate {
            return self.end(StopReason::Terminated);
        }
        match round.failed() {
            true => self.failed_rounds += 1,
            false => self.failed_rounds = 0,
        }
        if round.over_budget {
            return self.call_last(StopReason::Budget);
        }
        if self.failed_rounds >= self.limits.failed_rounds {
            return self.call_last(StopReason::ErrorLimit);
        }
        if self.rounds >= self.limits.rounds {
            return self.call_last(StopReason::RoundLimit);
        }
        self.call_model(ModelCall::Next)
    }

    /// A call ended.
    pub(crate) fn tool_ended(&mut self, position: u32, ended: Ended) -> Order {
        let Phase::Tools(round) = &mut self.phase else {
            return Order::Wait;
        };
        if let Some(slot) = round.slots.get_mut(position as usize)
            && matches!(slot.state, SlotState::Running(_))
        {
            slot.end(ended.outcome, ended.output);
            round.terminate |= ended.terminate;
        }
        if round.terminate && self.calling == Calling::Serial {
            for slot in &mut round.slots {
                if matches!(slot.state, SlotState::Planned(_)) {
                    slot.close(Outcome::Terminated);
                }
            }
        }
        let round = std::mem::take(round);
        self.advance(round)
    }
}
