//! Replaying the journal of a run into the turn machine, so that any process can resume it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throughline_model::{
    Body, CallId, Content, Message, Outcome, Output, Response, Scope, Source, Stop, ToolCall,
};
use throughline_store::{
    CallState, Effect, Entry, Execution, ItemNo, Journal, QueueNo, StepRecord,
};

use super::carried::Carried;
use crate::run::driver::inbox::LaterMessages;
use crate::run::driver::model::AcceptedCall;
use crate::run::driver::start::TakenCall;
use crate::run::driver::tools::{PreparedCall, Round, judge};
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::events::{PublishedEvents, replayed};
use crate::run::machine::{self, Ended, NewMessage, Order, Verdict};
use crate::run::outcome::{RunError, Step};
use crate::thread::OnLost;
use crate::thread::StopReason;
use crate::thread::journal::Calls;
use crate::thread::journal::OpenCall;
use crate::thread::journal::StepNote;
use crate::tool::{Probe, ToolSet};
use crate::trials::planted;

/// What happens to a run that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restoring {
    /// It is resumed.
    Resume,
    /// Its open calls are closed, and it is published.
    Close,
    /// Its waiting calls are withdrawn, and it is published.
    Withdraw,
    /// It is cancelled on request.
    Cancel,
    /// It fails, because it was tried too often.
    Seal,
}

/// The ids of the calls that a parked run waits for. A call that was dispatched has lost its result,
/// and the run waits for that from outside.
pub(crate) fn waiting_calls(journal: &Journal) -> Vec<String> {
    let waits = |call: &&Execution| match call.state {
        CallState::Approval | CallState::Client | CallState::Intent => true,
        CallState::Planned | CallState::Done | CallState::Taken => false,
    };
    let waiting = journal.calls.iter().filter(waits);
    waiting.map(|call| call.call.clone()).collect()
}

/// Finds calls, messages and results in a journal.
pub(crate) struct JournalIndex<'j> {
    journal: &'j Journal,
    /// Contents by their item.
    contents: HashMap<ItemNo, &'j Content>,
}

impl<'j> JournalIndex<'j> {
    pub(crate) fn new(journal: &'j Journal) -> Self {
        let mut contents = HashMap::new();
        for entry in &journal.entries {
            for (item, content) in entry.item_refs().zip(&entry.message.contents) {
                contents.insert(item.no, content);
            }
        }
        Self { journal, contents }
    }

    pub(crate) fn calls(&self, step: u32) -> Vec<&'j Execution> {
        let mut calls: Vec<_> = self.journal.calls.iter().collect();
        calls.retain(|call| call.at.step == step);
        calls.sort_by_key(|call| call.at.position);
        calls
    }

    /// The messages of a step.
    pub(crate) fn entries(&self, step: &StepRecord) -> impl Iterator<Item = &'j Entry> {
        let range = step.first..step.first + step.items;
        let entries = self.journal.entries.iter();
        entries.filter(move |entry| range.contains(&entry.at.no))
    }

    /// Whether the last round has all its results.
    fn is_complete(&self) -> bool {
        let last = self.journal.steps.last().map(|step| step.no);
        let mut calls = self.journal.calls.iter();
        calls.all(|call| call.state == CallState::Done || Some(call.at.step) != last)
    }

    /// The complete messages: not the results of a round that is still open.
    fn complete_entries(&self) -> impl Iterator<Item = &'j Entry> {
        let open = self.journal.steps.last();
        let open = open.map(|step| step.first + step.items);
        let complete = self.is_complete();
        let entries = self.journal.entries.iter();
        entries.filter(move |entry| complete || open.is_none_or(|open| entry.at.no < open))
    }

    /// The recorded result of a call.
    pub(crate) fn result(&self, call: &Execution) -> Option<Verdict> {
        let content = self.contents.get(&call.result)?;
        let ended = match &content.body {
            Body::ToolResult(result) => Ended {
                outcome: result.outcome,
                output: result.output.clone(),
                terminate: call.ends,
            },
            Body::ApprovalResponse(answer) => Ended {
                outcome: match answer.approved {
                    true => Outcome::Ok,
                    false => Outcome::Rejected,
                },
                output: match &answer.reason {
                    Some(reason) => Output::Text(reason.clone()),
                    None => Output::None,
                },
                terminate: false,
            },
            _ => return None,
        };
        let ran = matches!(
            ended.outcome,
            Outcome::Ok | Outcome::Error | Outcome::Unknown
        );
        Some(Verdict::Ended { ended, ran })
    }
}

