//! Drives a run: its events become frames, its end an answer. No client needs to be connected.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::join;
use throughline::RunEvent;
use throughline::agent::order::Order;
use throughline::agent::{Run, RunError, RunFailed};
use throughline::client::Reservation;
use throughline_store::{Error, ErrorKind};

use super::{ActiveRun, Answer, Projection, Unfinished};
use crate::trials::planted;

/// Whether the events of a run are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventLog {
    /// If it is streamed; otherwise it is projected from its journal.
    IfStreamed,
    /// Always: its response shows something that is in no journal.
    Always,
}

/// Work until the run is over. The memory of its request is taken until then.
pub(crate) async fn work<P: Projection>(
    begun: ActiveRun,
    run: Run<impl Order>,
    projection: impl FnOnce() -> P,
    log: EventLog,
    _request: Arc<Reservation>,
) {
    let live = &begun.live;
    let mut frames: Vec<Bytes> = Vec::new();
    let run = run.in_place();
    let mut stream = match live.streamed || log == EventLog::Always {
        true => run.stream(),
        false => run.unstored(),
    };
    let mut is_begun = false;
    // The projection is set up while the store begins the run.
    let (mut next, mut projection) = join(stream.next(), async { projection() }).await;
    while let Some(event) = next {
        if matches!(event, RunEvent::Started { .. }) && !is_begun {
            is_begun = true;
            projection.begin(&mut frames);
            live.begin();
        }
        projection.event(&event, &mut frames);
        live.push(&mut frames);
        live.has_room().await;
        next = stream.next().await;
    }
    let result = stream.outcome().await;
    if let Err(failed) = &result
        && let Some(left) = why_unfinished(&begun, failed, is_begun).await
        && !planted("server-unrecorded-end")
    {
        tracing::warn!(run = %live.run, cause = %failed.source, ?left, "a run is left before its end");
        return begun.leave(left);
    }
    let answer = match &result {
        Err(failed) if !is_begun => match &failed.source {
            RunError::Repeated { run } => Answer::Repeated(*run),
            source => Answer::Error(projection.refused(source)),
        },
        result => projection.finish(result, &mut frames),
    };
    live.end(&mut frames, answer);
}

/// Whether a run that failed for its caller is not over, and why.
async fn why_unfinished(
    begun: &ActiveRun,
    failed: &RunFailed,
    is_begun: bool,
) -> Option<Unfinished> {
    if let (true, RunError::MessageStore { .. }) = (is_begun, &failed.source) {
        // The application's store did not take its messages: the journal has them, and the run waits.
        return Some(Unfinished::NotStored);
    }
    let RunError::Store(error) = &failed.source else {
        return (is_begun && !failed.is_recorded()).then_some(Unfinished::NotStored);
    };
    match (is_begun, error.kind()) {
        (true, ErrorKind::Fenced) if !failed.is_recorded() => Some(Unfinished::TakenOver),
        (true, _) => (!failed.is_recorded()).then_some(Unfinished::NotStored),
        // The store did not say whether it began.
        (false, ErrorKind::Unavailable | ErrorKind::Full) => {
            let run = begun.runs.store.run(&begun.scope, begun.live.run).await;
            let is_there = !matches!(run, Err(Error::NotFound { .. }));
            is_there.then_some(Unfinished::NotStored)
        }
        (false, _) => None,
    }
}
