//! `POST /api/v1/threads/{thread}/queue`: a message for the run that works on a thread, or the next one.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::json::RawJson;
use throughline_model::{Message, Path, Source};

use super::find::{about, find_whole};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, answer, integer, named, object, text, text_of};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::read::{self, LONGEST_TEXT};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/{thread}/queue",
        "leaveMessage",
        "Leave a message of the user for the run that works on a thread.",
    )
    .about(
        "The run delivers it with its next model call, once and in order. What no run has taken \
         when it ends waits for the next run at the head.",
    )
    .takes(object().with("text", text_of(1, LONGEST_TEXT)))
    .answers(
        202,
        "It is stored.",
        answer()
            .with("thread", text())
            .with(
                "queued",
                integer().about("How many messages wait, this one among them."),
            )
            .with(
                "run",
                named("Run")
                    .nullable()
                    .about("The run at work, if there is one."),
            ),
    )
    .fails(404, "There is no such thread.");
    Route::new(operation, leave)
}

async fn leave(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let said = read::required(&body, "text", &Path::Root)?;
    let message = Message {
        source: Some(Source::Caller),
        ..Message::user(&*said)
    };
    let message = RawJson::new(&message.to_json());
    let message = message.map_err(|error| ApiError::invalid(error.to_string()).param("text"))?;
    let id = find_whole(&call).await?.thread.id;
    let store = &call.app.store;
    let queued = store.enqueue(&call.scope, &id, &message).await;
    queued.map_err(|error| about(&call, &error))?;
    let opened = find_whole(&call).await?;
    let body = record::object(|object| {
        object
            .str("thread", id.as_str())
            .number("queued", opened.queued);
        match &opened.unsettled {
            Some(run) => record::run(object.key("run"), run),
            None => object.key("run").push_str("null"),
        }
    });
    Ok(json_text(StatusCode::ACCEPTED, body))
}
