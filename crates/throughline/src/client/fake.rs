//! Clients and transports that follow a script.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use futures_util::stream;
use throughline_model::{Content, Event, Message, Response, Role, Settings, Stop, ToolChoice};

use super::{Abilities, ChatClient, ChatRequest, ClientError, EventStream, HistoryOwner};
use crate::prompt::View;

/// Calls `ask` with a request that says "hi".
pub(super) async fn with_request<T>(ask: impl AsyncFnOnce(&ChatRequest<'_>) -> T) -> T {
    with_view(&View::new(vec![Message::user("hi")]), ask).await
}

/// Calls `ask` with a request of the given messages.
pub(super) async fn with_view<T>(view: &View, ask: impl AsyncFnOnce(&ChatRequest<'_>) -> T) -> T {
    let request = ChatRequest {
        model: None,
        instructions: Some("Be brief."),
        view,
        tools: &[],
        choice: &ToolChoice::Auto,
        settings: &Settings::default(),
        history_owner: HistoryOwner::Caller,
        persist: None,
        losses: None,
    };
    ask(&request).await
}

/// A response with one message.
pub(super) fn hello() -> Response {
    Response {
        id: None,
        model: None,
        messages: vec![Message::new(Role::Assistant, vec![Content::text("hello")])],
        usage: None,
        stop: Stop::Done,
        error: None,
        vendor: None,
        service: None,
    }
}

type Script = dyn Fn(u32) -> Result<Response, ClientError> + Send + Sync;

/// A client that answers by a function of the number of the call, counted from 1.
pub(super) struct FakeClient {
    abilities: Abilities,
    script: Box<Script>,
    asked: AtomicU32,
    /// The id of the service-owned conversation that the last call continued.
    pub(super) continued: Mutex<Option<String>>,
    /// The events of a stream before it fails, if it is to fail in the middle.
    pub(super) before_failing: Mutex<Option<Vec<Event>>>,
}

impl FakeClient {
    pub(super) fn new(
        script: impl Fn(u32) -> Result<Response, ClientError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            abilities: Abilities::of("fake"),
            script: Box::new(script),
            asked: AtomicU32::new(0),
            continued: Mutex::default(),
            before_failing: Mutex::default(),
        }
    }

    /// The number of calls.
    pub(super) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }

    fn next(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        if let HistoryOwner::Service { id: Some(id) } = request.history_owner {
            *self.continued.lock().unwrap() = Some(id.to_owned());
        }
        (self.script)(self.asked.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

#[async_trait]
impl ChatClient for FakeClient {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        self.next(request)
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let events: Vec<Result<Event, ClientError>> = match self.next(request) {
            Ok(response) => response.events().into_iter().map(Ok).collect(),
            Err(error) => {
                let before = self.before_failing.lock().unwrap().clone();
                let Some(before) = before else {
                    return Err(error);
                };
                before.into_iter().map(Ok).chain([Err(error)]).collect()
            }
        };
        Ok(Box::pin(stream::iter(events)))
    }
}
