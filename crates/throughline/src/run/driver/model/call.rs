//! One model call.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::StreamExt;
use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Event, Fold, Place, Response, Stop, ToolChoice, ToolDef};
use tokio::time::Instant;
use tracing::Instrument;

use crate::client::{
    ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, LossSink, PersistMark,
};
use crate::run::driver::cutoff::until;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::machine::ModelCall;
use crate::run::setup::Answers;
use crate::telemetry::{CallWatch, Streaming};
use crate::thread::Persistence;
use crate::thread::StopReason;

/// A model call that was sent.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each model call, and it is taken apart at once"
)]
enum SentCall {
    Over(CallEnd),
    Streaming(EventStream),
}

/// How a model call ended.
pub(crate) enum CallEnd {
    Answered(Response),
    Failed(ClientError),
    /// Cancelled or out of time, with the answer so far.
    Cut(StopReason, Option<Response>),
}

/// When gathered events are to be stored.
enum Flush {
    Now,
    Later,
    /// The handle of the call is to be stored first.
    Accepted(RawJson),
}

impl Driver {
    /// Make a model call. The mark says whether it is to be published at once.
    pub(crate) async fn send_model_call(
        &mut self,
        call: ModelCall,
    ) -> Result<(CallEnd, PersistMark), DriverError> {
        let step = self.log.recorder.next_step();
        self.before_call().await?;
        self.log.publish(|| RunEvent::Asked { step });
        self.log.events.expect_content();
        if let Some(accepted) = self.model.accepted.take()
            && let Some(end) = self.look_up(&accepted).await
        {
            self.count_answer(&end);
            return Ok((end, self.mark_of_looked_up()));
        }
        let offered = match call {
            ModelCall::First | ModelCall::Next => self.offered(),
            ModelCall::Last => [].into(),
        };
        let choice = match call {
            ModelCall::First if !offered.is_empty() => self.plan.choice.clone(),
            ModelCall::First | ModelCall::Next | ModelCall::Last => ToolChoice::Auto,
        };
        let client = Arc::clone(&self.plan.client);
        let agent = Arc::clone(&self.context.agent);
        let model = self.plan.model.clone();
        let instructions = self.instructions();
        self.compact(step, instructions.as_deref(), &offered)?;
        let special = self.special_view();
        let mark = PersistMark::default();
        let losses = LossSink::default();
        let per_call = self.log.recorder.mode == Persistence::PerCall;
        let request = ChatRequest {
            model: model.as_deref(),
            instructions: instructions.as_deref(),
            view: special.as_ref().unwrap_or(self.model.view.view()),
            tools: &offered,
            choice: &choice,
            settings: &self.plan.settings,
            history_owner: self.model.owner.history_owner(),
            persist: per_call.then_some(&mark),
            losses: Some(&losses),
        };
        let streaming = match agent.answers {
            Answers::Whole => Streaming::Whole,
            Answers::Streamed => Streaming::Streamed,
        };
        let watch = agent
            .telemetry
            .call(client.abilities(), &request, model.as_deref(), streaming);
        crate::trials::pass("model.pre_send");
        let sent = self
            .send(&*client, &request, streaming)
            .instrument(watch.span())
            .await;
        crate::trials::pass("model.headers");
        let end = match sent {
            SentCall::Over(end) => {
                self.count_answer(&end);
                end
            }
            SentCall::Streaming(stream) => {
                self.receive(stream, step, &watch)
                    .instrument(watch.span())
                    .await?
            }
        };
        self.details.note_losses(losses.take());
        match &end {
            CallEnd::Answered(response) => watch.answered(response),
            CallEnd::Failed(error) => watch.failed(error),
            CallEnd::Cut(stop, _) => watch.cut(stop.as_str()),
        }
        Ok((end, mark))
    }

    /// Count an answer that came whole.
    fn count_answer(&mut self, end: &CallEnd) {
        if let CallEnd::Answered(response) = end {
            self.memory.answer(response);
        }
    }

    /// The mark of a call that was answered without going through the client's layers.
    fn mark_of_looked_up(&self) -> PersistMark {
        let mark = PersistMark::default();
        if self.plan.client.abilities().persists_each_call {
            mark.set();
        }
        mark
    }

    /// The tools on offer: those that run here or with the caller, and those of the service.
    fn offered(&self) -> Arc<[ToolDef]> {
        let own = self.tools.available.offered();
        match self.plan.hosted.is_empty() {
            true => own,
            false => own.iter().chain(&self.plan.hosted).cloned().collect(),
        }
    }

