//! Reading a response again, whole or as a stream, and deleting it.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream, Stream};
use throughline::agent::Attached;
use throughline_model::json::RawJson;
use throughline_store::{Error, EventNo, RunId, TenantScope};

use super::sse::Batch;
use super::stored_response::{StoredResponse, ending_of};
use super::wire::{Frame, Projector};
use super::{errors, sse};
use crate::api::query::Query;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::net::{Answered, json};
use crate::service::{Delivery, Lagged, Pieces, Reader, ReaderEvent, SharedTexts};
use crate::trials::planted;

/// `GET /v1/responses/{id}`.
pub(super) async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response<Body>, ApiError> {
    let query = Query::of(query.as_deref());
    let streamed = query.flag("stream")?;
    let after = query.number("starting_after")?;
    let scope = &caller.scope;
    if !streamed && after.is_some() {
        return Err(
            ApiError::invalid("'starting_after' needs 'stream=true'.").param("starting_after")
        );
    }
    let mut response = match streamed {
        true => streaming(&app, scope, &id, after, Delivery::default()).await?,
        false => {
            let stored = StoredResponse::read(&app, scope, &id).await?;
            let live = app.runs.find(stored.run()).await;
            let live = live.and_then(|live| live.response());
            match live {
                Some(body) => json_pieces(&body),
                None => json(StatusCode::OK, &stored.response(&app, scope).await?),
            }
        }
    };
    if let Some(run) = errors::parse_response_id(&id) {
        response.extensions_mut().insert(Answered(run));
    }
    Ok(response)
}

/// `DELETE /v1/responses/{id}`: it is hidden, and what continues it keeps working.
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response<Body>, ApiError> {
    let stored = StoredResponse::read(&app, &caller.scope, &id).await?;
    if !stored.journal.run.state.is_settled() {
        return Err(errors::not_final(stored.run()));
    }
    match app.store.hide(&caller.scope, stored.run()).await {
        Ok(()) => {}
        Err(Error::NotFound { .. }) => return Err(errors::no_response(&id)),
        Err(error) => return Err(errors::store(&error)),
    }
    let body = RawJson::object(|object| {
        object
            .str("id", &id)
            .str("object", "response")
            .bool("deleted", true);
    });
    Ok(json(StatusCode::OK, &body))
}

pub(super) async fn streaming(
    app: &App,
    scope: &TenantScope,
    id: &str,
    after: Option<u64>,
    delivery: Delivery,
) -> Result<Response<Body>, ApiError> {
    let stored = StoredResponse::read(app, scope, id).await?;
    let place = app.stream()?;
    let next = u64::from(!planted("server-tells-again"));
    let from = after.map_or(0, |after| after.saturating_add(next));
    let with = (place, delivery);
    if let Some(live) = app.runs.find(stored.run()).await {
        if live.streamed {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let batches = live_events(app, scope, live.reader(from));
            return Ok(sse::events(batches, app, with));
        }
        // It has no frames before it is over.
        live.over().await;
        let stored = StoredResponse::read(app, scope, id).await?;
        return streaming_stored(app, scope, stored, from, with).await;
    }
    match stored.journal.run.state.is_settled() {
        true => streaming_stored(app, scope, stored, from, with).await,
        false => {
            let batches = stored_events(app, scope, stored, from);
            Ok(sse::events(batches, app, with))
        }
    }
}

/// The frames of a response that is over.
async fn streaming_stored(
    app: &App,
    scope: &TenantScope,
    stored: StoredResponse,
    from: u64,
    with: (tokio::sync::OwnedSemaphorePermit, Delivery),
) -> Result<Response<Body>, ApiError> {
    if from > 0 {
        let last = stored.last_frame(app, scope).await?;
        if from > last + 1 {
            return Err(ApiError::invalid(format!(
                "'starting_after' is {}, and the last event of this response is {last}.",
                from - 1
            ))
            .param("starting_after"));
        }
    }
    let batches = stored_events(app, scope, stored, from);
    Ok(sse::events(batches, app, with))
}

/// An answer that is JSON, in pieces.
fn json_pieces(body: &Pieces) -> Response<Body> {
    let pieces = body.as_slice().to_vec().into_iter();
    let chunks = stream::iter(pieces.map(Ok::<Bytes, std::convert::Infallible>));
    let mut response = Response::new(Body::from_stream(chunks));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The bytes of frames from a number on.
fn frame_pieces(frames: Vec<Frame>, from: u64, shared: &mut SharedTexts) -> Vec<Pieces> {
    let wanted = frames.into_iter().filter(|frame| frame.number >= from);
    wanted.map(|frame| shared.pieces(frame.bytes)).collect()
}

/// The frames of a run that this process works on.
pub(super) fn live_events(
    app: &App,
    scope: &TenantScope,
    reader: Reader,
) -> impl Stream<Item = Batch> + Send + 'static {
    let live = LiveEvents {
        app: app.clone(),
        scope: scope.clone(),
        from: EventSource::Live(reader),
    };
    stream::unfold(live, |mut live| async move {
        let frames = live.next().await?;
        Some((frames, live))
    })
}

