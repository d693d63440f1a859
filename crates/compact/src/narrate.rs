//! Asks a model for a summary after an epoch, and checks its answer against the record.
//!
//! The caller sends the request. Digests are made as they would be without it: a summary is one more
//! block beside them, shown from the next epoch on, or nothing.

mod check;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use throughline_model::Message;

use crate::epoch::{Block, Epoch};
use crate::history::ToolHistory;
use crate::narrative::Narrative;
use crate::narrative_outcome::{NarrativeOutcome, NarrativeRejection};
use crate::tokens;
use crate::view::View;

/// Units below which a model is not asked: nothing worth its price fits.
const LEAST: u64 = 64;

/// The part of a record that a model is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrativeScope {
    /// The epoch that was first to digest it.
    pub epoch: u64,
    /// Its first message.
    pub first: u64,
    /// Its last message.
    pub last: u64,
    /// Units that the answer may have: no more than the digest beside which it is to stand.
    pub most: u64,
    /// Who asserted what is in it, in the words of [`Source`](throughline_model::Source).
    pub sources: Vec<String>,
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct NarrativeRequest {
    /// What it is asked about.
    pub part: NarrativeScope,
    /// What it is sent: the beginning of what it was sent before the epoch, so that a vendor's cache
    /// still has it, and then the request.
    pub messages: Vec<Arc<Message>>,
}

impl ToolHistory {
    /// What to ask a model before an epoch is installed; `None` if the policy wants no narrative, or if there is
    /// nothing to summarise.
    ///
    /// ```
    /// use throughline_compact::{Call, Planned, Policy, ToolHistory};
    /// use throughline_model::{CallId, Content, Message, Outcome, Output, Role, ToolCall};
    ///
    /// let policy = Policy { narrative: Some(400), threshold: 500, ..Policy::default() };
    /// let mut history = ToolHistory::new(policy);
    /// history.push(1, Message::user("mend the pier"));
    /// for round in 0..20 {
    ///     let path = format!(r#"{{"path":"/src/pier_{round}.rs"}}"#);
    ///     let call = ToolCall::function(CallId::natural(&format!("c{round}")).unwrap(), "read_file", &path);
    ///     let planks = format!("plank {round} is loose\n").repeat(20);
    ///     let result = call.answer(Outcome::Ok, Output::Text(planks));
    ///     history.push(2 * round + 2, Message::new(Role::Assistant, vec![Content::from(call)]));
    ///     history.push(2 * round + 3, Message::new(Role::Tool, vec![Content::from(result)]));
    /// }
    /// let Planned::Epoch(epoch, _) = history.plan(&Call::default())? else {
    ///     panic!("an epoch is due");
    /// };
    /// let asking = history.narrative_request(&epoch).unwrap();
    /// assert!(history.install(epoch));
    /// // Whatever a model answers, only what the record bears out is shown.
    /// let told = history.narrate(&asking.part, "Planks are loose. See /src/quay.rs for more.");
    /// assert_eq!((told.kept, told.dropped), (1, 1));
    /// # Ok::<(), throughline_compact::BudgetUnreachable>(())
    /// ```
    pub fn narrative_request(&self, epoch: &Epoch) -> Option<NarrativeRequest> {
        let wanted = self.policy.narrative?;
        let new = epoch.blocks.iter();
        let new: Vec<&Arc<Block>> = new
            .filter(|block| block.epoch == epoch.no && !block.narrative)
            .collect();
        let digest: u64 = new.iter().map(|block| block.units).sum();
        let most = wanted.min(digest);
        let cut = self.record.place(epoch.cut_seq);
        let places = self.frame.cut..cut;
        if most < LEAST || places.is_empty() {
            return None;
        }
        let seq = |place: usize| self.record.entries().get(place).map(|entry| entry.seq);
        let mut sources: Vec<String> = new.iter().flat_map(|one| one.sources.clone()).collect();
        sources.sort_unstable();
        sources.dedup();
        let part = NarrativeScope {
            epoch: epoch.no,
            first: seq(places.start)?,
            last: seq(places.end - 1)?,
            most,
            sources,
        };
        let mut view = View::default();
        for message in &self.view.messages[..self.view.head] {
            view.add(Arc::clone(message), 0);
        }
        for place in places {
            view.add_tail(&self.record, place, &self.frame);
        }
        let mut messages = view.messages;
        messages.push(Arc::new(Message::user(request(most))));
        Some(NarrativeRequest { part, messages })
    }

    /// Take in what a model wrote. What the record bears out of it is shown from the next epoch on.
    pub fn narrate(&mut self, part: &NarrativeScope, answer: &str) -> NarrativeOutcome {
        let held = self.epoch().map_or(0, |epoch| epoch.no);
        if held < part.epoch {
            return NarrativeOutcome::refused(part.epoch, NarrativeRejection::Undone);
        }
        if answer.trim().is_empty() {
            return NarrativeOutcome::refused(part.epoch, NarrativeRejection::Blank);
        }
        // A unit is seldom more than a few bytes, and never for long.
        let huge = answer.len() as u64 > part.most.saturating_mul(16);
        if huge || u64::from(tokens::text_units(answer)) > part.most {
            return NarrativeOutcome::refused(part.epoch, NarrativeRejection::Larger);
        }
        self.name_index.extend(&self.record);
        self.learn_facts();
        let checked = check::checked(self, part, answer);
        let mut narrated = NarrativeOutcome {
            epoch: part.epoch,
            kept: checked.kept,
            dropped: checked.dropped,
            ..NarrativeOutcome::default()
        };
        if checked.text.is_empty() {
            narrated.refused = Some(NarrativeRejection::Unfounded);
            return narrated;
        }
        self.narrative = Some(Arc::new(Narrative {
            epoch: part.epoch,
            first: part.first,
            last: part.last,
            text: checked.text,
            sources: part.sources.clone(),
        }));
        narrated
    }
}

/// What a model is asked for.
fn request(most: u64) -> String {
    // A word is about four thirds of a token.
    let words = most * 3 / 5;
    format!(
        "The oldest tool calls above are about to be shown to you as one line each. Write down, in \
         plain sentences and at most {words} words, what those lines will not say: what was decided \
         and why, what was tried and did not work, what is still to be done. NameUse files, commands \
         and ids exactly as they stand above, and none that do not. Do not call tools, and answer \
         with the sentences only."
    )
}
