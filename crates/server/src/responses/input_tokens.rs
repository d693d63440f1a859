//! `POST /v1/responses/input_tokens`: about how many tokens a request would take.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;

use crate::error::ApiError;
use crate::http::{App, Caller, Payload};

/// Count them.
pub(super) async fn count(
    State(_app): State<App>,
    _caller: Caller,
    _payload: Payload,
) -> Result<Response<Body>, ApiError> {
    Err(ApiError::not_implemented("input_tokens"))
}
