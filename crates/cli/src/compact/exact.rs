//! Tokens counted with a published vocabulary, beside the estimate: `--count exact`.
//!
//! The tables of the vocabularies are large, so a build has them only with the feature
//! `exact-tokens`.

use throughline_compact::tokens;
use throughline_model::Request;
use throughline_model::json::ObjectWriter;

use super::for_each_text_beside;
use crate::args::{TokenCount, Vocabulary};
use crate::failure::Failure;

/// The tokens of what is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactCount {
    vocabulary: Vocabulary,
    tokens: u64,
    /// The estimate for a vocabulary of OpenAI.
    estimated: u64,
}

impl ExactCount {
    /// Counts system text, tools and messages, if that was asked for. What is no text, such as the
    /// frame of a message or a picture, counts as in the estimate.
    pub(crate) fn of(request: &Request, asked: TokenCount) -> Result<Option<Self>, Failure> {
        let TokenCount::Exact(vocabulary) = asked else {
            return Ok(None);
        };
        let count = counter(vocabulary)?;
        let (mut exact, mut estimated) = (0, 0);
        let mut text = |text: &str| {
            exact += count(text);
            estimated += u64::from(tokens::text_units(text));
        };
        for_each_text_beside(request, &mut text);
        let mut frames = 0;
        for message in &request.messages {
            frames += u64::from(tokens::for_each_text(message, &mut text));
        }
        Ok(Some(Self {
            vocabulary,
            tokens: exact + frames,
            estimated: estimated + frames,
        }))
    }

    /// The line for people.
    pub(crate) fn line(&self) -> String {
        format!(
            "Counted with {}: {} tokens; estimated: {}.",
            self.vocabulary.name(),
            self.tokens,
            self.estimated
        )
    }

    /// `{"vocabulary","tokens","estimated"}`
    pub(crate) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object
            .str("vocabulary", self.vocabulary.name())
            .number("tokens", self.tokens)
            .number("estimated", self.estimated);
        object.end();
    }
}

#[cfg(feature = "exact-tokens")]
fn counter(vocabulary: Vocabulary) -> Result<impl Fn(&str) -> u64, Failure> {
    let vocabulary = match vocabulary {
        Vocabulary::O200k => bpe_openai::o200k_base(),
        Vocabulary::Cl100k => bpe_openai::cl100k_base(),
    };
    Ok(|text: &str| vocabulary.count(text) as u64)
}

#[cfg(not(feature = "exact-tokens"))]
fn counter(_: Vocabulary) -> Result<fn(&str) -> u64, Failure> {
    Err(Failure::usage(
        "--count exact needs the vocabularies, which this build does not have; build it with \
         `--features exact-tokens`, or leave the option out for estimates",
    ))
}
