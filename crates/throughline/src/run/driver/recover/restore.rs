//! A run as its journal tells it, so that it can be gone on with in any process.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throughline_model::{
    Body, CallId, Content, Message, Outcome, Output, Response, Scope, Source, Stop, ToolCall,
};
use throughline_store::{CallState, Effect, Entry, Execution, ItemNo, Journal, StepRecord};

use super::carried::Carried;
use crate::run::driver::start::TakenCall;
use crate::run::driver::tools::Prepared;
use crate::run::driver::tools::judge;
use crate::run::driver::{Driver, DriverError, RoundRecord};
use crate::run::event::RunEvent;
use crate::run::events::{Logged, replayed};
use crate::run::machine::{self, Ended, Fresh, Order, Verdict};
use crate::run::outcome::{RunError, Step};
use crate::thread::OnLost;
use crate::thread::StopReason;
use crate::thread::journal::Calls;
use crate::thread::journal::OpenCall;
use crate::thread::journal::StepNote;
use crate::tool::{Probe, ToolSet};
use crate::trials::planted;

/// What is to become of a run that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run::driver) enum Restoring {
    /// It is gone on with.
    Resume,
    /// What is open in it is closed, and it is published.
    Close,
    /// Its waiting calls are withdrawn, and it is published.
    Withdraw,
    /// It is cancelled on somebody's word.
    Cancel,
    /// It was tried too often, and fails.
    Seal,
}

/// The ids of calls for which a parked run waits. One that was dispatched has lost its result, and
/// the run waits for somebody who knows it.
pub(in crate::run::driver) fn waiting(journal: &Journal) -> Vec<String> {
    let waits = |call: &&Execution| match call.state {
        CallState::Approval | CallState::Client | CallState::Intent => true,
        CallState::Planned | CallState::Done | CallState::Taken => false,
    };
    let waiting = journal.calls.iter().filter(waits);
    waiting.map(|call| call.call.clone()).collect()
}

/// What the journal says, looked up by item and by step.
pub(in crate::run::driver) struct JournalIndex<'j> {
    journal: &'j Journal,
    /// Where a result stands: entry and content.
    results: HashMap<ItemNo, &'j Content>,
}

impl<'j> JournalIndex<'j> {
    pub(in crate::run::driver) fn new(journal: &'j Journal) -> Self {
        let mut results = HashMap::new();
        for entry in &journal.entries {
            for (item, content) in entry.item_refs().zip(&entry.message.contents) {
                results.insert(item.no, content);
            }
        }
        Self { journal, results }
    }

