//! The loop's decisions as a pure machine: values in, values out. No clock, no store, no network.
//!
//! A [`Turn`] is told what happened (a model answered, a tool ended, somebody cancelled) and says
//! what to do next ([`Order`]). Whatever happens, it ends with a stop reason and a closed
//! transcript, unless it is parked or failed, where it can be gone on with.

mod leave;
mod order;
mod restore;
mod round;
mod spent;
mod words;

#[cfg(test)]
mod simulation;

use std::collections::VecDeque;

use throughline_model::{
    Message, Outcome, Output, Response, Role, Runner, Source, Status, Stop, ToolCall, ToolResult,
    Usage,
};
use throughline_store::{ItemNo, ItemRef, NewItem, RunId};

use super::limits::{Calling, Limits};
use super::usage::RunUsage;
use crate::thread::StopReason;
use crate::thread::journal::{Awaits, OpenCall, open_calls};
pub(crate) use order::{Ask, Fresh, Order, Resolution, Waiting};
pub(crate) use restore::Recorded;
pub(crate) use round::{Done, Ended, Planned, Verdict, closed};
use round::{Round, Slot, State};
pub(crate) use spent::Spent;
pub(crate) use words::{gone, unknown_tool};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Asking(Ask),
    Tools(Round),
    Parked(Round),
    Failed(Ask),
    Over,
}

/// One run's decisions.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    run: RunId,
    limits: Limits,
    calling: Calling,
    phase: Phase,
    /// Messages that entered the transcript and were not taken yet.
    fresh: Vec<Fresh>,
    next_item: ItemNo,
    /// Said while the run goes on, not delivered yet.
    injected: VecDeque<Message>,
    asked: u32,
    rounds: u32,
    failed_rounds: u32,
    executed: u32,
    usage: RunUsage,
    /// Tokens of runs in whose place this one goes on.
    tokens_before: u64,
    finish: Option<Stop>,
    /// Why the next model call is the last.
    closing: Option<StopReason>,
    /// The calls of the answer that came last.
    planned: Vec<Planned>,
}