/// The answer of the model in a step.
pub(crate) fn recorded_answer(entries: &[&Entry], note: &StepNote) -> Response {
    let messages: Vec<Message> = entries
        .iter()
        .filter(|entry| entry.message.source != Some(Source::Caller))
        .map(|entry| entry.message.clone())
        .collect();
    Response {
        id: note.response.clone(),
        model: note.model.clone(),
        usage: messages.iter().find_map(|message| message.usage.clone()),
        messages,
        stop: note.finish.clone().unwrap_or(Stop::Done),
        error: None,
        vendor: None,
        service: note.service.clone(),
    }
}

/// What is needed to decide about recorded calls when a step is replayed.
struct Replay<'a> {
    index: &'a JournalIndex<'a>,
    calls: &'a Calls<'a>,
    restoring: Restoring,
    /// What tools said about calls with a lost result, by position in the last step.
    probed: HashMap<u32, Probe>,
}

/// Decides about the calls of one step while it is replayed.
struct StepJudge<'a> {
    replay: &'a Replay<'a>,
    tools: ToolSet,
    on_lost: OnLost,
    /// Whether it is the last step, whose planned calls are still to run.
    is_last: bool,
    ready: HashMap<u32, PreparedCall>,
}

impl StepJudge<'_> {
    /// Whether calls that were planned and not dispatched run now.
    fn runs_planned(&self) -> bool {
        self.is_last && self.replay.restoring == Restoring::Resume
    }

    /// The verdict on a call that was dispatched and has no result.
    fn judge_lost(&mut self, call: &ToolCall, execution: &Execution) -> Verdict {
        let position = execution.at.position;
        let unknown = Verdict::Ended {
            ended: Ended::closed(Outcome::Unknown),
            ran: true,
        };
        if self.replay.restoring != Restoring::Resume {
            return match execution.effect {
                Effect::ReadOnly => Verdict::Outside,
                _ => unknown,
            };
        }
        match execution.effect {
            Effect::ReadOnly | Effect::Idempotent | Effect::Keyed | Effect::Transactional => {
                self.retry(call, execution)
            }
            Effect::Probe => match self.replay.probed.get(&position) {
                Some(Probe::Done(output)) => Verdict::Ended {
                    ended: Ended {
                        outcome: Outcome::Ok,
                        output: output.output.clone(),
                        terminate: output.terminate,
                    },
                    ran: true,
                },
                Some(Probe::NotDone) => self.retry(call, execution),
                Some(Probe::Unknown) | None => unknown,
            },
            Effect::Once if planted("loop-lost-again") => self.retry(call, execution),
            Effect::Once => match self.on_lost {
                OnLost::Tell => unknown,
                OnLost::Park => Verdict::Outside,
            },
        }
    }

    fn retry(&mut self, call: &ToolCall, execution: &Execution) -> Verdict {
        match judge::prepare_retry(&self.tools, call) {
            Ok(ready) => {
                self.ready.insert(execution.at.position, ready);
                Verdict::Retry(execution.effect)
            }
            Err(why) => Verdict::Refuse(why),
        }
    }
}

