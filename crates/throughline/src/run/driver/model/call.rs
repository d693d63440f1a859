//! One model call.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::StreamExt;
use throughline_model::{Body, Content, Event, Fold, Place, Response, Stop, ToolChoice, ToolDef};
use throughline_wire::Loss;
use tokio::time::Instant;
use tracing::Instrument;

use crate::client::{
    ChatClient, ChatRequest, ClientError, ErrorKind, EventStream, LossSink, PersistMark,
};
use crate::prompt::MOST_LOSSES;
use crate::run::driver::cancel_poll::time_to_look;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::machine::Ask;
use crate::run::setup::Answers;
use crate::telemetry::{CallWatch, Streaming};
use crate::thread::Persistence;
use crate::thread::StopReason;

/// A model call that was sent.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each model call, and it is taken apart at once"
)]
enum CallStarted {
    Over(CallResult),
    Coming(EventStream),
}

/// How a model call ended.
pub(in crate::run::driver) enum CallResult {
    Answered(Response),
    Failed(ClientError),
    /// Cancelled or out of time, with what the model had said.
    Cut(StopReason, Option<Response>),
}

/// When events that gather are to be stored.
enum Deadline {
    Now,
    Later,
}

impl Driver {
    /// Make a model call.
    pub(in crate::run::driver) async fn ask(
        &mut self,
        ask: Ask,
    ) -> Result<CallResult, DriverError> {
        let step = self.recorder.next_step();
        self.before_call().await.map_err(DriverError::Run)?;
        let publisher = &mut self.publisher;
        publisher.say(&mut self.recorder, || RunEvent::Asked { step });
        publisher.await_words();
        let offered = match ask {
            Ask::First | Ask::Next => self.offered(),
            Ask::Last => [].into(),
        };
        let choice = match ask {
            Ask::First if !offered.is_empty() => self.plan.choice.clone(),
            Ask::First | Ask::Next | Ask::Last => ToolChoice::Auto,
        };
        let client = Arc::clone(&self.plan.client);
        let agent = Arc::clone(&self.agent);
        let model = self.plan.model.clone();
        let instructions = self.instructions();
        self.compact(step, instructions.as_deref(), &offered)?;
        let special = self.special_view();
        let mark = PersistMark::default();
        let losses = LossSink::default();
        let per_call = self.recorder.mode == Persistence::PerCall;
        let request = ChatRequest {
            model: model.as_deref(),
            instructions: instructions.as_deref(),
            view: special.as_ref().unwrap_or(self.prompt.view()),
            tools: &offered,
            choice: &choice,
            settings: &self.plan.settings,
            history_owner: self.owner.kept(),
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
        let begun = self
            .begin_call(&*client, &request, streaming)
            .instrument(watch.span())
            .await;
        crate::trials::pass("model.headers");
        let asked = match begun {
            CallStarted::Over(asked) => asked,
            CallStarted::Coming(stream) => {
                self.hear(stream, step, &watch)
                    .instrument(watch.span())
                    .await?
            }
        };
        self.marked = mark.is_set();
        self.note_losses(losses.take());
        match &asked {
            CallResult::Answered(response) => watch.answered(response),
            CallResult::Failed(error) => watch.failed(error),
            CallResult::Cut(stop, _) => watch.cut(stop.as_str()),
        }
        Ok(asked)
    }

    /// The tools on offer: those that run here or with the caller, and those of the service.
    fn offered(&self) -> Arc<[ToolDef]> {
        let own = self.tools.offered();
        match self.plan.hosted.is_empty() {
            true => own,
            false => own.iter().chain(&self.plan.hosted).cloned().collect(),
        }
    }

    /// Note what the service could not be told in a call.
    fn note_losses(&mut self, lost: Vec<Loss>) {
        self.add_losses(&lost);
        self.lost = lost;
    }

    /// Add to what the run lists, each loss once.
    pub(in crate::run::driver) fn add_losses(&mut self, lost: &[Loss]) {
        for loss in lost {
            if self.losses.len() < MOST_LOSSES && !self.losses.contains(loss) {
                self.losses.push(loss.clone());
            }
        }
    }

    /// Send the request, unless the run is cut off first.
    async fn begin_call(
        &self,
        client: &dyn ChatClient,
        request: &ChatRequest<'_>,
        streaming: Streaming,
    ) -> CallStarted {
        let begun = async {
            match streaming {
                Streaming::Whole => {
                    let answer = client.respond(request).await;
                    CallStarted::Over(self.read_answer(answer))
                }
                Streaming::Streamed => match client.stream(request).await {
                    Ok(stream) => CallStarted::Coming(stream),
                    Err(error) => CallStarted::Over(CallResult::Failed(error)),
                },
            }
        };
        tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => CallStarted::Over(CallResult::Cut(StopReason::Cancelled, None)),
            () = until(self.deadline) => CallStarted::Over(CallResult::Cut(StopReason::Budget, None)),
            begun = begun => begun,
        }
    }

    /// Listen until the answer is whole or the run is cut off.
    async fn hear(
        &mut self,
        mut stream: EventStream,
        step: u32,
        watch: &CallWatch<'_>,
    ) -> Result<CallResult, DriverError> {
        let mut heard = AnswerSoFar::default();
        let asked = self.hear_into(&mut heard, &mut stream, step, watch).await?;
        if let CallResult::Failed(_) = asked {
            let (publisher, recorder) = (&mut self.publisher, &mut self.recorder);
            for at in heard.places() {
                publisher.say(recorder, || RunEvent::Incomplete { step, at });
            }
        }
        Ok(asked)
    }

