//! `GET /api/v1/runs/{run}` and its journal.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_store::At;

use super::{about, id};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, named};
use crate::api::native::request::{Call, Route, json_text};
use crate::error::ApiError;

pub(super) fn run_route() -> Route {
    let operation = Operation::new(Verb::Get, "/api/v1/runs/{run}", "getRun", "A run.")
        .answers(200, "The run.", named("Run"))
        .fails(404, "There is no such run.");
    Route::new(operation, run)
}

pub(super) fn journal_route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/runs/{run}/journal",
        "getJournal",
        "Everything that is recorded of a run: its request, steps, calls and messages.",
    )
    .answers(200, "The journal.", named("Journal"))
    .fails(404, "There is no such run.");
    Route::new(operation, journal)
}

async fn run(call: Call) -> Result<Response<Body>, ApiError> {
    let run = call.app.store.run(&call.scope, id(&call)?).await;
    let run = run.map_err(|error| about(&call, &error))?;
    let mut body = String::new();
    record::run(&mut body, &run);
    Ok(json_text(StatusCode::OK, body))
}

async fn journal(call: Call) -> Result<Response<Body>, ApiError> {
    let store = &call.app.store;
    let journal = store.journal(&call.scope, id(&call)?).await;
    let journal = journal.map_err(|error| about(&call, &error))?;
    let unsent = match journal.run.published {
        Some(node) if journal.run.state.is_settled() => {
            let opened = store.open(&call.scope, &At::from(node), 0).await;
            opened.map_err(|error| about(&call, &error))?.unsent
        }
        _ => Vec::new(),
    };
    Ok(json_text(
        StatusCode::OK,
        record::journal(&journal, &unsent),
    ))
}
