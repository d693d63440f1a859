//! Streams: steps that begin, grow and stop, and the interaction around them.

use std::collections::BTreeMap;

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{Event, Path, Place, Wire};

use super::decode::{self, StepDecoder};
use super::parts;
use super::streamed_step::{StepChange, StreamedStep};
use super::types::{CONTENT, MODEL_OUTPUT, USER_INPUT};
use crate::flat::response_scope;
use crate::google;
use crate::message_writer::array;
use crate::read::{member, number_of, text_of};
use crate::sse::Frame;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, StreamDecoder};

pub(super) const CREATED: &str = "interaction.created";
pub(super) const COMPLETED: &str = "interaction.completed";
pub(super) const STATUS_UPDATE: &str = "interaction.status_update";
pub(super) const STEP_START: &str = "step.start";
pub(super) const STEP_DELTA: &str = "step.delta";
pub(super) const STEP_STOP: &str = "step.stop";

/// Reads the events of one interaction.
///
/// The interaction at the end comes without its steps, so the whole body is put together from it
/// and from what the step events brought, and read then. Should it come with steps, at least as
/// many as were streamed, those count.
#[derive(Default)]
pub(super) struct Decoder {
    /// The members of the interaction so far.
    body: Option<RawJson>,
    steps: BTreeMap<usize, StreamedStep>,
    calls: usize,
    over: bool,
}

impl Decoder {
    fn event(
        &mut self,
        kind: &str,
        event: &Value<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        match kind {
            CREATED => {
                if let Some(interaction) = member(event, "interaction") {
                    self.begin(interaction, events)?;
                }
            }
            COMPLETED => {
                let Some(interaction) = member(event, "interaction") else {
                    let path = Path::Root.key("interaction");
                    return Err(DecodeError::missing(&path, "the interaction"));
                };
                self.begin(interaction, events)?;
                self.finish(events)?;
            }
            STATUS_UPDATE => self.update(event),
            STEP_START => {
                let Some(step) = member(event, "step") else {
                    let path = Path::Root.key("step");
                    return Err(DecodeError::missing(&path, "a step"));
                };
                let index = index(event)?;
                self.opened(index, step, events);
                self.steps.insert(index, StreamedStep::begin(step));
            }
            STEP_DELTA => self.delta(event, events)?,
            STEP_STOP => {}
            "error" => {
                let error = match member(event, "error") {
                    Some(error) => google::decode_error_object(&Wire::GeminiInteractions, error),
                    None => google::decode_error_object(&Wire::GeminiInteractions, event),
                };
                let usage = self
                    .body
                    .as_ref()
                    .and_then(|body| member(&body.value(), "usage").map(decode::usage));
                events.push(Event::failed(Some(error), usage));
                self.over = true;
            }
            _ => events.push(unknown_event(event)),
        }
        Ok(())
    }

    /// The interaction, as far as it is known: what comes later replaces what came before.
    fn begin(
        &mut self,
        interaction: &Value<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        if interaction.as_object().is_none() {
            let path = Path::Root.key("interaction");
            return Err(DecodeError::expected(&path, "an object", interaction));
        }
        let body = google::merge_objects(self.body.as_ref(), interaction, |_, _, _| None);
        let value = body.value();
        events.push(Event::Started {
            id: text_of(&value, "id").filter(|id| !id.is_empty()),
            model: text_of(&value, "model").or_else(|| text_of(&value, "agent")),
        });
        self.body = Some(body);
        Ok(())
    }

    /// A change of status, with usage and what is needed to go on.
    fn update(&mut self, event: &Value<'_>) {
        let Some(body) = &self.body else { return };
        let keys: [&[&str]; 3] = [&["status"], &["usage"], &["continuation_token"]];
        let mut fills = Vec::new();
        for key in keys {
            if let Some(value) = event.at(key).filter(|value| !value.is_null()) {
                fills.push((key, TemplateValue::Replace(value.raw())));
            }
        }
        let mut out = String::new();
        restore(&mut out, body, &fills);
        if let Ok(body) = RawJson::new(&out) {
            self.body = Some(body);
        }
    }

    /// What is known of a step when it begins.
    fn opened(&mut self, index: usize, step: &Value<'_>, events: &mut Vec<Event>) {
        if step.get("type").is_some_and(|tag| tag.is_str(USER_INPUT)) {
            return;
        }
        let spoken = step.get("type").is_some_and(|tag| tag.is_str(MODEL_OUTPUT));
        let parts = step.get(CONTENT).and_then(Value::as_array);
        if spoken && parts.is_none_or(<[_]>::is_empty) {
            // It opens with its parts.
            return;
        }
        // A decoder apart: a step that only begins must not claim anything. Should it not read
        // yet, the whole step will.
        let body = self.body.as_ref().map(RawJson::value);
        let id = body.as_ref().and_then(|body| text_of(body, "id"));
        let scope = response_scope(id.as_deref().filter(|id| !id.is_empty()));
        let mut decoder = StepDecoder::default();
        let Ok(contents) = decoder.response_step(step, scope, &mut self.calls, &Path::Root) else {
            return;
        };
        for (part, content) in contents.into_iter().enumerate() {
            let at = Place::new(0, index, part);
            events.push(Event::Opened { at, content });
        }
    }

