//! Maps error responses to error kinds.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use throughline_model::VendorError;
use throughline_model::json::{Limits, RawJson, Value, parse_bytes};
use throughline_wire::Codec;

use super::answer::Head;
use crate::client::http::BodyReader;
use crate::client::{ClientError, ErrorKind, Secret};

/// The error of a response whose status is not a success.
pub(super) async fn refused(codec: &Codec, head: &Head, mut body: BodyReader) -> ClientError {
    // If the body cannot be read, the status alone decides.
    let body = body.whole().await.unwrap_or_default();
    let value = parse_bytes(&body, Limits::default());
    if let Some(error) = value.ok().and_then(|value| error_in_body(codec, &value)) {
        return vendor_error(head, error);
    }
    let text = match head.status {
        300..=399 => "the service points elsewhere, and redirects are not followed; set base_url",
        _ => "the service refuses",
    };
    advised(head, head.error(by_status(head.status), text), None)
}

/// The error in a body: in the vendor's form, or in that of a gateway in front of it.
pub(super) fn error_in_body(codec: &Codec, body: &Value<'_>) -> Option<VendorError> {
    codec.decode_error(body).or_else(|| {
        let error = body.get("error").filter(|error| !error.is_null());
        let inner = error.filter(|error| error.as_object().is_some());
        let inner = inner.unwrap_or(body);
        let text = |key: &str| inner.get(key)?.as_str();
        let bare = error.and_then(Value::as_str);
        let message = bare.or_else(|| text("message")).or_else(|| text("detail"));
        let message = message.or_else(|| inner.get("detail").and_then(details));
        if error.is_none() && message.is_none() {
            return None;
        }
        Some(VendorError {
            wire: codec.wire(),
            message: message.unwrap_or_default().into_owned(),
            kind: text("type").map(Into::into),
            code: text("code").map(Into::into),
            param: None,
            retry_after_ms: None,
            body: Some(RawJson::of(body)),
        })
    })
}

/// FastAPI's validation errors: each place with its message.
fn details<'v>(detail: &Value<'_>) -> Option<Cow<'v, str>> {
    const MOST: usize = 8;
    let list = detail.as_array()?.iter().take(MOST);
    let said = list.filter_map(|one| {
        let place = one.get("loc").and_then(|place| place.as_array());
        let place = place.unwrap_or_default().iter();
        let place: Vec<String> = place
            .map(|part| match part.as_str() {
                Some(text) => text.into_owned(),
                None => part.raw().to_owned(),
            })
            .collect();
        Some(format!(
            "{}: {}",
            place.join("."),
            one.get("msg")?.as_str()?
        ))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| Cow::Owned(said.join("; ")))
}

/// Converts a vendor's error.
pub(super) fn vendor_error(head: &Head, error: VendorError) -> ClientError {
    let error = scrubbed(error, head.secret.as_ref());
    let kind = kind(head.status, &error);
    let text = if error.message.is_empty() {
        "the service gives no reason".to_owned()
    } else {
        error.message.clone()
    };
    let after = error.retry_after_ms.map(Duration::from_millis);
    advised(head, head.error(kind, text).with_vendor(error), after)
}

/// Adds the wait before a retry, from the head or else from the body.
fn advised(head: &Head, error: ClientError, body: Option<Duration>) -> ClientError {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let wait = head.meta.retry.wait(now.as_secs()).or(body);
    error
        .with_retry_after(wait)
        .with_should_retry(head.meta.retry.should_retry)
}

/// The kind of a vendor's error: by unambiguous words, then by the status, then by other words.
fn kind(status: u16, error: &VendorError) -> ErrorKind {
    let words = [error.code.as_deref(), error.kind.as_deref()];
    let words = words.into_iter().flatten();
    let mut words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let inner = error.body.as_ref().map(reasons).unwrap_or_default();
    words.extend(inner);
    let by = |table: &[(ErrorKind, &[&str])]| {
        table
            .iter()
            .find(|(_, list)| words.iter().any(|word| list.contains(&word.as_str())))
            .map(|(kind, _)| *kind)
    };
    by(UNAMBIGUOUS)
        .or_else(|| by_message(&error.message.to_ascii_lowercase()))
        .or_else(|| (status >= 300).then(|| by_status(status)))
        .or_else(|| by(WITHOUT_STATUS))
        .or_else(|| {
            words
                .iter()
                .find_map(|word| Some(by_status(word.parse().ok()?)))
        })
        // The error occurred in the middle of an answer.
        .unwrap_or(ErrorKind::Unavailable)
}

/// Our word for a daily quota: waiting does not help this call.
const DAILY: &str = "daily_quota";