impl Driver {
    /// Bring the machine to where the journal ends. The order is what is to be done next.
    pub(crate) async fn restore(
        &mut self,
        journal: &Journal,
        restoring: Restoring,
    ) -> Result<Order, DriverError> {
        let index = &JournalIndex::new(journal);
        let mut order = self.turn.start_after(journal.inputs as usize);
        drop(self.turn.take_new());
        let calls = &Calls::of(self.log.recorder.home(), journal).await?;
        let probed = match journal.steps.last() {
            Some(step) if restoring == Restoring::Resume => self.probe(index, calls, step).await,
            _ => HashMap::new(),
        };
        let replay = Replay {
            index,
            calls,
            restoring,
            probed,
        };
        let mut end = None;
        let mut new: Vec<NewMessage> = Vec::new();
        let steps = match planted("loop-asks-again") {
            true => &[],
            false => &journal.steps[..],
        };
        for (place, step) in steps.iter().enumerate() {
            let note =
                StepNote::read(step.note.as_ref()).map_err(|error| RunError::journal(&error))?;
            let is_last = place + 1 == steps.len();
            if note.taken.is_empty() {
                end = note.end;
                order = self.replay_answer(&replay, step, &note, is_last);
            } else {
                order = self.replay_taken(&replay, step, note, is_last);
            }
            new.extend(self.turn.take_new());
        }
        if let Some(stop) = end {
            // The run ended with this step, and only its publication is missing.
            order = Order::End(stop);
        }
        // A worker may have died between taking calls over and planning them.
        let unplanned = match restoring == Restoring::Resume && journal.steps.is_empty() {
            true => unplanned_calls(calls, journal),
            false => Vec::new(),
        };
        let continues = !matches!(order, Order::End(stop) if stop != StopReason::Parked);
        if restoring == Restoring::Resume && continues {
            self.model.accepted = AcceptedCall::of(journal);
        }
        if restoring == Restoring::Resume && continues {
            self.inject_undelivered(journal).await?;
            if unplanned.is_empty() {
                // The model call that failed is made again, with the messages queued since.
                self.turn.deliver_now();
                new.extend(self.turn.take_new());
            }
        }
        if self.log.events.is_enabled() {
            self.publish_missing_events(index).await?;
        }
        self.load_messages(index, new);
        if !unplanned.is_empty() {
            // The input follows the results of these calls.
            order = self.take_calls(unplanned).await?;
        }
        Ok(order)
    }

    /// Hand the turn what it delivers with its next model call: messages that were queued in any
    /// process, and input that follows the results of calls that the run has taken over.
    async fn inject_undelivered(&mut self, journal: &Journal) -> Result<(), DriverError> {
        let carried =
            Carried::read(journal.request.as_ref()).map_err(|error| RunError::journal(&error))?;
        let is_delivered = journal.steps.iter().any(|step| step.items > 0);
        let later = LaterMessages {
            queued: match planted("loop-queue-forgotten") {
                true => Vec::new(),
                false => self.undelivered().await?,
            },
            input: match is_delivered {
                true => Vec::new(),
                false => carried.later,
            },
        };
        self.inbox.inject_later(&mut self.turn, later);
        Ok(())
    }

    /// The queued messages that go out with the next model call: those that were sent with it, if the
    /// service has accepted it already.
    async fn undelivered(&self) -> throughline_store::Result<Vec<(QueueNo, Message)>> {
        let mut queued = self.context.thread.queued().await?;
        if let Some(accepted) = &self.model.accepted {
            queued.retain(|(no, _)| accepted.delivered.contains(no));
        }
        Ok(queued)
    }

    /// Restore what is known of the calls of a step.
    fn restore_round(&mut self, step: &StepRecord, entries: &[&Entry], calls: &[&Execution]) {
        let in_state = |state: CallState| {
            let found = calls.iter().filter(move |call| call.state == state);
            found.map(|call| call.at.position).collect::<HashSet<u32>>()
        };
        let approval = |call: &&Execution| {
            let approval = call.approval?;
            Some((call.at.position, (approval, [0; 16])))
        };
        self.tools.round = Round {
            step: step.no,
            answered_at: entries.last().and_then(|entry| entry.message.created),
            intended: in_state(CallState::Intent),
            stored: in_state(CallState::Done),
            approvals: calls.iter().filter_map(approval).collect(),
            ..Round::default()
        };
    }

    fn step_judge<'a>(&self, replay: &'a Replay<'a>, is_last: bool) -> StepJudge<'a> {
        StepJudge {
            replay,
            tools: self.tools.set(),
            on_lost: self.plan.policy.on_lost,
            is_last,
            ready: HashMap::new(),
        }
    }

