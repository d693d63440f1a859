//! `POST /api/v1/threads/{thread}/fork`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_model::Path;
use throughline_store::{Fork, NewThread};

use super::create::{read_id, thread_id, title};
use super::find::{about, find};
use crate::api::native::forms::record;
use crate::api::native::openapi::{Operation, Verb, answer, named, object, text};
use crate::api::native::request::{Call, Route, json_text};
use crate::api::read;
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Post,
        "/api/v1/threads/{thread}/fork",
        "forkThread",
        "Make a thread that goes on from a point of another one.",
    )
    .about(
        "From the head, or from the run or node that the path names. Everything up to there is \
         shared, so that it costs one row. With an `id` it may be sent again.",
    )
    .may_take(
        object()
            .maybe("id", thread_id())
            .maybe("title", title().nullable()),
    )
    .answers(
        201,
        "The new thread.",
        answer()
            .with("from", text().about("The thread that it was forked from."))
            .with("thread", named("Thread")),
    )
    .fails(404, "There is no such thread.")
    .fails(
        409,
        "The id belongs to another thread, or the run has no node yet.",
    );
    Route::new(operation, fork)
}

async fn fork(call: Call) -> Result<Response<Body>, ApiError> {
    let body = call.body()?;
    let id = read_id(&call, &body)?;
    let title = read::text(&body, "title", &Path::Root)?;
    let (from, opened) = find(&call, 0).await?;
    let fork = Fork {
        from,
        thread: NewThread {
            title: match title {
                Some(title) => Some(title.into_owned()),
                None => opened.thread.title.clone(),
            },
            settings: opened.thread.settings.clone(),
            ..NewThread::new(id)
        },
    };
    let thread = call.app.store.fork(&call.scope, &fork).await;
    let thread = thread.map_err(|error| about(&call, &error))?;
    let body = record::object(|object| {
        object.str("from", opened.thread.id.as_str());
        record::thread(object.key("thread"), &thread);
    });
    Ok(json_text(StatusCode::CREATED, body))
}
