//! Errors with the messages and codes of the API.

use std::time::Duration;

use axum::body::Bytes;
use throughline::agent::{RunEnd, RunError};
use throughline_model::json::RawJson;
use throughline_store::{ApprovalId, Error, NodeId, RunId, ThreadId};

use crate::api::{model_error, store_error};
use crate::error::ApiError;

/// A response id.
pub(crate) fn response_id(run: RunId) -> String {
    format!("resp_{}", run.to_hex())
}

/// The response that a client names, if there can be one.
pub(crate) fn parse_response_id(id: &str) -> Option<RunId> {
    id.starts_with("resp_").then(|| id.parse().ok()).flatten()
}

/// A response of the path that is not there.
pub(crate) fn no_response(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::not_found(format!("Response with id '{id}' not found."))
}

/// A response of the body that is not there.
pub(crate) fn no_previous(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::invalid(format!("Previous response with id '{id}' not found."))
        .code("previous_response_not_found")
        .param("previous_response_id")
        .retry(false)
}

/// An error of the store about the conversation that a request names.
pub(crate) fn conversation(error: &Error, id: &str) -> ApiError {
    match error {
        Error::NotFound { .. } => {
            let id: String = id.chars().take(128).collect();
            ApiError::invalid(format!("Conversation with id '{id}' not found."))
                .code("conversation_not_found")
                .param("conversation")
                .retry(false)
        }
        error => store(error),
    }
}

/// The head of a conversation that is not the one of `If-Match`.
pub(crate) fn head_moved(head: Option<NodeId>) -> ApiError {
    let now = head.map_or_else(|| "empty".to_owned(), |head| head.to_string());
    let mut error = ApiError::new(
        412,
        "invalid_request_error",
        format!(
            "The head of the conversation is \"{now}\", and If-Match names another. Read what is new \
             and decide anew."
        ),
    )
    .code("head_moved")
    .retry(false);
    error.headers.push(("etag", format!("\"{now}\"")));
    error.more.push(("head", quoted(&now)));
    error
}

/// A conversation that another run works on.
fn locked(run: RunId) -> ApiError {
    let mut error = busy(
        "Another process is currently operating on this conversation. Please retry in a few seconds.",
    );
    error.more.push(("response_id", quoted(&response_id(run))));
    error
}

/// A run that waited for a conversation, and was cancelled by the next one.
fn interrupted() -> ApiError {
    busy(
        "Another request for this conversation cancelled this one before it began, and nothing of it is \
         stored. Please retry in a few seconds.",
    )
}

/// A change of a conversation that others came before, again and again.
pub(crate) fn contended() -> ApiError {
    busy(
        "Other requests change this conversation all the time, and nothing of this one is stored. Please \
         retry in a few seconds.",
    )
}

/// A conversation that is busy, so that nothing of a request is stored.
fn busy(text: &str) -> ApiError {
    let mut error = ApiError::new(409, "invalid_request_error", text)
        .code("conversation_locked")
        .param("conversation")
        .retry(true);
    error.retry_after = Some(Duration::from_secs(1));
    error
}

/// A response that has not ended yet.
pub(crate) fn not_final(run: RunId) -> ApiError {
    let mut error = ApiError::new(
        409,
        "invalid_request_error",
        format!("Response '{}' has not ended yet.", response_id(run)),
    )
    .code("response_not_final")
    .param("previous_response_id")
    .retry(true);
    error.retry_after = Some(Duration::from_secs(1));
    error
}

/// An error of the store about the previous response.
pub(crate) fn after(error: &Error, previous: RunId) -> ApiError {
    match error {
        Error::NotFound {
            what: "run" | "thread",
            ..
        } => no_previous(&response_id(previous)),
        error => store(error),
    }
}

