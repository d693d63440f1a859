//! Items of ours that a client sends back, by reference or as it received them.
//!
//! What a vendor needs back (signatures, sealed reasoning, its own form of a call) has no place in an
//! item of this API, or is dropped by clients. The record has it: an item that is kept stands for what
//! it was made from, if the body that came with it is the one that was given.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throughline_model::json::Value;
use throughline_model::{Body, Content, Message, Role, ToolCall};
use throughline_store::{Journal, RunId, TenantScope};

use super::chain::{self, RunItems};
use super::resolve_input::unknown_item;
use crate::api::openai::items::{InputItem, ItemId, messages_of, same_item, with_item_id};
use crate::app::App;
use crate::error::ApiError;

/// What stands behind an item of an input.
pub(super) enum ResolvedItem {
    /// Nothing of ours: it is what was sent.
    AsSent,
    /// Something else is kept under its id.
    Edited,
    /// What it was made from, and the message that it stood in.
    Stored(Vec<Message>, Option<(RunId, usize)>),
}

/// Looks items up, each run once.
pub(super) struct ItemResolver<'a> {
    app: &'a App,
    scope: &'a TenantScope,
    /// The journal of the previous run, if it was read.
    journal: Option<&'a Journal>,
    runs: HashMap<RunId, Option<RunItems>>,
    /// Contents that were given already: run, message and content.
    given: HashSet<(RunId, usize, usize)>,
}

impl<'a> ItemResolver<'a> {
    pub(super) fn new(app: &'a App, scope: &'a TenantScope, journal: Option<&'a Journal>) -> Self {
        Self {
            app,
            scope,
            journal,
            runs: HashMap::new(),
            given: HashSet::new(),
        }
    }

    /// What stands behind an item.
    pub(super) async fn resolve(
        &mut self,
        item: &InputItem,
        history: &[Arc<Message>],
    ) -> Result<ResolvedItem, ApiError> {
        let is_reference = item.tag == "item_reference";
        let Some(id) = &item.id else {
            return Ok(self.call_without_id(item));
        };
        let found = match id.parse::<ItemId>() {
            Ok(of) => {
                let kept = self.run(of.run).await?;
                let index = kept.and_then(|kept| kept.items.iter().position(|item| item.id == *id));
                index.map(|index| (of.run, index))
            }
            Err(_) => None,
        };
        let Some((run, index)) = found else {
            return match is_reference {
                true => self.named(id, history),
                false => Ok(ResolvedItem::AsSent),
            };
        };
        let Some(Some(kept)) = self.runs.get(&run) else {
            return Ok(ResolvedItem::AsSent);
        };
        let known = &kept.items[index];
        if !is_reference && !same_item(&known.json, &item.json) {
            return Ok(ResolvedItem::Edited);
        }
        match known.position {
            Some((message, content)) => {
                let messages = stored_messages(kept, (run, message, content), id, &mut self.given);
                Ok(ResolvedItem::Stored(messages, Some((run, message))))
            }
            // An item of the client's own input is used as it was sent.
            None if is_reference => messages_of(&InputItem {
                json: known.json.clone(),
                ..item.clone()
            })
            .map(|messages| ResolvedItem::Stored(messages, None)),
            None => Ok(ResolvedItem::AsSent),
        }
    }

    /// A call that came without its id, next to other items of its response.
    fn call_without_id(&mut self, item: &InputItem) -> ResolvedItem {
        let value = item.json.value();
        let Some(call) = value.get("call_id").and_then(Value::as_str) else {
            return ResolvedItem::AsSent;
        };
        for (run, kept) in &self.runs {
            let items = kept.iter().flat_map(|kept| &kept.items);
            let mut made = items.filter(|known| {
                let value = known.json.value();
                let same = value.get("call_id").and_then(Value::as_str) == Some(call.clone());
                same && same_item(&known.json, &item.json)
            });
            if let (Some(known), Some(kept)) = (made.next(), kept)
                && let Some((message, content)) = known.position
            {
                let at = (*run, message, content);
                let messages = stored_messages(kept, at, &known.id, &mut self.given);
                return ResolvedItem::Stored(messages, Some((*run, message)));
            }
        }
        ResolvedItem::AsSent
    }

    /// The items of a run; `None` if it is not there.
    async fn run(&mut self, run: RunId) -> Result<Option<&RunItems>, ApiError> {
        if !self.runs.contains_key(&run) {
            let known = self.journal.filter(|journal| journal.run.id == run);
            let kept = match known {
                Some(journal) => Some(RunItems::of(self.app, journal)?),
                None => RunItems::read(self.app, self.scope, run).await?,
            };
            self.runs.insert(run, kept);
        }
        Ok(self.runs.get(&run).and_then(Option::as_ref))
    }

    /// Whether an item is the one that its own response showed: that knows how tools were declared and
    /// what was asked to be shown.
    pub(super) async fn is_as_shown(
        &mut self,
        id: &ItemId,
        item: &InputItem,
    ) -> Result<bool, ApiError> {
        let name = id.to_string();
        let kept = self.run(id.run).await?;
        let mut items = kept.iter().flat_map(|kept| &kept.items);
        Ok(items.any(|known| known.id == name && same_item(&known.json, &item.json)))
    }

    /// An item of the history that a client gave this name.
    fn named(&self, id: &str, history: &[Arc<Message>]) -> Result<ResolvedItem, ApiError> {
        let item = chain::client_item(self.app, history, id).ok_or_else(|| unknown_item(id))?;
        let value = item.json.value();
        let tag = value.get("type").and_then(Value::as_str);
        messages_of(&InputItem {
            index: 0,
            id: Some(item.id.clone()),
            tag: tag.map_or_else(|| "message".to_owned(), Into::into),
            json: item.json.clone(),
        })
        .map(|messages| ResolvedItem::Stored(messages, None))
    }
}

/// What a content of the record is sent back as: with the reasoning before a call that the client
/// left out, and with the result of a call that ran here.
fn stored_messages(
    kept: &RunItems,
    (run, message, content): (RunId, usize, usize),
    id: &str,
    given: &mut HashSet<(RunId, usize, usize)>,
) -> Vec<Message> {
    let Some(spoken) = kept.messages.get(message) else {
        return Vec::new();
    };
    let mut contents = Vec::new();
    if let Some(Body::ToolCall(_)) = spoken.contents.get(content).map(|one| &one.body) {
        for (place, one) in spoken.contents.iter().enumerate().take(content) {
            let thought = matches!(one.body, Body::Reasoning(_));
            if thought && given.insert((run, message, place)) {
                contents.push(one.clone());
            }
        }
    }
    // The item that carries a signature stands beside that of its content.
    if given.insert((run, message, content))
        && let Some(one) = spoken.contents.get(content)
    {
        contents.push(with_item_id(one.clone(), id));
    }
    if contents.is_empty() {
        return Vec::new();
    }
    let mut messages = vec![Message::new(spoken.role.clone(), contents)];
    if id.starts_with("mcp_")
        && let Some(Body::ToolCall(call)) = spoken.contents.get(content).map(|one| &one.body)
        && let Some(result) = result_of(kept, message, call)
    {
        messages.push(Message::new(Role::Tool, vec![result]));
    }
    messages
}

/// The result of a call that ran here.
fn result_of(kept: &RunItems, message: usize, call: &ToolCall) -> Option<Content> {
    let later = kept.messages.iter().skip(message + 1);
    let mut contents = later.flat_map(|message| &message.contents);
    let answers = |content: &&Content| {
        let result = content.as_tool_result();
        result.is_some_and(|result| result.call().value() == call.call.value())
    };
    contents.find(answers).cloned()
}
