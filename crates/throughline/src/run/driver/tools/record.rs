//! Recording what a model answered and what its calls came to.

use std::collections::HashMap;

use throughline_model::json::RawJson;
use throughline_model::{Arguments, Message, Response, Role, Source, ToolCall};
use throughline_store::{CallResult, CallState, Effect, NewApproval, PlannedCall, StepNode, shown};

use super::judge;
use crate::run::Step;
use crate::run::driver::start::TakenCall;
use crate::run::driver::{Driver, DriverError, RoundRecord};
use crate::run::machine::Order;
use crate::thread::StopReason;
use crate::thread::journal::Awaits;
use crate::thread::journal::StepNote;

impl Driver {
    /// The model answered: decide about its calls, and record both.
    pub(in crate::run::driver) async fn answered(
        &mut self,
        response: Response,
    ) -> Result<Order, DriverError> {
        self.mail().await?;
        self.billed(&response);
        let service = self.service_of(&response);
        let mut note = StepNote::of(&response, response.service.as_deref());
        note.losses = std::mem::take(&mut self.lost);
        self.steps.push(Step::Model {
            step: self.turn.asked(),
            response: response.id.clone(),
            model: response.model.clone(),
            finish: response.stop.clone(),
            usage: response.usage.clone(),
            losses: note.losses.clone(),
        });
        self.begin_round();
        self.heard_by(&service);
        let order = self.judged(response);
        self.tell();
        // What came is in the transcript, whatever is wrong with where it came from.
        self.adopt_service(service).await?;
        self.after_call().await.map_err(DriverError::Run)?;
        let is_final = match order {
            Order::End(StopReason::Parked) => false,
            Order::End(_) => self.turn.planned().is_empty(),
            Order::Ask(_) | Order::Dispatch(_) | Order::Wait => false,
        };
        if let (true, Order::End(stop)) = (is_final, &order) {
            // It is recorded with the end of the run, in one write; but a store of the application
            // must not have what we could still forget.
            if !self.owner.is_external() {
                return Ok(order);
            }
            note.end = Some(*stop);
        }
        self.record(note).await?;
        Ok(order)
    }

    /// Run calls of an earlier run, to which somebody agreed. They are a step in which nothing was
    /// said.
    pub(in crate::run::driver) async fn take(
        &mut self,
        calls: Vec<TakenCall>,
    ) -> Result<Order, DriverError> {
        self.begin_round();
        self.round.taken = calls.iter().map(|one| one.at).collect();
        let tools = self.tools.set();
        let mut prepared = HashMap::new();
        let mut position = 0;
        let calls = calls.into_iter().map(|one| one.call).collect();
        let order = self.turn.take(calls, &mut |call| {
            let verdict = judge::agreed(&tools, call, position, &mut prepared);
            position += 1;
            verdict
        });
        self.prepared = prepared;
        self.tell();
        let note = StepNote {
            taken: self.round.taken.clone(),
            ..StepNote::default()
        };
        self.record(note).await?;
        Ok(order)
    }

    /// A new step begins.
    pub(in crate::run::driver) fn begin_round(&mut self) {
        self.round = RoundRecord {
            step: self.recorder.next_step(),
            at: Some(self.agent.clock.now()),
            ..RoundRecord::default()
        };
    }

    /// Record the calls of an answer that was cut off: they are closed.
    pub(in crate::run::driver) async fn record_closed(&mut self) -> Result<(), DriverError> {
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
                Some(Awaits::Approval | Awaits::VendorApproval) => {
                    let approval = self.approval(call, position, planned.awaits);
                    self.round
                        .approvals
                        .insert(position, (approval.id, approval.shown));
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
        let node = self.publishes_call().then(|| StepNode {
            state: self.changed_state(),
        });
        if node.is_some() {
            self.swaps_view();
        }
        let note = Some(note.to_json()).filter(|note| note.get() != "{}");
        let published = self.recorder.step(calls, approvals, note, node).await?;
        self.publisher.stored();
        if let Some(published) = published {
            self.node = published.node;
            self.has_published();
            // The step is published up to what was said in it; its results come later.
            self.published = self.said.len() - usize::from(self.trailing);
        }
        Ok(())
    }

    /// The record of a question about a call of this round.
    pub(in crate::run::driver) fn approval(
        &self,
        call: &ToolCall,
        position: u32,
        awaits: Option<Awaits>,
    ) -> NewApproval {
        let arguments = match &call.arguments {
            Arguments::Text(text) | Arguments::Free(text) => text.clone(),
            Arguments::Json(json) => json.get().to_owned(),
            Arguments::None => String::new(),
        };
        let time = self.agent.approval_time;
        let now = self.agent.clock.now();
        NewApproval {
            id: self.recorder.home().store.ids().approval(),
            step: self.round.step,
            position,
            shown: shown(&call.name, &arguments),
            expires: time.map(|time| now.saturating_add(time)),
            detail: Some(RawJson::object(|object| {
                object.str("tool", &call.name);
                object.str("call", call.call.value());
                object.str("arguments", &arguments);
                if awaits == Some(Awaits::VendorApproval) {
                    object.bool("vendor", true);
                }
            })),
        }
    }

    /// Note the results of a round that the journal does not have.
    pub(in crate::run::driver) fn note_results(&mut self, message: &Message) {
        for (content, position) in message.contents.iter().zip(0..) {
            if self.round.stored.insert(position) {
                let one = self.result_item(content.clone());
                let result = CallResult::new(self.round.step, position, &one);
                self.recorder.result(result);
            }
        }
    }

    /// One result as the record has it.
    pub(in crate::run::driver) fn result_item(
        &self,
        content: throughline_model::Content,
    ) -> Message {
        let mut message = Message::new(Role::Tool, vec![content]);
        message.source = Some(Source::Tool);
        message.created = self.round.at;
        message
    }

    /// Write the results that were noted.
    pub(in crate::run::driver) async fn store_results(&mut self) -> Result<(), DriverError> {
        if crate::trials::planted("loop-results-late") {
            return Ok(());
        }
        Ok(self.recorder.results().await?)
    }

    /// Note and write the results of a round that stays open.
    pub(in crate::run::driver) async fn store_done(&mut self) -> Result<(), DriverError> {
        let mut missing = Vec::new();
        for done in self.turn.done() {
            if !self.round.stored.contains(&done.position) {
                missing.push((done.position, done.content));
            }
        }
        for (position, content) in missing {
            self.round.stored.insert(position);
            let one = self.result_item(content);
            let result = CallResult::new(self.round.step, position, &one);
            self.recorder.result(result);
        }
        self.store_results().await
    }
}
