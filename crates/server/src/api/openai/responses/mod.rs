//! The Responses API: `wire` has its formats, the other files its handlers.

mod approvals;
mod cancel;
pub(in crate::api::openai) mod chain;
mod compact;
mod compaction_options;
mod create;
mod ends;
pub(in crate::api::openai) mod errors;
mod fixed_answer;
mod get;
mod input_items;
mod input_tokens;
mod offered;
mod projection;
mod repeated_input;
mod resolve;
pub(in crate::api::openai) mod resolve_input;
mod resolve_target;
mod resume;
pub(in crate::api::openai) mod retry;
mod socket;
mod sse;
mod start;
mod stored_request;
mod stored_response;
mod thread_owner;
mod trigger;
mod unsupported;
pub mod wire;

pub(crate) use ends::Ends;
pub(crate) use resume::{Resume, resume};

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;

/// The routes.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/responses", post(create::create).get(socket::open))
        .route("/v1/responses/compact", post(compact::compact))
        .route("/v1/responses/input_tokens", post(input_tokens::count))
        .route("/v1/responses/{id}", get(get::get).delete(get::delete))
        .route("/v1/responses/{id}/cancel", post(cancel::cancel))
        .route("/v1/responses/{id}/input_items", get(input_items::list))
}
