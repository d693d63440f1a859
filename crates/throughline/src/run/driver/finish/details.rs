//! What an outcome says beside the messages of the run.

use throughline_compact::Report;
use throughline_model::{Message, Response};
use throughline_wire::Loss;

use crate::prompt::MOST_LOSSES;
use crate::run::outcome::Step;

/// Collects what happened in a run, for its outcome and its end note.
#[derive(Default)]
pub(crate) struct OutcomeDetails {
    pub(crate) steps: Vec<Step>,
    /// What compaction did before the last model call.
    pub(crate) compaction: Option<Report>,
    /// What services did not take in the model calls of the run, each loss once.
    losses: Vec<Loss>,
    /// The id and the upstream of the service that stores the last answer, if no step has them.
    pub(crate) last_service: Option<(String, String)>,
    /// What was received of an answer that was cut off and leaves nothing in the history.
    pub(crate) cut_off: Option<Response>,
    /// What the service did not take in the last model call.
    last_losses: Vec<Loss>,
}

/// What an outcome says beside the messages of the run.
pub(crate) struct OutcomeParts {
    pub(crate) steps: Vec<Step>,
    pub(crate) compaction: Option<Report>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) cut_off: Vec<Message>,
}

impl OutcomeDetails {
    /// Note the losses of a model call.
    pub(crate) fn note_losses(&mut self, losses: Vec<Loss>) {
        self.add_losses(&losses);
        self.last_losses = losses;
    }

    /// Add losses of a model call that the journal has.
    pub(crate) fn add_losses(&mut self, losses: &[Loss]) {
        for loss in losses {
            if self.losses.len() < MOST_LOSSES && !self.losses.contains(loss) {
                self.losses.push(loss.clone());
            }
        }
    }

    /// The losses of the last model call, for its step.
    pub(crate) fn take_last_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.last_losses)
    }

    pub(crate) fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The parts of the outcome.
    pub(crate) fn into_parts(self) -> OutcomeParts {
        OutcomeParts {
            steps: self.steps,
            compaction: self.compaction,
            losses: self.losses,
            cut_off: self.cut_off.map(|cut| cut.messages).unwrap_or_default(),
        }
    }
}
