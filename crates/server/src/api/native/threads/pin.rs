//! `PUT` and `DELETE /api/v1/threads/{thread}/pins/{number}`.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::find::{about, find_whole};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, answer, flag, text};
use crate::api::native::request::{Call, Route, json_text};
use crate::error::ApiError;

pub(super) fn routes() -> [Route; 2] {
    let changed = answer().with("thread", text()).with("changed", flag());
    let pin = Operation::new(
        Verb::Put,
        "/api/v1/threads/{thread}/pins/{number}",
        "pinMessage",
        "Always show models a message in full, with the calls and results around it.",
    )
    .answers(200, "Whether it was not pinned before.", changed.clone())
    .fails(404, "There is no such thread or message.");
    let unpin = Operation::new(
        Verb::Delete,
        "/api/v1/threads/{thread}/pins/{number}",
        "unpinMessage",
        "Let a message be compacted again.",
    )
    .answers(200, "Whether it was pinned before.", changed)
    .fails(404, "There is no such thread.");
    [
        Route::new(pin, |call| change(call, Wish::Pin)),
        Route::new(unpin, |call| change(call, Wish::Unpin)),
    ]
}

/// What a request does about a pin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Pin,
    Unpin,
}

async fn change(call: Call, wish: Wish) -> Result<Response<Body>, ApiError> {
    let number: u64 = call.name("number").parse().map_err(|_| {
        ApiError::invalid("Invalid 'number': expected the number of a message.")
            .code("invalid_value")
            .param("number")
    })?;
    let thread = find_whole(&call).await?.thread;
    let _memory = call.reserve(thread.tokens())?;
    let id = thread.id;
    let threads = call.app.runs.threads(&call.scope);
    let thread = threads.open(id.clone()).await;
    let thread = thread.map_err(|error| about(&call, &error))?;
    let changed = match wish {
        Wish::Pin => thread.pin(number).await,
        Wish::Unpin => thread.unpin(number).await,
    };
    let changed = changed.map_err(|error| about(&call, &error))?;
    if wish == Wish::Pin && !changed && !thread.pinned().contains(&number) {
        return Err(ApiError::not_found(format!(
            "The thread '{id}' has no message {number}. GET /api/v1/threads/{id}/view?full=true \
             shows all of them."
        ))
        .param("number"));
    }
    let body = record::object(|object| {
        object.str("thread", id.as_str()).bool("changed", changed);
    });
    Ok(json_text(StatusCode::OK, body))
}
