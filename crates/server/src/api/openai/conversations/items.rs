//! The items of a conversation: listed, read and taken out.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Response, StatusCode};
use throughline_model::json::{RawJson, Value};
use throughline_model::{Body as ContentBody, Message, Path as JsonPath, Source};
use throughline_store::{Append, Entry, Mask, Opened, RunId, TenantScope};

use super::change::{Change, append, check_owner, uncompacted};
use super::{about, object, opened};
use crate::api::openai::conversation_head::{expected_head, set_entity_tag};
use crate::api::openai::items::{InputItems, Item, ItemPage};
use crate::api::openai::responses::chain::{ListingOptions, entries, visible_items};
use crate::api::openai::responses::errors;
use crate::api::openai::responses::resolve_input::resolve_input;
use crate::api::query::Query;
use crate::api::read;
use crate::app::App;
use crate::auth::Caller;
use crate::error::{ApiError, MISSING_ITEM};
use crate::net::json;

/// How many items one request may add.
const MOST_ITEMS: usize = 20;

/// The items of a body.
pub(super) fn input_of(body: &Value<'_>) -> Result<InputItems, ApiError> {
    let root = JsonPath::Root;
    let Some(list) = read::list(body, "items", &root)? else {
        return Ok(InputItems::default());
    };
    let path = root.key("items");
    if list.len() > MOST_ITEMS {
        let what = format!("at most {MOST_ITEMS} items are added at once");
        return Err(read::out_of_range(&path, "array_above_max_length", &what));
    }
    let input = body.get("items").map_or("[]", Value::raw);
    let input = RawJson::object(|object| {
        object.raw("input", input);
    });
    InputItems::of(&input.value()).map_err(under_items)
}

/// An error about the items of a response, about those of a conversation.
fn under_items(mut error: ApiError) -> ApiError {
    error.message = error.message.replace("input[", "items[");
    let param = error.param.take();
    error.param = param.map(|param| match param.strip_prefix("input") {
        Some(rest) => format!("items{rest}"),
        None => param,
    });
    error
}

/// Items that are to be stored.
pub(super) struct NewItems(Vec<Message>);

impl NewItems {
    /// What items stand for after a history.
    pub(super) async fn resolve(
        app: &App,
        scope: &TenantScope,
        input: &InputItems,
        history: &[Arc<Message>],
    ) -> Result<Self, ApiError> {
        let resolved = resolve_input(app, scope, input, history, None).await;
        let resolved = resolved.map_err(under_items)?;
        if !resolved.approvals.is_empty() {
            return Err(ApiError::invalid(
                "An approval is answered in the input of a response, with 'conversation': the answer \
                 starts a run.",
            )
            .code("invalid_item")
            .param("items"));
        }
        let mut messages = resolved.messages;
        for message in &mut messages {
            if message.source != Some(Source::Summary) {
                message.source = Some(Source::Caller);
            }
        }
        Ok(Self(messages))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_messages(self) -> Vec<Message> {
        self.0
    }
}

/// `GET /v1/conversations/{id}/items`.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response<Body>, ApiError> {
    let query = Query::of(query.as_deref());
    let page = ItemPage::of_query(&query)?;
    let opened = opened(&app, &caller.scope, &id).await?;
    let found = ConversationItems::read(&app, &caller.scope, &opened, &query).await?;
    let mut response = json(StatusCode::OK, &page.of(found.items)?);
    set_entity_tag(&mut response, opened.tip.map(|tip| tip.node));
    Ok(response)
}

