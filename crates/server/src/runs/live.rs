//! A run that this process works on, for everybody who reads it.
//!
//! What readers get is kept once: each of them has a place of its own in the list of frames, so one
//! that reads slowly costs nobody else anything, and one that leaves is not missed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use throughline_model::json::RawJson;
use throughline_store::RunId;
use tokio::sync::watch;

use crate::error::ApiError;
use crate::responses::wire::Frame;

/// Where a run stands, for readers.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// Nothing is stored yet.
    Starting,
    /// It began; nothing is refused any more.
    Begun,
    /// It is over.
    Over(Answer),
}

/// What comes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A response, in whichever state.
    Response(RawJson),
    /// An error. A run may have begun for it, which then failed.
    Error(ApiError),
    /// The same was asked before; this run answers it.
    Repeated(RunId),
}

/// A run that this process works on.
#[derive(Debug)]
pub(crate) struct Live {
    /// The run.
    pub(crate) run: RunId,
    /// Whether its events are kept as frames.
    pub(crate) streamed: bool,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    frames: Vec<Bytes>,
    /// Whether something of it is stored.
    is_begun: bool,
}

impl Live {
    pub(crate) fn new(run: RunId, streamed: bool) -> Self {
        Self {
            run,
            streamed,
            state: Mutex::new(State {
                stage: Stage::Starting,
                frames: Vec::new(),
                is_begun: false,
            }),
            changed: watch::Sender::new(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It began.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.stage = Stage::Begun;
        state.is_begun = true;
        drop(state);
        self.changed.send_replace(());
    }

    /// Something happened.
    pub(crate) fn push(&self, frames: &mut Vec<Frame>) {
        if frames.is_empty() {
            return;
        }
        let mut state = self.state();
        state
            .frames
            .extend(frames.drain(..).map(|frame| frame.bytes));
        drop(state);
        self.changed.send_replace(());
    }

    /// It is over. The last frames are there before anybody hears of it.
    pub(crate) fn end(&self, frames: &mut Vec<Frame>, answer: Answer) {
        let mut state = self.state();
        state
            .frames
            .extend(frames.drain(..).map(|frame| frame.bytes));
        state.stage = Stage::Over(answer);
        drop(state);
        self.changed.send_replace(());
    }

    /// The response, once it is over. Before that the record tells how it stands: nobody was told
    /// of anything that is not there.
    pub(crate) fn response(&self) -> Option<RawJson> {
        match &self.state().stage {
            Stage::Over(Answer::Response(response)) => Some(response.clone()),
            Stage::Over(_) | Stage::Starting | Stage::Begun => None,
        }
    }

    /// Whether it is over and never began.
    pub(crate) fn is_refused(&self) -> bool {
        let state = self.state();
        matches!(state.stage, Stage::Over(_)) && !state.is_begun
    }

    /// Wait until it has begun, or is over.
    pub(crate) async fn begun(&self) -> Stage {
        self.wait(|stage| !matches!(stage, Stage::Starting)).await
    }

    /// Wait until it is over.
    pub(crate) async fn over(&self) -> Answer {
        match self.wait(|stage| matches!(stage, Stage::Over(_))).await {
            Stage::Over(answer) => answer,
            Stage::Starting | Stage::Begun => Answer::Error(ApiError::server("The run is gone.")),
        }
    }

    async fn wait(&self, meant: impl Fn(&Stage) -> bool) -> Stage {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            let stage = self.state().stage.clone();
            // The sender lives as long as this.
            if meant(&stage) || changed.changed().await.is_err() {
                return stage;
            }
        }
    }

    /// The frames from a number on, once there are any; none when there will be no more.
    pub(crate) async fn frames(&self, from: usize) -> Option<Vec<Bytes>> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let state = self.state();
                if let Some(fresh) = state.frames.get(from..).filter(|fresh| !fresh.is_empty()) {
                    return Some(fresh.to_vec());
                }
                if matches!(state.stage, Stage::Over(_)) {
                    return None;
                }
            }
            changed.changed().await.ok()?;
        }
    }
}
