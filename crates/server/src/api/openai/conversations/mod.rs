//! The Conversations API: a conversation is another name of a thread, whose head is moved only by runs
//! that hold its lease.

mod add;
mod change;
mod items;
mod object;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use throughline_model::json::{RawJson, Value};
use throughline_store::{At, Error, MovedBy, NewThread, Opened, TenantScope, ThreadPatch};

use change::Change;

use crate::api::openai::conversation_head::{
    alias, expected_head, set_entity_tag, with_locked_status,
};
use crate::api::openai::responses::errors;
use crate::api::openai::responses::wire::metadata;
use crate::api::read;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{Payload, json};

/// The routes.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/conversations", post(create))
        .route(
            "/v1/conversations/{id}",
            get(read_one).post(update).delete(delete),
        )
        .route(
            "/v1/conversations/{id}/items",
            get(items::list).post(add::add),
        )
        .route(
            "/v1/conversations/{id}/items/{item}",
            get(items::one).delete(items::remove),
        )
}

/// The thread of the conversation of a path, without its messages.
async fn opened(app: &App, scope: &TenantScope, id: &str) -> Result<Opened, ApiError> {
    let opened = app.store.open(scope, &At::Alias(alias(id)), 0).await;
    opened.map_err(|error| about(app, &error, id))
}

/// Change the thread of the conversation of a path, if its head is the one that the client expects.
async fn patch_thread(
    app: &App,
    scope: &TenantScope,
    id: &str,
    headers: &HeaderMap,
    patch: &ThreadPatch,
) -> Result<(), ApiError> {
    let wanted = expected_head(headers)?;
    let found = Change::new(app, scope, id, wanted).read().await?;
    let patched = app.store.patch(scope, &found.thread.id, patch).await;
    patched.map(drop).map_err(|error| about(app, &error, id))
}

/// An error of the store about the conversation of a path.
fn about(app: &App, error: &Error, id: &str) -> ApiError {
    match error {
        Error::NotFound { .. } => {
            let id: String = id.chars().take(128).collect();
            ApiError::not_found(format!("Conversation with id '{id}' not found."))
        }
        error => with_locked_status(app, errors::store(error)),
    }
}

/// The pairs of a body, as they are kept.
fn metadata_of(body: &Value<'_>) -> Result<RawJson, ApiError> {
    let pairs = metadata(body)?;
    Ok(RawJson::object(|object| {
        for (key, value) in &pairs {
            object.str(key, value);
        }
    }))
}

/// `POST /v1/conversations`: a body is not needed.
async fn create(
    State(app): State<App>,
    caller: Caller,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let empty = Bytes::from_static(b"{}");
    let bytes = match payload.bytes().is_empty() {
        true => &empty,
        false => payload.bytes(),
    };
    let body = read::body(bytes)?;
    let meta = metadata_of(&body)?;
    let input = items::input_of(&body)?;
    // Items are read before anything is stored.
    let new = items::NewItems::resolve(&app, &caller.scope, &input, &[]).await?;
    let thread = app.store.ids().thread();
    let id = format!("conv_{}", thread.as_str().trim_start_matches("thr_"));
    let made = NewThread {
        aliases: vec![alias(&id)],
        meta: Some(meta),
        moved_by: MovedBy::LeasedRuns,
        ..NewThread::new(thread)
    };
    let opened = app.store.open_or_create(&caller.scope, &made, 0).await;
    let opened = opened.map_err(|error| errors::store(&error))?;
    let head = match new.is_empty() {
        true => None,
        false => {
            let append = change::append(&app, &opened.thread.id, new.into_messages(), None);
            match app.store.append(&caller.scope, &append).await {
                Ok(published) => published.node,
                Err(error) => {
                    // The client gets an error and no id, so the empty conversation is removed.
                    if let Err(left) = app.store.delete(&caller.scope, &opened.thread.id).await {
                        tracing::warn!(%left, "an empty conversation was left");
                    }
                    return Err(about(&app, &error, &id));
                }
            }
        }
    };
    let mut response = json(StatusCode::OK, &object::conversation(&id, &opened.thread));
    set_entity_tag(&mut response, head);
    Ok(response)
}

/// `GET /v1/conversations/{id}`.
async fn read_one(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response<Body>, ApiError> {
    let opened = opened(&app, &caller.scope, &id).await?;
    Ok(shown(&id, &opened))
}

/// `POST /v1/conversations/{id}`: replaces the metadata.
async fn update(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response<Body>, ApiError> {
    let body = read::body(payload.bytes())?;
    if body.get("metadata").is_none() {
        return Err(read::missing(
            &throughline_model::Path::Root.key("metadata"),
        ));
    }
    let patch = ThreadPatch {
        meta: Some(Some(metadata_of(&body)?)),
        ..ThreadPatch::default()
    };
    patch_thread(&app, &caller.scope, &id, &headers, &patch).await?;
    let opened = opened(&app, &caller.scope, &id).await?;
    Ok(shown(&id, &opened))
}

/// `DELETE /v1/conversations/{id}`: the name is gone, and its responses can still be read.
async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let patch = ThreadPatch {
        remove_aliases: vec![alias(&id)],
        ..ThreadPatch::default()
    };
    patch_thread(&app, &caller.scope, &id, &headers, &patch).await?;
    let body = RawJson::object(|object| {
        object
            .str("id", &id)
            .str("object", "conversation.deleted")
            .bool("deleted", true);
    });
    Ok(json(StatusCode::OK, &body))
}

/// A conversation, with its head as entity tag.
fn shown(id: &str, opened: &Opened) -> Response<Body> {
    let mut response = json(StatusCode::OK, &object::conversation(id, &opened.thread));
    set_entity_tag(&mut response, opened.tip.map(|tip| tip.node));
    response
}
