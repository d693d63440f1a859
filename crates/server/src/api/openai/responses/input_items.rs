//! `GET /v1/responses/{id}/input_items`: what stood before the output of a response, inherited and
//! its own.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use throughline_store::Entry;

use super::chain::{ListingOptions, entries, visible_items};
use super::stored_response::StoredResponse;
use crate::api::openai::items::ItemPage;
use crate::api::query::Query;
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
