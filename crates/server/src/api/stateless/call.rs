//! One model call for a client that keeps the conversation itself.

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use throughline::client::{ChatRequest, ClientError, EventStream, HistoryOwner, Loss, View};
use throughline::compact::tokens::{Calibration, recent_mix, text_units, units};
use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Event, Message, Response, Settings, Stop, ToolChoice, ToolDef, VendorError,
};

use super::record::{CallRecord, StreamRecord};
use crate::api::model_error;
use crate::config::AgentConfig;
use crate::error::ApiError;
use crate::upstreams::Route;

/// A model call with all that it is sent.
pub(crate) struct StatelessCall {
    /// The upstream and its name of the model.
    pub(crate) route: Route,
    /// The system text, sent before the messages.
    pub(crate) instructions: Option<String>,
    /// The conversation.
    pub(crate) view: View,
    /// How the upstream gets it.
    pub(crate) sent: SentMessages,
    /// The client's functions.
    pub(crate) tools: Vec<ToolDef>,
    /// Which of them to call.
    pub(crate) choice: ToolChoice,
    /// How to answer.
    pub(crate) settings: Settings,
}

/// How an upstream gets the messages of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentMessages {
    /// Rendered for it, as the history of a thread is.
    Rendered,
    /// As the client wrote them: the settings have them among the members of the body.
    AsWritten,
}

static NO_MESSAGES: LazyLock<View> = LazyLock::new(View::default);

impl StatelessCall {
    fn request(&self) -> ChatRequest<'_> {
        ChatRequest {
            model: self.route.model.as_deref(),
            instructions: self.instructions.as_deref(),
            view: match self.sent {
                SentMessages::Rendered => &self.view,
                SentMessages::AsWritten => &NO_MESSAGES,
            },
            tools: &self.tools,
            choice: &self.choice,
            settings: &self.settings,
            history_owner: HistoryOwner::Caller,
            persist: None,
            losses: None,
        }
    }

    /// What the upstream cannot be sent. Nothing is sent yet.
    pub(crate) fn losses(&self) -> Vec<Loss> {
        self.route.upstream.client.unsupported(&self.request())
    }

    /// What the upstream cannot be sent of one message.
    pub(crate) fn losses_of(&self, message: &Arc<Message>) -> Vec<Loss> {
        let view = View::new([Arc::clone(message)]);
        let request = ChatRequest {
            view: &view,
            ..self.request()
        };
        self.route.upstream.client.unsupported(&request)
    }

    /// The whole answer.
    pub(crate) async fn respond(&self) -> Result<Response, ApiError> {
        let answer = self.route.upstream.watched.respond(&self.request()).await;
        let response = answer.map_err(|error| model_error::failed(&error))?;
        match unfinished(&response.stop, response.error.as_ref()) {
            Some(error) => Err(error),
            None => Ok(response),
        }
    }

    /// The events of the answer. One that says that the answer failed is an error.
    pub(crate) async fn stream(&self) -> Result<AnswerEvents, ApiError> {
        let events = self.route.upstream.watched.stream(&self.request()).await;
        let events = events.map_err(|error| model_error::failed(&error))?;
        Ok(AnswerEvents::new(events))
    }

    /// The tokens of the input as the upstream counts them; none if it does not count.
    pub(crate) async fn count_tokens(&self) -> Option<Result<u64, ClientError>> {
        let counter = self.route.upstream.client.token_counter()?;
        Some(counter.count(&self.request()).await)
    }
}

impl StatelessCall {
    /// About the tokens of the input, by the family of the model.
    pub(crate) fn estimate_tokens(&self) -> u64 {
        let model = self.route.model.as_deref().unwrap_or_default();
        let messages = self.view.messages();
        let mut total: u64 = messages.iter().map(|one| u64::from(units(one))).sum();
        let mut add = |text: &str| total += u64::from(text_units(text));
        self.instructions.as_deref().into_iter().for_each(&mut add);
        for tool in &self.tools {
            add(&tool.name);
            tool.description.as_deref().into_iter().for_each(&mut add);
            let schema = tool.parameters.as_ref().map(RawJson::get);
            schema.into_iter().for_each(&mut add);
        }
        // Of an upstream that is sent everything as it was written, system text and tools stand there.
        if let Some(extra) = &self.settings.extra {
            for key in ["system", "tools"] {
                let member = extra.value();
                member
                    .get(key)
                    .map(Value::raw)
                    .into_iter()
                    .for_each(&mut add);
            }
        }
        let mix = recent_mix(messages.iter().map(|message| &**message));
        Calibration::for_mix(model, &mix).estimate(total).tokens
    }
}

