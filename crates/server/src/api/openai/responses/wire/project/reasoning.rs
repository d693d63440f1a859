//! Reasoning that readers see growing.

use throughline_model::json::ObjectWriter;

use super::live::{LiveItem, Mismatch, TornChar};
use super::output::OutputItems;
use crate::api::openai::items::output::{Draft, ItemStatus, ReasoningDraft};
use crate::api::openai::responses::wire::frame::Frame;
use crate::config::Dialect;

/// Reasoning that grows: parts of a summary one after the other, and the reasoning itself.
#[derive(Clone, Debug)]
pub(super) struct LiveReasoning {
    index: usize,
    seen: ReasoningDraft,
    /// The last part of the summary is not done.
    summary_open: bool,
    /// The reasoning itself has begun.
    text_open: bool,
    /// The summary is the reasoning itself.
    text_is_summary: bool,
    torn: TornChar,
}

/// How many parts of a summary may be skipped.
const MOST_SKIPPED: usize = 16;

impl LiveReasoning {
    /// Where the item stands in the output.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Close it with what readers have seen.
    pub(super) fn abandon(mut self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        self.close_parts(output, out);
        let draft = Draft::Reasoning(self.seen);
        output.finish_item(out, self.index, &draft, ItemStatus::Incomplete);
    }

    /// Begin a reasoning item.
    pub(super) fn open(
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        id: String,
        dialect: Dialect,
    ) -> Self {
        let seen = ReasoningDraft {
            dialect,
            ..ReasoningDraft::default()
        };
        let begun = seen.item(&id, ItemStatus::InProgress);
        let index = output.add(out, id, &begun);
        Self {
            index,
            seen,
            summary_open: false,
            text_open: false,
            text_is_summary: false,
            torn: TornChar::default(),
        }
    }

    /// Whether the vendor sends a summary beside the reasoning itself.
    pub(super) fn has_summary_of_its_own(&self) -> bool {
        !self.seen.summary.is_empty() && !self.text_is_summary
    }

    /// More of the reasoning itself, shown as its summary.
    pub(super) fn text_as_summary(
        &mut self,
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        delta: &str,
    ) {
        self.text_is_summary = true;
        self.summary(output, out, 0, delta);
    }

    /// More of a part of the summary.
    pub(super) fn summary(
        &mut self,
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        part: usize,
        delta: &str,
    ) {
        // Higher indexes are not followed; the finished item shows all of them.
        if self.torn.is_torn() || part > self.seen.summary.len() + MOST_SKIPPED {
            return;
        }
        let sound = self.torn.complete_part(delta);
        self.show_summary(output, out, part, sound);
    }

    fn show_summary(
        &mut self,
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        part: usize,
        delta: &str,
    ) {
        while self.seen.summary.len() <= part {
            self.close_summary(output, out);
            self.open_summary(output, out);
        }
        // A part that is done does not grow; what comes late is shown with the whole.
        let last = part + 1 == self.seen.summary.len() && self.summary_open;
        if delta.is_empty() || !last {
            return;
        }
        if let Some(text) = self.seen.summary.last_mut() {
            text.push_str(delta);
        }
        let kind = "response.reasoning_summary_text.delta";
        output.item_event(out, kind, self.index, delta.len() + 64, |object| {
            object
                .number("summary_index", part as u64)
                .str("delta", delta);
        });
    }

    fn open_summary(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        let number = self.seen.summary.len() as u64;
        self.seen.summary.push(String::new());
        self.summary_open = true;
        let part = ReasoningDraft::summary_part("");
        let kind = "response.reasoning_summary_part.added";
        output.item_event(out, kind, self.index, part.len() + 32, |object| {
            object.number("summary_index", number).raw("part", &part);
        });
    }

    fn close_summary(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        let (true, Some(text)) = (self.summary_open, self.seen.summary.last()) else {
            return;
        };
        self.summary_open = false;
        let number = (self.seen.summary.len() - 1) as u64;
        let with_text = |object: &mut ObjectWriter<'_>| {
            object.number("summary_index", number).str("text", text);
        };
        let kind = "response.reasoning_summary_text.done";
        output.item_event(out, kind, self.index, text.len() + 64, with_text);
        let part = ReasoningDraft::summary_part(text);
        let kind = "response.reasoning_summary_part.done";
        output.item_event(out, kind, self.index, part.len() + 32, |object| {
            object.number("summary_index", number).raw("part", &part);
        });
    }

    /// More of the reasoning itself.
    pub(super) fn text(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>, delta: &str) {
        let sound = self.torn.complete_part(delta);
        self.show_text(output, out, sound);
    }

    fn show_text(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.close_summary(output, out);
        if !self.text_open {
            self.text_open = true;
            let part = ReasoningDraft::text_part("");
            output.item_event(
                out,
                "response.content_part.added",
                self.index,
                part.len(),
                |object| {
                    object.number("content_index", 0).raw("part", &part);
                },
            );
        }
        self.seen.text.push_str(delta);
        let kind = match self.seen.dialect {
            Dialect::OpenAi => "response.reasoning_text.delta",
            Dialect::OpenResponses => "response.reasoning.delta",
        };
        output.item_event(out, kind, self.index, delta.len() + 64, |object| {
            object.number("content_index", 0).str("delta", delta);
        });
    }

    fn close_text(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        if !self.text_open {
            return;
        }
        self.text_open = false;
        let text = &self.seen.text;
        let kind = match self.seen.dialect {
            Dialect::OpenAi => "response.reasoning_text.done",
            Dialect::OpenResponses => "response.reasoning.done",
        };
        output.item_event(out, kind, self.index, text.len() + 64, |object| {
            object.number("content_index", 0).str("text", text);
        });
        let part = ReasoningDraft::text_part(text);
        output.item_event(
            out,
            "response.content_part.done",
            self.index,
            part.len(),
            |object| {
                object.number("content_index", 0).raw("part", &part);
            },
        );
    }

    fn close_parts(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        self.close_summary(output, out);
        self.close_text(output, out);
    }

    /// The reasoning is whole.
    pub(super) fn close(
        mut self,
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        whole: ReasoningDraft,
    ) -> Result<(), (LiveItem, Mismatch)> {
        let Some((summary, text)) = self.rest(&whole) else {
            return Err((LiveItem::Reasoning(self), Mismatch));
        };
        if self.text_open {
            self.show_text(output, out, &text);
            self.close_text(output, out);
        }
        for (part, more) in summary {
            self.show_summary(output, out, part, &more);
        }
        if self.seen.text != whole.text {
            self.show_text(output, out, &text);
        }
        self.close_parts(output, out);
        output.defer_done(out, self.index, Draft::Reasoning(whole));
        Ok(())
    }

    /// What readers have not seen yet; `None` if the whole does not begin with what they saw.
    fn rest(&self, whole: &ReasoningDraft) -> Option<(Vec<(usize, String)>, String)> {
        let seen = &self.seen.summary;
        let mut summary = Vec::new();
        if seen.len() > whole.summary.len() {
            return None;
        }
        for (part, text) in whole.summary.iter().enumerate() {
            let shown = seen.get(part).map_or("", String::as_str);
            let rest = text.strip_prefix(shown)?;
            let grows = part >= seen.len() || part + 1 == seen.len() && self.summary_open;
            if !grows && !rest.is_empty() {
                return None;
            }
            if grows {
                summary.push((part, rest.to_owned()));
            }
        }
        let text = whole.text.strip_prefix(&*self.seen.text)?;
        Some((summary, text.to_owned()))
    }
}
