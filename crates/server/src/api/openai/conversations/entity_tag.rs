//! Entity tags: the head of a conversation, so that a client can say which one it has seen.

use axum::body::Body;
use axum::http::header::{ETAG, HeaderValue, IF_MATCH};
use axum::http::{HeaderMap, Response};
use throughline::agent::ExpectedHead;
use throughline_store::NodeId;

use crate::error::ApiError;

/// The tag of a conversation without items.
const EMPTY: &str = "empty";

/// What `If-Match` says the head must be.
pub(crate) fn expected_head(headers: &HeaderMap) -> Result<ExpectedHead, ApiError> {
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
pub(crate) fn set_entity_tag(response: &mut Response<Body>, head: Option<NodeId>) {
    let tag = head.map_or_else(|| EMPTY.to_owned(), |head| head.to_string());
    if let Ok(value) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
}
