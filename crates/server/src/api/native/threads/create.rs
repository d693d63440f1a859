//! `POST /api/v1/threads`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::Path;
use throughline_model::json::{RawJson, Value};
use throughline_store::{Alias, NewThread, Thread, ThreadId};

use crate::api::native::forms::record;
use crate::api::native::openapi::{
    LARGEST, Operation, Schema, Verb, free_object, integer_of, list, named, object, pattern,
    text_of,
};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::openai::CONVERSATION_ALIAS;
use crate::api::{read, store_error};
use crate::error::ApiError;

/// Aliases of one request, at most.
const MOST_ALIASES: usize = 64;

pub(super) fn route() -> Route {
    let body = object()
        .maybe("id", thread_id())
        .maybe("title", title().nullable())
        .maybe("meta", free_object().nullable())
        .maybe("keep", keep().nullable())
        .maybe("aliases", aliases());
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads",
        "createThread",
        "Make a thread.",
    )
    .about(
        "With an id that is there already, the answer is that thread if it is as the body says, and \
         409 `thread_exists` if it is not: so the request may be sent again.",
    )
    .may_take(body)
    .answers(200, "The thread was there.", named("Thread"))
    .answers(201, "The thread was made.", named("Thread"))
    .fails(409, "The id or an alias belongs to another thread.");
    Route::new(operation, create)
}

/// The id of a new thread.
pub(super) fn thread_id() -> Schema {
    pattern("^[!-.0-~]{1,128}$").about("1 to 128 visible ASCII characters without slashes.")
}

/// The title of a thread.
pub(super) fn title() -> Schema {
    text_of(0, 1_000)
}

/// How long a thread is kept.
pub(super) fn keep() -> Schema {
    integer_of(0, LARGEST).about("Milliseconds that it is kept after its head last moved.")
}

/// Other names of a thread.
pub(super) fn aliases() -> Schema {
    let alias = object()
        .with("kind", text_of(1, 128))
        .with("name", text_of(1, 512));
    list(alias).at_most(MOST_ALIASES)
}

/// The aliases in a body, which fit the schema. Ids of conversations are refused: a thread gets one
/// with rules about its head.
pub(super) fn read_aliases(body: &Value<'_>, key: &str) -> Result<Vec<Alias>, ApiError> {
    let listed = body.get(key).and_then(Value::as_array).unwrap_or_default();
    let text = |alias: &Value<'_>, key: &str| {
        let text = alias.get(key).and_then(Value::as_str);
        text.unwrap_or_default().into_owned()
    };
    let aliases = listed.iter();
    let aliases: Vec<Alias> = aliases
        .map(|alias| Alias::new(text(alias, "kind"), text(alias, "name")))
        .collect();
    match aliases.iter().any(|one| one.kind == CONVERSATION_ALIAS) {
        true => Err(ApiError::invalid(format!(
            "An alias of the kind '{CONVERSATION_ALIAS}' is made with POST /v1/conversations."
        ))
        .code("alias_kind_reserved")
        .param(key)),
        false => Ok(aliases),
    }
}

/// The id of a new thread in a body; a generated one without.
pub(super) fn read_id(call: &Call, body: &Value<'_>) -> Result<ThreadId, ApiError> {
    let path = Path::Root;
    match read::text(body, "id", &path)? {
        None => Ok(call.app.store.ids().thread()),
        Some(id) => ThreadId::new(&id).map_err(|error| {
            ApiError::invalid(format!("Invalid 'id': {error}."))
                .code("invalid_value")
                .param("id")
        }),
    }
}

async fn create(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let path = Path::Root;
    let title = read::text(&body, "title", &path)?;
    let mut new = NewThread {
        title: title.map(std::borrow::Cow::into_owned),
        meta: read::object(&body, "meta", &path)?.map(RawJson::of),
        keep: body.get("keep").and_then(Value::as_u64),
        aliases: read_aliases(&body, "aliases")?,
        ..NewThread::new(read_id(&call, &body)?)
    };
    new.aliases.sort();
    new.aliases.dedup();
    let store = &call.app.store;
    let before = store.open(&call.scope, &new.id.clone().into(), 0).await;
    let opened = store.open_or_create(&call.scope, &new, 0).await;
    let thread = opened.map_err(|error| store_error::of(&error))?.thread;
    if !is_as(&thread, &new) {
        return Err(ApiError::new(
            409,
            "invalid_request_error",
            format!(
                "There is a thread '{}' with another title, meta, keep or aliases. Take another id, \
                 or change it with PATCH.",
                thread.id
            ),
        )
        .code("thread_exists")
        .param("id"));
    }
    let status = match before {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::CREATED,
    };
    let mut text = String::new();
    record::thread(&mut text, &thread);
    Ok(json_text(status, text))
}

/// Whether a thread is as a request wants it.
fn is_as(thread: &Thread, new: &NewThread) -> bool {
    thread.title == new.title
        && thread.meta == new.meta
        && thread.keep == new.keep
        && thread.aliases == new.aliases
}