    fn delta(&mut self, event: &Value<'_>, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let index = index(event)?;
        let Some(delta) = member(event, "delta") else {
            let path = Path::Root.key("delta");
            return Err(DecodeError::missing(&path, "a delta"));
        };
        if !self.steps.contains_key(&index) {
            let kind = text_of(delta, "type").unwrap_or_default();
            match StreamedStep::of_delta(&kind) {
                Some(step) => {
                    if let Ok(begun) = RawJson::new(&step.to_json()) {
                        self.opened(index, &begun.value(), events);
                    }
                    self.steps.insert(index, step);
                }
                None => {
                    events.push(unknown_event(event));
                    return Ok(());
                }
            }
        }
        let Some(step) = self.steps.get_mut(&index) else {
            return Ok(());
        };
        match step.apply(delta) {
            StepChange::Opened {
                part,
                content,
                text,
            } => {
                let at = Place::new(0, index, part);
                let opened = parts::decode(&content.value(), parts::as_part, &Path::Root);
                if let Ok(content) = opened {
                    events.push(Event::Opened { at, content });
                }
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    events.push(Event::Delta { at, text });
                }
            }
            StepChange::Text { part, text } => {
                let at = Place::new(0, index, part);
                events.push(Event::Delta { at, text });
            }
            StepChange::StepText(text) => {
                let at = Place::new(0, index, 0);
                events.push(Event::Delta { at, text });
            }
            StepChange::SummaryText { part, text } => {
                let at = Place::new(0, index, 0);
                events.push(Event::Summary { at, part, text });
            }
            StepChange::Other => {}
            StepChange::Unknown => events.push(unknown_event(event)),
        }
        Ok(())
    }

    /// The whole body.
    pub(super) fn body(&self) -> Option<RawJson> {
        let body = self.body.as_ref()?;
        let value = body.value();
        let received = value.get("steps").and_then(Value::as_array);
        if received.map_or(0, <[_]>::len) >= self.steps.len() {
            return Some(body.clone());
        }
        let steps: Vec<String> = self.steps.values().map(StreamedStep::to_json).collect();
        let mut out = String::new();
        restore(
            &mut out,
            body,
            &[(&["steps"], TemplateValue::Replace(&array(&steps)))],
        );
        RawJson::new(&out).ok()
    }

    fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.over = true;
        let Some(body) = self.body() else {
            return Ok(());
        };
        let (response, counts) = decode::response_with_counts(&body.value())?;
        let contents = response.messages.iter().flat_map(|it| &it.contents);
        let mut contents = contents.cloned();
        // Steps keep the index under which they were streamed; it need not start at nought.
        let mut indices = self.steps.keys().copied();
        let mut next = 0;
        for count in counts {
            let index = indices.next().unwrap_or(next);
            next = index + 1;
            for part in 0..count {
                let Some(content) = contents.next() else {
                    break;
                };
                let at = Place::new(0, index, part);
                events.push(Event::Content { at, content });
            }
        }
        events.push(response.finished());
        Ok(())
    }
}

fn index(event: &Value<'_>) -> Result<usize, DecodeError> {
    let index = number_of(event, &["index"]).and_then(|index| usize::try_from(index).ok());
    // Room for steps that only the interaction at the end contains.
    let index = index.filter(|index| *index < usize::MAX / 2);
    index.ok_or_else(|| DecodeError::missing(&Path::Root.key("index"), "the index of a step"))
}

fn unknown_event(event: &Value<'_>) -> Event {
    Event::Other {
        wire: Wire::GeminiInteractions,
        event: RawJson::of(event),
    }
}

impl StreamDecoder for Decoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if self.over || frame.is_done() {
            return Ok(events);
        }
        let value = json::parse(&frame.data)?;
        let kind = text_of(&value, "event_type").or_else(|| frame.event.clone());
        let kind = match kind {
            Some(kind) => kind,
            // An error body in place of a stream.
            None if member(&value, "error").is_some() => "error".to_owned(),
            None => String::new(),
        };
        self.event(&kind, &value, &mut events)?;
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<Event>, DecodeError> {
        Ok(Vec::new())
    }
}
