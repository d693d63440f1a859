//! Reading a response again, whole or as a stream, and deleting it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use throughline::Attached;
use throughline_model::json::RawJson;
use throughline_store::{Error, EventNo, RunId, RunState, TenantScope};

use super::query::Query;
use super::tale::{Tale, ending_of};
use super::wire::{Frame, Projector};
use super::{fail, sse};
use crate::error::ApiError;
use crate::http::{Answered, App, Caller, json};
use crate::runs::{Delivery, Live};
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
            let tale = Tale::read(&app, scope, &id).await?;
            let live = app.runs.find(tale.run()).and_then(|live| live.response());
            let body = match live {
                Some(body) => body,
                None => tale.told(&app, scope).await?.0.response(),
            };
            json(StatusCode::OK, &body)
        }
    };
    if let Some(run) = fail::run_of(&id) {
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
    let tale = Tale::read(&app, &caller.scope, &id).await?;
    if !tale.journal.run.state.is_settled() {
        return Err(fail::not_final(tale.run()));
    }
    match app.store.hide(&caller.scope, tale.run()).await {
        Ok(()) => {}
        Err(Error::NotFound { .. }) => return Err(fail::no_response(&id)),
        Err(error) => return Err(fail::store(&error)),
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
    let tale = Tale::read(app, scope, id).await?;
    let place = app.stream()?;
    let next = u64::from(!planted("server-tells-again"));
    let from = after.map_or(0, |after| after.saturating_add(next));
    let keep_alive = app.config.limits.keep_alive;
    let with = (place, delivery);
    if let Some(live) = app.runs.find(tale.run()) {
        if live.streamed {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            return Ok(sse::events(following(live, from), keep_alive, with));
        }
        // It has no frames before it is over.
        live.over().await;
        return Box::pin(streaming_stored(app, scope, id, from, with)).await;
    }
    match tale.journal.run.state.is_settled() {
        true => streaming_stored(app, scope, id, from, with).await,
        false => {
            let batches = tailing(app, scope, tale, from);
            Ok(sse::events(batches, keep_alive, with))
        }
    }
}

/// All frames of a response that is over.
async fn streaming_stored(
    app: &App,
    scope: &TenantScope,
    id: &str,
    from: u64,
    with: (tokio::sync::OwnedSemaphorePermit, Delivery),
) -> Result<Response<Body>, ApiError> {
    let tale = Tale::read(app, scope, id).await?;
    let (_, frames) = tale.told(app, scope).await?;
    let batch = bytes(frames, from);
    let batches = stream::iter([batch]);
    Ok(sse::events(batches, app.config.limits.keep_alive, with))
}

fn bytes(frames: Vec<Frame>, from: u64) -> Vec<Bytes> {
    let wanted = frames.into_iter().filter(|frame| frame.number >= from);
    wanted.map(|frame| frame.bytes).collect()
}

/// The frames of a run that this process works on.
pub(super) fn following(
    live: Arc<Live>,
    from: usize,
) -> impl Stream<Item = Vec<Bytes>> + Send + 'static {
    stream::unfold((live, from), |(live, from)| async move {
        let frames = live.frames(from).await?;
        let next = from + frames.len();
        Some((frames, (live, next)))
    })
}

/// How often somebody looks whether a run that was left has been taken over.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The frames of a run that another process works on, or will.
fn tailing(
    app: &App,
    scope: &TenantScope,
    tale: Tale,
    from: u64,
) -> impl Stream<Item = Vec<Bytes>> + Send + 'static {
    let run = tale.run();
    let mut projector = Projector::new(tale.scene);
    let mut first = Vec::new();
    projector.begin(&mut first);
    let tail = Tail {
        app: app.clone(),
        scope: scope.clone(),
        run,
        projector,
        told: None,
        last: None,
        is_settled: false,
    };
    let told = stream::unfold(Some(tail), move |tail| async move {
        let (frames, tail) = tail?.next().await?;
        Some((bytes(frames, from), tail))
    });
    stream::iter([bytes(first, from)]).chain(told)
}

/// A run that another process works on, or will, as it is read.
struct Tail {
    app: App,
    scope: TenantScope,
    run: RunId,
    projector: Projector,
    told: Option<Attached>,
    /// The last event that was read.
    last: Option<EventNo>,
    /// Whether it has ended, so that all its events are stored.
    is_settled: bool,
}

impl Tail {
    /// The next frames, and what comes after them. What cannot be read any more ends the stream; it
    /// can be asked for again.
    async fn next(mut self) -> Option<(Vec<Frame>, Option<Self>)> {
        let mut frames = Vec::new();
        loop {
            match &mut self.told {
                Some(told) => match told.next().await {
                    Some(Ok((no, event))) => {
                        self.last = Some(no);
                        self.projector.tell(&event, &mut frames);
                        return Some((frames, Some(self)));
                    }
                    Some(Err(_)) => return None,
                    None => self.told = None,
                },
                None => {}
            }
            let store = &self.app.store;
            let journal = store.journal(&self.scope, self.run).await.ok()?;
            match (ending_of(&journal), self.is_settled) {
                (Some(ending), true) => {
                    self.projector.finish(&ending, &mut frames);
                    return Some((frames, None));
                }
                (Some(_), false) => {
                    self.is_settled = true;
                    self.attach();
                    continue;
                }
                (None, _) if journal.run.state == RunState::Held => return None,
                (None, _) => {}
            }
            let stored = store.events(&self.scope, self.run, 0, 1).await.ok()?;
            match journal.run.state == RunState::Running && !stored.is_empty() {
                true => self.attach(),
                // Its worker is gone and somebody will go on with it, or it stores no events before
                // it has ended.
                false => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    fn attach(&mut self) {
        let threads = self.app.runs.threads(&self.app.store, &self.scope);
        self.told = Some(threads.attach(self.run, self.last));
    }
}
