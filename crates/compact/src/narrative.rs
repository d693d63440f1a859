//! What a model may say beside digests: asked for after an epoch, held against the record, shown
//! from the next epoch on.
//!
//! Asking is somebody else's business. Whatever comes of it, digests are made as they would be
//! without; a narrative is one more block beside them, or nothing.

mod check;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use throughline_model::json::{ArrayWriter, ObjectWriter, Value, push_string};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Message, Path};

use crate::epoch::{Block, Epoch};
use crate::history::ToolHistory;
use crate::plan::Draft;
use crate::policy::Policy;
use crate::tokens;
use crate::view::View;

/// Units below which a model is not asked: nothing worth its price fits.
const LEAST: u64 = 64;

/// The part of a record that a model is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
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
pub struct Asking {
    /// What it is asked about.
    pub part: Part,
    /// What it is sent: the beginning of what it was sent before the epoch, so that a vendor's cache
    /// still has it, and then the request.
    pub messages: Vec<Arc<Message>>,
}

/// What a model wrote about a part of a record, as far as the record bears it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrative {
    /// The epoch that was first to digest the part.
    pub epoch: u64,
    /// The first message that it is about.
    pub first: u64,
    /// The last message that it is about.
    pub last: u64,
    /// What is left of its words.
    pub text: String,
    /// Who asserted what it is about.
    pub sources: Vec<String>,
}

/// Why nothing that a model wrote is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// The model could not be asked, or did not answer.
    Failed,
    /// It took too long.
    Late,
    /// It said nothing.
    Blank,
    /// It said more than the digest that it was to stand beside.
    Larger,
    /// The record bears out no sentence of it.
    Unfounded,
    /// The epoch that it belongs to was taken back.
    Undone,
}

impl Refused {
    const ALL: [Self; 6] = [
        Self::Failed,
        Self::Late,
        Self::Blank,
        Self::Larger,
        Self::Unfounded,
        Self::Undone,
    ];

    /// The word in the stored form.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Late => "late",
            Self::Blank => "blank",
            Self::Larger => "larger",
            Self::Unfounded => "unfounded",
            Self::Undone => "undone",
        }
    }

    /// The reason with a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refused| refused.word() == word)
    }

    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "the model did not answer",
            Self::Late => "the model took too long",
            Self::Blank => "the model said nothing",
            Self::Larger => "it is larger than the digest",
            Self::Unfounded => "the record does not bear it out",
            Self::Undone => "its epoch was taken back",
        }
    }
}

/// What became of a summary that a model was asked for, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Narrated {
    /// The epoch after which it was asked for.
    pub epoch: u64,
    /// Why nothing of it is shown, if nothing is.
    pub refused: Option<Refused>,
    /// Sentences that are shown from the next epoch on.
    pub kept: u64,
    /// Sentences that the record does not bear out.
    pub dropped: u64,
    /// Tokens that were billed for what the model was sent.
    pub input: u64,
    /// Tokens that were billed for what it wrote.
    pub output: u64,
}

impl Narrated {
    /// Nothing came of it.
    pub fn refused(epoch: u64, why: Refused) -> Self {
        Self {
            epoch,
            refused: Some(why),
            ..Self::default()
        }
    }

    /// With what was billed for it.
    #[must_use]
    pub fn costing(self, input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            ..self
        }
    }

    /// Write it as an object.
    ///
    /// ```
    /// use throughline_compact::{Narrated, Refused};
    ///
    /// let lost = Narrated::refused(2, Refused::Late).costing(900, 0);
    /// let mut text = String::new();
    /// lost.write(&mut text);
    /// assert_eq!(Narrated::from_json(&text).unwrap(), lost);
    /// ```
    pub fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.number("epoch", self.epoch);
        if let Some(refused) = self.refused {
            object.str("refused", refused.word());
        }
        object
            .number("kept", self.kept)
            .number("dropped", self.dropped)
            .number("input_tokens", self.input)
            .number("output_tokens", self.output);
        object.end();
    }

    /// Read what [`Narrated::write`] wrote.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn from_json(text: &str) -> Result<Self, StoredError> {
        let value = throughline_model::json::parse(text)?;
        Self::read(&value, &Path::Root)
    }

    pub(crate) fn read(value: &Value<'_>, path: &Path<'_>) -> Result<Self, StoredError> {
        let mut fields = Fields::of(value, path)?;
        let refused = fields.str("refused")?;
        let mut number = |key: &str| Ok::<u64, StoredError>(fields.number(key)?.unwrap_or(0));
        Ok(Self {
            epoch: number("epoch")?,
            kept: number("kept")?,
            dropped: number("dropped")?,
            input: number("input_tokens")?,
            output: number("output_tokens")?,
            // A reason of a later version is still one.
            refused: refused.map(|word| Refused::named(&word).unwrap_or(Refused::Failed)),
        })
    }
}

