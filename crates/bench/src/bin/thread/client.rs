//! A model that answers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::stream;
use throughline::ChatClient;
use throughline::client::{Abilities, ChatRequest, ClientError, EventStream, Target};
use throughline::model::{
    CallId, Content, Event, Message, Place, Response, Role, Scope, Stop, ToolCall,
};
use throughline_testkit::bench::black_box;
use throughline_wire::Wire;
use throughline_wire::render::Options;

/// What the model does before it answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Nothing.
    Answer,
    /// Renders the conversation into the body of a request.
    Render,
    /// Makes a tool call first.
    Ask,
    /// Answers in a number of deltas.
    Stream(usize),
}

/// A model that answers at once, with a kilobyte.
pub(super) struct Instant {
    abilities: Abilities,
    does: Does,
    text: String,
    answered: AtomicUsize,
    sent: Arc<AtomicUsize>,
}

impl Instant {
    pub(super) fn new(does: Does) -> Self {
        Self {
            abilities: Abilities::of("instant"),
            does,
            text: super::kilobyte(),
            answered: AtomicUsize::new(0),
            sent: Arc::default(),
        }
    }

    /// The size of the last body.
    pub(super) fn sent(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.sent)
    }

    fn answer(&self, request: &ChatRequest<'_>) -> Response {
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        if self.does == Does::Render {
            let target = Target::newest(Wire::OpenAiChat);
            let rendering = request.view.render(&target, &Options::default());
            let items = rendering.items();
            // Allocated at once, as in the vendors' clients.
            let body = [items.settled, items.rest].concat();
            self.sent.store(body.len(), Ordering::Relaxed);
            black_box(body);
        }
        let last = request.view.messages().last();
        let asks = self.does == Does::Ask && last.is_some_and(|last| last.role == Role::User);
        let (content, stop) = match asks {
            true => {
                let id = format!("call_{number}");
                let id = CallId::natural(&id).unwrap_or_else(|| CallId::minted(Scope::Place(0), 0));
                let call = ToolCall::function(id, "get_tide", "{}");
                (Content::from(call), Stop::ToolCalls)
            }
            false => (Content::text(&*self.text), Stop::Done),
        };
        Response {
            id: Some(format!("resp_{number}")),
            model: Some("instant-1".to_owned()),
            messages: vec![Message::new(Role::Assistant, vec![content])],
            usage: None,
            stop,
            error: None,
            service: None,
            vendor: None,
        }
    }

    /// The answer as events, its text in pieces.
    fn events(&self, response: &Response) -> Vec<Event> {
        let events = response.events();
        let Does::Stream(deltas) = self.does else {
            return events;
        };
        let mut pieces = Vec::new();
        for event in events {
            if let Event::Content { at, content } = &event {
                pieces.extend(self.pieces(*at, deltas));
                let whole = content.clone();
                pieces.push(Event::Content {
                    at: *at,
                    content: whole,
                });
            } else {
                pieces.push(event);
            }
        }
        pieces
    }

    fn pieces(&self, at: Place, deltas: usize) -> Vec<Event> {
        let opened = Event::Opened {
            at,
            content: Content::text(""),
        };
        let size = self.text.len().div_ceil(deltas);
        let texts = self.text.as_bytes().chunks(size);
        let deltas = texts.map(|piece| Event::Delta {
            at,
            text: String::from_utf8_lossy(piece).into_owned(),
        });
        std::iter::once(opened).chain(deltas).collect()
    }
}

#[async_trait]
impl ChatClient for Instant {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        Ok(self.answer(request))
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let events = self.events(&self.answer(request));
        Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
    }
}
