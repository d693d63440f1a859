//! Our own API, under `/api/v1`: what the store has, and what is done with it. `forms` has its JSON.

mod delete;
pub mod forms;
mod hand_over;
mod threads;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;
use crate::error::ApiError;

/// What answers 501 is called.
pub(crate) const NAME: &str = "the native API";

/// The routes that are built.
pub(crate) fn router() -> Router<App> {
    let thread = get(threads::get).delete(delete::delete).fallback(not_built);
    Router::new()
        .route("/api/v1/threads/{id}", thread)
        .route("/api/v1/threads/{id}/hand-over", post(hand_over::hand_over))
}

async fn not_built() -> ApiError {
    ApiError::not_implemented(NAME)
}
