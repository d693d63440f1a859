//! `/v1/models`.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use throughline_model::json::{ArrayWriter, RawJson};

use crate::app::App;
use crate::error::ApiError;
use crate::net::json;

/// Names the upstreams that could not be asked for their models.
const UNLISTED: HeaderName = HeaderName::from_static("x-throughline-unlisted");

/// `GET /v1/models`.
pub(crate) async fn list(State(app): State<App>) -> Response<Body> {
    let listing = app.upstreams.list_models().await;
    let body = RawJson::object(|object| {
        object.str("object", "list");
        let mut data = ArrayWriter::new(object.key("data"));
        for model in &listing.models {
            data.raw(model.to_json(app.started).get());
        }
        data.end();
    });
    let mut response = json(StatusCode::OK, &body);
    if !listing.failed.is_empty()
        && let Ok(names) = HeaderValue::try_from(listing.failed.join(", "))
    {
        response.headers_mut().insert(UNLISTED, names);
    }
    response
}

/// Any name that would be taken, listed or not.
pub(crate) async fn one(
    State(app): State<App>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response<Body>, ApiError> {
    let Ok(Path(id)) = id else {
        return Err(ApiError::not_found("The name of the model is not text."));
    };
    // The error is that of a request for this model.
    app.upstreams.route(Some(&id))?;
    let model = app.upstreams.model(&id);
    let model = model.ok_or_else(|| ApiError::not_found("There is no such model."))?;
    Ok(json(StatusCode::OK, &model.to_json(app.started)))
}