/// Wait until a run that another process works on is settled.
pub(super) async fn wait_until_settled(
    app: &App,
    scope: &TenantScope,
    run: RunId,
) -> Result<(), ApiError> {
    loop {
        match app.store.run(scope, run).await {
            Ok(run) if run.state.is_settled() => return Ok(()),
            Ok(_) => {}
            Err(Error::NotFound { .. }) => {
                return Err(errors::no_response(&errors::response_id(run)));
            }
            Err(_) => return Err(errors::outcome_unknown(run)),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// A reader of a run that this process works on, or did when it began to read.
struct LiveEvents {
    app: App,
    scope: TenantScope,
    from: EventSource,
}

/// Where frames come from.
enum EventSource {
    Live(Reader),
    /// The record, for a reader that came too late or fell behind, or whose run another process has
    /// taken over.
    Record(BoxStream<'static, Batch>),
}

impl LiveEvents {
    async fn next(&mut self) -> Option<Batch> {
        loop {
            match &mut self.from {
                EventSource::Record(batches) => return batches.next().await,
                EventSource::Live(reader) => match reader.next().await {
                    Ok(ReaderEvent::Frames(frames)) => return Some(Ok(frames)),
                    Ok(ReaderEvent::End) => return None,
                    Ok(ReaderEvent::NotStored(from)) => {
                        return Some(Err(errors::unknown_event(reader.run(), from as u64)));
                    }
                    Err(Lagged { from }) => {
                        let run = reader.run();
                        let id = errors::response_id(run);
                        let stored = match StoredResponse::read(&self.app, &self.scope, &id).await {
                            Ok(stored) => stored,
                            Err(error) => {
                                let error = &error.message;
                                tracing::warn!(id, error, "a stream cannot be read on");
                                return Some(Err(errors::unknown_event(run, from as u64)));
                            }
                        };
                        let batches = stored_events(&self.app, &self.scope, stored, from as u64);
                        self.from = EventSource::Record(batches.boxed());
                    }
                },
            }
        }
    }
}

/// The frames of a run that another process works on, or will: one whose worker is gone is waited
/// for until another process has taken it over.
fn stored_events(
    app: &App,
    scope: &TenantScope,
    stored: StoredResponse,
    from: u64,
) -> impl Stream<Item = Batch> + Send + 'static {
    let threads = app.runs.threads(scope);
    let mut tail = StoredEvents {
        app: app.clone(),
        scope: scope.clone(),
        run: stored.run(),
        events: threads.attach(stored.run(), None),
        last: None,
        projector: Projector::new(stored.context),
        frames: 0,
        shared: SharedTexts::default(),
        is_over: false,
    };
    let mut first = Vec::new();
    tail.projector.begin(&mut first);
    tail.frames = first.len() as u64;
    let first = frame_pieces(first, from, &mut tail.shared);
    let rest = stream::unfold(tail, move |mut tail| async move {
        let batch = match tail.next().await? {
            Ok(frames) => {
                tail.frames += frames.len() as u64;
                Ok(frame_pieces(frames, from, &mut tail.shared))
            }
            Err(Unreadable) => {
                tail.is_over = true;
                Err(errors::unknown_event(tail.run, tail.frames.max(from)))
            }
        };
        Some((batch, tail))
    });
    stream::iter([Ok(first)]).chain(rest)
}

/// How often the record is read to see whether a run was taken over.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A reader of a run that this process does not work on.
struct StoredEvents {
    app: App,
    scope: TenantScope,
    run: RunId,
    events: Attached,
    last: Option<EventNo>,
    projector: Projector,
    /// How many frames there were so far.
    frames: u64,
    shared: SharedTexts,
    is_over: bool,
}

/// The record of a run cannot be read now.
struct Unreadable;

impl StoredEvents {
    async fn next(&mut self) -> Option<Result<Vec<Frame>, Unreadable>> {
        let mut frames = Vec::new();
        while !self.is_over {
            match self.events.next().await {
                Some(Ok((no, event))) => {
                    self.last = Some(no);
                    self.projector.apply(&event, &mut frames);
                    return Some(Ok(frames));
                }
                Some(Err(error)) => {
                    tracing::warn!(run = %self.run, %error, "a stream cannot be read on");
                    return Some(Err(Unreadable));
                }
                None => {}
            }
            let journal = match self.app.store.journal(&self.scope, self.run).await {
                Ok(journal) => journal,
                Err(error) => {
                    tracing::warn!(run = %self.run, %error, "a stream cannot be read on");
                    return Some(Err(Unreadable));
                }
            };
            if let Some(ending) = ending_of(&journal) {
                self.is_over = true;
                self.projector.finish(&ending, &mut frames);
                return Some(Ok(frames));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            let threads = self.app.runs.threads(&self.scope);
            self.events = threads.attach(self.run, self.last);
        }
        None
    }
}
