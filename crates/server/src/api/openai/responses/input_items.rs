//! `GET /v1/responses/{id}/input_items`: what stood before the output of a response, inherited and
//! its own.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use throughline_model::json::{ArrayWriter, RawJson};

use super::chain::{ListingOptions, entries, positioned};
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
    let stored = StoredResponse::read(&app, &caller.scope, &id).await?;
    let before = entries(&app, &caller.scope, stored.journal.run.base).await?;
    let inputs = stored.journal.inputs;
    let own = stored.journal.entries.iter();
    let own = own.filter(|entry| entry.at.no <= inputs);
    let all = before.iter().chain(own);
    let messages = all.map(|entry| (entry.at.run, &entry.message));
    let mut items = ListingOptions::of(&stored.journal)?.items(&app, &positioned(messages));
    if !ascending {
        items.reverse();
    }
    let start = match query.get("after") {
        None | Some("") => 0,
        Some(after) => match items.iter().position(|item| item.id == after) {
            Some(place) => place + 1,
            None => return Err(wrong("after", "the id of an item of this list")),
        },
    };
    let rest = items.get(start..).unwrap_or_default();
    let page = rest.get(..limit).unwrap_or(rest);
    Ok(json(StatusCode::OK, &listed(page, rest.len() > limit)))
}

fn listed(page: &[Item], has_more: bool) -> RawJson {
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
