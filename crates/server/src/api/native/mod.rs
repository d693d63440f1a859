//! Our own API, under `/api/v1`: what the store has, and what is done with it. `forms` has its JSON.
//!
//! Each operation is a value that says what it takes and answers: requests are checked against it,
//! and the OpenAPI document is made of it, so that both say the same.

mod approvals;
pub mod forms;
mod openapi;
mod request;
mod runs;
mod sse;
mod status;
mod threads;
pub mod view;

use axum::Router;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use axum::routing::get;
use throughline_model::json;

use request::{Route, json_text};

use crate::app::App;

/// Where the document is.
const DOCUMENT: &str = "/api/openapi.json";

/// All operations with their handlers.
fn routes() -> Vec<Route> {
    let mut routes = threads::routes();
    routes.extend(runs::routes());
    routes.extend(approvals::routes());
    routes.push(status::route());
    routes
}

/// The routes.
pub(crate) fn router() -> Router<App> {
    let router = Router::new().route(DOCUMENT, get(document));
    let routes = routes().into_iter();
    routes.fold(router, |router, route| router.merge(route.into_router()))
}

async fn document() -> Response<Body> {
    json_text(StatusCode::OK, openapi_document())
}

/// The OpenAPI document of the native API, laid out in lines.
pub fn openapi_document() -> String {
    let routes = routes();
    let operations: Vec<_> = routes.iter().map(|route| &*route.operation).collect();
    let document = openapi::document(&operations);
    let mut laid_out = json::pretty(&document).unwrap_or(document);
    laid_out.push('\n');
    laid_out
}