    /// Send the request, unless the run is cut off first.
    async fn send(
        &self,
        client: &dyn ChatClient,
        request: &ChatRequest<'_>,
        streaming: Streaming,
    ) -> SentCall {
        let sent = async {
            match streaming {
                Streaming::Whole => {
                    let answer = client.respond(request).await;
                    SentCall::Over(self.end_of_call(answer))
                }
                Streaming::Streamed => match client.stream(request).await {
                    Ok(stream) => SentCall::Streaming(stream),
                    Err(error) => SentCall::Over(CallEnd::Failed(error)),
                },
            }
        };
        tokio::select! {
            biased;
            stop = self.cutoff.reached() => SentCall::Over(CallEnd::Cut(stop, None)),
            sent = sent => sent,
        }
    }

    /// Receive an answer, and publish it while it comes.
    async fn receive(
        &mut self,
        mut stream: EventStream,
        step: u32,
        watch: &CallWatch<'_>,
    ) -> Result<CallEnd, DriverError> {
        let mut answer = PartialAnswer::default();
        let end = self
            .receive_until_end(&mut answer, &mut stream, step, watch)
            .await?;
        let is_dropped = match &end {
            CallEnd::Answered(_) => false,
            CallEnd::Failed(_) => true,
            CallEnd::Cut(..) => self.drops_cut_answers(),
        };
        if is_dropped {
            for at in answer.places() {
                self.log.publish(|| RunEvent::Incomplete { step, at });
            }
        }
        Ok(match end {
            CallEnd::Failed(error) => self.look_up_broken(error).await,
            CallEnd::Answered(_) | CallEnd::Cut(..) => {
                self.model.accepted = None;
                end
            }
        })
    }

    async fn receive_until_end(
        &mut self,
        answer: &mut PartialAnswer,
        stream: &mut EventStream,
        step: u32,
        watch: &CallWatch<'_>,
    ) -> Result<CallEnd, DriverError> {
        let stop = loop {
            let next = tokio::select! {
                biased;
                stop = self.cutoff.reached() => break stop,
                next = stream.next() => Some(next),
                // Gathered events are stored while nothing more comes.
                () = until(self.log.events.due()) => None,
            };
            match next {
                Some(next) => match self.receive_event(next, answer, step, watch) {
                    ControlFlow::Continue(Flush::Later) => {}
                    ControlFlow::Continue(Flush::Now) => self.log.flush().await?,
                    ControlFlow::Continue(Flush::Accepted(handle)) => {
                        self.record_accepted(handle).await?;
                    }
                    ControlFlow::Break(end) => return Ok(end),
                },
                None => self.log.flush().await?,
            }
        };
        let partial = answer
            .has_content
            .then(|| std::mem::take(&mut answer.fold).interrupt());
        Ok(CallEnd::Cut(stop, partial))
    }

    /// Take one event of the stream. This is no part of the loop above, so that its locals take no
    /// room in the future that waits.
    fn receive_event(
        &mut self,
        next: Option<Result<Event, ClientError>>,
        answer: &mut PartialAnswer,
        step: u32,
        watch: &CallWatch<'_>,
    ) -> ControlFlow<CallEnd, Flush> {
        let event = match next {
            Some(Ok(event)) => event,
            Some(Err(error)) => return ControlFlow::Break(CallEnd::Failed(error)),
            None => return ControlFlow::Break(self.end_of_stream(answer)),
        };
        watch.event();
        let event = match event {
            Event::Accepted { handle } => return ControlFlow::Continue(Flush::Accepted(handle)),
            event => event,
        };
        crate::trials::pass("model.mid_stream");
        answer.has_content |= is_content(&event);
        if self.log.events.is_stored() {
            answer.publish(&event, step, |event| self.log.publish(|| event));
        }
        self.memory.event(&event);
        answer.fold.push(event);
        if answer.fold.is_over() {
            crate::trials::pass("model.last_chunk");
            return ControlFlow::Break(self.end_of_stream(answer));
        }
        let overdue = self.log.events.overdue();
        ControlFlow::Continue(match overdue {
            Some(overdue) if overdue <= Instant::now() => Flush::Now,
            Some(_) | None => Flush::Later,
        })
    }

    fn end_of_stream(&self, answer: &mut PartialAnswer) -> CallEnd {
        self.end_of_call(Ok(std::mem::take(&mut answer.fold).finish()))
    }

