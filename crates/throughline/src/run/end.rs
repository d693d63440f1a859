//! How a run ended, as its record says.

use throughline_model::Stop;
use throughline_store::Run;
use throughline_wire::Loss;

use super::driver::told_error;
use super::events::stop_of;
use super::outcome::{Outcome, RunFailed};
use crate::thread::StopReason;
use crate::thread::journal::{end_of, losses_of};

/// How a run ended, for whoever looks at it later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Why it stopped.
    pub stop: StopReason,
    /// Why the model stopped in its last answer.
    pub finish: Option<Stop>,
    /// What went wrong, if something did: for a model call the name of its
    /// [`ErrorKind`](crate::client::ErrorKind), else `run`, and what people read.
    pub error: Option<(String, String)>,
    /// What services could not be told in its model calls.
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
    /// The same that the record says of it.
    fn from(failed: &RunFailed) -> Self {
        let (kind, text) = told_error(&failed.source);
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
