//! Anthropic's Messages API: `wire` has its formats, `messages` and `count_tokens` the handlers,
//! `errors` the shape of its errors.

mod count_tokens;
mod errors;
mod messages;
mod wire;

use axum::Router;
use axum::routing::post;

use crate::app::App;

pub(crate) use errors::in_its_shape;

/// What the paths of this API begin with.
const MESSAGES: &str = "/v1/messages";

/// The routes.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route(MESSAGES, post(messages::create))
        .route("/v1/messages/count_tokens", post(count_tokens::count))
}
