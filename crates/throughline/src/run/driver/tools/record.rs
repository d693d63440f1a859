//! Recording answers of the model, and results of calls.

use std::collections::{HashMap, HashSet};

use throughline_model::json::RawJson;
use throughline_model::{Arguments, Content, Message, Response, Role, Source, ToolCall};
use throughline_store::{
    ApprovalId, ArgumentsDigest, CallRef, CallResult, CallState, Effect, Millis, NewApproval,
    PlannedCall, StepNode, arguments_digest,
};

use super::judge;
use crate::client::PersistMark;
use crate::run::Step;
use crate::run::driver::start::TakenCall;
use crate::run::driver::{Driver, DriverError};
use crate::run::machine::Order;
use crate::thread::journal::{Awaits, StepNote};
use crate::thread::{Persistence, StopReason};
use crate::trials::planted;

/// What the journal has of a round: one model answer, its calls and their results.
#[derive(Default)]
pub(crate) struct Round {
    /// The number of its step.
    pub(crate) step: u32,
    /// When the answer came. Its results carry this date.
    pub(crate) answered_at: Option<Millis>,
    /// Calls with an intent, by position.
    pub(crate) intended: HashSet<u32>,
    /// Calls with a result.
    pub(crate) stored: HashSet<u32>,
    pub(crate) approvals: HashMap<u32, (ApprovalId, ArgumentsDigest)>,
    /// The places of calls that were taken over from an earlier run, by position.
    pub(crate) taken: Vec<CallRef>,
    /// Whether the client asked for the step to be published at once.
    pub(crate) is_marked: bool,
}

impl Round {
    /// The result of a call as the store takes it.
    pub(crate) fn call_result(&self, position: u32, content: Content) -> CallResult {
        let mut message = Message::new(Role::Tool, vec![content]);
        message.source = Some(Source::Tool);
        message.created = self.answered_at;
        CallResult::new(self.step, position, &message)
    }
}

impl Driver {
    /// The model answered: decide about its calls, and record both.
    pub(crate) async fn answered(
        &mut self,
        response: Response,
        mark: &PersistMark,
    ) -> Result<Order, DriverError> {
        self.read_own_queue().await?;
        self.billed(&response);
        let service = self.service_history(&response);
        let upstream = &self.plan.client.abilities().upstream;
        let mut note = StepNote::of(&response, upstream);
        note.losses = self.details.take_last_losses();
        self.details.steps.push(Step::Model {
            step: self.turn.model_calls(),
            response: response.id.clone(),
            model: response.model.clone(),
            finish: response.stop.clone(),
            usage: response.usage.clone(),
            losses: note.losses.clone(),
        });
        self.begin_round(mark);
        self.stop_resending(&service);
        let order = self.judge_answer(response);
        self.record_new_messages();
        // The answer is in the transcript, also when the id of its service is refused.
        self.take_service_id(service).await?;
        self.after_call().await?;
        let is_final = match order {
            Order::End(StopReason::Parked) => false,
            Order::End(_) => self.turn.planned().is_empty(),
            Order::CallModel(_) | Order::Dispatch(_) | Order::Wait => false,
        };
        if let (true, Order::End(stop)) = (is_final, &order) {
            // The final answer is recorded with the end of the run, in one write. But a message store
            // of the application must not have what the journal could still lose.
            if !self.model.owner.is_external() {
                self.details.last_service = note.service.zip(note.upstream);
                return Ok(order);
            }
            note.end = Some(*stop);
        }
        self.record(note).await?;
        Ok(order)
    }

    /// Begin with approved calls of an earlier run. They form a step without messages.
    pub(crate) async fn take_calls(&mut self, calls: Vec<TakenCall>) -> Result<Order, DriverError> {
        self.begin_round(&PersistMark::default());
        self.tools.round.taken = calls.iter().map(|one| one.at).collect();
        let tools = self.tools.set();
        let mut ready = HashMap::new();
        let mut position = 0;
        let calls = calls.into_iter().map(|one| one.call).collect();
        let order = self.turn.take(calls, &mut |call| {
            let verdict = judge::judge_taken(&tools, call, position, &mut ready);
            position += 1;
            verdict
        });
        self.tools.ready = ready;
        self.record_new_messages();
        let note = StepNote {
            taken: self.tools.round.taken.clone(),
            ..StepNote::default()
        };
        self.record(note).await?;
        Ok(order)
    }

    /// A new step begins, with the mark of its model call.
    pub(crate) fn begin_round(&mut self, mark: &PersistMark) {
        self.tools.round = Round {
            step: self.log.recorder.next_step(),
            answered_at: Some(self.context.agent.clock.now()),
            is_marked: mark.is_set(),
            ..Round::default()
        };
    }

