//! Streams: each frame is a whole response with new parts, and nothing marks the end.

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{Body, Content, Event, Path, Place, Wire};

use super::candidate::{Candidate, PartChange};
use super::decode::{self, block_reason, candidates, response_id};
use super::pairing::Ordinals;
use super::parts::PartDecoder;
use super::types::{FINISH_REASON, PARTS};
use crate::flat::response_scope;
use crate::google::{self, either_member, either_string, merge_objects};
use crate::read::member;
use crate::sse::Frame;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, StreamDecoder};

/// Reads the frames of one response.
///
/// The whole body is put together from the frames and read at the end, so that a streamed and a
/// whole response are the same. Members that come again replace what was there before, and usage
/// does so field by field, since later snapshots may leave fields out. Parts append:
///
/// - Parts of one frame stay as they are.
/// - The first part of a frame continues the last part before it if both are plain text of the same
///   kind, that is, have nothing but `text` and `thought`. So a signature stays on its part.
/// - Empty plain text is left out, unless there is nothing else.
/// - Fragments of arguments become the arguments of the call that they continue.
///
/// A single frame is the whole body as it stands.
#[derive(Default)]
pub(super) struct Decoder {
    /// Members of the response so far, without candidates.
    body: Option<RawJson>,
    candidates: Vec<Candidate>,
    /// The first frame as it stood.
    first: Option<RawJson>,
    frames: usize,
    finished: bool,
    over: bool,
    started: Option<(Option<String>, Option<String>)>,
    parts: PartDecoder,
    ordinals: Ordinals,
    /// Reasoning that was reported as complete before the end.
    whole: Vec<(Place, Content)>,
}

impl Decoder {
    /// Take one frame; an array holds several.
    pub(super) fn take(
        &mut self,
        value: &Value<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        if self.over {
            return Ok(());
        }
        if let Some(list) = value.as_array() {
            return list.iter().try_for_each(|it| self.take(it, events));
        }
        if value.as_object().is_none() {
            return Err(DecodeError::expected(&Path::Root, "a response", value));
        }
        if let Some(error) = google::decode_error(&Wire::Gemini, value) {
            self.over = true;
            self.begin(value, events);
            // Alone it is a body like any other; after other frames it only ends them.
            let body = self.body.as_ref();
            events.push(match self.frames {
                0 => decode::response(value)?.finished(),
                _ => Event::failed(
                    Some(error),
                    body.and_then(|body| decode::usage(&body.value())),
                ),
            });
            return Ok(());
        }
        self.frames += 1;
        if self.frames == 1 {
            self.first = Some(RawJson::of(value));
        }
        self.begin(value, events);
        let path = Path::Root.key("candidates");
        for (place, candidate) in candidates(value)?.iter().enumerate() {
            self.candidate(place, candidate, &path.index(place), events)?;
        }
        self.finished |= block_reason(value).is_some();
        self.body = Some(merge_objects(
            self.body.as_ref(),
            value,
            |key, old, new| match key {
                "candidates" => Some("[]".to_owned()),
                "usageMetadata" | "usage_metadata" => old.map(|old| {
                    let old = RawJson::of(old);
                    merge_objects(Some(&old), new, |_, _, _| None)
                        .get()
                        .to_owned()
                }),
                _ => None,
            },
        ));
        Ok(())
    }

    /// Say who answers, once, and again if that changes.
    fn begin(&mut self, value: &Value<'_>, events: &mut Vec<Event>) {
        let (id, model) = self.started.clone().unwrap_or_default();
        let now = (
            response_id(value).or(id),
            either_string(value, ("modelVersion", "model_version")).or(model),
        );
        if self.started.as_ref() != Some(&now) {
            let (id, model) = now.clone();
            events.push(Event::Started { id, model });
            self.started = Some(now);
        }
    }

    fn candidate(
        &mut self,
        place: usize,
        candidate: &Value<'_>,
        path: &Path<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        if candidate.as_object().is_none() {
            return Err(DecodeError::expected(path, "a candidate", candidate));
        }
        self.finished |= either_member(candidate, FINISH_REASON).is_some();
        let given = candidate.get("index").and_then(Value::as_u64);
        let index = given.unwrap_or(place as u64);
        let known = self
            .candidates
            .iter()
            .position(|choice| choice.index == index);
        let at = known.unwrap_or_else(|| {
            self.candidates.push(Candidate::new(index));
            self.candidates.len() - 1
        });
        if let Some(choice) = self.candidates.get_mut(at) {
            choice.begin_frame(candidate);
        }
        let Some(content) = member(candidate, "content") else {
            return Ok(());
        };
        let path = path.key("content");
        if content.as_object().is_none() {
            return Err(DecodeError::expected(&path, "a content", content));
        }
        let Some(list) = member(content, PARTS) else {
            return Ok(());
        };
        let path = path.key(PARTS);
        let Some(list) = list.as_array() else {
            return Err(DecodeError::expected(&path, "an array of parts", list));
        };
        for (index, part) in list.iter().enumerate() {
            self.part(at, part, &path.index(index), events)?;
        }
        Ok(())
    }