    pub(in crate::run::driver) fn calls(&self, step: u32) -> Vec<&'j Execution> {
        let mut calls: Vec<_> = self.journal.calls.iter().collect();
        calls.retain(|call| call.at.step == step);
        calls.sort_by_key(|call| call.at.position);
        calls
    }

    /// What was said in a step.
    pub(in crate::run::driver) fn entries(
        &self,
        step: &StepRecord,
    ) -> impl Iterator<Item = &'j Entry> {
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

    /// The messages: results of a round that is still open are none yet.
    fn known(&self) -> impl Iterator<Item = &'j Entry> {
        let open = self.journal.steps.last();
        let open = open.map(|step| step.first + step.items);
        let complete = self.is_complete();
        let entries = self.journal.entries.iter();
        entries.filter(move |entry| complete || open.is_none_or(|open| entry.at.no < open))
    }

    /// What a call that has ended came to.
    pub(in crate::run::driver) fn ended(&self, call: &Execution) -> Option<Verdict> {
        let content = self.results.get(&call.result)?;
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

/// The model's answer of a step.
pub(in crate::run::driver) fn response(entries: &[&Entry], note: &StepNote) -> Response {
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

/// How a call that was dispatched and has no result is gone on with.
fn lost(
    tools: &ToolSet,
    (call, execution): (&ToolCall, &Execution),
    (restoring, on_lost): (Restoring, OnLost),
    probed: &HashMap<u32, Probe>,
    prepared: &mut HashMap<u32, Prepared>,
) -> Verdict {
    let position = execution.at.position;
    let unknown = || Verdict::Ended {
        ended: machine::closed(Outcome::Unknown),
        ran: true,
    };
    if restoring != Restoring::Resume {
        return match execution.effect {
            Effect::ReadOnly => Verdict::Outside,
            _ => unknown(),
        };
    }
    let mut again = || match judge::again(tools, call) {
        Ok(ready) => {
            prepared.insert(position, ready);
            Verdict::Again(execution.effect)
        }
        Err(why) => Verdict::Refuse(why),
    };
    match execution.effect {
        Effect::ReadOnly | Effect::Idempotent | Effect::Keyed | Effect::Transactional => again(),
        Effect::Probe => match probed.get(&position) {
            Some(Probe::Done(output)) => Verdict::Ended {
                ended: Ended {
                    outcome: Outcome::Ok,
                    output: output.output.clone(),
                    terminate: output.terminate,
                },
                ran: true,
            },
            Some(Probe::NotDone) => again(),
            Some(Probe::Unknown) | None => unknown(),
        },
        Effect::Once if planted("loop-lost-again") => again(),
        Effect::Once => match on_lost {
            OnLost::Tell => unknown(),
            OnLost::Park => Verdict::Outside,
        },
    }
}

impl Driver {
    /// Stand where the journal ends.
    pub(in crate::run::driver) async fn restore(
        &mut self,
        journal: &Journal,
        restoring: Restoring,
    ) -> Result<Order, DriverError> {
        let told = JournalIndex::new(journal);
        let bad = |error: throughline_model::stored::StoredError| {
            let why = error.to_string();
            DriverError::Run(RunError::Journal { why })
        };
        let mut order = self.turn.stand_after(journal.inputs as usize);
        drop(self.turn.take_fresh());
        let made = Calls::of(self.recorder.home(), journal).await?;
        let probed = match journal.steps.last() {
            Some(step) if restoring == Restoring::Resume => self.probe(&told, &made, step).await,
            _ => HashMap::new(),
        };
        let last = journal.steps.len().saturating_sub(1);
        let mut end = None;
        let mut replayed: Vec<Fresh> = Vec::new();
        let known = if planted("loop-asks-again") {
            0
        } else {
            journal.steps.len()
        };
        for (place, step) in journal.steps.iter().take(known).enumerate() {
            let note = StepNote::read(step.note.as_ref()).map_err(bad)?;
            let entries: Vec<&Entry> = told.entries(step).collect();
            if !note.taken.is_empty() {
                let calls = told.calls(step.no);
                self.stand_in(step, &entries, &calls);
                self.round.taken = note.taken;
                self.round.at = entries.last().and_then(|entry| entry.message.created);
                order = self.retake(&told, (step, place == last), &made, restoring, &probed);
                replayed.extend(self.turn.take_fresh());
                continue;
            }
            let response = response(&entries, &note);
            self.steps.push(Step::Model {
                step: step.no,
                response: note.response.clone(),
                model: note.model.clone(),
                finish: response.stop.clone(),
                usage: response.usage.clone(),
                losses: note.losses.clone(),
            });
            self.add_losses(&note.losses);
            let calls = told.calls(step.no);
            self.stand_in(step, &entries, &calls);
            end = note.end;
            order = self.replay(
                &told,
                (step, place == last),
                (entries, response),
                restoring,
                &probed,
            );
            replayed.extend(self.turn.take_fresh());
        }
        if let Some(stop) = end {
            // It ended here, and only what came after was missing.
            order = Order::End(stop);
        }
        let goes_on = !matches!(order, Order::End(stop) if stop != StopReason::Parked);
        // It died between taking calls over and planning them.
        let here = match restoring == Restoring::Resume && journal.steps.is_empty() {
            true => unplanned(&made, journal),
            false => Vec::new(),
        };
        if restoring == Restoring::Resume && goes_on {
            self.bring_queued(journal).await?;
            if here.is_empty() {
                // A call that was tried before the crash is made again, with what came since.
                self.turn.deliver_now();
                replayed.extend(self.turn.take_fresh());
            }
        }
        if self.publisher.is_heard() {
            self.catch_up(&told).await?;
        }
        self.recall(&told, replayed);
        if !here.is_empty() {
            // What was said beside the answers comes after the results.
            order = self.take(here).await?;
        }
        Ok(order)
    }

    /// Hand the turn what is to be said with its next model call: messages that were queued, in
    /// whichever process, and input that waits for the results of calls that were taken over.
    async fn bring_queued(&mut self, journal: &Journal) -> Result<(), DriverError> {
        let carried = Carried::read(journal.request.as_ref());
        let carried = carried.map_err(|error| {
            let why = error.to_string();
            DriverError::Run(RunError::Journal { why })
        })?;
        let answered = journal.steps.iter().any(|step| step.items > 0);
        let later = match answered {
            true => Vec::new(),
            false => carried.later,
        };
        let queued = match planted("loop-queue-forgotten") {
            true => Vec::new(),
            false => self.job.thread.queued().await?,
        };
        self.say_later(queued, later);
        Ok(())
    }

    /// What is known of the calls of a step.
    fn stand_in(&mut self, step: &StepRecord, entries: &[&Entry], calls: &[&Execution]) {
        let said = entries.iter().rev();
        let at = said.map(|entry| entry.message.created).next().flatten();
        let of = |state: CallState| {
            let found = calls.iter().filter(move |call| call.state == state);
            found.map(|call| call.at.position).collect::<HashSet<u32>>()
        };
        let shown = |call: &&Execution| {
            let approval = call.approval?;
            Some((call.at.position, (approval, [0; 16])))
        };
        self.round = RoundRecord {
            step: step.no,
            at,
            intended: of(CallState::Intent),
            stored: of(CallState::Done),
            approvals: calls.iter().filter_map(shown).collect(),
            taken: Vec::new(),
        };
    }

    /// Go through a step again in which calls were taken over.
    fn retake(
        &mut self,
        told: &JournalIndex<'_>,
        (step, is_last): (&StepRecord, bool),
        made: &Calls<'_>,
        restoring: Restoring,
        probed: &HashMap<u32, Probe>,
    ) -> Order {
        let calls = told.calls(step.no);
        let mut deleted = HashSet::new();
        let asked = calls.iter().map(|call| {
            made.at(call.at).unwrap_or_else(|| {
                deleted.insert(call.at.position);
                lost_call(call)
            })
        });
        let asked: Vec<OpenCall> = asked.collect();
        let tools = self.tools.set();
        let on_lost = self.plan.policy.on_lost;
        let mut prepared = HashMap::new();
        let mut position = 0;
        let order = self.turn.take(asked, &mut |call| {
            let place = position;
            position += 1;
            let Some(execution) = calls.iter().find(|one| one.at.position == place) else {
                return Verdict::Outside;
            };
            if let Some(ended) = told.ended(execution) {
                return ended;
            }
            if deleted.contains(&place) {
                return without_arguments(execution);
            }
            match execution.state {
                CallState::Intent => lost(
                    &tools,
                    (call, execution),
                    (restoring, on_lost),
                    probed,
                    &mut prepared,
                ),
                CallState::Planned if is_last && restoring == Restoring::Resume => {
                    judge::agreed(&tools, call, place, &mut prepared)
                }
                _ => Verdict::Outside,
            }
        });
        self.prepared = prepared;
        order
    }

    /// Go through one step again.
    fn replay(
        &mut self,
        told: &JournalIndex<'_>,
        (step, is_last): (&StepRecord, bool),
        (entries, response): (Vec<&Entry>, Response),
        restoring: Restoring,
        probed: &HashMap<u32, Probe>,
    ) -> Order {
        let delivered = entries
            .iter()
            .filter(|entry| entry.message.source == Some(Source::Caller))
            .map(|entry| entry.message.clone())
            .collect();
        let calls = told.calls(step.no);
        let tools = self.tools.set();
        let on_lost = self.plan.policy.on_lost;
        let mut prepared = HashMap::new();
        let mut position = 0;
        let order = self.turn.replay(machine::Recorded {
            delivered,
            response,
            judge: &mut |call| {
                let place = position;
                position += 1;
                let execution = calls.iter().find(|one| one.at.position == place);
                let Some(execution) = execution else {
                    return Verdict::Outside;
                };
                if let Some(ended) = told.ended(execution) {
                    return ended;
                }
                match execution.state {
                    CallState::Intent => lost(
                        &tools,
                        (call, execution),
                        (restoring, on_lost),
                        probed,
                        &mut prepared,
                    ),
                    CallState::Approval => Verdict::Ask(execution.effect),
                    CallState::Client => Verdict::Outside,
                    CallState::Planned if is_last && restoring == Restoring::Resume => {
                        judge::judge_into(&tools, call, place, &mut prepared)
                    }
                    // It never ran, and will not.
                    CallState::Planned | CallState::Done | CallState::Taken => Verdict::Outside,
                }
            },
        });
        self.prepared = prepared;
        order
    }

    /// Tell readers what was done and not told, and what they were told that came to nothing.
    async fn catch_up(&mut self, told: &JournalIndex<'_>) -> Result<(), DriverError> {
        let journal = told.journal;
        let logged = match journal.run.next_event {
            0 => Logged::of(&replayed(journal)),
            _ => {
                let home = self.recorder.home();
                Logged::read(&home.store, &home.scope, self.run).await?
            }
        };
        let (publisher, recorder) = (&mut self.publisher, &mut self.recorder);
        for (step, at) in logged.open() {
            publisher.say(recorder, || RunEvent::Incomplete { step, at });
        }
        let done = journal
            .calls
            .iter()
            .filter(|call| call.state == CallState::Done);
        for call in done {
            let (step, position) = (call.at.step, call.at.position);
            let content = told.results.get(&call.result);
            let result = content.and_then(|content| content.as_tool_result());
            let (false, Some(result)) = (logged.has_result(step, position), result) else {
                continue;
            };
            publisher.say(recorder, || RunEvent::Result {
                step,
                position,
                result: result.clone(),
            });
        }
        for entry in told.known() {
            let said = entry.at.no > journal.inputs;
            if said && !logged.has_message(entry.message.id.as_ref()) {
                publisher.say(recorder, || RunEvent::Message(entry.message.clone()));
            }
        }
        Ok(())
    }

    /// Put what the journal has into the view; what replaying added to it is new.
    fn recall(&mut self, told: &JournalIndex<'_>, replayed: Vec<Fresh>) {
        let journal = told.journal;
        let complete = told.is_complete();
        let known: Vec<Arc<Message>> = told
            .known()
            .map(|entry| Arc::new(entry.message.clone()))
            .collect();
        let ids: HashSet<_> = known.iter().map(|message| message.id.clone()).collect();
        let sent = self.sent(journal);
        for (message, entry) in known.into_iter().zip(&journal.entries) {
            let has = sent.is_some_and(|sent| entry.at.no < sent);
            if !has
                && (!self.prompt.is_incremental()
                    || !crate::run::driver::model::is_models(&message))
            {
                self.prompt.push(Arc::clone(&message));
            }
            self.said.push(message);
        }
        self.trailing = complete
            && journal
                .calls
                .iter()
                .any(|call| Some(call.at.step) == journal.steps.last().map(|step| step.no));
        for fresh in replayed {
            let (Fresh::Results(message) | Fresh::Said(message)) = &fresh;
            if ids.contains(&message.id) {
                continue;
            }
            self.enter_fresh(fresh);
        }
    }

    /// Up to which item the service has what was said, if it keeps the conversation.
    fn sent(&self, journal: &Journal) -> Option<ItemNo> {
        if !self.prompt.is_incremental() {
            return None;
        }
        let step = journal.steps.last()?;
        Some(step.first + step.items)
    }

    /// Ask tools that can say so whether a lost call had its effect.
    async fn probe(
        &mut self,
        told: &JournalIndex<'_>,
        made: &Calls<'_>,
        step: &StepRecord,
    ) -> HashMap<u32, Probe> {
        let mut probed = HashMap::new();
        let tools = self.tools.set();
        self.round.step = step.no;
        for execution in told.calls(step.no) {
            let lost = execution.state == CallState::Intent && execution.effect == Effect::Probe;
            let (true, Some(call)) = (lost, made.at(execution.at)) else {
                continue;
            };
            let call = &call.call;
            let Ok(Prepared { tool, arguments }) = judge::again(&tools, call) else {
                continue;
            };
            let context = self.context(call, execution.at.position);
            let answer = tool.probe(&arguments, context).await;
            let answer = answer.unwrap_or_else(|error| {
                let run = self.run;
                tracing::warn!(%run, tool = call.name, %error, "a tool could not say what became of a call");
                Probe::Unknown
            });
            probed.insert(execution.at.position, answer);
        }
        probed
    }
}

/// The calls that a run took over and has not planned yet. What may not run has its result in the
/// input.
fn unplanned(made: &Calls<'_>, journal: &Journal) -> Vec<TakenCall> {
    let contents = journal
        .entries
        .iter()
        .flat_map(|entry| &entry.message.contents);
    let results: Vec<_> = contents.filter_map(Content::as_tool_result).collect();
    let taken = made.taken_over().into_iter();
    let open = taken.filter(|(_, call)| !results.iter().any(|one| call.is_answered_by(one)));
    open.map(|(execution, call)| TakenCall {
        at: execution.at,
        call,
    })
    .collect()
}

/// A call of a run that was deleted.
pub(in crate::run::driver) fn lost_call(call: &Execution) -> OpenCall {
    let id = CallId::natural(&call.call);
    let id = id.unwrap_or_else(|| CallId::minted(Scope::Response(&call.key), 0));
    OpenCall::lost(id, &call.tool)
}

/// How a call ends whose arguments are gone: it can never run.
pub(in crate::run::driver) fn without_arguments(execution: &Execution) -> Verdict {
    let dispatched = execution.state == CallState::Intent;
    Verdict::Ended {
        ended: machine::closed(match dispatched {
            true => Outcome::Unknown,
            false => Outcome::Cancelled,
        }),
        ran: dispatched,
    }
}

/// How a stop is called in a run that is closed by others.
pub(in crate::run::driver) fn closing(restoring: Restoring) -> StopReason {
    match restoring {
        Restoring::Withdraw => StopReason::Parked,
        Restoring::Resume | Restoring::Close | Restoring::Cancel | Restoring::Seal => {
            StopReason::Cancelled
        }
    }
}
