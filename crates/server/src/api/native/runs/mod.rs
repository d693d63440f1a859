//! Runs: one operation or one family of operations per file.

mod cancel;
mod events;
mod journal;
mod list;
mod resume;
mod settle;

use throughline_store::{Error, RunId};

use super::request::{Call, Route};
use crate::api::store_error;
use crate::error::ApiError;

/// All of them.
pub(super) fn routes() -> Vec<Route> {
    let mut routes = vec![
        list::route(),
        journal::run_route(),
        journal::journal_route(),
        events::route(),
        resume::route(),
        cancel::route(),
    ];
    routes.extend(settle::routes());
    routes
}

/// The run of the path.
fn id(call: &Call) -> Result<RunId, ApiError> {
    let name = call.name("run");
    name.parse().map_err(|_| not_found(name))
}

/// An error of the store about the run of the path.
fn about(call: &Call, error: &Error) -> ApiError {
    match error {
        Error::NotFound { .. } => not_found(call.name("run")),
        Error::WrongState { .. } => {
            ApiError::new(409, "invalid_request_error", format!("{error}.")).code("run_settled")
        }
        Error::HeadMoved { .. } => ApiError::new(
            409,
            "invalid_request_error",
            format!("{error}: it has moved on since the run began. Discard the run."),
        )
        .code("head_moved"),
        error => store_error::of(error),
    }
}

fn not_found(name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    ApiError::not_found(format!("Run with id '{name}' not found."))
}