impl Turn {
    pub(crate) fn new(run: RunId, limits: Limits, calling: Calling) -> Self {
        Self {
            run,
            limits,
            calling,
            phase: Phase::New,
            fresh: Vec::new(),
            next_item: 1,
            injected: VecDeque::new(),
            asked: 0,
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

    /// Items of earlier runs that stand before the input: they are said already.
    pub(crate) fn carry(&mut self, items: usize) {
        self.next_item += ItemNo::try_from(items).unwrap_or(ItemNo::MAX - self.next_item);
    }

    /// Begin with what is said first: each message as whoever says it has marked it.
    pub(crate) fn start(&mut self, input: Vec<Message>) -> Order {
        for message in input {
            self.say(message);
        }
        self.ask(Ask::First)
    }

    /// What entered the transcript since this was last called.
    pub(crate) fn take_fresh(&mut self) -> Vec<Fresh> {
        std::mem::take(&mut self.fresh)
    }

    /// Say something with the next model call.
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
    pub(crate) fn asked(&self) -> u32 {
        self.asked
    }

    /// Whether calls wait for somebody outside.
    pub(crate) fn is_parked(&self) -> bool {
        matches!(self.phase, Phase::Parked(_))
    }

    /// The number of the round that is going on, from 0.
    pub(crate) fn round(&self) -> u32 {
        self.rounds.saturating_sub(1)
    }

    /// A call of the round that is going on.
    pub(crate) fn call(&self, position: u32) -> Option<&ToolCall> {
        let slot = self.open_round()?.slots.get(position as usize)?;
        Some(&slot.call)
    }

    /// The result of a call of the round that is going on.
    pub(crate) fn result(
        &self,
        position: u32,
        outcome: Outcome,
        output: Output,
    ) -> Option<ToolResult> {
        let slot = self.open_round()?.slots.get(position as usize)?;
        Some(slot.answer(outcome, output))
    }

    /// The calls of the answer that came last, as a step records them: which of them start now, wait,
    /// or have their result already.
    pub(crate) fn planned(&self) -> &[Planned] {
        &self.planned
    }

    /// The calls of the round that is going on which have their result.
    pub(crate) fn done(&self) -> Vec<Done<'_>> {
        let slots = self.open_round().map_or(&[][..], |round| &round.slots);
        let numbered = slots.iter().zip(0..);
        numbered
            .filter_map(|(slot, position)| slot.done(position))
            .collect()
    }

    fn open_round(&self) -> Option<&Round> {
        match &self.phase {
            Phase::Tools(round) | Phase::Parked(round) => Some(round),
            Phase::New | Phase::Asking(_) | Phase::Failed(_) | Phase::Over => None,
        }
    }

    /// The calls that wait.
    pub(crate) fn waiting(&self) -> Vec<Waiting<'_>> {
        let slots = self.open_round().map_or(&[][..], |round| &round.slots);
        slots
            .iter()
            .zip(0..)
            .filter_map(|(slot, position)| match slot.state {
                State::Waiting(awaits) => Some(Waiting {
                    position,
                    call: &slot.call,
                    occurrence: slot.occurrence.unwrap_or(0),
                    awaits,
                }),
                State::Planned(_) | State::Running(_) | State::Done { .. } => None,
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

    fn say(&mut self, mut message: Message) {
        message.id = Some(self.id());
        self.next_item += NewItem::count(&message);
        self.fresh.push(Fresh::Said(message));
    }

    /// Say the results of a round: each goes to the place that was kept for it.
    fn say_results(&mut self, mut message: Message) {
        message.id = Some(self.id());
        self.next_item += ItemNo::try_from(message.contents.len()).unwrap_or(0);
        self.fresh.push(Fresh::Results(message));
    }

    /// Say what was injected.
    fn deliver(&mut self) {
        while let Some(mut message) = self.injected.pop_front() {
            message.source = Some(Source::Caller);
            self.say(message);
        }
    }

    /// Say what was injected with the model call that is about to be made.
    pub(crate) fn deliver_now(&mut self) {
        if matches!(self.phase, Phase::Asking(_)) {
            self.deliver();
        }
    }

    fn ask(&mut self, ask: Ask) -> Order {
        self.deliver();
        self.phase = Phase::Asking(ask);
        Order::Ask(ask)
    }

    fn end(&mut self, stop: StopReason) -> Order {
        self.phase = Phase::Over;
        Order::End(stop)
    }

    /// The model answered. `judge` says what is to become of a call that is ours.
    pub(crate) fn answered(
        &mut self,
        mut response: Response,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Order {
        // Clients that are not ours may leave it to us.
        response.mark_cut_off();
        let last = self.phase == Phase::Asking(Ask::Last);
        self.asked += 1;
        self.planned.clear();
        self.usage.add(response.usage.as_ref());
        let cut_short = response.stop == Stop::Length;
        let paused = response.stop == Stop::Paused;
        self.finish = Some(response.stop);
        let calls = open_calls(&response.messages);
        self.heard(response.messages, response.usage, cut_short);
        let over_tokens = self.limits.tokens.is_some_and(|most| self.tokens() >= most);
        if calls.is_empty() {
            return self.said_its_say(last, paused, over_tokens);
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
            // Whatever else is wrong with its arguments, this is why.
            Verdict::Refuse(_) if cut_short && call.status == Some(Status::Incomplete) => {
                Verdict::Refuse(words::cut_off(&call.name))
            }
            verdict => verdict,
        };
        let mut round = Round::default();
        for call in calls {
            let slot = match call.call.runner {
                // The vendor's own tool host asks: nothing runs here.
                Runner::Vendor => self.asked_by_vendor(call, judge),
                Runner::Client => {
                    self.plan(call, &mut round.over_budget, &mut round.terminate, judge)
                }
            };
            self.planned.push(slot.planned());
            round.slots.push(slot);
        }
        self.go_on(round)
    }

    /// Go on with calls of an earlier run: a round of its own, before any model call.
    pub(crate) fn take(
        &mut self,
        calls: Vec<OpenCall>,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Order {
        self.planned.clear();
        self.rounds += 1;
        let mut round = Round::default();
        for open in calls {
            let slot = self.plan(open, &mut round.over_budget, &mut round.terminate, judge);
            self.planned.push(slot.planned());
            round.slots.push(slot);
        }
        self.go_on(round)
    }

    /// Put what a model said into the transcript.
    fn heard(&mut self, messages: Vec<Message>, usage: Option<Usage>, cut_short: bool) {
        let count = messages.len();
        // The record keeps what a call cost with what it said.
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
            self.say(message);
        }
    }

    /// An answer without calls.
    fn said_its_say(&mut self, last: bool, paused: bool, over_tokens: bool) -> Order {
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
            // It counts like a round: a model that pauses for ever must end too.
            self.rounds += 1;
            if self.rounds >= self.limits.rounds {
                return self.ask_last(StopReason::RoundLimit);
            }
        }
        self.ask(Ask::Next)
    }

    /// The run ends before its model is done. Of all budgets this one is known by how the answer
    /// ended: a limit of tokens was reached.
    fn out_of_tokens(&mut self) -> Order {
        self.finish = Some(Stop::Length);
        self.end(StopReason::Budget)
    }

    fn ask_last(&mut self, stop: StopReason) -> Order {
        self.closing = Some(stop);
        self.ask(Ask::Last)
    }

    fn plan(
        &mut self,
        call: OpenCall,
        over_budget: &mut bool,
        terminates: &mut bool,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Slot {
        let verdict = judge(&call.call);
        let mut slot = Slot::new(call, State::Waiting(Awaits::Result));
        match verdict {
            Verdict::Run(effect) => {
                if self.limits.calls.is_some_and(|most| self.executed >= most) {
                    *over_budget = true;
                    slot.close(Outcome::Limit);
                } else {
                    self.executed += 1;
                    slot.state = State::Planned(effect);
                }
            }
            Verdict::Ask(_) => slot.state = State::Waiting(Awaits::Approval),
            Verdict::Outside => slot.state = State::Waiting(Awaits::Result),
            Verdict::Refuse(why) => slot.end(Outcome::Error, Output::Text(why)),
            Verdict::Ended { ended, ran } => {
                self.executed += u32::from(ran);
                *terminates |= ended.terminate;
                // Only the budget of calls refuses a call in a round that is not the last.
                *over_budget |= ended.outcome == Outcome::Limit;
                slot.end(ended.outcome, ended.output);
            }
            Verdict::Again(effect) => {
                self.executed += 1;
                slot.state = State::Planned(effect);
            }
        }
        slot
    }

    /// A question of the vendor's own tool host, or what was said to it before.
    fn asked_by_vendor(
        &mut self,
        call: OpenCall,
        judge: &mut dyn FnMut(&ToolCall) -> Verdict,
    ) -> Slot {
        let verdict = judge(&call.call);
        let mut slot = Slot::new(call, State::Waiting(Awaits::VendorApproval));
        if let Verdict::Ended { ended, .. } = verdict {
            slot.end(ended.outcome, ended.output);
        }
        slot
    }

    /// Start what can be started; park, or go to the next model call, when nothing runs.
    fn go_on(&mut self, mut round: Round) -> Order {
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
        self.complete(&round)
    }

    /// Every call of the round has its result.
    fn complete(&mut self, round: &Round) -> Order {
        if let Some(message) = round.message() {
            self.say_results(message);
        }
        if round.terminate {
            return self.end(StopReason::Terminated);
        }
        match round.failed() {
            true => self.failed_rounds += 1,
            false => self.failed_rounds = 0,
        }
        if round.over_budget {
            return self.ask_last(StopReason::Budget);
        }
        if self.failed_rounds >= self.limits.failed_rounds {
            return self.ask_last(StopReason::ErrorLimit);
        }
        if self.rounds >= self.limits.rounds {
            return self.ask_last(StopReason::RoundLimit);
        }
        self.ask(Ask::Next)
    }

    /// A call ended.
    pub(crate) fn tool_ended(&mut self, position: u32, ended: Ended) -> Order {
        let Phase::Tools(round) = &mut self.phase else {
            return Order::Wait;
        };
        if let Some(slot) = round.slots.get_mut(position as usize)
            && matches!(slot.state, State::Running(_))
        {
            slot.end(ended.outcome, ended.output);
            round.terminate |= ended.terminate;
        }
        if round.terminate && self.calling == Calling::Serial {
            for slot in &mut round.slots {
                if matches!(slot.state, State::Planned(_)) {
                    slot.close(Outcome::Terminated);
                }
            }
        }
        let round = std::mem::take(round);
        self.go_on(round)
    }
}
