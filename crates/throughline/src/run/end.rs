//! How a run ended, as the store has it.

use throughline_model::Stop;
use throughline_store::Run;
use throughline_wire::Loss;

use super::events::stop_of;
use super::outcome::{Outcome, RunFailed};
use crate::thread::StopReason;
use crate::thread::journal::{end_of, losses_of};

/// How a run ended, as it can be read later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Why it stopped.
    pub stop: StopReason,
    /// Why the model stopped in its last answer.
    pub finish: Option<Stop>,
    /// The error of a failed run: for a model call the name of its
    /// [`ErrorKind`](crate::client::ErrorKind), else `run`, and the text.
    pub error: Option<(String, String)>,
    /// What services did not take in its model calls.
    pub losses: Vec<Loss>,
}

impl From<&Outcome> for RunEnd {
    fn from(outcome: &Outcome) -> Self {
        Self {
            stop: outcome.stop,
            finish: outcome.finish.clone(),
            error: None,
            losses: outcome.losses.clone(),
        }
    }
}

impl From<&RunFailed> for RunEnd {
    /// The same that the store has of it.
    fn from(failed: &RunFailed) -> Self {
        let (kind, text) = failed.source.recorded();
        Self {
            error: Some((kind.to_owned(), text)),
            ..Self::from(failed.outcome())
        }
    }
}

impl RunEnd {
    /// How a run ended; `None` if it has not.
    pub fn of(run: &Run) -> Option<Self> {
        let stop = stop_of(run)?;
        let (finish, error) = end_of(run.note.as_ref());
        Some(Self {
            stop,
            finish,
            error,
            losses: losses_of(run.note.as_ref()),
        })
    }
}
