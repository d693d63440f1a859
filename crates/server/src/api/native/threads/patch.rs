//! `PATCH /api/v1/threads/{thread}`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::Path;
use throughline_model::json::{RawJson, Value};
use throughline_store::ThreadPatch;

use super::create::{aliases, keep, read_aliases, title};
use super::find::{about, find_whole};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, free_object, named, object};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::read;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let body = object()
        .maybe("title", title().nullable())
        .maybe("meta", free_object().nullable())
        .maybe("keep", keep().nullable())
        .maybe("add_aliases", aliases())
        .maybe("remove_aliases", aliases());
    let operation = Operation::new(
        Verb::Patch,
        "/api/v1/threads/{thread}",
        "patchThread",
        "Change what is known of a thread.",
    )
    .about(
        "Members that are left out stay as they are; `null` takes a member away. `meta` is replaced \
         as a whole. The head and the version stay.",
    )
    .takes(body)
    .answers(200, "The thread as it is now.", named("Thread"))
    .fails(404, "There is no such thread.")
    .fails(409, "An alias belongs to another thread.");
    Route::new(operation, patch)
}

async fn patch(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let path = Path::Root;
    let patch = ThreadPatch {
        title: match body.get("title") {
            None => None,
            Some(_) => Some(read::text(&body, "title", &path)?.map(std::borrow::Cow::into_owned)),
        },
        meta: match body.get("meta") {
            None => None,
            Some(_) => Some(read::object(&body, "meta", &path)?.map(RawJson::of)),
        },
        keep: body.get("keep").map(Value::as_u64),
        add_aliases: read_aliases(&body, "add_aliases")?,
        remove_aliases: read_aliases(&body, "remove_aliases")?,
        ..ThreadPatch::default()
    };
    let id = find_whole(&call).await?.thread.id;
    let patched = call.app.store.patch(&call.scope, &id, &patch).await;
    let thread = patched.map_err(|error| about(&call, &error))?;
    let mut text = String::new();
    record::thread(&mut text, &thread);
    Ok(json_text(StatusCode::OK, text))
}