    /// Replay a step in which calls of an earlier run were taken over.
    fn replay_taken(
        &mut self,
        replay: &Replay<'_>,
        step: &StepRecord,
        note: StepNote,
        is_last: bool,
    ) -> Order {
        let entries: Vec<&Entry> = replay.index.entries(step).collect();
        let executions = replay.index.calls(step.no);
        self.restore_round(step, &entries, &executions);
        self.tools.round.taken = note.taken;
        let mut deleted = HashSet::new();
        let taken = executions.iter().map(|execution| {
            let call = replay.calls.at(execution.at);
            call.unwrap_or_else(|| {
                deleted.insert(execution.at.position);
                deleted_call(execution)
            })
        });
        let taken: Vec<OpenCall> = taken.collect();
        let mut judge = self.step_judge(replay, is_last);
        let mut position = 0;
        let order = self.turn.take(taken, &mut |call| {
            let place = position;
            position += 1;
            let Some(execution) = executions.iter().find(|one| one.at.position == place) else {
                return Verdict::Outside;
            };
            if let Some(result) = replay.index.result(execution) {
                return result;
            }
            if deleted.contains(&place) {
                return closed_without_arguments(execution);
            }
            match execution.state {
                CallState::Intent => judge.judge_lost(call, execution),
                CallState::Planned if judge.runs_planned() => {
                    judge::judge_taken(&judge.tools, call, place, &mut judge.ready)
                }
                _ => Verdict::Outside,
            }
        });
        self.tools.ready = judge.ready;
        order
    }

    /// Replay a step with an answer of the model.
    fn replay_answer(
        &mut self,
        replay: &Replay<'_>,
        step: &StepRecord,
        note: &StepNote,
        is_last: bool,
    ) -> Order {
        let entries: Vec<&Entry> = replay.index.entries(step).collect();
        let executions = replay.index.calls(step.no);
        self.restore_round(step, &entries, &executions);
        let response = recorded_answer(&entries, note);
        self.details.steps.push(Step::Model {
            step: step.no,
            response: note.response.clone(),
            model: note.model.clone(),
            finish: response.stop.clone(),
            usage: response.usage.clone(),
            losses: note.losses.clone(),
        });
        self.details.add_losses(&note.losses);
        let delivered = entries
            .iter()
            .filter(|entry| entry.message.source == Some(Source::Caller))
            .map(|entry| entry.message.clone())
            .collect();
        let mut judge = self.step_judge(replay, is_last);
        let mut position = 0;
        let order = self.turn.replay(machine::Recorded {
            delivered,
            response,
            judge: &mut |call| {
                let place = position;
                position += 1;
                let Some(execution) = executions.iter().find(|one| one.at.position == place) else {
                    return Verdict::Outside;
                };
                if let Some(result) = replay.index.result(execution) {
                    return result;
                }
                match execution.state {
                    CallState::Intent => judge.judge_lost(call, execution),
                    CallState::Approval => Verdict::NeedsApproval(execution.effect),
                    CallState::Client => Verdict::Outside,
                    CallState::Planned if judge.runs_planned() => {
                        judge::judge_into(&judge.tools, call, place, &mut judge.ready)
                    }
                    // It never ran, and is closed.
                    CallState::Planned | CallState::Done | CallState::Taken => Verdict::Outside,
                }
            },
        });
        self.tools.ready = judge.ready;
        order
    }

    /// Publish what the last worker did and did not publish, and take back what it published in vain.
    async fn publish_missing_events(
        &mut self,
        index: &JournalIndex<'_>,
    ) -> Result<(), DriverError> {
        let journal = index.journal;
        let published = match journal.run.next_event {
            0 => PublishedEvents::of(&replayed(journal)),
            _ => {
                let home = self.log.recorder.home();
                PublishedEvents::read(&home.store, &home.scope, self.run).await?
            }
        };
        for (step, at) in published.unfinished() {
            self.log.publish(|| RunEvent::Incomplete { step, at });
        }
        let done = journal.calls.iter();
        for call in done.filter(|call| call.state == CallState::Done) {
            let (step, position) = (call.at.step, call.at.position);
            let content = index.contents.get(&call.result);
            let result = content.and_then(|content| content.as_tool_result());
            if let (false, Some(result)) = (published.has_result(step, position), result) {
                self.log.publish(|| RunEvent::Result {
                    step,
                    position,
                    result: result.clone(),
                });
            }
        }
        for entry in index.complete_entries() {
            let is_input = entry.at.no <= journal.inputs;
            if !is_input && !published.has_message(entry.message.id.as_ref()) {
                self.log
                    .publish(|| RunEvent::Message(entry.message.clone()));
            }
        }
        Ok(())
    }