    /// Whether the current step is published at once. The last one of a run is not if a message store
    /// of the application keeps the history: its messages are appended before the run is published,
    /// so that the last node has the key that the append returned.
    fn publishes_step(&self, note: &StepNote) -> bool {
        let per_call = self.log.recorder.mode == Persistence::PerCall;
        let is_last = note.end.is_some() && self.model.owner.is_external();
        per_call && self.tools.round.is_marked && !is_last
    }

    /// Record the closed calls of an answer that was cut off.
    pub(crate) async fn record_closed(&mut self) -> Result<(), DriverError> {
        if self.turn.planned().is_empty() {
            return Ok(());
        }
        self.record(StepNote::default()).await
    }

    async fn record(&mut self, note: StepNote) -> Result<(), DriverError> {
        let set = self.tools.set();
        let mut calls = Vec::new();
        let mut approvals = Vec::new();
        for (planned, position) in self.turn.planned().iter().zip(0..) {
            let call = &planned.call;
            let effect = match set.find(&call.name) {
                Some(tool) => tool.spec().effect,
                None => Effect::Once,
            };
            let state = match planned.awaits {
                Some(awaits @ (Awaits::Approval | Awaits::VendorApproval)) => {
                    let approval = self.new_approval(call, position, awaits);
                    let record = (approval.id, approval.shown);
                    self.tools.round.approvals.insert(position, record);
                    approvals.push(approval);
                    CallState::Approval
                }
                Some(Awaits::Result) => CallState::Client,
                None => CallState::Planned,
            };
            calls.push(PlannedCall {
                call: call.call.value().to_owned(),
                tool: call.name.clone(),
                effect,
                state,
            });
        }
        let publishes = self.publishes_step(&note);
        if let (true, Some(external)) = (publishes, self.model.owner.external_mut()) {
            let until = self.transcript.sent().len();
            external.announce(self.run, until, &mut self.state.current);
        }
        if planted("loop-append-unjournaled") && publishes {
            let until = self.transcript.sent().len();
            self.append_external(until).await?;
        }
        let node = publishes.then(|| StepNode {
            state: self.state.changed(),
        });
        if node.is_some() {
            self.pass_view_change();
        }
        let note = Some(note.to_json()).filter(|note| note.get() != "{}");
        let step = self.log.recorder.step(calls, approvals, note, node);
        let published = step.await?;
        self.log.events.release();
        self.transcript.step_recorded();
        if let Some(published) = published {
            self.transcript.step_published(&published);
            self.state.mark_published();
            let until = self.transcript.published_count();
            self.append_external(until).await?;
        }
        Ok(())
    }

    /// Record messages that no step has: the run ends with them.
    pub(crate) async fn record_rest(&mut self, stop: StopReason) -> Result<(), DriverError> {
        if self.log.recorder.has_items() {
            let note = StepNote {
                end: Some(stop),
                ..StepNote::default()
            };
            self.record(note).await?;
        }
        Ok(())
    }

    /// A request for the approval of a call of this round.
    pub(crate) fn new_approval(
        &self,
        call: &ToolCall,
        position: u32,
        awaits: Awaits,
    ) -> NewApproval {
        let arguments = match &call.arguments {
            Arguments::Text(text) | Arguments::Free(text) => text.clone(),
            Arguments::Json(json) => json.get().to_owned(),
            Arguments::None => String::new(),
        };
        let agent = &self.context.agent;
        let (time, now) = (agent.approval_time, agent.clock.now());
        NewApproval {
            id: self.log.recorder.home().store.ids().approval(),
            step: self.tools.round.step,
            position,
            shown: arguments_digest(&call.name, &arguments),
            expires: time.map(|time| now.saturating_add(time)),
            detail: Some(RawJson::object(|object| {
                object.str("tool", &call.name);
                object.str("call", call.call.value());
                object.str("arguments", &arguments);
                if awaits == Awaits::VendorApproval {
                    object.bool("vendor", true);
                }
            })),
        }
    }

    /// Note the results of a round that the journal does not have, for the next write.
    pub(crate) fn note_results(&mut self, message: &Message) {
        for (content, position) in message.contents.iter().zip(0..) {
            self.note_result(position, content.clone());
        }
    }

    fn note_result(&mut self, position: u32, content: Content) {
        let round = &mut self.tools.round;
        if round.stored.insert(position) {
            let result = round.call_result(position, content);
            self.log.recorder.result(result);
        }
    }

    /// Write the results that were noted.
    pub(crate) async fn store_results(&mut self) -> throughline_store::Result<()> {
        if planted("loop-results-late") {
            return Ok(());
        }
        self.log.recorder.results().await
    }

    /// Note and write the results of a round that stays open.
    pub(crate) async fn store_done(&mut self) -> throughline_store::Result<()> {
        for (position, content) in self.turn.results() {
            self.note_result(position, content);
        }
        self.store_results().await
    }
}