impl fmt::Display for Narrated {
    /// One sentence for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cost = self.input + self.output;
        match self.refused {
            Some(refused) => write!(f, "No summary: {}", refused.as_str())?,
            None => write!(f, "Summary of {} sentences", self.kept)?,
        }
        if self.dropped > 0 {
            write!(f, ", {} dropped", self.dropped)?;
        }
        write!(f, ", {cost} tokens.")
    }
}

impl Narrative {
    pub(crate) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object
            .number("epoch", self.epoch)
            .number("first", self.first)
            .number("last", self.last)
            .str("text", &self.text);
        let mut sources = ArrayWriter::new(object.key("sources"));
        for source in &self.sources {
            push_string(sources.slot(), source);
        }
        sources.end();
        object.end();
    }

    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let number = |key: &str| value.get(key)?.as_u64();
        let sources = value.get("sources").and_then(Value::as_array);
        let sources = sources.unwrap_or_default().iter();
        Some(Self {
            epoch: number("epoch")?,
            first: number("first")?,
            last: number("last")?,
            text: value.get("text")?.as_str()?.into_owned(),
            sources: sources
                .filter_map(|one| one.as_str().map(std::borrow::Cow::into_owned))
                .collect(),
        })
    }

    /// What stands before the words, so that nobody takes them for the record.
    fn header(&self) -> String {
        format!(
            "[Summary of #{} to #{} in a model's words; what was recorded goes before it.]",
            self.first, self.last
        )
    }

    fn block(&self, epoch: u64) -> Block {
        let mut block = Block {
            epoch,
            first: self.first,
            last: self.last,
            text: format!("{}\n{}", self.header(), self.text),
            sources: self.sources.clone(),
            narrative: true,
            ..Block::default()
        };
        // What the message itself is counted as, so that a view adds up.
        block.units = block
            .message()
            .map_or(0, |message| tokens::units(&message).into());
        block
    }

    /// What a block was made of.
    fn of(block: &Block) -> Option<Self> {
        let (_, text) = block.text.split_once('\n').filter(|_| block.narrative)?;
        Some(Self {
            epoch: block.epoch,
            first: block.first,
            last: block.last,
            text: text.to_owned(),
            sources: block.sources.clone(),
        })
    }

    /// Both in one, the newest lines first to stay.
    fn joined(mut self, later: &Self, most: u64) -> Self {
        let all = format!("{}\n{}", self.text, later.text);
        let mut text = all.as_str();
        while u64::from(tokens::text_units(text)) > most {
            let Some((_, rest)) = text.split_once('\n') else {
                break;
            };
            text = rest;
        }
        self.text = text.to_owned();
        self.epoch = later.epoch;
        self.first = self.first.min(later.first);
        self.last = self.last.max(later.last);
        self.sources.extend(later.sources.iter().cloned());
        self.sources.sort_unstable();
        self.sources.dedup();
        self
    }
}

