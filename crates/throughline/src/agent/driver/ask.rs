//! One model call.

use std::collections::HashMap;

use futures_util::StreamExt;
use throughline_model::{Body, Content, Event, Fold, Place, Response, Stop, ToolChoice, ToolDef};
use tokio::time::Instant;
use tracing::Instrument;

use super::Driver;
use crate::agent::event::RunEvent;
use crate::agent::stop::StopReason;
use crate::agent::turn::Ask;
use crate::client::{ChatRequest, ClientError, ErrorKind, Kept};
use crate::telemetry::{CallWatch, Streaming};

/// How a model call ended.
pub(super) enum Asked {
    Answered(Response),
    Failed(ClientError),
    /// Cancelled or out of time, with what the model had said.
    Cut(StopReason, Option<Response>),
}

impl Driver<'_> {
    pub(super) async fn ask(&self, ask: Ask) -> Asked {
        let step = self.turn.asked();
        self.job.emit(|| RunEvent::Asked { step });
        let offered = match ask {
            Ask::First | Ask::Next => self.tools.offered(),
            Ask::Last => [].into(),
        };
        let choice = match ask {
            Ask::First if !offered.is_empty() => &self.plan.choice,
            Ask::First | Ask::Next | Ask::Last => &ToolChoice::Auto,
        };
        let request = self.request(&offered, choice);
        let streaming = match self.job.events {
            None => Streaming::Whole,
            Some(_) => Streaming::Streamed,
        };
        let abilities = self.agent.client.abilities();
        let watch = self.agent.telemetry.call(abilities, &request, streaming);
        let hearing = self.hear(&request, step, &watch);
        let asked = hearing.instrument(watch.span()).await;
        match &asked {
            Asked::Answered(response) => watch.answered(response),
            Asked::Failed(error) => watch.failed(error),
            Asked::Cut(stop, _) => watch.cut(*stop),
        }
        asked
    }

    /// Make the call, and listen until the answer is whole or the run is cut off.
    async fn hear(&self, request: &ChatRequest<'_>, step: u32, watch: &CallWatch<'_>) -> Asked {
        let client = &self.agent.client;
        let mut heard = Heard::default();
        let answer = async {
            if self.job.events.is_none() {
                return client.respond(request).await;
            }
            let mut stream = client.stream(request).await?;
            while let Some(event) = stream.next().await {
                let event = event?;
                watch.event();
                heard.tell(&event, step, |event| self.job.emit(|| event));
                heard.fold.push(event);
                if heard.fold.is_over() {
                    break;
                }
            }
            Ok(std::mem::take(&mut heard.fold).finish())
        };
        let cut = tokio::select! {
            biased;
            () = self.job.cancel.cancelled() => StopReason::Cancelled,
            () = until(self.deadline) => StopReason::Budget,
            answer = answer => {
                return match answer.and_then(|response| self.whole(response)) {
                    Ok(response) => Asked::Answered(response),
                    Err(error) => Asked::Failed(error),
                };
            }
        };
        let partial = heard.any.then(|| heard.fold.interrupt());
        Asked::Cut(cut, partial)
    }

    fn request<'r>(&'r self, tools: &'r [ToolDef], choice: &'r ToolChoice) -> ChatRequest<'r> {
        ChatRequest {
            model: self.plan.model.as_deref(),
            instructions: self.plan.instructions.as_deref(),
            view: &self.held.view,
            tools,
            choice,
            settings: &self.plan.settings,
            kept: Kept::Here,
            persist: None,
        }
    }

    /// An answer that is not whole is none, whoever made it.
    fn whole(&self, response: Response) -> Result<Response, ClientError> {
        let upstream = &self.agent.client.abilities().upstream;
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
pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// What was heard of an answer, and of which kind the contents are that grow.
#[derive(Default)]
struct Heard {
    fold: Fold,
    any: bool,
    growing: HashMap<Place, Growing>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Growing {
    Text,
    Reasoning,
    /// Shown when it is whole.
    Other,
}

fn growing(content: &Content) -> Growing {
    match content.body {
        Body::Text(_) | Body::Refusal(_) => Growing::Text,
        Body::Reasoning(_) => Growing::Reasoning,
        Body::Media(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => Growing::Other,
    }
}

/// The text that a content brings along.
fn brought(content: &Content) -> String {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text.text.clone(),
        Body::Reasoning(reasoning) => reasoning.text.concat(),
        _ => String::new(),
    }
}

impl Heard {
    /// Say what an event means for readers: text as it comes, everything else when it is whole.
    fn tell(&mut self, event: &Event, step: u32, emit: impl Fn(RunEvent)) {
        match event {
            Event::Opened { at, content } => {
                self.any = true;
                self.growing.insert(*at, growing(content));
                delta(growing(content), step, *at, brought(content), emit);
            }
            Event::Delta { at, text } => {
                self.any = true;
                let kind = *self.growing.entry(*at).or_insert(Growing::Text);
                delta(kind, step, *at, text.clone(), emit);
            }
            Event::Content { at, content } => {
                self.any = true;
                // One that did not grow is told as one delta.
                if self.growing.insert(*at, Growing::Other).is_none() {
                    delta(growing(content), step, *at, brought(content), &emit);
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

fn delta(kind: Growing, step: u32, at: Place, delta: String, emit: impl Fn(RunEvent)) {
    if delta.is_empty() {
        return;
    }
    match kind {
        Growing::Text => emit(RunEvent::Text { step, at, delta }),
        Growing::Reasoning => emit(RunEvent::Reasoning { step, at, delta }),
        Growing::Other => {}
    }
}
