//! What responses and conversations share: the thread of a conversation, and entity tags, which name its
//! head so that a client can say which one it has seen.

use axum::body::Body;
use axum::http::header::{ETAG, HeaderValue, IF_MATCH};
use axum::http::{HeaderMap, Response};
use throughline::agent::ExpectedHead;
use throughline::{Thread, Threads};
use throughline_model::json::RawJson;
use throughline_store::{Alias, At, Error, NodeId, TenantScope};

use crate::app::App;
use crate::error::ApiError;

/// The kind of the alias that a conversation's id is.
pub(in crate::api) const ALIAS: &str = "conversation";

/// The code of the error of a busy conversation.
const LOCKED: &str = "conversation_locked";

/// The tag of a conversation without items.
const EMPTY: &str = "empty";

/// The name of the thread of a conversation.
pub(super) fn alias(id: &str) -> Alias {
    Alias::new(ALIAS, id)
}

/// The handle on the thread of a conversation.
pub(super) async fn open(threads: &Threads, id: &str) -> Result<Thread, Error> {
    threads.open(alias(id)).await
}

/// A conversation that is busy, with the status that the configuration has for it.
pub(super) fn with_locked_status(app: &App, error: ApiError) -> ApiError {
    match error.code.as_deref() {
        Some(LOCKED) => ApiError {
            status: app.config.server.locked_status,
            ..error
        },
        _ => error,
    }
}

/// What else a request for a busy conversation can ask for, in `throughline.on_busy`.
const STRATEGIES: &str = r#"["queue","branch","interrupt"]"#;

/// The error of a busy conversation with what its client needs to decide: the head and the version that
/// are there now, and what else it can ask for. Other errors stay as they are.
pub(super) async fn describe_busy(
    app: &App,
    scope: &TenantScope,
    id: Option<&str>,
    error: ApiError,
) -> ApiError {
    let mut error = with_locked_status(app, error);
    let Some(id) = id.filter(|_| error.code.as_deref() == Some(LOCKED)) else {
        return error;
    };
    // Without them the answer says less, and is as right.
    if let Ok(found) = app.store.open(scope, &At::Alias(alias(id)), 0).await {
        let head = found.tip.map(|tip| tip.node.to_string());
        let members = RawJson::object(|members| {
            match &head {
                Some(head) => drop(members.str("head", head)),
                None => drop(members.raw("head", "null")),
            }
            members.number("version", found.thread.version.0);
            members.raw("strategies", STRATEGIES);
        });
        for key in ["head", "version", "strategies"] {
            let value = members.value().get(key).map(RawJson::of);
            error.more.extend(value.map(|value| (key, value)));
        }
    }
    error
}

/// What `If-Match` says the head must be.
pub(super) fn expected_head(headers: &HeaderMap) -> Result<ExpectedHead, ApiError> {
    let mut values = headers.get_all(IF_MATCH).iter();
    let Some(value) = values.next() else {
        return Ok(ExpectedHead::Any);
    };
    let wrong = || {
        ApiError::invalid(
            "If-Match takes one entity tag, as the ETag of a conversation or a response has it.",
        )
        .code("invalid_value")
        .param("If-Match")
        .retry(false)
    };
    if values.next().is_some() {
        return Err(wrong());
    }
    let text = value.to_str().map_err(|_| wrong())?.trim();
    if text == "*" {
        return Ok(ExpectedHead::Any);
    }
    let tag = text.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    match tag {
        Some(EMPTY) => Ok(ExpectedHead::Empty),
        Some(tag) => tag.parse().map(ExpectedHead::Node).map_err(|_| wrong()),
        None => Err(wrong()),
    }
}

/// Name the head in an answer.
pub(super) fn set_entity_tag(response: &mut Response<Body>, head: Option<NodeId>) {
    let tag = head.map_or_else(|| EMPTY.to_owned(), |head| head.to_string());
    if let Ok(value) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
}
