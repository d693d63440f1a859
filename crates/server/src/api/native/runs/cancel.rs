//! `POST /api/v1/runs/{run}/cancel`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_store::RunState;

use super::{about, id};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, named};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::openai::responses;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/runs/{run}/cancel",
        "cancelRun",
        "Ask for the end of a run, in whichever process it works.",
    )
    .about(
        "It ends as soon as its worker notices, closed and published. One that has ended is answered \
         as it is. A run that waits, for an approval or a worker, is settled with `publish` or \
         `discard`.",
    )
    .answers(200, "The run as it stands.", named("Run"))
    .fails(404, "There is no such run.");
    Route::new(operation, cancel)
}

async fn cancel(call: Call) -> Result<Response<Body>, ApiError> {
    let run = id(&call)?;
    let asked = call.app.runs.threads(&call.scope).cancel_run(run).await;
    let asked = asked.map_err(|error| about(&call, &error))?;
    if asked.state == RunState::Interrupted {
        // Its worker is gone: a resumed run ends at once. Another server may be first.
        let (app, scope) = (call.app.clone(), call.scope.clone());
        call.app.stopping.work().spawn(async move {
            if let Err(error) = responses::resume(&app, &scope, run).await {
                tracing::info!(%run, error = error.message, "a cancelled run is left to others");
            }
        });
    }
    let mut body = String::new();
    record::run(&mut body, &asked);
    Ok(json_text(StatusCode::OK, body))
}