/// A run that did not begin on a thread, after another one or as the first.
pub(crate) fn refused(
    error: &RunError,
    thread: Option<&ThreadId>,
    previous: Option<RunId>,
) -> ApiError {
    if let (RunError::Store(error), Some(previous)) = (error, previous) {
        return after(error, previous);
    }
    match error {
        RunError::Store(error) => store(error),
        RunError::Client(error) => model_error::failed(error),
        RunError::OpenCalls {
            pending, approvals, ..
        } => open_calls(pending, approvals),
        RunError::AlreadyAnswered { call } => ApiError::new(
            409,
            "invalid_request_error",
            format!("The approval for call '{call}' has another answer, which stands."),
        )
        .code("approval_already_answered")
        .retry(false),
        RunError::NotPending { call, .. } => ApiError::invalid(format!(
            "No tool call waits for an answer with id '{call}'."
        ))
        .param("input"),
        RunError::Repeated { run } => in_progress(*run),
        RunError::HeadMoved { head } => head_moved(*head),
        RunError::Cancelled => interrupted(),
        RunError::Interrupted { run } => locked(*run),
        RunError::Tools(error) => ApiError::invalid(error.to_string())
            .code("invalid_tools")
            .param("tools"),
        RunError::KeptElsewhere { owner, upstream } => {
            let thread = thread.map_or("{id}", ThreadId::as_str);
            kept_elsewhere(&format!(
                "The history of this thread is kept by {owner}, and not by {upstream}. Hand it over \
                 with POST /api/v1/threads/{thread}/hand-over and {{\"to\": {{\"upstream\": \
                 \"{upstream}\"}}}}, or with 'throughline threads hand-over {thread} --to \
                 {upstream}'; history.on_other_upstream = \"hand_over\" in the configuration does \
                 that whenever it is needed."
            ))
        }
        RunError::MessageStore { source } => ApiError::new(
            503,
            "server_error",
            format!(
                "The application's message store, which keeps this conversation, failed: {source}"
            ),
        )
        .code("message_store_failed")
        .retry(true),
        RunError::UnknownMessageStore { .. }
        | RunError::ServiceKeepsHistory { .. }
        | RunError::NoServiceId { .. }
        | RunError::OtherServiceId { .. } => kept_elsewhere(&error.to_string()),
        error => ApiError::server(error.to_string()),
    }
}

/// A history that another owner has.
fn kept_elsewhere(text: &str) -> ApiError {
    ApiError::new(409, "invalid_request_error", text)
        .code("history_kept_elsewhere")
        .retry(false)
}

/// The same request is being answered.
pub(crate) fn in_progress(run: RunId) -> ApiError {
    let mut error = ApiError::new(
        409,
        "invalid_request_error",
        "The same request is being answered. Ask again for its answer, or read it as a stream.",
    )
    .code("idempotency_in_progress")
    .retry(true);
    error.retry_after = Some(Duration::from_secs(1));
    error
        .headers
        .push(("x-throughline-response-id", response_id(run)));
    error
}

/// The end of a run could not be stored, so that its outcome is unknown.
pub(crate) fn outcome_unknown(run: RunId) -> ApiError {
    let id = response_id(run);
    let mut error = ApiError::new(503, "server_error", unknown_text(&id))
        .code(OUTCOME_UNKNOWN)
        .retry(true);
    error.retry_after = Some(Duration::from_secs(2));
    error.more.push(("response_id", quoted(&id)));
    error.headers.push(("x-throughline-response-id", id));
    error
}

const OUTCOME_UNKNOWN: &str = "outcome_unknown";

fn unknown_text(id: &str) -> String {
    format!(
        "The store did not take the end of response '{id}', so that its outcome is not known yet. It \
         is finished when the store takes writes again: read it with GET /v1/responses/{id}, or send \
         the same request with the same Idempotency-Key."
    )
}

