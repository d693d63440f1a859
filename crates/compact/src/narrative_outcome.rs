//! The result of asking a model for a summary.

use std::fmt;

use throughline_model::Path;
use throughline_model::json::{ObjectWriter, Value};
use throughline_model::stored::{Fields, StoredError};

/// Why nothing that a model wrote is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NarrativeRejection {
    /// The model could not be asked, or did not answer.
    Failed,
    /// It took too long.
    Late,
    /// The model's answer was empty.
    Blank,
    /// The answer was longer than the digest that it complements.
    Larger,
    /// The record bears out no sentence of it.
    Unfounded,
    /// The epoch that it belongs to was taken back.
    Undone,
}

impl NarrativeRejection {
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

    /// The reason as text for people.
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

/// The result of asking a model for a summary, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NarrativeOutcome {
    /// The epoch after which it was asked for.
    pub epoch: u64,
    /// Why nothing of it is shown, if nothing is.
    pub refused: Option<NarrativeRejection>,
    /// Sentences that are shown from the next epoch on.
    pub kept: u64,
    /// Sentences that the record does not bear out.
    pub dropped: u64,
    /// Tokens that were billed for what the model was sent.
    pub input: u64,
    /// Tokens that were billed for what it wrote.
    pub output: u64,
}

impl NarrativeOutcome {
    /// A summary that was refused.
    pub fn refused(epoch: u64, why: NarrativeRejection) -> Self {
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
    /// use throughline_compact::{NarrativeOutcome, NarrativeRejection};
    ///
    /// let lost = NarrativeOutcome::refused(2, NarrativeRejection::Late).costing(900, 0);
    /// let mut text = String::new();
    /// lost.write(&mut text);
    /// assert_eq!(NarrativeOutcome::from_json(&text).unwrap(), lost);
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

    /// Read what [`NarrativeOutcome::write`] wrote.
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
            refused: refused
                .map(|word| NarrativeRejection::named(&word).unwrap_or(NarrativeRejection::Failed)),
        })
    }
}

impl fmt::Display for NarrativeOutcome {
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
