//! `POST /api/v1/runs/{run}/resume`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline::StopReason;
use throughline_model::Path;
use throughline_store::{RunId, RunState};

use super::{about, id};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, answer, flag, named, object, text, word};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::openai::responses;
use crate::api::read;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/runs/{run}/resume",
        "resumeRun",
        "Go on with a run that was interrupted or restored from a backup.",
    )
    .about(
        "Steps that finished are not repeated. The answer comes when the run has ended, or with \
         `background` at once; a client that leaves does not stop the run. Runs that a server did \
         not begin are resumed where their agents are.",
    )
    .may_take(object().maybe("background", flag().nullable()))
    .answers(
        200,
        "It has ended.",
        answer()
            .with("run", text())
            .with("stop", word(StopReason::ALL.map(StopReason::as_str))),
    )
    .answers(202, "It goes on in the background.", named("Run"))
    .fails(404, "There is no such run.")
    .fails(
        409,
        "It is at work, waits for an answer, has ended, or was not begun by a server.",
    );
    Route::new(operation, resume)
}

async fn resume(call: Call) -> Result<Response<Body>, ApiError> {
    let run = id(&call)?;
    let is_background = read::flag(&call.body()?, "background", &Path::Root)? == Some(true);
    let seen = call.app.store.run(&call.scope, run).await;
    let seen = seen.map_err(|error| about(&call, &error))?;
    check_resumable(run, seen.state)?;
    let (app, scope) = (call.app.clone(), call.scope.clone());
    // A task of its own, so that it goes on when the client leaves.
    let work = call
        .app
        .stopping
        .work()
        .spawn(async move { responses::resume(&app, &scope, run).await });
    if is_background {
        let mut body = String::new();
        record::run(&mut body, &seen);
        return Ok(json_text(StatusCode::ACCEPTED, body));
    }
    let ended = work
        .await
        .map_err(|_| ApiError::server("The run broke down; its journal has what it did."))?;
    match ended? {
        Some(stop) => {
            let body = record::object(|object| {
                object
                    .str("run", &run.to_string())
                    .str("stop", stop.as_str());
            });
            Ok(json_text(StatusCode::OK, body))
        }
        None => Err(conflict(
            "run_not_resumable",
            format!("A server did not begin {run}. Go on with it where its agent is."),
        )),
    }
}

/// Refuse what cannot be resumed, before anything is prepared for it.
fn check_resumable(run: RunId, state: RunState) -> Result<(), ApiError> {
    let word = state.as_str();
    match state {
        RunState::Interrupted | RunState::Held => Ok(()),
        RunState::Running => Err(conflict("run_at_work", format!("{run} is at work."))),
        RunState::Parked => Err(conflict(
            "run_waits",
            format!(
                "{run} waits for answers. Its response goes on when they are sent; publish or \
                 discard it to settle it without them."
            ),
        )),
        RunState::Unpublished => Err(conflict(
            "run_unpublished",
            format!("{run} has ended and was not published. Publish or discard it."),
        )),
        RunState::Committed | RunState::Cancelled | RunState::Failed | RunState::Discarded => Err(
            conflict("run_settled", format!("{run} has ended: it is {word}.")),
        ),
    }
}

fn conflict(code: &'static str, message: String) -> ApiError {
    ApiError::new(409, "invalid_request_error", message)
        .code(code)
        .retry(false)
}
