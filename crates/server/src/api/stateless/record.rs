//! The record of a model call, beside it.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response};
use throughline::client::View;
use throughline_model::json::RawJson;
use throughline_model::{Event, Fold, Message, Response as Answer, Source, Stop};
use throughline_store::{TenantScope, ThreadId};

use super::call::{AnswerEvent, AnswerEvents, StatelessCall};
use crate::app::App;
use crate::config::OnRecordFailure;
use crate::error::ApiError;
use crate::service::record::{RecordError, RecordedRequest, Recorder, Recording};
use crate::trials::planted;

/// Names the thread that a request was recorded in.
const THREAD: HeaderName = HeaderName::from_static("x-throughline-thread");

/// The record of a model call; empty where requests are not recorded, or this one could not be.
pub(crate) struct CallRecord {
    app: App,
    recording: Option<Recording>,
}

impl CallRecord {
    /// Record a request before its upstream is asked.
    pub(crate) async fn begin(
        app: &App,
        scope: &TenantScope,
        request: RecordedRequest<'_>,
        view: &View,
    ) -> Result<Self, ApiError> {
        let mut record = Self {
            app: app.clone(),
            recording: None,
        };
        if !app.config.record.stateless {
            return Ok(record);
        }
        let messages: Vec<&Message> = view.messages().iter().map(|message| &**message).collect();
        match Recorder::new(&app.runs)
            .begin(scope, request, &messages)
            .await
        {
            Ok(recording) => {
                app.recorded.recorded(recording.placed());
                record.recording = Some(recording);
            }
            Err(error) => record.failed_to(&error, "begin")?,
        }
        Ok(record)
    }

    /// The thread, if the request is recorded.
    pub(crate) fn thread(&self) -> Option<ThreadId> {
        Some(self.recording.as_ref()?.thread().clone())
    }

    /// The whole answer of the upstream, recorded.
    pub(crate) async fn respond(mut self, call: &StatelessCall) -> Result<Answer, ApiError> {
        let answer = call.respond().await;
        match &answer {
            Ok(answer) => self.answered(answer).await?,
            Err(error) => self.failed(error).await,
        }
        answer
    }

    /// The events of the answer. The last one comes when it is recorded.
    pub(crate) async fn stream(mut self, call: &StatelessCall) -> Result<AnswerEvents, ApiError> {
        let events = call.stream().await;
        match events {
            Ok(events) if self.recording.is_some() => Ok(events.recorded(self)),
            Ok(events) => Ok(events),
            Err(error) => {
                self.failed(&error).await;
                Err(error)
            }
        }
    }

    /// Record the answer, before the client has all of it.
    async fn answered(&mut self, answer: &Answer) -> Result<(), ApiError> {
        let Some(recording) = self.recording.take() else {
            return Ok(());
        };
        if planted("record-answer-unwritten") {
            return Ok(());
        }
        let said = answer.messages.first().map(|message| Message {
            source: Some(Source::Model),
            ..message.clone()
        });
        let said: Vec<Message> = said.into_iter().collect();
        let written = recording.publish(&said, note(answer)).await;
        written.or_else(|error| self.failed_to(&error, "end"))
    }

    /// Record that there is no answer.
    async fn failed(&mut self, error: &ApiError) {
        let Some(recording) = self.recording.take() else {
            return;
        };
        let written = recording.fail("upstream", &error.message).await;
        // The client gets the error of the call in any case.
        let _ = written.or_else(|error| self.failed_to(&error, "end"));
    }

    fn failed_to(&self, error: &RecordError, at: &'static str) -> Result<(), ApiError> {
        self.app.recorded.failed(at);
        let error = error as &dyn std::error::Error;
        tracing::warn!(at, error, "a stateless request is not recorded");
        match self.app.config.record.on_failure {
            OnRecordFailure::Ignore => Ok(()),
            OnRecordFailure::Error => Err(ApiError::new(
                503,
                "server_error",
                "The request could not be recorded, and [record] on_failure is \"error\".",
            )
            .code("not_recorded")
            .retry(true)),
        }
    }
}

/// The record of an answer that comes as events.
pub(super) struct StreamRecord {
    record: CallRecord,
    answer: Fold,
}

impl StreamRecord {
    pub(super) fn new(record: CallRecord) -> Self {
        Self {
            record,
            answer: Fold::new(),
        }
    }

    pub(super) fn push(&mut self, event: &Event) {
        self.answer.push(event.clone());
    }

    /// Record the end of the answer; it is passed on.
    pub(super) async fn end(self, end: Option<AnswerEvent>) -> Option<AnswerEvent> {
        let Self { mut record, answer } = self;
        match &end {
            Some(Ok(_)) => {
                let answer = answer.finish();
                match record.answered(&answer).await {
                    Ok(()) => end,
                    Err(error) => Some(Err(error)),
                }
            }
            Some(Err(error)) => {
                record.failed(error).await;
                end
            }
            None => {
                let text = "The answer of the upstream broke off without its end.";
                record.failed(&ApiError::server(text)).await;
                end
            }
        }
    }
}

/// Name the thread that a request was recorded in.
pub(crate) fn name_thread(response: &mut Response<Body>, thread: Option<&ThreadId>) {
    let value = thread.and_then(|thread| HeaderValue::from_str(thread.as_str()).ok());
    if let Some(value) = value {
        response.headers_mut().insert(THREAD, value);
    }
}

/// What is kept with the end of the run.
fn note(answer: &Answer) -> RawJson {
    RawJson::object(|object| {
        object.str("stop", "done");
        let finish = match &answer.stop {
            Stop::Done => "done",
            Stop::ToolCalls => "tool_calls",
            Stop::Length => "length",
            Stop::ContentFilter => "content_filter",
            Stop::Refusal => "refusal",
            Stop::Paused => "paused",
            Stop::Other(word) => word,
            Stop::Cancelled | Stop::Failed | Stop::InProgress | Stop::Cut => "cut",
        };
        object.str("finish", finish);
        let usage = answer.usage.as_ref();
        let tokens = usage.and_then(|usage| Some(usage.input? + usage.output?));
        if let Some(tokens) = tokens {
            object.number("tokens", tokens);
        }
        // Only the first is recorded: a conversation goes on after one.
        let alternatives = answer.messages.len();
        if alternatives > 1 {
            object.number("alternatives", alternatives as u64);
        }
    })
}
