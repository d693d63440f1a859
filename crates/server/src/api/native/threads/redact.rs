//! `POST /api/v1/threads/{thread}/redact`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline::thread::MessageName;
use throughline_model::json::Value;
use throughline_model::{MessageId, Path};
use throughline_store::Error;

use super::find::{about, find};
use crate::api::native::forms::{self, record};
use crate::api::native::openapi::{
    LARGEST, Operation, Verb, answer, integer, integer_of, list, named, object, pattern, text,
    text_of,
};
use crate::api::native::request::{ASKED_BY, Call, Route, json_text};
use crate::api::{hand_over_error, read};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let item = answer().with("run", text()).with("no", integer());
    let redacted = answer()
        .with("thread", text())
        .with("position", integer())
        .with("items", list(item))
        .with("by", text())
        .with("at", integer());
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/{thread}/redact",
        "redactMessage",
        "Remove what a message says, from the record and from everything that was derived from it.",
    )
    .about(
        "Who did it and when stays, and so do the position and the digest; branches and forks that \
         share the message show the same. `message` is its id, `position` the position at which it \
         starts: one of both. Doing it again changes nothing. Copies of vendors are listed and not \
         changed.",
    )
    .takes(
        object()
            .maybe("message", text_of(1, 256).nullable())
            .maybe("position", integer_of(1, LARGEST).nullable())
            .maybe(
                "by",
                pattern(r"\S")
                    .nullable()
                    .about("The name of the person who asks."),
            ),
    )
    .answers(
        200,
        "What was removed, and what vendors have of the thread.",
        answer()
            .with("redacted", redacted)
            .with("vendor_copies", list(named("VendorCopy"))),
    )
    .fails(404, "There is no such thread or message.")
    .fails(
        409,
        "A run is at work on it, or the run that said it is not settled.",
    );
    Route::new(operation, redact)
}

async fn redact(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let path = Path::Root;
    let id = read::text(&body, "message", &path)?;
    let position = body.get("position").and_then(Value::as_u64);
    let message = match (id, position) {
        (None, Some(position)) => MessageName::Position(position),
        (Some(id), None) => MessageName::Id(MessageId::new(&id).map_err(|error| {
            ApiError::invalid(format!("Invalid 'message': {error}."))
                .code("invalid_value")
                .param("message")
        })?),
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid("Send 'message' or 'position', not both.")
                .code("invalid_value")
                .param("position"));
        }
        (None, None) => return Err(read::missing(&path.key("message"))),
    };
    let by = read::text(&body, "by", &path)?;
    let by = by.as_deref().unwrap_or(ASKED_BY);
    if by.trim().is_empty() {
        return Err(ApiError::invalid("Invalid 'by': say who asks.")
            .code("invalid_value")
            .param("by"));
    }
    let (at, _) = find(&call, 0).await?;
    let threads = call.app.runs.threads(&call.scope);
    let redacted = threads.redact(at, &message, by).await;
    let redacted = redacted.map_err(|error| match &error {
        Error::NotFound {
            what: "message", ..
        } => ApiError::not_found(format!("{error}.")).code("message_not_found"),
        Error::Busy { run, state, .. } | Error::WrongState { run, state, .. } => {
            hand_over_error::unsettled(*run, *state)
        }
        error => about(&call, error),
    })?;
    let body = record::object(|object| forms::redaction(object, &redacted));
    Ok(json_text(StatusCode::OK, body))
}
