//! Model calls that failed, as errors of the HTTP API.

use throughline::client::ClientError;

use crate::error::ApiError;

/// A model call that failed.
pub(crate) fn failed(error: &ClientError) -> ApiError {
    let mut answer = named(error.kind().as_str(), &error.to_string());
    answer.retry_after = error.retry_after();
    answer
}

/// A model call that failed, by the name of what went wrong.
pub(crate) fn named(kind: &str, text: &str) -> ApiError {
    let other =
        |status: u16, code: &'static str| ApiError::new(status, "server_error", text).code(code);
    let answer = match kind {
        "invalid" => ApiError::invalid(text).code("upstream_invalid_request"),
        "too_long" => ApiError::invalid(format!(
            "Your input exceeds the context window of this model. ({text})"
        ))
        .code("context_length_exceeded")
        .param("input"),
        "filtered" => ApiError::invalid(text).code("content_filter"),
        "not_found" => ApiError::not_found(text)
            .code("model_not_found")
            .param("model"),
        "rate_limited" => ApiError::new(429, "rate_limit_error", text).code("rate_limit_exceeded"),
        "quota" => ApiError::new(429, "insufficient_quota", text).code("insufficient_quota"),
        "auth" => other(502, "upstream_auth"),
        "setup" => other(502, "upstream_setup"),
        "connect_timeout" | "first_byte_timeout" | "idle_timeout" => other(504, "upstream_timeout"),
        "open" => other(503, "upstream_unavailable"),
        "out_of_memory" => other(503, "out_of_memory"),
        "run" => ApiError::server(text),
        _ => other(502, "upstream_error"),
    };
    // Our own retries are spent.
    answer.retry(false)
}