    /// Add the recorded messages to the transcript and to what the model is shown. `new` are those
    /// that the replay has made, some of which are recorded.
    fn load_messages(&mut self, index: &JournalIndex<'_>, new: Vec<NewMessage>) {
        let journal = index.journal;
        let mut ids = HashSet::new();
        let last = journal.steps.last();
        // A service that keeps the history has everything up to the last step that it answered. The
        // answers of another service of the thread behind that are new to it.
        let here = &self.plan.client.abilities().upstream;
        let is_here = |step: &&StepRecord| {
            let note = StepNote::read(step.note.as_ref()).unwrap_or_default();
            note.service.is_some() && note.upstream.is_none_or(|upstream| upstream == *here)
        };
        let answered = journal.steps.iter().rev().find(is_here);
        let answered = answered.filter(|_| self.model.view.is_incremental());
        let sent = answered.map_or(0, |step| step.first + step.items);
        // A message store of the application has what was published.
        let appended = match self.model.owner.is_external() {
            true => self.transcript.published_count(),
            false => 0,
        };
        let with_items = journal.steps.iter().rev().find(|step| step.items > 0);
        let recorded = with_items.map_or(0, |step| step.first + step.items);
        let mut in_steps = 0;
        for (place, entry) in index.complete_entries().enumerate() {
            let message = Arc::new(entry.message.clone());
            ids.insert(message.id.clone());
            if entry.at.no < recorded {
                in_steps = place + 1;
            }
            if entry.at.no >= sent && place >= appended {
                self.model.view.push(Arc::clone(&message));
            }
            self.transcript.push(message);
        }
        self.transcript.restore_recorded(in_steps);
        let mut calls = journal.calls.iter();
        if index.is_complete() && calls.any(|call| Some(call.at.step) == last.map(|step| step.no)) {
            self.transcript.results_are_unsent();
        }
        for message in new {
            let (NewMessage::Results(known) | NewMessage::Message(known)) = &message;
            if !ids.contains(&known.id) {
                self.record_message(message);
            }
        }
    }

    /// Ask the tools that can tell whether calls with a lost result had their effect.
    async fn probe(
        &mut self,
        index: &JournalIndex<'_>,
        calls: &Calls<'_>,
        step: &StepRecord,
    ) -> HashMap<u32, Probe> {
        let mut probed = HashMap::new();
        let tools = self.tools.set();
        self.tools.round.step = step.no;
        for execution in index.calls(step.no) {
            let is_lost = execution.state == CallState::Intent;
            let is_lost = is_lost && execution.effect == Effect::Probe;
            let (true, Some(call)) = (is_lost, calls.at(execution.at)) else {
                continue;
            };
            let call = &call.call;
            let Ok(PreparedCall { tool, arguments }) = judge::prepare_retry(&tools, call) else {
                continue;
            };
            let context = self.call_context(call, execution.at.position);
            let answer = tool.probe(&arguments, context).await;
            let answer = answer.unwrap_or_else(|error| {
                let run = self.run;
                tracing::warn!(%run, tool = call.name, %error, "a tool could not tell what became of a call");
                Probe::Unknown
            });
            probed.insert(execution.at.position, answer);
        }
        probed
    }
}

/// The calls that a run took over and has not planned yet. A call that must not run has its result in
/// the input.
fn unplanned_calls(calls: &Calls<'_>, journal: &Journal) -> Vec<TakenCall> {
    let contents = journal
        .entries
        .iter()
        .flat_map(|entry| &entry.message.contents);
    let results: Vec<_> = contents.filter_map(Content::as_tool_result).collect();
    let taken = calls.taken_over().into_iter();
    let open = taken.filter(|(_, call)| !results.iter().any(|one| call.is_answered_by(one)));
    open.map(|(execution, call)| TakenCall {
        at: execution.at,
        call,
    })
    .collect()
}

/// A call whose run was deleted.
pub(crate) fn deleted_call(call: &Execution) -> OpenCall {
    let id = CallId::natural(&call.call);
    let id = id.unwrap_or_else(|| CallId::minted(Scope::Response(&call.key), 0));
    OpenCall::lost(id, &call.tool)
}

/// The end of a call that can never run, because its arguments were deleted.
pub(crate) fn closed_without_arguments(execution: &Execution) -> Verdict {
    let dispatched = execution.state == CallState::Intent;
    Verdict::Ended {
        ended: Ended::closed(match dispatched {
            true => Outcome::Unknown,
            false => Outcome::Cancelled,
        }),
        ran: dispatched,
    }
}
