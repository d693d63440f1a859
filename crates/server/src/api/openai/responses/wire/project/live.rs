//! Items that readers see growing. Reasoning is in `reasoning`.

use throughline_model::{Body, Content};

use super::output::OutputItems;
use super::reasoning::LiveReasoning;
use crate::api::openai::items::output::{Draft, ItemStatus, MessageDraft};
use crate::api::openai::responses::wire::frame::Frame;

/// An item that grows, and what readers have seen of it.
#[derive(Clone, Debug)]
pub(super) enum LiveItem {
    Message(LiveMessage),
    Reasoning(LiveReasoning),
}

/// A text that grows.
#[derive(Clone, Debug)]
pub(super) struct LiveMessage {
    index: usize,
    seen: MessageDraft,
    torn: TornChar,
}

/// Whether a character may have been torn in two. Vendors cut their texts anywhere, and what is torn
/// shows as U+FFFD at both ends; what follows is then shown when the whole is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TornChar(bool);

impl TornChar {
    /// Whether nothing more can be shown before the whole is known.
    pub(super) fn is_torn(self) -> bool {
        self.0
    }

    /// As much of a delta as can be shown.
    pub(super) fn complete_part<'d>(&mut self, delta: &'d str) -> &'d str {
        if self.0 {
            return "";
        }
        let sound = delta.trim_end_matches(char::REPLACEMENT_CHARACTER);
        self.0 = sound.len() < delta.len();
        sound
    }
}

/// Readers saw something else than what came in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mismatch;

impl LiveItem {
    /// Close it with what readers have seen. It is no part of the transcript.
    pub(super) fn abandon(self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        match self {
            Self::Message(mut live) => {
                live.close_part(output, out);
                let draft = Draft::Message(live.seen);
                output.finish_item(out, live.index, &draft, ItemStatus::Incomplete);
            }
            Self::Reasoning(live) => live.abandon(output, out),
        }
    }

    /// Whether a content may be what it grows to.
    pub(super) fn may_become(&self, content: &Content) -> bool {
        match (self, &content.body) {
            (Self::Message(live), Body::Text(text)) => {
                !live.seen.refusal && text.text.starts_with(&live.seen.text)
            }
            (Self::Message(live), Body::Refusal(text)) => {
                live.seen.refusal && text.text.starts_with(&live.seen.text)
            }
            (Self::Reasoning(_), Body::Reasoning(_)) => true,
            _ => false,
        }
    }

    /// Where the item stands in the output.
    pub(super) fn index(&self) -> usize {
        match self {
            Self::Message(live) => live.index,
            Self::Reasoning(live) => live.index(),
        }
    }
}

impl LiveMessage {
    /// Begin a message and its part.
    pub(super) fn open(
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        id: String,
        refusal: bool,
    ) -> Self {
        let begun = MessageDraft::in_progress(&id);
        let index = output.add(out, id, &begun);
        let seen = MessageDraft::empty(refusal);
        output.item_event(out, "response.content_part.added", index, 96, |object| {
            object.number("content_index", 0).raw("part", &seen.part());
        });
        Self {
            index,
            seen,
            torn: TornChar::default(),
        }
    }

    /// Whether it is a refusal.
    pub(super) fn is_refusal(&self) -> bool {
        self.seen.refusal
    }

    /// More text.
    pub(super) fn delta(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>, delta: &str) {
        let sound = self.torn.complete_part(delta);
        self.show(output, out, sound);
    }

    fn show(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.seen.text.push_str(delta);
        let kind = match self.seen.refusal {
            true => "response.refusal.delta",
            false => "response.output_text.delta",
        };
        let refusal = self.seen.refusal;
        output.item_event(out, kind, self.index, delta.len() + 64, |object| {
            object.number("content_index", 0).str("delta", delta);
            if !refusal {
                object.raw("logprobs", "[]");
            }
        });
    }

    /// The text is whole.
    pub(super) fn close(
        mut self,
        output: &mut OutputItems,
        out: &mut Vec<Frame>,
        whole: MessageDraft,
    ) -> Result<(), (LiveItem, Mismatch)> {
        let rest = whole.text.strip_prefix(&*self.seen.text);
        let Some(rest) = rest.filter(|_| whole.refusal == self.seen.refusal) else {
            return Err((LiveItem::Message(self), Mismatch));
        };
        let rest = rest.to_owned();
        self.show(output, out, &rest);
        for (number, annotation) in whole.annotations.iter().enumerate() {
            let kind = "response.output_text.annotation.added";
            output.item_event(out, kind, self.index, annotation.len() + 64, |object| {
                object
                    .number("content_index", 0)
                    .number("annotation_index", number as u64)
                    .raw("annotation", annotation);
            });
        }
        self.seen = whole;
        self.close_part(output, out);
        output.defer_done(out, self.index, Draft::Message(self.seen));
        Ok(())
    }

    fn close_part(&mut self, output: &mut OutputItems, out: &mut Vec<Frame>) {
        let MessageDraft {
            text,
            refusal,
            logprobs,
            ..
        } = &self.seen;
        let kind = match refusal {
            true => "response.refusal.done",
            false => "response.output_text.done",
        };
        output.item_event(out, kind, self.index, text.len() + 64, |object| {
            object.number("content_index", 0);
            match refusal {
                true => object.str("refusal", text),
                false => object
                    .str("text", text)
                    .raw("logprobs", logprobs.as_deref().unwrap_or("[]")),
            };
        });
        let kind = "response.content_part.done";
        output.item_event(out, kind, self.index, text.len() + 128, |object| {
            let part = self.seen.part();
            object.number("content_index", 0).raw("part", &part);
        });
    }
}
