//! `POST /api/v1/threads/{thread}/compact`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline::thread::CompactNowError;
use throughline_model::Path;
use throughline_model::json::Value;

use super::find::{about, find_whole};
use super::view::policy;
use crate::api::native::forms::record;
use crate::api::native::openapi::{
    LARGEST, Operation, Verb, answer, integer_of, named, object, text,
};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::{hand_over_error, read};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/{thread}/compact",
        "compactThread",
        "Compact what models are shown of a thread, now.",
    )
    .about(
        "Whether or not it is due. The record stays; the next turn at the head begins with the \
         compacted view. A chain of responses gets it by going on from `previous_response_id`.",
    )
    .may_take(
        object()
            .maybe("budget", integer_of(1, LARGEST).nullable())
            .maybe("recent_calls", integer_of(0, 10_000).nullable()),
    )
    .answers(
        200,
        "What was done; `report.stayed` says why if nothing was.",
        answer()
            .with("thread", text())
            .with("report", named("Report"))
            .with("previous_response_id", text().nullable()),
    )
    .fails(404, "There is no such thread.")
    .fails(
        409,
        "A run is not settled, calls wait for their results, or the history is kept elsewhere.",
    );
    Route::new(operation, compact)
}

async fn compact(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let budget = body.get("budget").and_then(Value::as_u64);
    let recent_calls = read::integer(&body, "recent_calls", (0, 10_000), &Path::Root)?;
    let mut policy = policy(&call, None, budget);
    policy.recent_calls = match recent_calls {
        Some(count) => u32::try_from(count).unwrap_or(policy.recent_calls),
        None => policy.recent_calls,
    };
    let before = find_whole(&call).await?.thread;
    let _memory = call.reserve(before.tokens())?;
    let threads = call.app.runs.threads(&call.scope);
    let thread = threads.open(before.id.clone()).await;
    let thread = thread.map_err(|error| about(&call, &error))?;
    let report = thread.compact_now(&policy, "", "").await;
    let report = report.map_err(|error| refused(&call, &error))?;
    let head = find_whole(&call).await?.thread.head;
    let moved = head.filter(|head| before.head.is_none_or(|before| before.node != head.node));
    let body = record::object(|object| {
        object
            .str("thread", before.id.as_str())
            .raw("report", &report.to_json());
        let run = moved.map(|head| format!("resp_{}", head.node.run.to_hex()));
        record::opt_str(object, "previous_response_id", run.as_deref());
    });
    Ok(json_text(StatusCode::OK, body))
}

fn refused(call: &Call, error: &CompactNowError) -> ApiError {
    let conflict = |code| {
        ApiError::new(409, "invalid_request_error", format!("{error}."))
            .code(code)
            .retry(false)
    };
    match error {
        CompactNowError::Store(throughline_store::Error::Busy { run, state, .. }) => {
            hand_over_error::unsettled(*run, *state)
        }
        CompactNowError::Store(error) => about(call, error),
        CompactNowError::KeptElsewhere { .. } => conflict("history_kept_elsewhere"),
        CompactNowError::CallsWait => conflict("calls_wait"),
        CompactNowError::Budget(error) => ApiError::invalid(error.to_string()).param("budget"),
        error => ApiError::server(error.to_string()),
    }
}
