//! The Responses API: `wire` has its words, the rest what is done.

mod asked;
mod chain;
mod compact;
mod create;
pub(crate) mod fail;
mod get;
pub(crate) mod host;
mod input_items;
mod input_tokens;
mod offered;
mod query;
pub(crate) mod recipe;
mod resolve;
mod retry;
mod said;
mod showing;
mod sse;
mod tale;
mod trigger;
mod unsupported;
pub mod wire;

use axum::Router;
use axum::routing::{get, post};

use crate::net::App;

/// The routes.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/responses", post(create::create))
        .route("/v1/responses/compact", post(compact::compact))
        .route("/v1/responses/input_tokens", post(input_tokens::count))
        .route("/v1/responses/{id}", get(get::get).delete(get::delete))
        .route("/v1/responses/{id}/input_items", get(input_items::list))
}
