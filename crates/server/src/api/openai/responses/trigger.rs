//! A request that ends with `compaction_trigger`: the conversation is compacted, and no model is called.

use std::sync::Arc;

use async_trait::async_trait;
use throughline::agent::{Compaction, RunOptions, condense};
use throughline::client::{Abilities, ChatRequest, ClientError, EventStream};
use throughline::{Agent, ChatClient};
use throughline_model::json::RawJson;
use throughline_model::{
    Body, Content, Message, Opaque, Response, Role, Stop, ToolChoice, Vendor, Wire,
};
use throughline_store::TenantScope;

use super::resolve_target::ResolvedTarget;
use super::wire::{CompactionRequest, CreateRequest};
use super::{compact, compaction_options};
use crate::api::openai::items::{InputItems, OWN_WIRE};
use crate::app::App;
use crate::error::ApiError;

/// What is compacted.
pub(super) struct WholeConversation<'a> {
    pub(super) request: &'a CreateRequest,
    pub(super) input: &'a InputItems,
    pub(super) messages: &'a [Arc<Message>],
}

/// Have a run answer with the compacted conversation instead of calling a model.
pub(super) fn answer_with_compaction(
    app: &App,
    scope: &TenantScope,
    target: &mut ResolvedTarget,
    whole: &WholeConversation<'_>,
) -> Result<(), ApiError> {
    let asked = CompactionRequest {
        fits_window: true,
        ..*whole.request.compaction()
    };
    let policy = compaction_options::policy(&app.config.compaction, target.upstream.window, &asked);
    let short = condense(whole.messages, &policy);
    let item = compact::compaction_item(app, scope, (whole.request, whole.input), &short);
    target.host.compaction_item = Some(item.clone());
    target.options.host = Some(target.host.to_json());
    set_compaction_answer(app, target, item)
}

/// Have a run answer with a compacted conversation.
pub(super) fn set_compaction_answer(
    app: &App,
    target: &mut ResolvedTarget,
    item: RawJson,
) -> Result<(), ApiError> {
    let client = CompactionClient {
        abilities: Abilities::of(target.upstream.name.clone()),
        item,
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

/// A client that answers with a compacted conversation.
struct CompactionClient {
    abilities: Abilities,
    item: RawJson,
}

#[async_trait]
impl ChatClient for CompactionClient {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn respond(&self, _: &ChatRequest<'_>) -> Result<Response, ClientError> {
        // A format of our own: no vendor takes it for an item that it sealed itself.
        let vendor = Vendor::item(Wire::Other(OWN_WIRE.into()), self.item.clone());
        let opaque = Body::Opaque(Opaque {
            tag: "compaction".to_owned(),
        });
        let content = Content::new(opaque).with_vendor(vendor);
        Ok(Response {
            messages: vec![Message::new(Role::Assistant, vec![content])],
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
