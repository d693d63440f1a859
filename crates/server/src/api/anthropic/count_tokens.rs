//! `POST /v1/messages/count_tokens`: the tokens of a request, counted by its upstream where that
//! counts them, and estimated otherwise. A header says which.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use throughline::client::ErrorKind;
use throughline_model::json::RawJson;

use super::messages::prepare;
use super::wire::{MessagesRequest, member_of};
use crate::api::stateless::report_ignored;
use crate::api::{ignored, model_error};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{Payload, json};

/// Says who counted: `upstream`, or `estimate` for ours.
const COUNTED_BY: HeaderName = HeaderName::from_static("x-throughline-counted-by");

/// `POST /v1/messages/count_tokens`. In a box: layers move what they are given, and this is large.
pub(super) fn count(
    State(app): State<App>,
    _caller: Caller,
    headers: HeaderMap,
    payload: Payload,
) -> impl Future<Output = Result<Response<Body>, ApiError>> + Send {
    Box::pin(counted(app, headers, payload))
}

async fn counted(
    app: App,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let mut request = MessagesRequest::parse(payload.bytes())?;
    let _memory = payload.into_memory();
    let (call, ignored) = prepare(&app, &mut request, &headers)?;
    let counted = match call.count_tokens().await {
        // Some servers that speak a vendor's API have no such address.
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
            return Err(model_error::failed(&error));
        }
        Some(Ok(tokens)) => Some(tokens),
        Some(Err(_)) | None => None,
    };
    let (tokens, by) = match counted {
        Some(tokens) => (tokens, "upstream"),
        None => (call.estimate_tokens(), "estimate"),
    };
    let body = RawJson::object(|object| {
        object.number("input_tokens", tokens);
    });
    let mut response = json(StatusCode::OK, &body);
    let headers = response.headers_mut();
    headers.insert(COUNTED_BY, HeaderValue::from_static(by));
    ignored::set_header(&mut response, report_ignored(&app, &ignored, member_of));
    Ok(response)
}
