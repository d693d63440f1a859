//! What a client says in a request, held against what the chain has.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::{Content, Message};
use throughline_store::{ApprovalId, Journal, TenantScope};

use super::chain;
use super::resolve::{Found, Resolving};
use super::wire::Ignored;
use crate::api::openai::items::{
    COMPACTION_PURPOSE, CompactionToken, InputItem, InputItems, InputPart, ItemId, OpenedToken,
    duplicate_item, not_ours, parts, same_item,
};
use crate::app::App;
use crate::error::{ApiError, MISSING_ITEM};

/// What is said, ready for a run.
#[derive(Default)]
pub(crate) struct ResolvedInput {
    pub(crate) messages: Vec<Message>,
    /// Answers to questions whether a tool may run.
    pub(crate) approvals: Vec<Approved>,
    /// Items that are not what they say they are.
    pub(crate) ignored: Vec<Ignored>,
}

/// An answer to a question.
pub(crate) struct Approved {
    pub(crate) approval: ApprovalId,
    pub(crate) approve: bool,
    pub(crate) reason: Option<String>,
}

/// What a request says on top of a history. `journal` is that of the previous run, if it was read.
pub(crate) async fn resolve_input(
    app: &App,
    scope: &TenantScope,
    input: &InputItems,
    history: &[Arc<Message>],
    journal: Option<&Journal>,
) -> Result<ResolvedInput, ApiError> {
    let mut said = ResolvedInput::default();
    let mut resolving = Resolving::new(app, scope, journal);
    let again = sent_again(app, &mut resolving, input, history).await?;
    let mut sent: Vec<&InputItem> = Vec::new();
    let mut last = None;
    for item in input.items() {
        if again.contains(&item.index) {
            continue;
        }
        match resolving.look_up(item, history).await? {
            Found::Sent => sent.push(item),
            Found::Edited => {
                let reason = "it differs from the item that is kept under this id, and was used as \
                              it was sent";
                let path = format!("input[{}]", item.index);
                said.ignored.push(Ignored::new(path, reason));
                sent.push(item);
            }
            Found::Kept(messages, at) => {
                let follows = sent.is_empty() && at.is_some() && at == last;
                said.add(app, scope, history, &std::mem::take(&mut sent))?;
                said.keep(messages, follows);
                last = at;
            }
        }
    }
    match sent.len() == input.items().len() {
        // It was read already, all of it.
        true => said.take(app, scope, history, input.parts().to_vec())?,
        false => said.add(app, scope, history, &sent)?,
    }
    paired(&said.messages, history)?;
    Ok(said)
}

impl ResolvedInput {
    /// Add what is kept. What stood in one message stands in one again: reasoning is nothing without
    /// what it led to.
    fn keep(&mut self, messages: Vec<Message>, follows: bool) {
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
    fn add(
        &mut self,
        app: &App,
        scope: &TenantScope,
        history: &[Arc<Message>],
        items: &[&InputItem],
    ) -> Result<(), ApiError> {
        match items.is_empty() {
            true => Ok(()),
            false => self.take(app, scope, history, parts(items)?),
        }
    }

    /// Add what items mean.
    fn take(
        &mut self,
        app: &App,
        scope: &TenantScope,
        history: &[Arc<Message>],
        parts: Vec<InputPart>,
    ) -> Result<(), ApiError> {
        for part in parts {
            match part {
                InputPart::Messages(messages) => self.messages.extend(messages),
                InputPart::Reference { id, .. } => return Err(no_item(&id)),
                InputPart::CompactionToken { id, brought, index } => {
                    let message = opened(app, scope, &brought, id.as_deref(), index)?;
                    // A client that sends everything again sends it too.
                    let known = |one: &Arc<Message>| CompactionToken::became(one, &brought.seal);
                    if !history.iter().any(known) {
                        self.messages.push(message);
                    }
                }
                InputPart::Approval {
                    request,
                    approve,
                    reason,
                } => self.approvals.push(Approved {
                    approval: request.parse().map_err(|_| no_question(&request))?,
                    approve,
                    reason,
                }),
            }
        }
        Ok(())
    }
}

/// What was put in short, if this store sealed it for this tenant.
fn opened(
    app: &App,
    scope: &TenantScope,
    brought: &OpenedToken,
    id: Option<&str>,
    index: usize,
) -> Result<Message, ApiError> {
    let OpenedToken {
        compaction_token,
        seal,
    } = brought;
    let own = app.store.seal(
        scope,
        COMPACTION_PURPOSE,
        compaction_token.bytes().get().as_bytes(),
    );
    // Constant time: all bytes are compared.
    let differs = own
        .iter()
        .zip(seal)
        .fold(0, |all, (one, two)| all | (one ^ two));
    if differs != 0 {
        return Err(not_ours(index, "it was not sealed here, or was changed"));
    }
    let minted = CompactionToken::id(seal);
    Ok(compaction_token.message(id.unwrap_or(&minted), seal))
}

/// Items of ours that the chain has, and that a client which sends everything again sends too.
async fn sent_again(
    app: &App,
    resolving: &mut Resolving<'_>,
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
        let Some(known) = chain::inherited(app, history, &id) else {
            continue;
        };
        if item.tag != "item_reference"
            && !same_item(&known.json, &item.json)
            && !resolving.is_as_shown(&id, item).await?
        {
            return Err(duplicate_item(&known.id));
        }
        again.push(item.index);
    }
    Ok(again)
}

/// Every output answers a call that is here or waits there.
fn paired(messages: &[Message], history: &[Arc<Message>]) -> Result<(), ApiError> {
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
        if *used > waiting(history, id) {
            let id: String = id.chars().take(128).collect();
            return Err(ApiError::invalid(format!(
                "No tool call found for function call output with call_id {id}."
            ))
            .param("input"));
        }
    }
    Ok(())
}

/// How many calls of an id have no result, in the newest message that has such calls.
fn waiting(history: &[Arc<Message>], id: &str) -> usize {
    let mut results = 0;
    for message in history.iter().rev() {
        let contents = message.contents.iter();
        let calls = contents.clone().filter_map(Content::as_tool_call);
        let calls = calls.filter(|one| one.call.value() == id).count();
        let found = contents.filter_map(Content::as_tool_result);
        results += found.filter(|one| one.call().value() == id).count();
        if calls > 0 {
            return calls.saturating_sub(results);
        }
    }
    0
}

/// An approval that the response before did not ask for.
pub(crate) fn no_question(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::invalid(format!(
        "No approval request with id '{id}' waits there. Name the response that asked in \
         previous_response_id."
    ))
    .code("approval_not_found")
    .param("input")
}

/// An item that is not there.
pub(crate) fn no_item(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::invalid(format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
    ))
    .code(MISSING_ITEM)
    .param("input")
}
