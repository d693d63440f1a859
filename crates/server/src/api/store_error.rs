//! Errors of the store, as every API words them.

use std::time::Duration;

use throughline_store::{Error, ErrorKind};

use crate::error::ApiError;

/// An error of the store, by its kind.
pub(super) fn of(error: &Error) -> ApiError {
    let text = error.to_string();
    let mut answer = match error.kind() {
        ErrorKind::NotFound => ApiError::not_found(text),
        ErrorKind::Conflict => ApiError::new(409, "invalid_request_error", text),
        ErrorKind::Busy => ApiError::new(409, "invalid_request_error", text)
            .code("conversation_locked")
            .retry(true),
        ErrorKind::Fenced => ApiError::new(409, "invalid_request_error", text).code("fenced"),
        ErrorKind::Invalid => ApiError::invalid(text),
        ErrorKind::Corrupt => ApiError::server(text).code("store_damaged").retry(false),
        ErrorKind::Full => ApiError::new(507, "server_error", text)
            .code("no_space")
            .retry(true),
        ErrorKind::Unavailable => ApiError::new(503, "server_error", text)
            .code("store_unavailable")
            .retry(true),
    };
    if answer.should_retry == Some(true) {
        answer.retry_after = Some(Duration::from_secs(1));
    }
    answer
}
