//! `GET /api/v1/runs`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_store::{PageToken, RunFilter, RunState, ThreadId};

use crate::api::native::forms::record;
use crate::api::native::openapi::{
    Operation, Verb, answer, integer_of, list, named, text, text_of, word,
};
use crate::api::native::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::api::store_error;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let states = word(RunState::ALL.map(RunState::as_str));
    let operation = Operation::new(Verb::Get, "/api/v1/runs", "listRuns", "Runs, newest first.")
        .query("limit", integer_of(1, LARGEST_PAGE))
        .query(
            "after",
            text().about("The token that the page before ended with."),
        )
        .query("thread", text_of(1, 128).about("Only runs of this thread."))
        .query(
            "state",
            list(states).about("Only runs in this state; may be given several times."),
        )
        .answers(
            200,
            "A page of runs.",
            answer().with("runs", list(named("Run"))).with(
                "next",
                text().nullable().about("The token of the next page."),
            ),
        );
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let after: Option<PageToken> = call.parsed("after")?;
    let thread: Option<ThreadId> = call.parsed("thread")?;
    let filter = RunFilter {
        thread,
        states: call.texts("state").filter_map(RunState::named).collect(),
    };
    let listing = call
        .app
        .store
        .runs(&call.scope, &filter, after, call.limit())
        .await;
    let listing = listing.map_err(|error| store_error::of(&error))?;
    let body = record::listing("runs", &listing, record::run);
    Ok(json_text(StatusCode::OK, body))
}
