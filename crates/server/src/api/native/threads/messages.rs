//! `GET /api/v1/threads/{thread}/messages`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::json::RawJson;
use throughline_store::{Cursor, Error, ThreadId};

use super::find::{about, find_whole};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, answer, flag, integer_of, list, named, text};
use crate::api::native::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads/{thread}/messages",
        "listMessages",
        "The messages at the head of a thread, after a cursor.",
    )
    .about(
        "Cursors are stateless: a consumer that stopped asks again with the last one that it has. \
         409 `cursor_moved` says that the head is on another branch now; `cursor` in the error \
         stands after the last message that both branches share.",
    )
    .query("limit", integer_of(1, LARGEST_PAGE))
    .query(
        "after",
        text().about("The `next` of an earlier page; from the beginning without it."),
    )
    .answers(
        200,
        "A page of messages.",
        answer()
            .with("messages", list(named("Entry")))
            .with("next", text().about("The cursor after the last of them."))
            .with("more", flag()),
    )
    .fails(404, "There is no such thread.")
    .fails(
        409,
        "The head has moved to a branch without the cursor's place.",
    );
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let after: Option<Cursor> = call.parsed("after")?;
    let thread = find_whole(&call).await?.thread.id;
    let found = call
        .app
        .store
        .increment(&call.scope, &thread, after.as_ref(), call.limit())
        .await;
    let found = match found {
        Ok(found) => found,
        Err(error) => return Err(unreadable(&call, &thread, &error).await),
    };
    let body = record::object(|object| {
        record::array(object.key("messages"), &found.entries, record::entry);
        object
            .str("next", &found.next.to_string())
            .bool("more", found.more);
    });
    Ok(json_text(StatusCode::OK, body))
}

/// Why nothing can be read after a cursor, and where to go on.
pub(super) async fn unreadable(call: &Call, thread: &ThreadId, error: &Error) -> ApiError {
    match error {
        Error::CursorMoved { common, .. } => {
            let mut moved = ApiError::new(409, "invalid_request_error", error.to_string())
                .code("cursor_moved")
                .param("after")
                .retry(false);
            let cursor = call.app.store.cursor(&call.scope, thread, *common).await;
            let cursor = cursor.map_err(|error| about(call, &error));
            match cursor.map(|cursor| RawJson::new(&format!("\"{cursor}\""))) {
                Ok(Ok(cursor)) => moved.more.push(("cursor", cursor)),
                // Letters and digits are JSON.
                Ok(Err(_)) => {}
                Err(error) => return error,
            }
            moved
        }
        Error::BadCursor { .. } => ApiError::invalid(error.to_string())
            .code("invalid_value")
            .param("after"),
        error => about(call, error),
    }
}
