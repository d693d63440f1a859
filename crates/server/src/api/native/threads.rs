//! `GET /api/v1/threads/{id}`.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson};
use throughline_store::{
    At, Error, Opened, RunFilter, RunState, TenantScope, Thread, ThreadId, Tip,
};

use super::forms;
use crate::api::query::Query;
use crate::api::{hand_over_error, store_error};
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::json;

/// A thread: its names, its head, who owns its history, and what vendors have of it.
pub(super) async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response<Body>, ApiError> {
    Query::of(query.as_deref()).check_known(&[])?;
    let opened = open(&app, &caller.scope, &id).await?;
    let thread = &opened.thread;
    let threads = app.runs.threads(&caller.scope);
    let owner = threads.owner_of(&thread.id).await;
    let owner = owner.map_err(|error| about(&error, &id))?;
    let copies = threads.vendor_copies(&thread.id).await;
    let copies = copies.map_err(|error| about(&error, &id))?;
    let body = RawJson::object(|object| {
        describe(object, thread);
        forms::owner(object.key("owner"), &owner);
        forms::services(object.key("services"), opened.state.services());
        forms::vendor_copies(object.key("vendor_copies"), &copies);
    });
    Ok(json(StatusCode::OK, &body))
}

fn describe(object: &mut ObjectWriter<'_>, thread: &Thread) {
    object.str("id", thread.id.as_str()).str("object", "thread");
    match &thread.title {
        Some(title) => object.str("title", title),
        None => object.raw("title", "null"),
    };
    let mut aliases = ArrayWriter::new(object.key("aliases"));
    for alias in &thread.aliases {
        let mut object = ObjectWriter::new(aliases.slot());
        object.str("kind", &alias.kind).str("name", &alias.name);
        object.end();
    }
    aliases.end();
    object.raw("meta", thread.meta.as_ref().map_or("null", RawJson::get));
    match thread.keep {
        Some(keep) => object.number("keep", keep),
        None => object.raw("keep", "null"),
    };
    match &thread.head {
        Some(tip) => head(object.key("head"), tip),
        None => object.key("head").push_str("null"),
    }
    object
        .number("tokens", thread.tokens())
        .number("version", thread.version.0)
        .number("created", thread.created)
        .number("touched", thread.touched);
}

fn head(out: &mut String, tip: &Tip) {
    let mut object = ObjectWriter::new(out);
    object
        .str("node", &tip.node.to_string())
        .number("last", tip.last)
        .number("tokens", tip.tokens)
        .bool("open", tip.open)
        .bool("unsent", tip.unsent);
    object.end();
}

/// The thread of a path, without its messages. One of another tenant is not there.
pub(super) async fn open(app: &App, scope: &TenantScope, id: &str) -> Result<Opened, ApiError> {
    let thread = ThreadId::new(id).map_err(|_| not_found(id))?;
    let opened = app.store.open(scope, &At::Thread(thread), 0).await;
    opened.map_err(|error| about(&error, id))
}

/// An error of the store about the thread of a path.
pub(super) fn about(error: &Error, id: &str) -> ApiError {
    match error {
        Error::NotFound { .. } => not_found(id),
        error => store_error::of(error),
    }
}

fn not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(128).collect();
    ApiError::not_found(format!("Thread with id '{id}' not found."))
}

/// Refuse if a run of the thread is in one of these states, on any branch.
pub(super) async fn check_no_run(
    app: &App,
    scope: &TenantScope,
    thread: &ThreadId,
    states: &[RunState],
) -> Result<(), ApiError> {
    let filter = RunFilter {
        thread: Some(thread.clone()),
        states: states.to_vec(),
    };
    let found = app.store.runs(scope, &filter, None, 1).await;
    let found = found.map_err(|error| store_error::of(&error))?.found;
    match found.first() {
        Some(run) => Err(hand_over_error::unsettled(run.id, run.state)),
        None => Ok(()),
    }
}
