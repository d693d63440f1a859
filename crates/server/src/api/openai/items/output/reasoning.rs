//! Reasoning of the model.

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{Body, Content};

use super::super::envelope;
use super::{Dialect, ItemBuilder, ItemStatus};

/// The readable part of the model's reasoning, and the token to send it back in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReasoningDraft {
    pub(crate) summary: Vec<String>,
    /// The reasoning itself: one text, whatever number of pieces the vendor made of it.
    pub(crate) text: String,
    pub(crate) sealed: Option<String>,
    pub(crate) dialect: Dialect,
}

impl ItemBuilder<'_> {
    /// The reasoning of a content; `None` if the content is something else.
    pub(crate) fn reasoning_draft(&self, content: &Content) -> Option<ReasoningDraft> {
        let Body::Reasoning(reasoning) = &content.body else {
            return None;
        };
        let (mut summary, mut text) = (reasoning.summary.clone(), reasoning.text.concat());
        if self.summarizes && summary.is_empty() && !text.is_empty() {
            summary.push(std::mem::take(&mut text));
        }
        Some(ReasoningDraft {
            summary,
            text,
            sealed: self.seals.then(|| envelope::seal(content, self.model)),
            dialect: self.dialect,
        })
    }
}

impl ReasoningDraft {
    /// One part of the summary.
    pub(crate) fn summary_part(text: &str) -> String {
        part("summary_text", text)
    }

    /// The reasoning itself.
    pub(crate) fn text_part(text: &str) -> String {
        part("reasoning_text", text)
    }

    /// The item.
    pub(crate) fn item(&self, id: &str, state: ItemStatus) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.str("id", id).str("type", "reasoning");
        // The other specification's item has no such member.
        if self.dialect == Dialect::OpenAi {
            object.str("status", state.as_str());
        }
        let mut list = ArrayWriter::new(object.key("summary"));
        for text in &self.summary {
            list.raw(&Self::summary_part(text));
        }
        list.end();
        let mut list = ArrayWriter::new(object.key("content"));
        if !self.text.is_empty() {
            list.raw(&Self::text_part(&self.text));
        }
        list.end();
        if let Some(sealed) = &self.sealed {
            object.str("encrypted_content", sealed);
        }
        object.end();
        out
    }
}

fn part(tag: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + 48);
    let mut object = ObjectWriter::new(&mut out);
    object.str("type", tag).str("text", text);
    object.end();
    out
}
