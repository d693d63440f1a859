//! Errors in the shape of this API.

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use throughline_model::json::{ObjectWriter, RawJson};

use super::MESSAGES;
use crate::error::ApiError;

/// Middleware around everything: errors on the paths of this API have its shape, wherever they were
/// made. The id of the request stands in the header already.
pub(crate) async fn in_its_shape(request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path().strip_prefix(MESSAGES);
    if !path.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return next.run(request).await;
    }
    let mut response = next.run(request).await;
    let id = response.headers().get("x-request-id").cloned();
    if let Some(id) = &id {
        response.headers_mut().insert("request-id", id.clone());
    }
    let Some(error) = response.extensions_mut().remove::<ApiError>() else {
        return response;
    };
    let id = id.as_ref().and_then(|id| id.to_str().ok());
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|_| Body::from(body(&error, id).get().to_owned()))
}

/// The body of an error.
pub(super) fn body(error: &ApiError, request: Option<&str>) -> RawJson {
    RawJson::object(|object| {
        object.str("type", "error");
        let mut inner = ObjectWriter::new(object.key("error"));
        inner
            .str("type", kind(error))
            .str("message", &error.message);
        if error.code.is_some() || error.param.is_some() {
            let mut details = ObjectWriter::new(inner.key("details"));
            if let Some(code) = &error.code {
                details.str("error_code", code);
            }
            if let Some(param) = &error.param {
                details.str("param", param);
            }
            details.end();
        }
        inner.end();
        match request {
            Some(id) => object.str("request_id", id),
            None => object.raw("request_id", "null"),
        };
    })
}

/// The API's word for an error.
fn kind(error: &ApiError) -> &'static str {
    match error.status {
        _ if error.kind == "insufficient_quota" => "billing_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 | 405 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    }
}
