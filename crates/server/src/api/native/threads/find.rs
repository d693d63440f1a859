//! The thread of a path, by any of its names.

use throughline_store::{At, Error, ErrorKind, Opened, RunFilter, RunState, ThreadId};

use crate::api::native::request::Call;
use crate::api::{hand_over_error, store_error};
use crate::error::ApiError;

/// Open what the path names: a thread by its id or an alias, or the branch that ends in a run or a
/// node. What belongs to another tenant is not there.
pub(super) async fn find(call: &Call, window: usize) -> Result<(At, Opened), ApiError> {
    let name = call.name("thread");
    for at in At::named(name) {
        match call.app.store.open(&call.scope, &at, window).await {
            Ok(opened) => return Ok((at, opened)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(store_error::of(&error)),
        }
    }
    Err(not_found(name))
}

/// Open the thread of the path, to do something with all of it: a run or a node is refused.
pub(super) async fn find_whole(call: &Call) -> Result<Opened, ApiError> {
    match find(call, 0).await? {
        (At::Node(_), opened) => Err(ApiError::invalid(format!(
            "The path names a branch of the thread '{}'. Name the thread.",
            opened.thread.id
        ))
        .code("not_a_thread")
        .param("thread")),
        (At::Thread(_) | At::Alias(_), opened) => Ok(opened),
    }
}

/// An error of the store about the thread of the path, which may have been deleted meanwhile.
pub(super) fn about(call: &Call, error: &Error) -> ApiError {
    match error {
        Error::NotFound { .. } => not_found(call.name("thread")),
        error => store_error::of(error),
    }
}

fn not_found(name: &str) -> ApiError {
    let name: String = name.chars().take(128).collect();
    ApiError::not_found(format!("Thread with id '{name}' not found."))
}

/// Refuse if a run of the thread is in one of these states, on any branch.
pub(super) async fn check_no_run(
    call: &Call,
    thread: &ThreadId,
    states: &[RunState],
) -> Result<(), ApiError> {
    let filter = RunFilter {
        thread: Some(thread.clone()),
        states: states.to_vec(),
    };
    let found = call.app.store.runs(&call.scope, &filter, None, 1).await;
    let found = found.map_err(|error| store_error::of(&error))?.found;
    match found.first() {
        Some(run) => Err(hand_over_error::unsettled(run.id, run.state)),
        None => Ok(()),
    }
}
