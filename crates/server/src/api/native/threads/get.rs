//! `GET /api/v1/threads/{thread}`.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use throughline_store::{At, Span};

use super::find::{about, find};
use crate::api::native::forms::ShownThread;
use crate::api::native::openapi::{LARGEST, Operation, Verb, integer_of, named};
use crate::api::native::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/threads/{thread}",
        "getThread",
        "A thread with messages of its branch.",
    )
    .about(
        "Who owns its history, the ids under which services continue it, what vendors have of it, \
         its unsettled run, and the last messages, or the first after a position.",
    )
    .query(
        "limit",
        integer_of(0, LARGEST_PAGE).about("How many messages; 50 if it is left out."),
    )
    .query(
        "after",
        integer_of(0, LARGEST).about("The first messages after this position, not the last ones."),
    )
    .answers(200, "The thread.", named("ShownThread"))
    .fails(404, "There is no such thread.")
    .fails(409, "The path names a run that has no node yet.");
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let (limit, after) = (call.limit(), call.number("after"));
    let window = match after {
        None => limit,
        Some(_) => 0,
    };
    let (at, opened) = find(&call, window).await?;
    let last = opened.tip.map_or(0, |tip| tip.last);
    let (entries, more) = match after {
        None => match opened.entries.first() {
            Some(first) => (opened.entries.clone(), first.first > 1),
            None => (Vec::new(), last > 0),
        },
        Some(after) if limit == 0 => (Vec::new(), last > after),
        Some(after) => {
            let at = match opened.tip {
                Some(tip) => At::from(tip.node),
                None => at,
            };
            let page = call
                .app
                .store
                .read(&call.scope, &at, Span::After(after), limit)
                .await;
            let page = page.map_err(|error| about(&call, &error))?;
            (page.entries, page.more)
        }
    };
    let threads = call.app.runs.threads(&call.scope);
    let id = &opened.thread.id;
    let owner = threads.owner_of(id).await;
    let owner = owner.map_err(|error| about(&call, &error))?;
    let copies = threads.vendor_copies(id).await;
    let copies = copies.map_err(|error| about(&call, &error))?;
    let shown = ShownThread {
        opened: &opened,
        entries: &entries,
        more,
        owner: &owner,
        copies: &copies,
    };
    Ok(json_text(StatusCode::OK, shown.to_flat_json()))
}
