//! One model call: what readers have seen of its answer, and the items that it became.

use std::collections::BTreeMap;

use throughline_model::{Body, Content, Message, Place, Status as MessageStatus};

use super::Projector;
use super::live::{LiveItem, LiveMessage};
use super::output::OutputItems;
use super::reasoning::LiveReasoning;
use crate::api::openai::items::ids::{ItemId, ItemPlace, prefix_of};
use crate::api::openai::items::output::{Draft, ItemStatus};
use crate::api::openai::responses::wire::frame::Frame;

/// What a text delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Refusal,
}

/// What readers have seen at a position of an answer.
#[derive(Clone, Debug)]
pub(super) enum StepSlot {
    /// An item that grows.
    Live(Box<LiveItem>),
    /// A whole content that is shown when the answer is whole.
    Held(Box<Content>),
    /// An item that is whole, or nothing, where there is no item for it.
    Shown(Option<usize>),
}

/// A model call that is being answered.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) no: u32,
    /// How often it was made before, as readers saw it.
    again: u32,
    /// The numbers of its next items, by the prefix of their ids.
    numbers: BTreeMap<&'static str, u32>,
    pub(super) slots: BTreeMap<Place, StepSlot>,
    /// Items that grew at a place where something else came in the end. They may stand elsewhere.
    stray: Vec<LiveItem>,
    /// Something that readers saw was discarded.
    broken: bool,
    pub(super) phase: Option<String>,
    /// How many calls of an id were made in a message, by attempt and message.
    calls: BTreeMap<(u32, usize, String), u32>,
}

impl Step {
    fn new(no: u32, again: u32) -> Self {
        Self {
            no,
            again,
            numbers: BTreeMap::new(),
            slots: BTreeMap::new(),
            stray: Vec::new(),
            broken: false,
            phase: None,
            calls: BTreeMap::new(),
        }
    }

    /// An item that grew elsewhere and may become a content.
    fn take_stray(&mut self, content: &Content) -> Option<LiveItem> {
        let place = self
            .stray
            .iter()
            .position(|live| live.may_become(content))?;
        Some(self.stray.remove(place))
    }

    /// How many calls of the same id stand before a call in its message. Contents come in order.
    pub(super) fn occurrence(&mut self, at: Place, content: &Content) -> u32 {
        let Some(call) = content.as_tool_call() else {
            return 0;
        };
        let attempt = self.again + u32::from(self.broken);
        let key = (attempt, at.choice, call.call.value().to_owned());
        let count = self.calls.entry(key).or_default();
        *count += 1;
        *count - 1
    }

    /// The place of the next item of a kind.
    fn next(&mut self, prefix: &'static str) -> ItemPlace {
        if self.broken {
            // The model call is repeated: its items get other ids than those that were discarded.
            *self = Self {
                slots: std::mem::take(&mut self.slots),
                stray: std::mem::take(&mut self.stray),
                calls: std::mem::take(&mut self.calls),
                ..Self::new(self.no, self.again + 1)
            };
        }
        let next = self.numbers.entry(prefix).or_default();
        let number = *next;
        *next += 1;
        ItemPlace::Output {
            step: self.no,
            number,
            again: self.again,
        }
    }
}

impl Projector {
    /// A model call begins.
    pub(super) fn begin_step(&mut self, no: u32, out: &mut Vec<Frame>) {
        self.abandon(out);
        self.output.finish_deferred(out, ItemStatus::Completed);
        self.end_round(out);
        self.end_taken(out);
        let again = match self.step.take() {
            Some(last) if last.no == no => last.again + u32::from(last.broken),
            Some(_) | None => 0,
        };
        self.step = Some(Step::new(no, again));
    }

    /// The step with this number; it begins now if its first event is missing.
    pub(super) fn step(&mut self, no: u32, out: &mut Vec<Frame>) -> &mut Step {
        if self.step.as_ref().is_none_or(|step| step.no != no) {
            self.begin_step(no, out);
        }
        self.step.get_or_insert_with(|| Step::new(no, 0))
    }

    /// The id of the next item of a call.
    pub(super) fn next_id(&mut self, tag: &str, no: u32, out: &mut Vec<Frame>) -> String {
        let run = self.context.run;
        let prefix = prefix_of(tag);
        let place = self.step(no, out).next(prefix);
        ItemId { prefix, run, place }.to_string()
    }

