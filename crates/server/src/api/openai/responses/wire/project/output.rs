//! The output of a response as it grows, and the events of its items.

use throughline_model::json::{RawJson, Value};

use crate::api::openai::items::output::{Draft, ItemStatus};
use crate::api::openai::responses::wire::frame::{Frame, FrameWriter, Numbers, Spot};

/// An item of the output.
#[derive(Clone, Debug)]
struct Slot {
    id: String,
    /// None while it grows.
    json: Option<String>,
}

/// The items of a response so far, and the number of the next event.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputItems {
    pub(super) numbers: Numbers,
    output: Vec<Slot>,
    /// The last item that is whole and whose `done` is still owed: how the response ends may change
    /// what it says.
    owed: Option<(usize, Draft)>,
}

impl OutputItems {
    /// A writer of events.
    pub(super) fn frames<'s>(&'s mut self, out: &'s mut Vec<Frame>) -> FrameWriter<'s> {
        FrameWriter::new(out, &mut self.numbers)
    }

    /// The items that are done.
    pub(super) fn done_items(&self) -> impl Iterator<Item = &str> + Clone {
        self.output.iter().filter_map(|slot| slot.json.as_deref())
    }

    /// Begin an item.
    pub(super) fn add(&mut self, out: &mut Vec<Frame>, id: String, begun: &str) -> usize {
        self.settle(out, ItemStatus::Completed);
        let index = self.output.len();
        self.output.push(Slot { id, json: None });
        self.frames(out)
            .item("response.output_item.added", index, begun);
        index
    }

    /// An event about an item.
    pub(super) fn at(
        &mut self,
        out: &mut Vec<Frame>,
        kind: &'static str,
        index: usize,
        room: usize,
        write: impl FnOnce(&mut throughline_model::json::ObjectWriter<'_>),
    ) {
        let id = self.output.get(index).map_or("", |slot| slot.id.as_str());
        FrameWriter::new(out, &mut self.numbers).at(kind, Spot { id, index }, room, write);
    }

    /// The item is done.
    pub(super) fn done(&mut self, out: &mut Vec<Frame>, index: usize, json: String) {
        self.frames(out)
            .item("response.output_item.done", index, &json);
        if let Some(slot) = self.output.get_mut(index) {
            slot.json = Some(json);
        }
    }

    /// The item is whole; that it is done is said when it is known how it ended.
    pub(super) fn owe(&mut self, out: &mut Vec<Frame>, index: usize, draft: Draft) {
        self.settle(out, ItemStatus::Completed);
        self.owed = Some((index, draft));
    }

    /// Say that the last item is done, if that is still owed.
    pub(super) fn settle(&mut self, out: &mut Vec<Frame>, state: ItemStatus) {
        if let Some((index, draft)) = self.owed.take() {
            self.finish(out, index, &draft, state);
        }
    }

    /// Say that an item is done.
    pub(super) fn finish(
        &mut self,
        out: &mut Vec<Frame>,
        index: usize,
        draft: &Draft,
        state: ItemStatus,
    ) {
        let id = self.output.get(index).map_or("", |slot| slot.id.as_str());
        let json = draft.whole(id, state);
        self.done(out, index, json);
    }

    /// The id of an item.
    pub(super) fn id(&self, index: usize) -> &str {
        self.output.get(index).map_or("", |slot| slot.id.as_str())
    }

    /// The item came to nothing, whatever it was when it was done: its model call broke off.
    pub(super) fn supersede(&mut self, out: &mut Vec<Frame>, index: usize) {
        if self.owed.as_ref().is_some_and(|(owed, _)| *owed == index) {
            return self.settle(out, ItemStatus::Incomplete);
        }
        let Some(json) = self
            .output
            .get_mut(index)
            .and_then(|slot| slot.json.as_mut())
        else {
            return;
        };
        let Ok(raw) = RawJson::new(json) else {
            return;
        };
        let whole = raw.value();
        let tag = whole.get("type").and_then(Value::as_str);
        let word = ItemStatus::Incomplete.of(&tag.unwrap_or_default());
        if let Some(status) = whole.get("status") {
            *json = RawJson::of_with(&whole, &[(status, &format!("\"{word}\""))])
                .get()
                .to_owned();
        }
    }
}