    pub(super) fn end_of_call(&self, answer: Result<Response, ClientError>) -> CallEnd {
        match answer.and_then(|response| self.check_whole(response)) {
            Ok(response) => CallEnd::Answered(response),
            Err(error) => CallEnd::Failed(error),
        }
    }

    /// Refuse an answer that is not whole, also from a custom client.
    fn check_whole(&self, response: Response) -> Result<Response, ClientError> {
        let upstream = &self.plan.client.abilities().upstream;
        let error = match response.stop {
            Stop::Cut | Stop::InProgress => {
                let text = "the answer ended before it was whole";
                ClientError::new(ErrorKind::Cut, upstream, text)
            }
            Stop::Failed => {
                let text = match &response.error {
                    Some(error) => format!("the model failed: {}", error.message),
                    None => "the model failed".to_owned(),
                };
                ClientError::new(ErrorKind::Unavailable, upstream, text)
            }
            Stop::Cancelled => {
                let text = "the service cancelled the answer";
                ClientError::new(ErrorKind::Cut, upstream, text)
            }
            Stop::Done
            | Stop::ToolCalls
            | Stop::Length
            | Stop::ContentFilter
            | Stop::Refusal
            | Stop::Paused
            | Stop::Other(_) => return Ok(response),
        };
        Err(match response.error {
            Some(vendor) => error.with_vendor(vendor),
            None => error,
        })
    }
}

/// The part of an answer that has come.
#[derive(Default)]
struct PartialAnswer {
    fold: Fold,
    has_content: bool,
    /// The published contents, and the kind of delta that each grows by.
    growing: HashMap<Place, DeltaKind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Refusal,
    Reasoning,
    /// Published when it is whole.
    Other,
}

fn growing(content: &Content) -> DeltaKind {
    match content.body {
        Body::Text(_) => DeltaKind::Text,
        Body::Refusal(_) => DeltaKind::Refusal,
        Body::Reasoning(_) => DeltaKind::Reasoning,
        Body::Media(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => DeltaKind::Other,
    }
}

impl PartialAnswer {
    /// The places of the published contents.
    fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.growing.keys().copied().collect();
        places.sort_unstable();
        places
    }

    /// Publish an event of the model: text as it comes, everything else when it is whole.
    fn publish(&mut self, event: &Event, step: u32, mut emit: impl FnMut(RunEvent)) {
        match event {
            Event::Opened { at, content } => {
                self.growing.insert(*at, growing(content));
                RunEvent::deltas_of(step, *at, content, &mut emit);
            }
            Event::Delta { at, text } => {
                let kind = *self.growing.entry(*at).or_insert(DeltaKind::Text);
                delta(kind, step, *at, text.clone(), &mut emit);
            }
            Event::Summary { at, part, text } => {
                self.growing.entry(*at).or_insert(DeltaKind::Reasoning);
                if let (Ok(part), false) = (u32::try_from(*part), text.is_empty()) {
                    emit(RunEvent::Summary {
                        step,
                        at: *at,
                        part,
                        delta: text.clone(),
                    });
                }
            }
            Event::Content { at, content } => {
                // A content that did not grow is published in one piece.
                if self.growing.insert(*at, DeltaKind::Other).is_none() {
                    RunEvent::deltas_of(step, *at, content, &mut emit);
                }
                emit(RunEvent::Content {
                    step,
                    at: *at,
                    content: content.clone(),
                });
            }
            Event::Started { .. }
            | Event::Accepted { .. }
            | Event::Speaker { .. }
            | Event::Other { .. }
            | Event::Finished { .. } => {}
        }
    }
}

fn delta(kind: DeltaKind, step: u32, at: Place, delta: String, mut emit: impl FnMut(RunEvent)) {
    if delta.is_empty() {
        return;
    }
    match kind {
        DeltaKind::Text => emit(RunEvent::Text { step, at, delta }),
        DeltaKind::Refusal => emit(RunEvent::Refusal { step, at, delta }),
        DeltaKind::Reasoning => emit(RunEvent::Reasoning { step, at, delta }),
        DeltaKind::Other => {}
    }
}

/// Whether an event brings content that a reader would see.
fn is_content(event: &Event) -> bool {
    match event {
        Event::Opened { .. }
        | Event::Delta { .. }
        | Event::Summary { .. }
        | Event::Content { .. } => true,
        Event::Started { .. }
        | Event::Accepted { .. }
        | Event::Speaker { .. }
        | Event::Other { .. }
        | Event::Finished { .. } => false,
    }
}