    /// More text.
    pub(super) fn text_delta(
        &mut self,
        (no, at): (u32, Place),
        delta: &str,
        kind: TextKind,
        out: &mut Vec<Frame>,
    ) {
        let refusal = kind == TextKind::Refusal;
        let live = match self.take_live(no, at, out) {
            Some(LiveItem::Message(live)) if live.is_refusal() == refusal => Some(live),
            Some(other) => {
                self.replace_live(other, out);
                None
            }
            None => None,
        };
        let mut live = live.unwrap_or_else(|| {
            let id = self.next_id("message", no, out);
            LiveMessage::open(&mut self.output, out, id, refusal)
        });
        live.delta(&mut self.output, out, delta);
        let told = StepSlot::Live(Box::new(LiveItem::Message(live)));
        self.step(no, out).slots.insert(at, told);
    }

    /// More reasoning.
    pub(super) fn reasoning_delta(
        &mut self,
        (no, at): (u32, Place),
        out: &mut Vec<Frame>,
        grow: impl FnOnce(&mut LiveReasoning, &mut OutputItems, &mut Vec<Frame>),
    ) {
        let live = match self.take_live(no, at, out) {
            Some(LiveItem::Reasoning(live)) => Some(live),
            Some(other) => {
                self.replace_live(other, out);
                None
            }
            None => None,
        };
        let mut live = live.unwrap_or_else(|| {
            let id = self.next_id("reasoning", no, out);
            LiveReasoning::open(&mut self.output, out, id, self.context.dialect)
        });
        grow(&mut live, &mut self.output, out);
        let told = StepSlot::Live(Box::new(LiveItem::Reasoning(live)));
        self.step(no, out).slots.insert(at, told);
    }

    /// The final content differs from what readers saw: the old item stays as it was, and the content
    /// becomes a new item. Returns the id of the new one, if it is of the same kind.
    fn replace_live(&mut self, live: LiveItem, out: &mut Vec<Frame>) -> Option<ItemId> {
        let index = live.index();
        live.abandon(&mut self.output, out);
        let id: ItemId = self.output.id(index).parse().ok()?;
        let ItemPlace::Output {
            step,
            number,
            again,
        } = id.place
        else {
            return None;
        };
        let place = ItemPlace::Output {
            step,
            number,
            again: again + 1,
        };
        Some(ItemId { place, ..id })
    }

    /// Take the item that grows at a place. If none does, contents that were held back are shown first.
    fn take_live(&mut self, no: u32, at: Place, out: &mut Vec<Frame>) -> Option<LiveItem> {
        match self.step(no, out).slots.remove(&at) {
            Some(StepSlot::Live(live)) => Some(*live),
            Some(StepSlot::Held(_) | StepSlot::Shown(_)) | None => {
                self.flush(no, out);
                None
            }
        }
    }

    /// A content is whole.
    pub(super) fn content(&mut self, no: u32, at: Place, content: &Content, out: &mut Vec<Frame>) {
        if is_streamed(content) {
            let shown = self.show(no, at, content, out);
            self.step(no, out).slots.insert(at, StepSlot::Shown(shown));
            return self.carry(no, content, out);
        }
        let held = StepSlot::Held(Box::new(content.clone()));
        let step = self.step(no, out);
        if let Some(StepSlot::Live(live)) = step.slots.insert(at, held) {
            step.stray.push(*live);
        }
    }

    /// Show a text or reasoning that is whole. Returns its index in the output.
    fn show(
        &mut self,
        no: u32,
        at: Place,
        content: &Content,
        out: &mut Vec<Frame>,
    ) -> Option<usize> {
        let live = self.take_live(no, at, out);
        let step = self.step(no, out);
        let live = match live {
            Some(live) if live.may_become(content) => Some(live),
            other => {
                step.stray.extend(other);
                step.take_stray(content)
            }
        };
        let mut phase = self.step(no, out).phase.take();
        let draft = self.builder().draft(content, None, &mut phase);
        self.step(no, out).phase = phase;
        let Some(draft) = draft else {
            if let Some(live) = live {
                self.replace_live(live, out);
            }
            return None;
        };
        let mut renamed = None;
        if let Some(live) = live {
            let index = live.index();
            match self.close(live, draft.clone(), out) {
                Ok(()) => return Some(index),
                Err(live) => renamed = self.replace_live(live, out),
            }
        }
        let renamed = renamed.filter(|id| id.prefix == prefix_of(draft.tag()));
        let id = match renamed {
            Some(id) => id.to_string(),
            None => self.next_id(draft.tag(), no, out),
        };
        let live = match &draft {
            Draft::Message(said) => {
                LiveItem::Message(LiveMessage::open(&mut self.output, out, id, said.refusal))
            }
            _ => LiveItem::Reasoning(LiveReasoning::open(
                &mut self.output,
                out,
                id,
                self.context.dialect,
            )),
        };
        let index = live.index();
        // What was just opened has shown nothing that could differ.
        let _ = self.close(live, draft, out);
        Some(index)
    }

