//! Reading streams: chunks, live and as the body that they add up to.

use std::collections::{HashMap, HashSet};

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    Arguments, Body, CallId, Content, Event, Family, Form, Media, MediaKind, MediaSource, Message,
    Path, Place, Reasoning, Runner, Text, ToolCall,
};

use super::assembly::{self, Assembly};
use super::message::CallScope;
use super::{WIRE, decode, types};
use crate::read::{member, text_of};
use crate::sse::Frame;
use crate::wire_type::ItemRole;
use crate::{DecodeError, StreamDecoder};

// The items of a message, in the order in which the whole message is read.
const REASONING: usize = 0;
const CONTENT: usize = 1;
const REFUSAL: usize = 2;
const AUDIO: usize = 3;
const FUNCTION_CALL: usize = 4;
const TOOL_CALLS: usize = 5;

/// Reads the chunks of one response.
///
/// Texts and arguments go on as they come. What they add up to is read at the end by the same code
/// that reads a body, so a streamed and a whole response cannot differ.
#[derive(Default)]
pub(super) struct Decoder {
    assembly: Assembly,
    id: Option<String>,
    opened: HashSet<Place>,
    started: bool,
    over: bool,
    /// The parts of each choice.
    parts: HashMap<usize, PartCounter>,
}

impl Decoder {
    fn chunk(&mut self, chunk: &Value<'_>, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        if chunk.as_object().is_none() {
            return Err(DecodeError::expected(&Path::Root, "a chunk", chunk));
        }
        let error = member(chunk, "error");
        if error.is_none() && !assembly::is_chunk(chunk) {
            events.push(Event::Other {
                wire: WIRE,
                event: RawJson::of(chunk),
            });
            return Ok(());
        }
        if assembly::is_chunk(chunk) {
            self.start(chunk, events);
            self.assembly.take(chunk);
            self.choices(chunk, events)?;
        }
        if let Some(error) = error {
            events.push(Event::failed(Some(decode::error_object(error)), None));
            self.over = true;
        }
        Ok(())
    }

    fn start(&mut self, chunk: &Value<'_>, events: &mut Vec<Event>) {
        let id = text_of(chunk, "id");
        let model = text_of(chunk, "model");
        if !self.started && (id.is_some() || model.is_some()) {
            self.started = true;
            self.id.clone_from(&id);
            events.push(Event::Started { id, model });
        }
    }

    fn choices(&mut self, chunk: &Value<'_>, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let Some(list) = member(chunk, "choices") else {
            return Ok(());
        };
        let root = Path::Root.key("choices");
        let Some(choices) = list.as_array() else {
            return Err(DecodeError::expected(&root, "an array", list));
        };
        for (place, choice) in choices.iter().enumerate() {
            let path = root.index(place);
            if choice.as_object().is_none() {
                return Err(DecodeError::expected(&path, "an object", choice));
            }
            let index = assembly::choice_index(choice, place);
            self.assembly.take_choice(index, choice);
            let Some(delta) = assembly::delta(choice) else {
                continue;
            };
            let path = path.key("delta");
            if delta.as_object().is_none() {
                return Err(DecodeError::expected(&path, "an object", delta));
            }
            self.texts(index as usize, delta, events);
            self.calls(index, delta, &path, events)?;
        }
        Ok(())
    }

    /// The texts that a delta continues.
    fn texts(&mut self, choice: usize, delta: &Value<'_>, events: &mut Vec<Event>) {
        let place = |item| Place::new(choice, item, 0);
        let text = |key: &str| text_of(delta, key).filter(|text| !text.is_empty());
        if let Some(more) = text("reasoning_content").or_else(|| text("reasoning")) {
            let empty = || Body::Reasoning(Reasoning::default());
            self.append_or_open(place(REASONING), &more, empty, events);
        }
        if let Some(content) = member(delta, "content") {
            let part = self.parts.entry(choice).or_default().take(content);
            if let (Some(part), Some(more)) = (part, text("content")) {
                let at = Place::new(choice, CONTENT, part);
                let empty = || Body::Text(Text::default());
                self.append_or_open(at, &more, empty, events);
            }
        }
        if let Some(more) = text("refusal") {
            let empty = || Body::Refusal(Text::default());
            self.append_or_open(place(REFUSAL), &more, empty, events);
        }
        if let Some(audio) = member(delta, "audio") {
            let at = place(AUDIO);
            // Until the sound has a name there is nothing to show.
            if let Some(id) = text_of(audio, "id").filter(|_| !self.opened.contains(&at)) {
                let media = Media {
                    kind: MediaKind::Audio,
                    media_type: None,
                    source: MediaSource::File(id),
                    name: None,
                    transcript: None,
                };
                self.append_or_open(at, "", || Body::Media(media), events);
            }
            let more = text_of(audio, "transcript").filter(|_| self.opened.contains(&at));
            if let Some(text) = more {
                events.push(Event::Delta { at, text });
            }
        }
        if let Some(call) = member(delta, "function_call") {
            let id = self.minted_id(choice, 0);
            let empty = || Body::ToolCall(tool_call(id, "function", call));
            let more = text_of(call, "arguments").unwrap_or_default();
            self.append_or_open(place(FUNCTION_CALL), &more, empty, events);
        }
    }

    fn calls(
        &mut self,
        index: u64,
        delta: &Value<'_>,
        path: &Path<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let Some(list) = member(delta, "tool_calls") else {
            return Ok(());
        };
        let path = path.key("tool_calls");
        let Some(fragments) = list.as_array() else {
            return Err(DecodeError::expected(&path, "an array", list));
        };
        for (place, fragment) in fragments.iter().enumerate() {
            if fragment.as_object().is_none() {
                let path = path.index(place);
                return Err(DecodeError::expected(&path, "an object", fragment));
            }
            let found = self.assembly.choice(index).fragment(fragment);
            let at = Place::new(index as usize, TOOL_CALLS, found.part);
            let tag = text_of(fragment, "type").filter(|tag| !tag.is_empty());
            let tag = match tag {
                Some(tag) => tag,
                None if member(fragment, "custom").is_some() => "custom".to_owned(),
                None => "function".to_owned(),
            };
            let inner = member(fragment, &tag);
            if found.is_first {
                let id = text_of(fragment, "id").and_then(|id| CallId::natural(&id));
                let id = id.unwrap_or_else(|| self.minted_id(index as usize, found.call));
                let call = tool_call(id, &tag, inner.unwrap_or(fragment));
                self.append_or_open(at, "", || Body::ToolCall(call), events);
            }
            let more = ["arguments", "input"]
                .iter()
                .find_map(|key| inner.and_then(|inner| text_of(inner, key)));
            if let Some(text) = more.filter(|text| !text.is_empty()) {
                events.push(Event::Delta { at, text });
            }
        }
        Ok(())
    }

    /// The id that a call without one will have in the end.
    fn minted_id(&self, choice: usize, ordinal: usize) -> CallId {
        let origin = CallScope::choice(self.id.as_deref(), choice);
        CallId::minted(origin.scope, origin.first.saturating_add(ordinal))
    }

    /// Continue a content, or begin it.
    fn append_or_open(
        &mut self,
        at: Place,
        more: &str,
        empty: impl FnOnce() -> Body,
        events: &mut Vec<Event>,
    ) {
        if self.opened.insert(at) {
            let content = Content::new(empty());
            events.push(Event::Opened { at, content });
        }
        if !more.is_empty() {
            let text = more.to_owned();
            events.push(Event::Delta { at, text });
        }
    }

    /// The vendor ended properly: read the whole.
    fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.over = true;
        let indexes = self.assembly.indexes();
        if indexes.is_empty() && !self.started {
            return Ok(());
        }
        let body = self.assembly.write();
        let response = decode::response(&json::parse(&body)?)?;
        events.push(Event::Started {
            id: response.id.clone(),
            model: response.model.clone(),
        });
        for (message, index) in response.messages.iter().zip(indexes) {
            let calls = self.assembly.choice(index).parts();
            push_contents(message, index as usize, &calls, events);
        }
        events.push(response.finished());
        Ok(())
    }
}

