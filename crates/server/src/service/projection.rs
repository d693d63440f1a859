//! How an API shows a run: its events as frames of a stream, its end as an answer.

use bytes::Bytes;
use throughline::agent::{RunError, RunFailed};
use throughline::{Outcome, RunEvent};

use super::Answer;
use crate::error::ApiError;

/// The view that one API has of a run.
///
/// A run is shown by one projection, which is called in this order: [`begin`](Self::begin) once the
/// run is stored, [`event`](Self::event) for each event, [`finish`](Self::finish) once its end is
/// stored. A run that was never stored gets [`refused`](Self::refused) alone. Frames are appended to
/// `frames` in the order in which readers get them, each a whole one.
pub(crate) trait Projection: Send {
    /// The run is stored.
    fn begin(&mut self, frames: &mut Vec<Bytes>);

    /// The next event of the run.
    fn event(&mut self, event: &RunEvent, frames: &mut Vec<Bytes>);

    /// The run has ended, and its end is stored. Returns the answer to the request.
    fn finish(&mut self, result: &Result<Outcome, RunFailed>, frames: &mut Vec<Bytes>) -> Answer;

    /// The run did not begin. Returns the error for the request.
    fn refused(&self, error: &RunError) -> ApiError;
}