    /// Close what grows with what it came to; it is given back if that differs from what was seen.
    fn close(
        &mut self,
        live: LiveItem,
        draft: Draft,
        out: &mut Vec<Frame>,
    ) -> Result<(), LiveItem> {
        let closed = match (live, draft) {
            (LiveItem::Message(live), Draft::Message(said)) => {
                live.close(&mut self.output, out, said)
            }
            (LiveItem::Reasoning(live), Draft::Reasoning(thought)) => {
                live.close(&mut self.output, out, thought)
            }
            (live, _) => return Err(live),
        };
        closed.map_err(|(live, _)| live)
    }

    /// The content that was begun at a place is never finished.
    pub(super) fn discard(&mut self, no: u32, at: Place, out: &mut Vec<Frame>) {
        let Some(step) = self.step.as_mut().filter(|step| step.no == no) else {
            return;
        };
        let Some(told) = step.slots.remove(&at) else {
            return;
        };
        match told {
            StepSlot::Live(live) => {
                step.broken = true;
                live.abandon(&mut self.output, out);
            }
            StepSlot::Shown(Some(index)) => {
                step.broken = true;
                self.output.mark_incomplete(out, index);
            }
            StepSlot::Held(_) | StepSlot::Shown(None) => {}
        }
    }

    /// The answer is in the transcript: what was held back is shown, and what was cut is closed.
    pub(super) fn message(&mut self, message: &Message, out: &mut Vec<Frame>) {
        let Some(step) = &mut self.step else {
            return;
        };
        if let Some(usage) = &message.usage {
            self.usage.add(usage);
        }
        let no = step.no;
        let mut told: Vec<Place> = step.slots.keys().copied().collect();
        told.reverse();
        let mut next_place = Place::new(usize::MAX, 0, 0);
        for content in &message.contents {
            match told
                .last()
                .map(|at| (*at, self.may_become_at(*at, content)))
            {
                Some((_, None)) => drop(told.pop()),
                // It was cut while it grew.
                Some((at, Some(true))) => {
                    told.pop();
                    self.content(no, at, content, out);
                }
                // A worker died after it had recorded it and before it could publish it.
                Some((_, Some(false))) | None => {
                    self.content(no, next_place, content, out);
                    next_place.item += 1;
                }
            }
        }
        self.flush(no, out);
        if message.status == Some(MessageStatus::Incomplete) {
            self.output.finish_deferred(out, ItemStatus::Incomplete);
        }
        let step = self.step(no, out);
        let left: Vec<Place> = told;
        step.slots.retain(|at, _| left.contains(at));
    }

    /// Whether the item that grows at a place may become a content; `None` if none grows there.
    fn may_become_at(&self, at: Place, content: &Content) -> Option<bool> {
        match self.step.as_ref()?.slots.get(&at)? {
            StepSlot::Live(live) => Some(live.may_become(content)),
            StepSlot::Held(_) | StepSlot::Shown(_) => None,
        }
    }

    /// Close items that never became whole, and forget contents that were never shown.
    pub(super) fn abandon(&mut self, out: &mut Vec<Frame>) {
        let Some(step) = &mut self.step else {
            return;
        };
        let told = std::mem::take(&mut step.slots);
        let live = told.into_values().filter_map(|told| match told {
            StepSlot::Live(live) => Some(*live),
            StepSlot::Held(_) | StepSlot::Shown(_) => None,
        });
        let live: Vec<LiveItem> = live.chain(std::mem::take(&mut step.stray)).collect();
        step.broken |= !live.is_empty();
        if !live.is_empty() {
            self.output.finish_deferred(out, ItemStatus::Completed);
        }
        for live in live {
            live.abandon(&mut self.output, out);
        }
    }
}

/// Whether a content is shown while it grows.
fn is_streamed(content: &Content) -> bool {
    match content.body {
        Body::Text(_) | Body::Refusal(_) | Body::Reasoning(_) => true,
        Body::Media(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => false,
    }
}
