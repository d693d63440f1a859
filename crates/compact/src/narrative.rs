//! A summary that a model wrote about a part of the record, and its stored form.

use throughline_model::json::{ArrayWriter, ObjectWriter, Value, push_string};

use crate::epoch::Block;
use crate::read_back::SUMMARY;
use crate::tokens;

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

    /// The header before the text, so that a reader does not take it for the record.
    fn header(&self) -> String {
        format!("[Summary of #{} to #{} {SUMMARY}", self.first, self.last)
    }

    pub(crate) fn block(&self, epoch: u64) -> Block {
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
    pub(crate) fn of(block: &Block) -> Option<Self> {
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
    pub(crate) fn joined(mut self, later: &Self, most: u64) -> Self {
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