/// The last event of a stream whose end is not known. It has the number of the event before, so that
/// `starting_after` with it continues the stream.
pub(crate) fn unknown_event(run: RunId, frames: u64) -> Bytes {
    let id = response_id(run);
    let event = RawJson::object(|object| {
        object
            .str("type", "error")
            .number("sequence_number", frames.saturating_sub(1))
            .str("code", OUTCOME_UNKNOWN)
            .str("message", &unknown_text(&id))
            .raw("param", "null")
            .str("response_id", &id);
    });
    Bytes::from(format!("event: error\ndata: {}\n\n", event.get()))
}

/// Calls that the client owes outputs for.
fn open_calls(pending: &[String], approvals: &[ApprovalId]) -> ApiError {
    let calls = pending.join(", ");
    let asked: Vec<String> = approvals.iter().map(ToString::to_string).collect();
    let asked = match asked.is_empty() {
        true => String::new(),
        false => format!(" These approval requests wait: {}.", asked.join(", ")),
    };
    ApiError::invalid(format!(
        "No tool output found for function call {calls}.{asked} Send the outputs as \
         function_call_output items (or mcp_approval_response items) together with \
         previous_response_id, or set throughline.on_open_calls to \"close\" to go on without them."
    ))
    .param("input")
    .retry(false)
}

/// A run that began and failed before a step of it was finished.
pub(crate) fn failed(error: &RunError, run: RunId) -> ApiError {
    let mut error = refused(error, None, None);
    error
        .headers
        .push(("x-throughline-response-id", response_id(run)));
    // Our own retries are spent. When to try again is for people, and no order to an SDK.
    error.should_retry = Some(false);
    error
}

/// Whether what went wrong with a model call may be gone the next time, by its name.
pub(crate) fn is_transient(kind: &str) -> bool {
    matches!(
        kind,
        "connect"
            | "connect_timeout"
            | "first_byte_timeout"
            | "idle_timeout"
            | "cut"
            | "rate_limited"
            | "unavailable"
            | "out_of_memory"
            | "open"
    )
}

/// A run that failed before a step of it was finished, as it is recorded.
pub(crate) fn failed_before(end: &RunEnd, run: RunId) -> Option<ApiError> {
    let (kind, text) = end.error.as_ref()?;
    let mut error = model_error::named(kind, text);
    error
        .headers
        .push(("x-throughline-response-id", response_id(run)));
    Some(error)
}

/// The code of a response that failed, from the closed list of the API, by the name of what went
/// wrong.
pub(crate) fn code(kind: &str) -> &'static str {
    match kind {
        "rate_limited" | "quota" => "rate_limit_exceeded",
        "invalid" | "too_long" | "filtered" => "invalid_prompt",
        _ => "server_error",
    }
}

/// An error of the store.
pub(crate) fn store(error: &Error) -> ApiError {
    match error {
        Error::NotFinal { run, .. } => return not_final(*run),
        Error::Busy { run, .. } => return locked(*run),
        Error::HeadMoved { head, .. } => return head_moved(*head),
        Error::KeyReused { .. } => {
            return ApiError::new(
                422,
                "invalid_request_error",
                "This idempotency key was used for another request. Use a new key.",
            )
            .code("idempotency_key_reused")
            .retry(false);
        }
        Error::Taken { by, .. } => {
            let winner = response_id(*by);
            let mut error = ApiError::new(
                409,
                "invalid_request_error",
                format!("This approval was answered by response '{winner}'."),
            )
            .code("approval_already_answered")
            .retry(false);
            error.more.push(("response_id", quoted(&winner)));
            return error;
        }
        Error::NotAnswerable { .. } => {
            return ApiError::new(409, "invalid_request_error", error.to_string())
                .code("approval_not_answerable")
                .retry(false);
        }
        _ => {}
    }
    store_error::of(error)
}

/// A text as JSON.
fn quoted(text: &str) -> RawJson {
    let mut out = String::new();
    throughline_model::json::push_string(&mut out, text);
    RawJson::new(&out).unwrap_or_else(|_| RawJson::object(|_| {}))
}
