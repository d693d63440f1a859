//! `POST /v1/responses/{id}/cancel`: end a response, in whichever process it is made.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use throughline_store::RunState;

use super::errors;
use super::get::wait_until_settled;
use super::resume::resume;
use super::stored_response::StoredResponse;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::json;

/// Cancel a response and answer with it. One that has ended is answered as it is, so that a second
/// request gets the same.
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response<Body>, ApiError> {
    let scope = &caller.scope;
    let mut stored = StoredResponse::read(&app, scope, &id).await?;
    if !stored.journal.run.state.is_settled() {
        let run = stored.run();
        let asked = app.runs.threads(scope).cancel_run(run).await;
        let asked = asked.map_err(|error| errors::store(&error))?;
        if asked.state == RunState::Interrupted {
            // Its worker is gone: a resumed run ends at once. Another server may be first.
            if let Err(error) = resume(&app, scope, run).await {
                tracing::info!(%run, error = error.message, "a cancelled run is left to others");
            }
        }
        wait_until_settled(&app, scope, run).await?;
        stored = StoredResponse::read(&app, scope, &id).await?;
    }
    Ok(json(StatusCode::OK, &stored.response(&app, scope).await?))
}
