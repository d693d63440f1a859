//! `GET /v1/responses/{id}/input_items`: what stood before the output of a response, inherited and
//! its own.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use throughline_model::json::{ArrayWriter, RawJson};
use throughline_store::Entry;

use super::chain::{ListingOptions, entries, visible_items};
use super::stored_response::StoredResponse;
use crate::api::openai::items::Item;
use crate::api::query::{Query, wrong};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::json;

/// List them.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response<Body>, ApiError> {
    let query = Query::of(query.as_deref());
    let page = ItemPage::of_query(&query)?;
    let stored = StoredResponse::read(&app, &caller.scope, &id).await?;
    let before = entries(&app, &caller.scope, stored.journal.run.base).await?;
    let inputs = stored.journal.inputs;
    let own = stored.journal.entries.iter();
    let own = own.filter(|entry| entry.at.no <= inputs);
    let all: Vec<&Entry> = before.iter().chain(own).collect();
    let options = ListingOptions::of(&stored.journal)?;
    let items = visible_items(&app, &all, &options);
    Ok(json(StatusCode::OK, &page.of(items)?))
}

/// Which items of a list a client asks for.
pub(in crate::api::openai) struct ItemPage {
    limit: usize,
    ascending: bool,
    after: Option<String>,
}

impl ItemPage {
    /// The parameters of a query.
    pub(in crate::api::openai) fn of_query(query: &Query) -> Result<Self, ApiError> {
        let limit = match query.number("limit")? {
            None => 20,
            Some(limit @ 1..=100) => usize::try_from(limit).unwrap_or(100),
            Some(_) => return Err(wrong("limit", "a number from 1 to 100")),
        };
        let ascending = match query.get("order") {
            None | Some("desc" | "") => false,
            Some("asc") => true,
            Some(_) => return Err(wrong("order", "'asc' or 'desc'")),
        };
        let after = query.get("after").filter(|after| !after.is_empty());
        Ok(Self {
            limit,
            ascending,
            after: after.map(str::to_owned),
        })
    }

    /// The list, of all items, oldest first.
    pub(in crate::api::openai) fn of(&self, mut items: Vec<Item>) -> Result<RawJson, ApiError> {
        if !self.ascending {
            items.reverse();
        }
        let start = match &self.after {
            None => 0,
            Some(after) => match items.iter().position(|item| item.id == *after) {
                Some(place) => place + 1,
                None => return Err(wrong("after", "the id of an item of this list")),
            },
        };
        let rest = items.get(start..).unwrap_or_default();
        let page = rest.get(..self.limit).unwrap_or(rest);
        Ok(listed(page, rest.len() > self.limit))
    }
}

/// A page of items.
pub(in crate::api::openai) fn listed(page: &[Item], has_more: bool) -> RawJson {
    RawJson::object(|object| {
        object.str("object", "list");
        let mut data = ArrayWriter::new(object.key("data"));
        for item in page {
            data.slot().push_str(item.json.get());
        }
        data.end();
        for (key, item) in [("first_id", page.first()), ("last_id", page.last())] {
            match item {
                Some(item) => drop(object.str(key, &item.id)),
                None => drop(object.raw(key, "null")),
            }
        }
        object.bool("has_more", has_more);
    })
}
