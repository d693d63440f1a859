//! Why a thread cannot be handed over, as every API words it.

use std::error::Error;
use std::time::Duration;

use throughline::agent::HandOverError;
use throughline::thread::OwnerError;
use throughline_store::{RunId, RunState};

use super::store_error;
use crate::error::ApiError;

/// A thread that was not handed over.
pub(super) fn of(error: &HandOverError) -> ApiError {
    match error {
        HandOverError::Owner(error) => owner(error),
        HandOverError::Store(error) => store_error::of(error),
        HandOverError::Service { upstream, source } => {
            let mut why = source.to_string();
            let mut cause = source.source();
            while let Some(error) = cause {
                why.push_str(&format!(": {error}"));
                cause = error.source();
            }
            ApiError::new(
                502,
                "server_error",
                format!(
                    "The upstream {upstream} could not be asked for what it has of this thread: \
                     {why}. Try again, or hand over what our record has (\"read_back\": false in POST \
                     /api/v1/threads/{{id}}/hand-over, --no-read-back on the command line)."
                ),
            )
            .code("upstream_error")
            .retry(true)
        }
        error => ApiError::server(error.to_string()),
    }
}

/// An owner that was not changed.
pub(super) fn owner(error: &OwnerError) -> ApiError {
    match error {
        OwnerError::Unsettled { run, state, .. } => unsettled(*run, *state),
        OwnerError::Store(error) => store_error::of(error),
        error => ApiError::server(error.to_string()),
    }
}

/// A run of the thread has not ended.
pub(super) fn unsettled(run: RunId, state: RunState) -> ApiError {
    let will_end = matches!(state, RunState::Running | RunState::Interrupted);
    let then = match will_end {
        true => "Try again when it has ended.",
        false => {
            "Answer what it waits for, or settle it with 'throughline runs publish' or 'discard'."
        }
    };
    let mut error = ApiError::new(
        409,
        "invalid_request_error",
        format!("The run {run} on this thread is {}. {then}", state.as_str()),
    )
    .code("thread_unsettled")
    .retry(will_end);
    error.retry_after = will_end.then_some(Duration::from_secs(1));
    error
}
