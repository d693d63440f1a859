//! Compares the input of a request with the history that it continues.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::Message;
use throughline_store::{ApprovalId, Journal, TenantScope};

use super::chain;
use super::repeated_input::{remove_repeated, unanswered_calls};
use super::resolve::{ItemResolver, ResolvedItem};
use super::wire::Ignored;
use crate::api::openai::items::{
    COMPACTION_PURPOSE, CompactionToken, InputItem, InputItems, InputPart, ItemId, OpenedToken,
    bad_compaction_token, duplicate_item, parts, same_item,
};
use crate::app::App;
use crate::error::{ApiError, MISSING_ITEM};

/// The input of a request, ready for a run.
#[derive(Default)]
pub(crate) struct ResolvedInput {
    pub(crate) messages: Vec<Message>,
    /// Answers to questions whether a tool may run.
    pub(crate) approvals: Vec<ApprovalAnswer>,
    /// Items that are not what they say they are.
    pub(crate) ignored: Vec<Ignored>,
}

/// An answer to a question.
pub(crate) struct ApprovalAnswer {
    pub(crate) approval: ApprovalId,
    pub(crate) approve: bool,
    pub(crate) reason: Option<String>,
}

/// Resolve the input of a request that continues a history. `journal` is that of the previous run, if it was read.
pub(crate) async fn resolve_input(
    app: &App,
    scope: &TenantScope,
    input: &InputItems,
    history: &[Arc<Message>],
    journal: Option<&Journal>,
) -> Result<ResolvedInput, ApiError> {
    let mut resolved = ResolvedInput::default();
    let mut resolver = ItemResolver::new(app, scope, journal);
    let again = repeated_items(app, &mut resolver, input, history).await?;
    let mut sent: Vec<&InputItem> = Vec::new();
    let mut last = None;
    for item in input.items() {
        if again.contains(&item.index) {
            continue;
        }
        match resolver.resolve(item, history).await? {
            ResolvedItem::AsSent => sent.push(item),
            ResolvedItem::Edited => {
                let reason = "it differs from the item that is kept under this id, and was used as \
                              it was sent";
                let path = format!("input[{}]", item.index);
                resolved.ignored.push(Ignored::new(path, reason));
                sent.push(item);
            }
            ResolvedItem::Stored(messages, at) => {
                let follows = sent.is_empty() && at.is_some() && at == last;
                resolved.push_sent(app, scope, history, &std::mem::take(&mut sent))?;
                resolved.push_stored(messages, follows);
                last = at;
            }
        }
    }
    match sent.len() == input.items().len() {
        // It was read already, all of it.
        true => resolved.push_parts(app, scope, history, input.parts().to_vec())?,
        false => resolved.push_sent(app, scope, history, &sent)?,
    }
    remove_repeated(&mut resolved.messages, history);
    check_outputs(&resolved.messages, history)?;
    Ok(resolved)
}

impl ResolvedInput {
    /// Add what is kept. What stood in one message stands in one again: reasoning is nothing without
    /// what it led to.
    fn push_stored(&mut self, messages: Vec<Message>, follows: bool) {
        for message in messages {
            match self.messages.last_mut() {
                Some(before) if follows && before.role == message.role => {
                    before.contents.extend(message.contents);
                }
                _ => self.messages.push(message),
            }
        }
    }

    /// Add items as they were sent.
    fn push_sent(
        &mut self,
        app: &App,
        scope: &TenantScope,
        history: &[Arc<Message>],
        items: &[&InputItem],
    ) -> Result<(), ApiError> {
        match items.is_empty() {
            true => Ok(()),
            false => self.push_parts(app, scope, history, parts(items)?),
        }
    }