/// `GET /v1/conversations/{id}/items/{item}`.
pub(super) async fn one(
    State(app): State<App>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response<Body>, ApiError> {
    let query = Query::of(query.as_deref());
    let opened = opened(&app, &caller.scope, &id).await?;
    let found = ConversationItems::read(&app, &caller.scope, &opened, &query).await?;
    let item = found.find(&id, &item)?;
    Ok(json(StatusCode::OK, &item.json))
}

/// `DELETE /v1/conversations/{id}/items/{item}`: later turns do not see it. Answers with the
/// conversation.
pub(super) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let wanted = expected_head(&headers)?;
    let scope = &caller.scope;
    let mut change = Change::new(&app, scope, &id, wanted);
    loop {
        let found = change.read().await?;
        let owner = app.runs.threads(scope).owner_of(&found.thread.id).await;
        check_owner(&owner.map_err(|error| about(&app, &error, &id))?)?;
        let items = ConversationItems::read(&app, scope, &found, &Query::of(None)).await?;
        let masks = items.masks(items.find(&id, &item)?)?;
        let append = Append {
            expected: Some(found.thread.version),
            state: uncompacted(&found.state),
            ..append(&app, &found.thread.id, vec![Mask::message(&masks)], None)
        };
        if let Some(published) = change.store(&append).await? {
            let body = object::conversation(&id, &found.thread);
            let mut response = json(StatusCode::OK, &body);
            set_entity_tag(&mut response, published.node);
            return Ok(response);
        }
    }
}

/// All items of a conversation.
struct ConversationItems {
    items: Vec<Item>,
    /// The messages that they are listed from.
    said: Vec<Entry>,
}

impl ConversationItems {
    async fn read(
        app: &App,
        scope: &TenantScope,
        opened: &Opened,
        query: &Query,
    ) -> Result<Self, ApiError> {
        let node = opened.tip.map(|tip| tip.node);
        let all = entries(app, scope, node).await?;
        let seals = ["include", "include[]"].iter().any(|key| {
            query
                .get(key)
                .is_some_and(|value| value == "reasoning.encrypted_content")
        });
        let mut options = ListingOptions::plain().with_seals(seals);
        for run in runs_with_tools(&all, node.map(|node| node.run)) {
            let journal = app.store.journal(scope, run).await;
            options.add(&journal.map_err(|error| errors::store(&error))?)?;
        }
        let refs: Vec<&Entry> = all.iter().collect();
        let items = visible_items(app, &refs, &options);
        let is_mask = |entry: &Entry| Mask::of(&entry.message).is_some();
        let said = all.into_iter().filter(|entry| !is_mask(entry)).collect();
        Ok(Self { items, said })
    }

    fn find(&self, conversation: &str, id: &str) -> Result<&Item, ApiError> {
        let found = self.items.iter().rfind(|item| item.id == id);
        found.ok_or_else(|| {
            let id: String = id.chars().take(128).collect();
            let conversation: String = conversation.chars().take(128).collect();
            ApiError::not_found(format!(
                "Item with id '{id}' not found in conversation '{conversation}'."
            ))
            .code(MISSING_ITEM)
        })
    }

    /// What must be left out so that an item is not shown any more.
    fn masks(&self, item: &Item) -> Result<Vec<Mask>, ApiError> {
        if item.contents.is_empty() {
            return Err(ApiError::invalid(format!(
                "Item '{}' shows what became of a call of an earlier response; delete the item of the \
                 call instead.",
                item.id
            ))
            .code("invalid_item")
            .param("item_id"));
        }
        let mut masks = Vec::new();
        for (message, content) in &item.contents {
            let Some(entry) = self.said.get(*message) else {
                continue;
            };
            masks.push(Mask {
                message: entry.at,
                content: *content,
            });
            // An item of a call that ran here shows its result too.
            let body = entry.message.contents.get(*content).map(|one| &one.body);
            if let Some(ContentBody::ToolCall(call)) = body
                && item.id.starts_with("mcp_")
            {
                masks.extend(self.result_of(*message, call.call.value()));
            }
        }
        Ok(masks)
    }

    /// The first result of a call after a message.
    fn result_of(&self, message: usize, call: &str) -> Option<Mask> {
        self.said.iter().skip(message + 1).find_map(|entry| {
            let mut contents = entry.message.contents.iter();
            let place = contents.position(|content| {
                let result = content.as_tool_result();
                result.is_some_and(|result| result.call().value() == call)
            });
            place.map(|content| Mask {
                message: entry.at,
                content,
            })
        })
    }
}

/// The runs whose tools ran here, and the newest one, whose calls may wait.
fn runs_with_tools(entries: &[Entry], newest: Option<RunId>) -> BTreeSet<RunId> {
    let ran = entries
        .iter()
        .filter(|entry| entry.message.source == Some(Source::Tool));
    ran.map(|entry| entry.at.run).chain(newest).collect()
}
