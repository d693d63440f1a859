//! Working on a run: its events become frames, its end an answer. Nobody who asked for it is needed.

use futures_util::StreamExt as _;
use futures_util::future::join;
use throughline::order::Order;
use throughline::{Outcome, Run, RunEnd, RunError, RunEvent, RunFailed, StopReason};
use throughline_store::{Error, ErrorKind, Millis};

use super::{Answer, Begun, Left, RunMemory};
use crate::api::openai::items::Asked;
use crate::api::openai::responses::fail;
use crate::api::openai::responses::wire::{Ending, Frame, Pieces, Projector, Scene, of_history};
use crate::trials::planted;

/// Whether the events of a run are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// They are if it is streamed; otherwise its journal tells it.
    IfStreamed,
    /// They are: something that its response says is in no journal.
    Always,
}

/// Work until the run is over.
pub(crate) async fn work(
    begun: Begun,
    run: Run<impl Order>,
    scene: Scene,
    log: Log,
    mut memory: RunMemory,
) {
    let live = &begun.live;
    let (created, previous) = (scene.created, scene.previous);
    let mut frames: Vec<Frame> = Vec::new();
    let run = run.in_place();
    let mut stream = match live.streamed || log == Log::Always {
        true => run.stream(),
        false => run.unstored(),
    };
    let mut step = 0;
    let mut is_begun = false;
    // What is told is put together while the store begins the run.
    let projector = async {
        match live.streamed {
            true => Projector::new(scene),
            false => Projector::silent(scene),
        }
    };
    let (mut next, mut projector) = join(stream.next(), projector).await;
    while let Some(event) = next {
        match &event {
            RunEvent::Started { .. } if !is_begun => {
                is_begun = true;
                projector.begin(&mut frames);
                live.begin();
            }
            RunEvent::Asked { step: asked } => step = *asked,
            _ => {}
        }
        projector.tell(&event, &mut frames);
        live.push(&mut frames);
        memory.event(&event);
        live.has_room().await;
        next = stream.next().await;
    }
    let result = stream.outcome().await;
    if let Err(failed) = &result
        && let Some(left) = left(&begun, failed, is_begun).await
        && !planted("server-unrecorded-end")
    {
        tracing::warn!(run = %live.run, cause = %failed.source, ?left, "a run is left before its end");
        return begun.leave(left);
    }
    let answer = match &result {
        Err(failed) if !is_begun => match &failed.source {
            RunError::Repeated { run } => Answer::Repeated(*run),
            source => Answer::Error(fail::refused(source, previous)),
        },
        Err(failed) => {
            projector.finish(&ended(&result, step, created), &mut frames);
            let finished = |one: &throughline::Step| matches!(one, throughline::Step::Model { .. });
            match failed.outcome().steps.iter().any(finished) {
                // What was done stands; the response says how it ended.
                true => whole(&projector),
                false => Answer::Error(fail::failed(&failed.source, live.run)),
            }
        }
        Ok(_) => {
            projector.finish(&ended(&result, step, created), &mut frames);
            whole(&projector)
        }
    };
    live.end(&mut frames, answer);
}

/// The response as the answer to the request.
fn whole(projector: &Projector) -> Answer {
    let response = projector.response().get().to_owned();
    Answer::Response(Pieces::One(response.into()))
}

/// Whether a run that failed for its caller is not over, and why.
async fn left(begun: &Begun, failed: &RunFailed, is_begun: bool) -> Option<Left> {
    let RunError::Store(error) = &failed.source else {
        return (is_begun && !failed.is_recorded()).then_some(Left::NotStored);
    };
    match (is_begun, error.kind()) {
        (true, ErrorKind::Fenced) if !failed.is_recorded() => Some(Left::TakenOver),
        (true, _) => (!failed.is_recorded()).then_some(Left::NotStored),
        // The store did not say whether it began.
        (false, ErrorKind::Unavailable | ErrorKind::Full) => {
            let run = begun.store.run(&begun.scope, begun.live.run).await;
            let is_there = !matches!(run, Err(Error::NotFound { .. }));
            is_there.then_some(Left::NotStored)
        }
        (false, _) => None,
    }
}

/// How a run ended, as every reader is told, now and later.
fn ended(result: &Result<Outcome, RunFailed>, step: u32, created: Millis) -> Ending {
    let (outcome, end) = match result {
        Ok(outcome) => (outcome, RunEnd::from(outcome)),
        Err(failed) => (failed.outcome(), RunEnd::from(failed)),
    };
    let asked = match outcome.stop {
        StopReason::Parked => outcome
            .pending
            .iter()
            .filter_map(|pending| {
                Some(Asked {
                    step,
                    call: pending.call.value().to_owned(),
                    occurrence: pending.occurrence,
                    approval: pending.approval?,
                })
            })
            .collect(),
        _ => Vec::new(),
    };
    let said = outcome.messages.iter().rev();
    let at = said.filter_map(|message| message.created).next();
    ending(end, asked, at.unwrap_or(created))
}

/// The ending of a run in the words of the API.
pub(crate) fn ending(end: RunEnd, asked: Vec<Asked>, at: Millis) -> Ending {
    Ending {
        // What is set and offered was looked at before.
        ignored: end.losses.iter().filter_map(of_history).collect(),
        stop: end.stop,
        finish: end.finish,
        error: end
            .error
            .map(|(kind, text)| (fail::code(&kind).to_owned(), text)),
        asked,
        at,
    }
}