    async fn hear_into(
        &mut self,
        heard: &mut AnswerSoFar,
        stream: &mut EventStream,
        step: u32,
        watch: &CallWatch<'_>,
    ) -> Result<CallResult, DriverError> {
        let cut = loop {
            let next = tokio::select! {
                biased;
                () = self.job.cancel.cancelled() => break StopReason::Cancelled,
                () = until(self.deadline) => break StopReason::Budget,
                next = stream.next() => Some(next),
                // Events that gather are stored while nothing more comes.
                () = until(self.publisher.due()) => None,
            };
            match next {
                Some(next) => match self.hear_one(next, heard, step, watch) {
                    ControlFlow::Continue(Deadline::Later) => {}
                    ControlFlow::Continue(Deadline::Now) => self.pump().await?,
                    ControlFlow::Break(asked) => return Ok(asked),
                },
                None => self.pump().await?,
            }
        };
        let partial = heard
            .any
            .then(|| std::mem::take(&mut heard.fold).interrupt());
        Ok(CallResult::Cut(cut, partial))
    }

    /// Take what came next. Apart from the waiting, so that nothing of it lies in memory meanwhile.
    fn hear_one(
        &mut self,
        next: Option<Result<Event, ClientError>>,
        heard: &mut AnswerSoFar,
        step: u32,
        watch: &CallWatch<'_>,
    ) -> ControlFlow<CallResult, Deadline> {
        let event = match next {
            Some(Ok(event)) => event,
            Some(Err(error)) => return ControlFlow::Break(CallResult::Failed(error)),
            None => return ControlFlow::Break(self.heard_whole(heard)),
        };
        watch.event();
        crate::trials::pass("model.mid_stream");
        if self.publisher.is_logged() {
            let (publisher, recorder) = (&mut self.publisher, &mut self.recorder);
            heard.tell(&event, step, |event| publisher.say(recorder, || event));
        } else {
            heard.notice(&event);
        }
        heard.fold.push(event);
        if heard.fold.is_over() {
            crate::trials::pass("model.last_chunk");
            return ControlFlow::Break(self.heard_whole(heard));
        }
        let overdue = self.publisher.overdue();
        ControlFlow::Continue(match overdue {
            Some(overdue) if overdue <= Instant::now() => Deadline::Now,
            Some(_) | None => Deadline::Later,
        })
    }

    fn heard_whole(&self, heard: &mut AnswerSoFar) -> CallResult {
        self.read_answer(Ok(std::mem::take(&mut heard.fold).finish()))
    }

    fn read_answer(&self, answer: Result<Response, ClientError>) -> CallResult {
        match answer.and_then(|response| self.whole(response)) {
            Ok(response) => CallResult::Answered(response),
            Err(error) => CallResult::Failed(error),
        }
    }

    /// Look from time to time, however busy the run is, whether another process asked for its end,
    /// and cancel it then.
    pub(in crate::run::driver) fn asked_elsewhere(
        &self,
    ) -> impl Future<Output = Infallible> + Send + use<> {
        let cancel = self.job.cancel.clone();
        let home = self.recorder.home().clone();
        let run = self.run;
        async move {
            while !cancel.is_cancelled() {
                time_to_look(run).await;
                let asked = home.store.cancelling(&home.scope, run).await;
                if asked.is_ok_and(|asked| asked) {
                    cancel.cancel();
                }
            }
            std::future::pending().await
        }
    }

    /// An answer that is not whole is none, whoever made it.
    fn whole(&self, response: Response) -> Result<Response, ClientError> {
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

/// Wait for a moment; for ever if there is none.
pub(in crate::run::driver) async fn until(moment: Option<Instant>) {
    match moment {
        // A timer rings at whole milliseconds: one that is due now would still wait.
        Some(moment) if moment <= Instant::now() => {}
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// What was heard of an answer, and of which kind the contents are that grow.
#[derive(Default)]
struct AnswerSoFar {
    fold: Fold,
    any: bool,
    growing: HashMap<Place, DeltaKind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Refusal,
    Reasoning,
    /// Shown when it is whole.
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

impl AnswerSoFar {
    /// Where readers were told of something.
    fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self.growing.keys().copied().collect();
        places.sort_unstable();
        places
    }

    /// Whether anything came that a reader would see.
    fn notice(&mut self, event: &Event) {
        self.any |= matches!(
            event,
            Event::Opened { .. }
                | Event::Delta { .. }
                | Event::Summary { .. }
                | Event::Content { .. }
        );
    }

    /// Say what an event means for readers: text as it comes, everything else when it is whole.
    fn tell(&mut self, event: &Event, step: u32, mut emit: impl FnMut(RunEvent)) {
        match event {
            Event::Opened { at, content } => {
                self.any = true;
                self.growing.insert(*at, growing(content));
                RunEvent::brought(step, *at, content, &mut emit);
            }
            Event::Delta { at, text } => {
                self.any = true;
                let kind = *self.growing.entry(*at).or_insert(DeltaKind::Text);
                delta(kind, step, *at, text.clone(), &mut emit);
            }
            Event::Summary { at, part, text } => {
                self.any = true;
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
                self.any = true;
                // One that did not grow is told in one piece.
                if self.growing.insert(*at, DeltaKind::Other).is_none() {
                    RunEvent::brought(step, *at, content, &mut emit);
                }
                emit(RunEvent::Content {
                    step,
                    at: *at,
                    content: content.clone(),
                });
            }
            Event::Started { .. }
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