/// How many parts the content of a message has so far, as strings and lists of parts come by turns.
#[derive(Default)]
struct PartCounter {
    count: usize,
    /// The last one is made of strings and continues with the next.
    grows: bool,
}

impl PartCounter {
    /// Take a piece of the content; the part that it continues, if it is a string.
    fn take(&mut self, piece: &Value<'_>) -> Option<usize> {
        if let Some(list) = piece.as_array() {
            self.count += list.len();
            self.grows = false;
            return None;
        }
        let text = piece.as_text()?;
        // An empty string at the beginning is nothing yet; one between parts is a part.
        if !self.grows && (self.count > 0 || !text.is_empty()) {
            self.count += 1;
            self.grows = true;
        }
        self.count.checked_sub(1)
    }
}

/// The contents of a whole message at the places where their fragments were announced.
fn push_contents(message: &Message, choice: usize, calls: &[usize], events: &mut Vec<Event>) {
    let mut calls = calls.iter();
    let mut parts = 0;
    for content in &message.contents {
        let form = content.vendor.as_ref().map(|vendor| &vendor.form);
        let (item, part) = match (form, &content.body) {
            (Some(Form::Part(_)), Body::ToolCall(_)) => {
                // As many calls are read as were gathered.
                (TOOL_CALLS, calls.next().copied().unwrap_or(usize::MAX))
            }
            (_, Body::ToolCall(_)) => (FUNCTION_CALL, 0),
            (Some(Form::Within), Body::Reasoning(_)) => (REASONING, 0),
            (Some(Form::Within), Body::Refusal(_)) => (REFUSAL, 0),
            (Some(Form::Within), Body::Media(_)) => (AUDIO, 0),
            _ => {
                parts += 1;
                (CONTENT, parts - 1)
            }
        };
        events.push(Event::Content {
            at: Place::new(choice, item, part),
            content: content.clone(),
        });
    }
}

/// A call as it begins.
fn tool_call(call: CallId, tag: &str, inner: &Value<'_>) -> ToolCall {
    let family = types::row(ItemRole::Call, tag).map(|row| row.family.clone());
    ToolCall {
        call,
        family: family.unwrap_or_else(|| Family::named(tag)),
        name: text_of(inner, "name").unwrap_or_default(),
        arguments: match tag {
            "custom" => Arguments::Free(String::new()),
            _ => Arguments::Text(String::new()),
        },
        status: None,
        runner: Runner::Client,
    }
}

impl StreamDecoder for Decoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if self.over {
            return Ok(events);
        }
        if frame.is_done() {
            self.finish(&mut events)?;
            return Ok(events);
        }
        let value = json::parse(&frame.data)?;
        self.chunk(&value, &mut events)?;
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        // Some servers leave out the last frame; then the reasons of all alternatives are the end.
        if !self.over && self.assembly.is_finished() {
            self.finish(&mut events)?;
        }
        Ok(events)
    }
}
