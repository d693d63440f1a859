//! A run as a response: the view that the service shows to its readers.

use bytes::Bytes;
use throughline::agent::{RunEnd, RunError, RunFailed};
use throughline::{Outcome, RunEvent, StopReason};
use throughline_store::Millis;

use super::errors;
use super::wire::{Ending, Frame, Projector, ResponseContext, of_history};
use crate::api::openai::items::AwaitingApproval;
use crate::error::ApiError;
use crate::service::{Answer, Pieces, Projection};

/// A response that is being made.
pub(super) struct ResponseProjection {
    projector: Projector,
    context: ProjectionContext,
    /// The model call that the run is at.
    step: u32,
    /// Used by every call, so that it is allocated once.
    frames: Vec<Frame>,
}

/// What is needed of the context after the projector has taken it.
struct ProjectionContext {
    run: throughline_store::RunId,
    thread: Option<throughline_store::ThreadId>,
    created: Millis,
    previous: Option<throughline_store::RunId>,
}

impl ResponseProjection {
    /// `streamed`: frames are written; otherwise they are counted.
    pub(super) fn new(context: ResponseContext, streamed: bool) -> Self {
        Self {
            context: ProjectionContext {
                run: context.run,
                thread: context.thread.clone(),
                created: context.created,
                previous: context.previous,
            },
            projector: match streamed {
                true => Projector::new(context),
                false => Projector::silent(context),
            },
            step: 0,
            frames: Vec::new(),
        }
    }

    fn drain_frames(&mut self, frames: &mut Vec<Bytes>) {
        frames.extend(self.frames.drain(..).map(|frame| frame.bytes));
    }

    /// The response as the answer to the request.
    fn response(&self) -> Answer {
        let response = self.projector.response().get().to_owned();
        Answer::Response(Pieces::One(response.into()))
    }
}

impl Projection for ResponseProjection {
    fn begin(&mut self, frames: &mut Vec<Bytes>) {
        self.projector.begin(&mut self.frames);
        self.drain_frames(frames);
    }

    fn event(&mut self, event: &RunEvent, frames: &mut Vec<Bytes>) {
        if let RunEvent::Asked { step } = event {
            self.step = *step;
        }
        self.projector.apply(event, &mut self.frames);
        self.drain_frames(frames);
    }

    fn finish(&mut self, result: &Result<Outcome, RunFailed>, frames: &mut Vec<Bytes>) -> Answer {
        let ending = ending_of(result, self.step, self.context.created);
        self.projector.finish(&ending, &mut self.frames);
        self.drain_frames(frames);
        if let Err(failed) = result {
            let finished = |one: &throughline::agent::Step| {
                matches!(one, throughline::agent::Step::Model { .. })
            };
            // What was done stands, and the response says how it ended.
            if !failed.outcome().steps.iter().any(finished) {
                return Answer::Error(errors::failed(&failed.source, self.context.run));
            }
        }
        self.response()
    }

    fn refused(&self, error: &RunError) -> ApiError {
        errors::refused(error, self.context.thread.as_ref(), self.context.previous)
    }
}

/// How a run ended, the same for every reader, now and later.
fn ending_of(result: &Result<Outcome, RunFailed>, step: u32, created: Millis) -> Ending {
    let (outcome, end) = match result {
        Ok(outcome) => (outcome, RunEnd::from(outcome)),
        Err(failed) => (failed.outcome(), RunEnd::from(failed)),
    };
    let asked = match outcome.stop {
        StopReason::Parked => outcome
            .pending
            .iter()
            .filter_map(|pending| {
                Some(AwaitingApproval {
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
pub(super) fn ending(end: RunEnd, asked: Vec<AwaitingApproval>, at: Millis) -> Ending {
    Ending {
        // Losses of settings and tools were found before the first model call.
        ignored: end.losses.iter().filter_map(of_history).collect(),
        stop: end.stop,
        finish: end.finish,
        error: end
            .error
            .map(|(kind, text)| (errors::code(&kind).to_owned(), text)),
        asked,
        at,
    }
}
