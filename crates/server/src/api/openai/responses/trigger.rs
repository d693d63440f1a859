//! A request that ends with `compaction_trigger`: the conversation is compacted, and no model is called.

use std::sync::Arc;

use throughline::agent::condense;
use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Message, Opaque, Role, Vendor, Wire};
use throughline_store::TenantScope;

use super::fixed_answer::set_answer;
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
    // A format of our own: no vendor takes it for an item that it sealed itself.
    let vendor = Vendor::item(Wire::Other(OWN_WIRE.into()), item);
    let opaque = Body::Opaque(Opaque {
        tag: "compaction".to_owned(),
    });
    let content = Content::new(opaque).with_vendor(vendor);
    let answer = vec![Message::new(Role::Assistant, vec![content])];
    set_answer(app, target, answer)
}
