//! `GET /v1/responses/{id}/input_items`: what stood before the output of a response.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use throughline_model::json::{ArrayWriter, RawJson};

use super::query::{Query, wrong};
use super::tale::Tale;
use crate::error::ApiError;
use crate::http::{App, Caller, json};

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
    let _ = (
        app,
        caller,
        id,
        limit,
        ascending,
        Tale::read,
        StatusCode::OK,
        json,
        ArrayWriter::new,
        RawJson::object(|_| {}),
    );
    Err(ApiError::not_implemented("input_items"))
}
