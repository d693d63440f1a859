//! `POST /api/v1/runs/{run}/publish` and `discard`: runs that were left behind.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::{about, id};
use crate::api::native::forms::{self, record};
use crate::api::native::openapi::{Operation, Verb, answer, flag, integer, text};
use crate::api::native::request::{Call, Route, json_text};
use crate::error::ApiError;

pub(super) fn routes() -> [Route; 2] {
    let conflict = "It is at work, it has ended already, or its thread has moved on.";
    let publish = Operation::new(
        Verb::Post,
        "/api/v1/runs/{run}/publish",
        "publishRun",
        "Publish a run that was left: what it has becomes history.",
    )
    .about("Calls without a result get one that says what is known of them.")
    .answers(
        200,
        "What it published.",
        answer()
            .with("run", text())
            .with("thread", text())
            .with("node", text().nullable())
            .with("last", integer())
            .with("moved", flag().about("Whether the node is the head now."))
            .with("version", integer())
            .with("calls_closed", integer()),
    )
    .fails(404, "There is no such run.")
    .fails(409, conflict);
    let discard = Operation::new(
        Verb::Post,
        "/api/v1/runs/{run}/discard",
        "discardRun",
        "Give a run up that was left: what it has not published never becomes history.",
    )
    .about("Its waiting approvals are withdrawn; what it published before stays.")
    .answers(
        200,
        "It is discarded.",
        answer()
            .with("discarded", text())
            .with("thread", text())
            .with("published", text().nullable()),
    )
    .fails(404, "There is no such run.")
    .fails(409, conflict);
    [
        Route::new(publish, self::publish),
        Route::new(discard, self::discard),
    ]
}

async fn publish(call: Call) -> Result<Response<Body>, ApiError> {
    let done = call.app.runs.threads(&call.scope).publish(id(&call)?).await;
    let done = done.map_err(|error| about(&call, &error))?;
    let body = record::object(|object| forms::published_run(object, &done));
    Ok(json_text(StatusCode::OK, body))
}

async fn discard(call: Call) -> Result<Response<Body>, ApiError> {
    let done = call.app.runs.threads(&call.scope).discard(id(&call)?).await;
    let done = done.map_err(|error| about(&call, &error))?;
    let body = record::object(|object| forms::discarded_run(object, &done));
    Ok(json_text(StatusCode::OK, body))
}
