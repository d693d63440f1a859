//! `POST /api/v1/threads/{thread}/uncompact`.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::find::{about, find_whole};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, answer, flag, text};
use crate::api::native::request::{Call, Route, json_text};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/{thread}/uncompact",
        "uncompactThread",
        "Show models the whole conversation again.",
    )
    .answers(
        200,
        "Whether there was a compaction to undo.",
        answer().with("thread", text()).with("uncompacted", flag()),
    )
    .fails(404, "There is no such thread.");
    Route::new(operation, uncompact)
}

async fn uncompact(call: Call) -> Result<Response<Body>, ApiError> {
    let id = find_whole(&call).await?.thread.id;
    let threads = call.app.runs.threads(&call.scope);
    let thread = threads.open(id.clone()).await;
    let thread = thread.map_err(|error| about(&call, &error))?;
    let undone = thread.uncompact().await;
    let undone = undone.map_err(|error| about(&call, &error))?;
    let body = record::object(|object| {
        object
            .str("thread", id.as_str())
            .bool("uncompacted", undone);
    });
    Ok(json_text(StatusCode::OK, body))
}
