//! Runs whose answer is known: no model is called.

use async_trait::async_trait;
use throughline::agent::{Compaction, RunOptions};
use throughline::client::{Abilities, ChatRequest, ClientError, EventStream};
use throughline::{Agent, ChatClient};
use throughline_model::{Message, Response, Stop, ToolChoice};

use super::resolve_target::ResolvedTarget;
use crate::app::App;
use crate::error::ApiError;

/// Have a run answer with these messages instead of calling a model.
pub(super) fn set_answer(
    app: &App,
    target: &mut ResolvedTarget,
    messages: Vec<Message>,
) -> Result<(), ApiError> {
    let client = FixedClient {
        abilities: Abilities::of(target.upstream.name.clone()),
        messages,
    };
    let agent = Agent::builder(client)
        .name(target.upstream.name.clone())
        .history(app.config.history)
        .metrics(app.metrics.clone())
        .build();
    target.agent = agent.map_err(|error| ApiError::server(error.to_string()))?;
    target.options = RunOptions {
        tools: Vec::new(),
        hosted: Vec::new(),
        choice: ToolChoice::Auto,
        compaction: Some(Compaction::Off),
        ..std::mem::take(&mut target.options)
    };
    Ok(())
}

/// A client that answers with what it was made with.
struct FixedClient {
    abilities: Abilities,
    messages: Vec<Message>,
}

#[async_trait]
impl ChatClient for FixedClient {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, _: &ChatRequest<'_>) -> Result<Response, ClientError> {
        Ok(Response {
            messages: self.messages.clone(),
            stop: Stop::Done,
            id: None,
            model: None,
            usage: None,
            error: None,
            vendor: None,
            service: None,
        })
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        let events = self.respond(request).await?.events();
        let events: Vec<_> = events.into_iter().map(Ok).collect();
        Ok(Box::pin(futures_util::stream::iter(events)))
    }
}
