//! Whether a model can answer questions about compacted parts of a conversation.
//!
//! A session is compacted as an agent would do it. Then a model is asked for what stands in results
//! that its view does not show in full: with the whole history, with the compacted view alone, and
//! with the view and the tools `expand` and `recall`. The answers are known, so no other model has to
//! judge them.

mod chat;
mod lookup;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::Message;
use throughline_testkit::trajectory::{Question, Session, questions};

pub use chat::{AskError, Endpoint};

/// What the model is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The whole history.
    Raw,
    /// The compacted view.
    Compacted,
    /// The compacted view, and tools that look into the record.
    WithTools,
}

impl Condition {
    /// In the order in which they are asked.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Compacted, Self::WithTools];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Compacted => "compacted",
            Self::WithTools => "with tools",
        }
    }
}

/// The answers under one condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Questions that were answered.
    pub asked: usize,
    /// Right answers.
    pub right: usize,
    /// Questions that the endpoint refused, mostly because the request was too long.
    pub refused: usize,
    /// Calls of tools.
    pub lookups: usize,
}

impl Score {
    /// Adds the counts of another.
    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.right += other.right;
        self.refused += other.refused;
        self.lookups += other.lookups;
    }
}

/// A session as a model would be shown it at its last call, and what can be asked about it.
pub struct Exam {
    record: ToolHistory,
    /// The questions whose answers stand in results that the view does not show in full.
    pub questions: Vec<Question>,
}

impl Exam {
    /// Compacts a session call by call and takes at most so many questions, spread over it.
    pub fn new(session: &Session, budget: u64, most: usize) -> Self {
        let mut record = ToolHistory::new(Policy::with_budget(budget));
        let mut pushed = 0;
        for at in session.model_calls() {
            for message in &session.messages[pushed..at] {
                pushed += 1;
                record.push(pushed as u64, Arc::clone(message));
            }
            if let Ok(Planned::Epoch(epoch, _)) = record.plan(&Call::default()) {
                record.install(epoch);
            }
        }
        let is_compacted = |question: &Question| {
            let shown = &session.messages[question.source];
            question.source < pushed && !record.view().iter().any(|one| Arc::ptr_eq(one, shown))
        };
        let mut all = questions(session);
        all.retain(is_compacted);
        let count = all.len();
        // Evenly spread: the k-th of `most` shares.
        let is_taken = |place: usize| (place + 1) * most / count != place * most / count;
        let taken = all.into_iter().enumerate();
        let taken = taken.filter(|(place, _)| count <= most || is_taken(*place));
        let questions = taken.map(|(_, question)| question).collect();
        Self { record, questions }
    }

    /// Asks a question under a condition.
    ///
    /// # Errors
    ///
    /// If the endpoint cannot be reached or answers in another form. What it refuses is counted.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        question: &Question,
        condition: Condition,
    ) -> Result<Score, AskError> {
        let whole: Vec<Arc<Message>>;
        let (shown, record) = match condition {
            Condition::Raw => {
                whole = self
                    .record
                    .record()
                    .map(|(_, message)| Arc::clone(message))
                    .collect();
                (whole.as_slice(), None)
            }
            Condition::Compacted => (self.record.view(), None),
            Condition::WithTools => (self.record.view(), Some(&self.record)),
        };
        let mut score = Score::default();
        match endpoint.ask(shown, &question.text, record).await {
            Ok(reply) => {
                score.asked = 1;
                score.right = usize::from(question.is_answered_by(&reply.text));
                score.lookups = reply.lookups;
            }
            Err(AskError::Refused { .. }) => score.refused = 1,
            Err(error) => return Err(error),
        }
        Ok(score)
    }
}
