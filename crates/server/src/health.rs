//! `/healthz`, `/readyz` and `/metrics`.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use prometheus_client::encoding::text::encode;
use throughline_model::json::RawJson;

use crate::app::App;
use crate::net::json;

/// The process is alive, and this is what it promises.
pub(crate) async fn healthz(State(app): State<App>) -> Response<Body> {
    let body = RawJson::object(|object| {
        object
            .str("status", "ok")
            .str("version", env!("CARGO_PKG_VERSION"))
            .str("engine", app.profile.engine)
            .str("durability", app.durability());
    });
    json(StatusCode::OK, &body)
}

/// Whether to send requests here: not while it stops, and not while the store does not answer.
pub(crate) async fn readyz(State(app): State<App>) -> Response<Body> {
    if app.stopping.is_draining() {
        return not_ready("stopping");
    }
    match app.store.profile().await {
        Ok(_) => json(StatusCode::OK, &state("ready")),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the store does not answer"
            );
            not_ready("the store does not answer")
        }
    }
}

fn not_ready(why: &str) -> Response<Body> {
    json(StatusCode::SERVICE_UNAVAILABLE, &state(why))
}

fn state(word: &str) -> RawJson {
    RawJson::object(|object| {
        object.str("status", word);
    })
}

/// All metrics, as OpenMetrics text.
pub(crate) async fn metrics(State(app): State<App>) -> Response<Body> {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &app.registry);
    let mut response = Response::new(Body::from(text));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
