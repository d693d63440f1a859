//! The output of a response as it grows, and the events of its items.

use throughline_model::json::{RawJson, Value};

use crate::api::openai::items::output::{Draft, ItemStatus};
use crate::api::openai::responses::wire::frame::{EventNumbers, Frame, FrameWriter, ItemPosition};

/// An item of the output.
#[derive(Clone, Debug)]
struct OutputItem {
    id: String,
    /// None while it grows.
    json: Option<String>,
}

/// The items of a response so far, and the number of the next event.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputItems {
    pub(super) numbers: EventNumbers,
    output: Vec<OutputItem>,
    /// The last item that is whole and whose `done` event is deferred: how the response ends may change
    /// its status.
    deferred: Option<(usize, Draft)>,
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
        self.finish_deferred(out, ItemStatus::Completed);
        let index = self.output.len();
        self.output.push(OutputItem { id, json: None });
        self.frames(out)
            .item("response.output_item.added", index, begun);
        index
    }

    /// An event about an item.
    pub(super) fn item_event(
        &mut self,
        out: &mut Vec<Frame>,
        kind: &'static str,
        index: usize,
        room: usize,
        write: impl FnOnce(&mut throughline_model::json::ObjectWriter<'_>),
    ) {
        let id = self.output.get(index).map_or("", |slot| slot.id.as_str());
        FrameWriter::new(out, &mut self.numbers).item_event(
            kind,
            ItemPosition { id, index },
            room,
            write,
        );
    }

    /// The item is done.
    pub(super) fn done(&mut self, out: &mut Vec<Frame>, index: usize, json: String) {
        self.frames(out)
            .item("response.output_item.done", index, &json);
        if let Some(slot) = self.output.get_mut(index) {
            slot.json = Some(json);
        }
    }

    /// The item is whole. Its `done` event is deferred until it is known how the item ended.
    pub(super) fn defer_done(&mut self, out: &mut Vec<Frame>, index: usize, draft: Draft) {
        self.finish_deferred(out, ItemStatus::Completed);
        self.deferred = Some((index, draft));
    }

    /// Write the deferred `done` event, if there is one.
    pub(super) fn finish_deferred(&mut self, out: &mut Vec<Frame>, state: ItemStatus) {
        if let Some((index, draft)) = self.deferred.take() {
            self.finish_item(out, index, &draft, state);
        }
    }

    /// Write the `done` event of an item.
    pub(super) fn finish_item(
        &mut self,
        out: &mut Vec<Frame>,
        index: usize,
        draft: &Draft,
        state: ItemStatus,
    ) {
        let id = self.output.get(index).map_or("", |slot| slot.id.as_str());
        let json = draft.item(id, state);
        self.done(out, index, json);
    }

    /// The id of an item.
    pub(super) fn id(&self, index: usize) -> &str {
        self.output.get(index).map_or("", |slot| slot.id.as_str())
    }

    /// Mark an item as incomplete, also one that is done: its model call broke off.
    pub(super) fn mark_incomplete(&mut self, out: &mut Vec<Frame>, index: usize) {
        if self
            .deferred
            .as_ref()
            .is_some_and(|(deferred, _)| *deferred == index)
        {
            return self.finish_deferred(out, ItemStatus::Incomplete);
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