/// The events of an answer that comes.
pub(crate) struct AnswerEvents {
    events: EventStream,
    record: Option<StreamRecord>,
    /// The end of the answer, which is being recorded. Here, and not in the future of `next`, because
    /// a caller may drop that one and ask again.
    ending: Option<BoxFuture<'static, Option<AnswerEvent>>>,
}

/// An event, or why there is none.
pub(crate) type AnswerEvent = Result<Event, ApiError>;

impl AnswerEvents {
    fn new(events: EventStream) -> Self {
        Self {
            events,
            record: None,
            ending: None,
        }
    }

    /// The same events, the last of which comes when the answer is recorded.
    pub(super) fn recorded(self, record: CallRecord) -> Self {
        Self {
            record: Some(StreamRecord::new(record)),
            ..self
        }
    }

    /// The next event. After an error, and after the end, there is nothing.
    pub(crate) async fn next(&mut self) -> Option<AnswerEvent> {
        if self.ending.is_none() {
            let event = self.next_event().await;
            let record = match (self.record.as_mut(), &event) {
                (None, _) => return event,
                (Some(record), Some(Ok(one))) => {
                    record.push(one);
                    if !matches!(one, Event::Finished { .. }) {
                        return event;
                    }
                    self.record.take()
                }
                (Some(_), Some(Err(_)) | None) => self.record.take(),
            };
            let end = async move {
                match record {
                    Some(record) => record.end(event).await,
                    None => event,
                }
            };
            self.ending = Some(end.boxed());
        }
        let ended = match &mut self.ending {
            Some(ending) => ending.await,
            None => None,
        };
        self.ending = None;
        ended
    }

    async fn next_event(&mut self) -> Option<AnswerEvent> {
        match self.events.next().await? {
            Err(error) => Some(Err(model_error::failed(&error))),
            Ok(Event::Finished { stop, error, .. })
                if unfinished(&stop, error.as_ref()).is_some() =>
            {
                unfinished(&stop, error.as_ref()).map(Err)
            }
            Ok(event) => Some(Ok(event)),
        }
    }
}

/// Why an answer is none; nothing of it may be taken for a whole one.
fn unfinished(stop: &Stop, error: Option<&VendorError>) -> Option<ApiError> {
    let text = match stop {
        Stop::Done
        | Stop::ToolCalls
        | Stop::Length
        | Stop::ContentFilter
        | Stop::Refusal
        | Stop::Paused
        | Stop::Other(_) => return None,
        Stop::Cancelled => "the upstream cancelled the answer",
        Stop::Failed => "the upstream failed in the middle of the answer",
        Stop::InProgress | Stop::Cut => "the answer of the upstream broke off",
    };
    let text = error.map_or(text, |error| error.message.as_str());
    Some(model_error::named("cut", text))
}

/// The instructions of the agent that a model's name stands for. An agent whose tools run here takes
/// several model calls and a thread, which a stateless request has not.
pub(crate) fn client_agent(route: &Route) -> Result<Option<&str>, ApiError> {
    let Some(agent) = route.agent.as_deref() else {
        return Ok(None);
    };
    if !agent.mcp.is_empty() {
        return Err(needs_runs(agent));
    }
    Ok(agent.instructions.as_deref())
}

fn needs_runs(agent: &AgentConfig) -> ApiError {
    ApiError::invalid(format!(
        "The agent '{}' has tools that run on this server, which stateless requests cannot use. Ask \
         it over /v1/responses.",
        agent.id
    ))
    .code("agent_needs_responses")
    .param("model")
    .retry(false)
}
