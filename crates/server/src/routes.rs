//! Every route of the contract: what there is, and what answers 501 with its name.

use axum::Router;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, any, get};

use crate::api::openai::{chat, conversations, elsewhere, models, responses};
use crate::api::{anthropic, native};
use crate::app::App;
use crate::error::ApiError;
use crate::{auth, health, net};

/// Routes of features that later versions bring: path, and what the feature is called.
pub(crate) const NOT_BUILT: &[(&str, &str)] = &[
    ("/a2a", "A2A"),
    ("/a2a/{*rest}", "A2A"),
    ("/.well-known/agent-card.json", "A2A"),
    ("/console", "the console"),
    ("/console/{*rest}", "the console"),
];

/// All routes of the server, and those of the embedding program.
pub(crate) fn router(app: App, more: Router<App>) -> Router {
    let health = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .method_not_allowed_fallback(wrong_method);
    let mut router = Router::new()
        .route("/metrics", get(health::metrics))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one));
    for (path, feature) in NOT_BUILT {
        router = router.route(path, not_built(feature));
    }
    router
        .merge(responses::router())
        .merge(chat::router())
        .merge(anthropic::router())
        .merge(conversations::router())
        .merge(native::router())
        .merge(more)
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), auth::guard))
        .merge(health)
        .layer(from_fn_with_state(app.clone(), net::observe))
        .layer(from_fn(anthropic::in_its_shape))
        .with_state(app)
}

fn not_built(feature: &'static str) -> MethodRouter<App> {
    any(move || async move { ApiError::not_implemented(feature) })
}

async fn unknown_path(State(_): State<App>, method: Method, uri: Uri) -> ApiError {
    elsewhere::not_served(uri.path()).unwrap_or_else(|| {
        ApiError::not_found(format!("Invalid URL ({method} {})", short_path(&uri)))
    })
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::new(
        405,
        "invalid_request_error",
        format!("Not allowed to {method} on {}", short_path(&uri)),
    )
    .code("method_not_allowed")
}

/// A path as error messages repeat it.
fn short_path(uri: &Uri) -> String {
    uri.path().chars().take(128).collect()
}