impl ToolHistory {
    /// What to ask a model before an epoch is installed; `None` if the policy wants no narrative,
    /// or if there is nothing to tell.
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
    /// let asking = history.asking(&epoch).unwrap();
    /// assert!(history.install(epoch));
    /// // Whatever a model answers, only what the record bears out is shown.
    /// let told = history.narrate(&asking.part, "Planks are loose. See /src/quay.rs for more.");
    /// assert_eq!((told.kept, told.dropped), (1, 1));
    /// # Ok::<(), throughline_compact::BudgetUnreachable>(())
    /// ```
    pub fn asking(&self, epoch: &Epoch) -> Option<Asking> {
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
        let part = Part {
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
        Some(Asking { part, messages })
    }

    /// Take in what a model wrote. What the record bears out of it is shown from the next epoch on.
    pub fn narrate(&mut self, part: &Part, said: &str) -> Narrated {
        let held = self.epoch().map_or(0, |epoch| epoch.no);
        if held < part.epoch {
            return Narrated::refused(part.epoch, Refused::Undone);
        }
        if said.trim().is_empty() {
            return Narrated::refused(part.epoch, Refused::Blank);
        }
        // A unit is seldom more than a few bytes, and never for long.
        let huge = said.len() as u64 > part.most.saturating_mul(16);
        if huge || u64::from(tokens::text_units(said)) > part.most {
            return Narrated::refused(part.epoch, Refused::Larger);
        }
        self.atoms.extend(&self.record);
        self.learn_facts();
        let checked = check::checked(self, part, said);
        let mut narrated = Narrated {
            epoch: part.epoch,
            kept: checked.kept,
            dropped: checked.dropped,
            ..Narrated::default()
        };
        if checked.text.is_empty() {
            narrated.refused = Some(Refused::Unfounded);
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

    /// The narrative that waits for the next epoch.
    pub fn narrative(&self) -> Option<&Arc<Narrative>> {
        self.narrative.as_ref()
    }

    /// What waits is of no use any more: it is shown, or its epoch was taken back.
    pub(crate) fn settle_narrative(&mut self) {
        let Some(waiting) = &self.narrative else {
            return;
        };
        let held = self.epoch();
        let is_shown = |block: &Arc<Block>| block.narrative && block.last >= waiting.last;
        let settled = match held {
            None => true,
            Some(held) => held.no < waiting.epoch || held.blocks.iter().any(is_shown),
        };
        if settled {
            self.narrative = None;
        }
    }
}

/// A view as it would be after an epoch, with what a model wrote beside it if that fits.
pub(crate) fn beside(history: &ToolHistory, draft: Draft, room: Option<u64>) -> Draft {
    let no = history.last_no + 1;
    let waiting = history.narrative.as_deref();
    let placed = if draft.major {
        // Older blocks are made into one; so is what was told beside them.
        let held = history.epoch().map_or(&[][..], |epoch| &epoch.blocks);
        let most = history.policy.narrative.unwrap_or_default();
        let told = held.iter().filter_map(|block| Narrative::of(block));
        let told = told.chain(waiting.cloned());
        let told = told.reduce(|one, later| one.joined(&later, most));
        let ledgers = draft.blocks.iter().rposition(|block| block.ledger);
        told.map(|told| (ledgers.map_or(draft.blocks.len(), |at| at + 1), told))
    } else {
        let old = draft.blocks.iter().filter(|block| block.epoch != no);
        waiting.map(|told| (old.count(), told.clone()))
    };
    let Some((place, told)) = placed else {
        return draft;
    };
    let with = draft.with(history, place, told.block(no));
    let gains = 100 - history.policy.min_gain.min(100);
    let worth = history.view.units * gains / 100;
    let fits = with.view.units <= worth && room.is_none_or(|room| with.view.units <= room);
    match fits {
        true => with,
        false => draft,
    }
}

/// What a model is asked for.
fn request(most: u64) -> String {
    // A word is about four thirds of a token.
    let words = most * 3 / 5;
    format!(
        "The oldest tool calls above are about to be shown to you as one line each. Write down, in \
         plain sentences and at most {words} words, what those lines will not say: what was decided \
         and why, what was tried and did not work, what is still to be done. Name files, commands \
         and ids exactly as they stand above, and none that do not. Do not call tools, and answer \
         with the sentences only."
    )
}

impl Policy {
    /// The same, with what a model writes beside digests: at most so many tokens each time.
    #[must_use]
    pub fn narrated(self, tokens: u64) -> Self {
        Self {
            narrative: Some(tokens),
            ..self
        }
    }
}