/// Words with one meaning, whatever the status.
const UNAMBIGUOUS: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::Quota,
        &[
            DAILY,
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "credit_balance_too_low",
        ],
    ),
    (
        ErrorKind::TooLong,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "model_context_window_exceeded",
            "request_too_large",
        ],
    ),
    (
        ErrorKind::Filtered,
        &[
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "moderation_blocked",
            "invalid_prompt",
        ],
    ),
    (
        ErrorKind::Auth,
        &[
            "invalid_api_key",
            "api_key_invalid",
            "authentication_error",
            "permission_error",
            "unauthenticated",
            "permission_denied",
        ],
    ),
    (
        ErrorKind::NotFound,
        &[
            "model_not_found",
            "deploymentnotfound",
            "not_found_error",
            "previous_response_not_found",
        ],
    ),
    (
        ErrorKind::Unavailable,
        &["overloaded_error", "conversation_locked", "slow_down"],
    ),
];

/// Words that stand for a status where there is none, as in the middle of a stream.
const WITHOUT_STATUS: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::RateLimited,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "too_many_requests",
            "resource_exhausted",
        ],
    ),
    (ErrorKind::NotFound, &["not_found"]),
    (
        ErrorKind::Invalid,
        &[
            "invalid_request_error",
            "invalid_argument",
            "failed_precondition",
            "out_of_range",
        ],
    ),
];

/// Some vendors have only a message where others have a code.
fn by_message(message: &str) -> Option<ErrorKind> {
    const TOO_LONG: &[&str] = &[
        "prompt is too long",
        "maximum context length",
        "exceeds the maximum number of tokens",
        "exceed context limit",
        "exceeds the context window",
        "exceeds the available context size",
    ];
    const QUOTA: &[&str] = &["credit balance is too low"];
    const AUTH: &[&str] = &["api key not valid", "api key expired"];
    let has = |list: &[&str]| list.iter().any(|words| message.contains(words));
    if has(TOO_LONG) {
        Some(ErrorKind::TooLong)
    } else if has(QUOTA) {
        Some(ErrorKind::Quota)
    } else if has(AUTH) {
        Some(ErrorKind::Auth)
    } else {
        None
    }
}

/// Reasons elsewhere in a body: Google's details, Azure's inner error, a status as a number.
fn reasons(body: &RawJson) -> Vec<String> {
    let value = body.value();
    let error = value.get("error").unwrap_or(&value);
    let details = error.get("details").and_then(|details| details.as_array());
    let details = details.unwrap_or_default().iter();
    // Google uses one status for limits per minute and per day.
    let violations = details.clone().flat_map(|detail| {
        let violations = detail.get("violations").and_then(|list| list.as_array());
        violations.unwrap_or_default().iter()
    });
    let daily = violations
        .filter_map(|violation| violation.get("quotaId")?.as_str())
        .any(|quota| quota.contains("PerDay"));
    let inner = ["innererror", "inner_error"]
        .iter()
        .find_map(|key| error.get(key)?.get("code")?.as_str());
    // Gateways put a status where others have a word.
    let number = ["code", "status"]
        .iter()
        .find_map(|key| Some(error.get(key)?.as_u64()?.to_string()));
    details
        .filter_map(|detail| detail.get("reason")?.as_str())
        .chain(inner)
        .map(|word| word.to_ascii_lowercase())
        .chain(daily.then(|| DAILY.to_owned()))
        .chain(number)
        .collect()
}

fn by_status(status: u16) -> ErrorKind {
    match status {
        401 | 403 | 407 => ErrorKind::Auth,
        402 => ErrorKind::Quota,
        404 | 410 => ErrorKind::NotFound,
        408 | 409 | 425 => ErrorKind::Unavailable,
        413 => ErrorKind::TooLong,
        429 => ErrorKind::RateLimited,
        300..=399 => ErrorKind::Setup,
        400..=499 => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    }
}

/// Removes the key from a vendor's error, because some servers repeat it.
fn scrubbed(mut error: VendorError, secret: Option<&Secret>) -> VendorError {
    let Some(secret) = secret else {
        return error;
    };
    if let Some(clean) = secret.scrub(&error.message) {
        error.message = clean;
    }
    for text in [&mut error.kind, &mut error.code, &mut error.param] {
        if let Some(clean) = text.as_deref().and_then(|text| secret.scrub(text)) {
            *text = Some(clean);
        }
    }
    if let Some(body) = &error.body {
        let mut escaped = String::new();
        throughline_model::json::push_string(&mut escaped, secret.reveal());
        let inner = Secret::new(escaped.trim_matches('"'));
        if let Some(clean) = inner.scrub(body.get()) {
            error.body = RawJson::new(&clean).ok();
        }
    }
    error
}