    /// Add what items mean.
    fn push_parts(
        &mut self,
        app: &App,
        scope: &TenantScope,
        history: &[Arc<Message>],
        parts: Vec<InputPart>,
    ) -> Result<(), ApiError> {
        for part in parts {
            match part {
                InputPart::Messages(messages) => self.messages.extend(messages),
                InputPart::Reference { id, .. } => return Err(unknown_item(&id)),
                InputPart::CompactionToken { id, token, index } => {
                    let message = open_compaction(app, scope, &token, id.as_deref(), index)?;
                    // A client that sends everything again sends it too.
                    let known = |one: &Arc<Message>| CompactionToken::produced(one, &token.seal);
                    if !history.iter().any(known) {
                        self.messages.push(message);
                    }
                }
                InputPart::Approval {
                    request,
                    approve,
                    reason,
                } => self.approvals.push(ApprovalAnswer {
                    approval: request.parse().map_err(|_| unknown_approval(&request))?,
                    approve,
                    reason,
                }),
            }
        }
        Ok(())
    }
}

/// The message of a compaction token, if this store sealed it for this tenant.
fn open_compaction(
    app: &App,
    scope: &TenantScope,
    token: &OpenedToken,
    id: Option<&str>,
    index: usize,
) -> Result<Message, ApiError> {
    let OpenedToken { content, seal } = token;
    let own = app
        .store
        .seal(scope, COMPACTION_PURPOSE, content.bytes().get().as_bytes());
    // Constant time: all bytes are compared.
    let differs = own
        .iter()
        .zip(seal)
        .fold(0, |all, (one, two)| all | (one ^ two));
    if differs != 0 {
        return Err(bad_compaction_token(
            index,
            "it was not sealed here, or was changed",
        ));
    }
    let minted = CompactionToken::id(seal);
    Ok(content.message(id.unwrap_or(&minted), seal))
}

/// Items of ours that the chain has, and that a client which sends everything again sends too.
async fn repeated_items(
    app: &App,
    resolver: &mut ItemResolver<'_>,
    input: &InputItems,
    history: &[Arc<Message>],
) -> Result<Vec<usize>, ApiError> {
    let mut again = Vec::new();
    if history.is_empty() {
        return Ok(again);
    }
    for item in input.items() {
        let Some(id) = item.id.as_deref().and_then(|id| id.parse::<ItemId>().ok()) else {
            continue;
        };
        let Some(known) = chain::history_item(app, history, &id) else {
            continue;
        };
        if item.tag != "item_reference"
            && !same_item(&known.json, &item.json)
            && !resolver.is_as_shown(&id, item).await?
        {
            return Err(duplicate_item(&known.id));
        }
        again.push(item.index);
    }
    Ok(again)
}

/// Every output answers a call that is here or waits there.
fn check_outputs(messages: &[Message], history: &[Arc<Message>]) -> Result<(), ApiError> {
    let mut calls: Vec<&str> = Vec::new();
    let mut used: HashMap<&str, usize> = HashMap::new();
    for content in messages.iter().flat_map(|message| &message.contents) {
        if let Some(call) = content.as_tool_call() {
            calls.push(call.call.value());
        }
        let Some(result) = content.as_tool_result() else {
            continue;
        };
        let id = result.call().value();
        if let Some(place) = calls.iter().position(|call| *call == id) {
            calls.swap_remove(place);
            continue;
        }
        let used = used.entry(id).or_default();
        *used += 1;
        if *used > unanswered_calls(history, id) {
            let id: String = id.chars().take(128).collect();
            return Err(ApiError::invalid(format!(
                "No tool call found for function call output with call_id {id}."
            ))
            .param("input"));
        }
    }
    Ok(())
}

/// An approval that the response before did not ask for.
pub(crate) fn unknown_approval(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::invalid(format!(
        "No approval request with id '{id}' waits there. Name the response that asked in \
         previous_response_id."
    ))
    .code("approval_not_found")
    .param("input")
}

/// An item that is not there.
pub(crate) fn unknown_item(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::invalid(format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
    ))
    .code(MISSING_ITEM)
    .param("input")
}
