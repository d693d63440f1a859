//! Chat Completions: `wire` has its formats, `create` the handler.

mod create;
mod wire;

use axum::Router;
use axum::routing::post;

use crate::app::App;

/// The routes.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/v1/chat/completions", post(create::create))
}