    /// Take one part of the alternative `at`.
    fn part(
        &mut self,
        at: usize,
        part: &Value<'_>,
        path: &Path<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let Some(choice) = self.candidates.get_mut(at) else {
            return Ok(());
        };
        let place = match choice.add(part, path)? {
            PartChange::New(place) => {
                self.thought_is_whole(at, place, events);
                place
            }
            PartChange::Nothing => return Ok(()),
            PartChange::Continued(place, text) => {
                if !text.is_empty() {
                    let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
                    events.push(more(Place::new(at, place, 0), text, thought));
                }
                return Ok(());
            }
        };
        let id = self.started.as_ref().and_then(|(id, _)| id.as_deref());
        let scope = response_scope(id);
        let mut content = self.parts.part(part, scope, &mut self.ordinals, path)?;
        let text = take_text(&mut content);
        let thought = matches!(content.body, Body::Reasoning(_));
        let at = Place::new(at, place, 0);
        events.push(Event::Opened { at, content });
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            events.push(more(at, text, thought));
        }
        Ok(())
    }

    /// A thought is whole when something else begins behind it: readers need not wait for the end.
    fn thought_is_whole(&mut self, at: usize, next: usize, events: &mut Vec<Event>) {
        let Some((choice, place)) = self.candidates.get(at).zip(next.checked_sub(1)) else {
            return;
        };
        if !choice.is_thought(place) || !choice.has_role() {
            return;
        }
        let body = format!("{{\"candidates\":[{}]}}", choice.to_json());
        let Ok(body) = RawJson::new(&body) else {
            return;
        };
        let response = decode::response(&body.value());
        let message = response
            .ok()
            .and_then(|found| found.messages.into_iter().next());
        let content = message.and_then(|message| message.contents.into_iter().nth(place));
        if let Some(content) = content.filter(|one| matches!(one.body, Body::Reasoning(_))) {
            let at = Place::new(at, place, 0);
            self.whole.push((at, content.clone()));
            events.push(Event::Content { at, content });
        }
    }

    /// The whole body.
    pub(super) fn body(&self) -> Option<RawJson> {
        if self.frames == 1 {
            return self.first.clone();
        }
        let body = self.body.as_ref()?;
        let list: Vec<String> = self.candidates.iter().map(Candidate::to_json).collect();
        let mut out = String::new();
        let fills: &[(&[&str], TemplateValue<'_>)] =
            &[(&["candidates"], TemplateValue::Elements(&list.join(",")))];
        restore(&mut out, body, fills);
        RawJson::new(&out).ok()
    }

    fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.over = true;
        let Some(body) = self.body() else {
            return Ok(());
        };
        let value = body.value();
        let response = decode::response(&value)?;
        // A candidate without parts has no message, but it has its place among the choices.
        let speaking = candidates(&value)?
            .iter()
            .enumerate()
            .filter(|(_, candidate)| {
                let parts = candidate.at(&["content", PARTS]).and_then(Value::as_array);
                parts.is_some_and(|parts| !parts.is_empty())
            })
            .map(|(choice, _)| choice);
        for (choice, message) in speaking.zip(&response.messages) {
            for (item, content) in message.contents.iter().enumerate() {
                let at = Place::new(choice, item, 0);
                let is_reported =
                    |(known, whole): &(Place, Content)| *known == at && whole == content;
                if !self.whole.iter().any(is_reported) {
                    let content = content.clone();
                    events.push(Event::Content { at, content });
                }
            }
        }
        events.push(response.finished());
        Ok(())
    }
}

/// More text of an answer or of a summary of reasoning.
fn more(at: Place, text: String, thought: bool) -> Event {
    match thought {
        true => Event::Summary { at, part: 0, text },
        false => Event::Delta { at, text },
    }
}

/// Take the text out of a content that opens, so that it can follow as a delta.
fn take_text(content: &mut Content) -> Option<String> {
    match &mut content.body {
        Body::Text(text) => Some(std::mem::take(&mut text.text)),
        Body::Reasoning(reasoning) => Some(std::mem::take(&mut reasoning.summary).concat()),
        Body::Media(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Refusal(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => None,
    }
}

impl StreamDecoder for Decoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if self.over || frame.is_done() {
            return Ok(events);
        }
        let value = json::parse(&frame.data)?;
        self.take(&value, &mut events)?;
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if !self.over && self.finished {
            self.finish(&mut events)?;
        }
        Ok(events)
    }
}
