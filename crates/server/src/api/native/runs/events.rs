//! `GET /api/v1/runs/{run}/events`: a list, or a stream that follows the run.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use futures_util::StreamExt as _;
use futures_util::stream;
use throughline::agent::{AttachError, Attached};
use throughline_model::json::ArrayWriter;
use throughline_store::{EventNo, RunId};

use super::{about, id};
use crate::api::native::forms::{event, record};
use crate::api::native::openapi::{
    Content, LARGEST, Operation, Verb, answer, flag, integer, integer_of, list, named, text,
};
use crate::api::native::request::{Call, LARGEST_PAGE, Route, json_text};
use crate::api::native::sse::{self, SseEvent};
use crate::error::ApiError;

pub(super) fn route() -> Route {
    let operation = Operation::new(
        Verb::Get,
        "/api/v1/runs/{run}/events",
        "listEvents",
        "What happened in a run, in order.",
    )
    .about(
        "A list of what is known so far, or with `stream=true` a stream that follows the run, in \
         whichever process it works, until it ends or waits. Each event of the stream has its number \
         as id, so that `Last-Event-ID` goes on after it.",
    )
    .query("stream", flag())
    .query(
        "after",
        integer_of(0, LARGEST).about("Only events after this number."),
    )
    .query(
        "limit",
        integer_of(1, LARGEST_PAGE).about("How many events a list has."),
    )
    .header("Last-Event-ID", text().about("As `after`, for streams."))
    .answers_with(
        200,
        "The events.",
        [
            Content::Json(
                answer()
                    .with("events", list(named("Event")))
                    .with("more", flag())
                    .with(
                        "next",
                        integer().nullable().about("The last number, for `after`."),
                    ),
            ),
            Content::Stream(sse::EVENT_STREAM),
        ],
    )
    .fails(404, "There is no such run.");
    Route::new(operation, get)
}

async fn get(call: Call) -> Result<Response<Body>, ApiError> {
    let run = id(&call)?;
    // A run of another tenant has no events that are not there.
    let found = call.app.store.run(&call.scope, run).await;
    found.map_err(|error| about(&call, &error))?;
    let is_stream = call.flag("stream") == Some(true);
    let after = match (call.number("after"), sse::last_event_id(&call)?) {
        (_, Some(last)) if is_stream => Some(last.parse().map_err(|_| sse::wrong_id())?),
        (after, _) => after,
    };
    let threads = call.app.runs.threads(&call.scope);
    match is_stream {
        true => {
            let place = call.app.stream()?;
            let events = follow(threads.attach(run, after), run);
            Ok(sse::response(&call.app, place, events))
        }
        false => page(&call, threads.so_far(run), after).await,
    }
}

async fn page(
    call: &Call,
    mut events: Attached,
    after: Option<EventNo>,
) -> Result<Response<Body>, ApiError> {
    let limit = call.limit();
    let mut found = Vec::new();
    let mut more = false;
    while let Some(next) = events.next().await {
        let (no, event) = next.map_err(|error| unreadable(call, &error))?;
        if after.is_some_and(|after| no <= after) {
            continue;
        }
        if found.len() == limit {
            more = true;
            break;
        }
        found.push((no, event));
    }
    let body = record::object(|object| {
        let mut array = ArrayWriter::new(object.key("events"));
        for (no, event) in &found {
            event::write(array.slot(), *no, event);
        }
        array.end();
        object.bool("more", more);
        record::opt_number(object, "next", found.last().map(|(no, _)| *no).or(after));
    });
    Ok(json_text(StatusCode::OK, body))
}

/// The events of a run as those of a stream.
fn follow(
    events: Attached,
    run: RunId,
) -> impl futures_util::Stream<Item = SseEvent> + Send + 'static {
    stream::unfold(Some(events), move |events| async move {
        let mut events = events?;
        match events.next().await? {
            Ok((no, event)) => {
                let mut data = String::new();
                event::write(&mut data, no, &event);
                let event = SseEvent::new(event::name(&event), data).with_id(no.to_string());
                Some((event, Some(events)))
            }
            Err(error) => {
                tracing::warn!(%run, %error, "a stream of events breaks off");
                let error = ApiError::server(error.to_string()).code("events_unreadable");
                Some((SseEvent::of_error(&error), None))
            }
        }
    })
}

fn unreadable(call: &Call, error: &AttachError) -> ApiError {
    match error {
        AttachError::Store { source, .. } => about(call, source),
        error => ApiError::server(error.to_string())
            .code("store_damaged")
            .retry(false),
    }
}
