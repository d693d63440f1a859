//! Reading streams: blocks by index, each with its fragments, and the message around them.

use std::collections::BTreeMap;

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{Event, Path, Place, Wire};

use super::CONTENT;
use super::decode::{self, BlockDecoder, parse_rebuilt};
use super::types::{self, INPUT};
use crate::read::{member, number_of, text_of};
use crate::sse::Frame;
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::wire_type::ItemRole;
use crate::{DecodeError, StreamDecoder, truncated_call};

/// Reads the events of one response.
///
/// Fragments go on as they come. A block is whole at its `content_block_stop`; blocks that end
/// out of order wait for those before them, so that minted ids do not depend on the order of
/// arrival. A block is put together as JSON text and read by the reader of whole bodies, so both
/// ways give the same content.
#[derive(Default)]
pub(super) struct Decoder {
    decoder: BlockDecoder,
    /// The message so far, as a template.
    message: Option<RawJson>,
    id: Option<String>,
    ordinal: usize,
    /// The index of the next block to be read.
    next: usize,
    /// Blocks that have begun and are not read yet.
    blocks: BTreeMap<usize, Block>,
    /// The content that was reported last.
    last: truncated_call::LastContent,
    over: bool,
}

/// A block and what its fragments brought.
struct Block {
    start: RawJson,
    /// Texts by member. Fragments are joined as tokens, because a pair of surrogates may be split.
    texts: BTreeMap<&'static str, String>,
    /// JSON text for `input`, as a token.
    input: String,
    /// Members that were set.
    members: BTreeMap<String, RawJson>,
    citations: Vec<RawJson>,
    stopped: bool,
}

impl Block {
    fn new(start: RawJson) -> Self {
        Self {
            start,
            texts: BTreeMap::new(),
            input: String::new(),
            members: BTreeMap::new(),
            citations: Vec::new(),
            stopped: false,
        }
    }

    fn append(&mut self, key: &'static str, token: &str) {
        let tokens = self.texts.entry(key).or_insert_with(|| {
            let start = self.start.value();
            let text = start.get(key).and_then(Value::as_text);
            text.map_or_else(String::new, |text| text.token().to_owned())
        });
        tokens.push_str(token);
    }

    /// The block as the whole body would have it.
    fn assembled(&self) -> Result<String, DecodeError> {
        let mut sets: Vec<(&str, String)> = Vec::new();
        for (key, tokens) in &self.texts {
            sets.push((key, format!("\"{tokens}\"")));
        }
        if let Some(input) = self.input()? {
            sets.push((INPUT, input));
        }
        if !self.citations.is_empty() {
            let start = self.start.value();
            let before = start.get("citations").and_then(Value::as_array);
            let before = before.unwrap_or_default().iter().map(RawJson::of);
            let all: Vec<RawJson> = before.chain(self.citations.iter().cloned()).collect();
            let all: Vec<&str> = all.iter().map(RawJson::get).collect();
            sets.push(("citations", format!("[{}]", all.join(","))));
        }
        for (key, json) in &self.members {
            sets.push((key, json.get().to_owned()));
        }
        Ok(with_members(&self.start, &sets))
    }

    /// The input that the fragments give; none if there is nothing to change.
    fn input(&self) -> Result<Option<String>, DecodeError> {
        if self.input.is_empty() {
            // Without fragments the input of the start event counts, and without that there are no
            // arguments.
            let start = self.start.value();
            let lacks = is_call(&start) && start.get(INPUT).is_none();
            return Ok(lacks.then(|| "{}".to_owned()));
        }
        let token = format!("\"{}\"", self.input);
        let value = parse_rebuilt(&token)?;
        let text = value.as_str().unwrap_or_default();
        Ok(Some(match json::parse(&text) {
            Ok(_) => text.into_owned(),
            // The stream ended inside it, or the model wrote no JSON; see the module.
            Err(_) => token,
        }))
    }
}

fn is_call(block: &Value<'_>) -> bool {
    text_of(block, "type")
        .and_then(|tag| types::block_type(&tag))
        .is_some_and(|row| row.role == ItemRole::Call)
}

/// An object with members set: in their place, or as new ones at the end.
fn with_members(object: &RawJson, sets: &[(&str, String)]) -> String {
    let keys: Vec<[&str; 1]> = sets.iter().map(|(key, _)| [*key]).collect();
    let fills: Vec<(&[&str], TemplateValue<'_>)> = keys
        .iter()
        .zip(sets)
        .map(|(key, (_, json))| (key.as_slice(), TemplateValue::Replace(json)))
        .collect();
    let mut out = String::with_capacity(object.get().len());
    restore(&mut out, object, &fills);
    out
}

fn compact(text: &str) -> Result<RawJson, DecodeError> {
    Ok(RawJson::of(&parse_rebuilt(text)?))
}

impl Decoder {
    fn event(
        &mut self,
        kind: &str,
        event: &Value<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        match kind {
            "message_start" => self.begin(object(event, "message")?, events),
            "content_block_start" => self.block_start(event, events),
            "content_block_delta" => self.block_delta(event, events),
            "content_block_stop" => {
                self.open_block(event)?.1.stopped = true;
                self.drain(events)
            }
            "message_delta" => self.message_delta(event),
            "message_stop" => self.finish(events),
            "ping" => Ok(()),
            "error" => {
                self.over = true;
                events.push(Event::failed(decode::error(event), None));
                Ok(())
            }
            _ => {
                events.push(unknown_event(event));
                Ok(())
            }
        }
    }

    fn begin(&mut self, message: &Value<'_>, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.id = text_of(message, "id");
        events.push(Event::Started {
            id: self.id.clone(),
            model: text_of(message, "model"),
        });
        // The content is empty here, unless a server sends a whole message at once.
        let mut extractor = Extractor::new(message);
        let contents = self.decoder.contents(
            message,
            &mut extractor,
            decode::response_scope(self.id.as_deref()),
            &mut self.ordinal,
            &Path::Root.key("message"),
        )?;
        self.message = Some(extractor.into_template());
        for content in contents {
            let at = Place::new(0, self.next, 0);
            self.last.push(at, &content);
            events.push(Event::Content { at, content });
            self.next += 1;
        }
        Ok(())
    }

    fn block_start(
        &mut self,
        event: &Value<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let index = index(event)?;
        let start = object(event, "content_block")?;
        if index < self.next || self.blocks.contains_key(&index) {
            let path = Path::Root.key("index");
            return Err(DecodeError::missing(&path, "an index that is not taken"));
        }
        let block = Block::new(RawJson::of(start));
        // Arguments come as fragments of text, so a call opens with none.
        let opened = if is_call(start) {
            with_members(&block.start, &[(INPUT, "\"\"".to_owned())])
        } else {
            block.start.get().to_owned()
        };
        // A decoder apart: a block that only begins must not claim anything.
        let content = BlockDecoder::default().block(
            &parse_rebuilt(&opened)?,
            decode::response_scope(self.id.as_deref()),
            &mut self.ordinal.clone(),
            &Path::Root.key("content_block"),
        )?;
        let at = Place::new(0, index, 0);
        events.push(Event::Opened { at, content });
        self.blocks.insert(index, block);
        Ok(())
    }

    fn block_delta(
        &mut self,
        event: &Value<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let delta = object(event, "delta")?;
        let kind = text_of(delta, "type").unwrap_or_default();
        let (index, block) = self.open_block(event)?;
        let path = Path::Root.key("delta");
        let text = |key: &'static str| {
            let value = delta.get(key).and_then(Value::as_text);
            value.ok_or_else(|| DecodeError::missing(&path.key(key), "a string"))
        };
        let live = match kind.as_str() {
            "text_delta" => {
                let text = text("text")?;
                block.append("text", text.token());
                text
            }
            "thinking_delta" => {
                let text = text("thinking")?;
                block.append("thinking", text.token());
                text
            }
            "input_json_delta" => {
                let text = text("partial_json")?;
                block.input.push_str(text.token());
                text
            }
            // The signature comes whole; a second one takes the place of the first.
            "signature_delta" => {
                text("signature")?;
                return block.take_members(delta);
            }
            "compaction_delta" => return block.take_members(delta),
            "citations_delta" => {
                block
                    .citations
                    .push(RawJson::of(object(delta, "citation")?));
                return Ok(());
            }
            _ => {
                events.push(unknown_event(event));
                return Ok(());
            }
        };
        if !live.is_empty() {
            events.push(Event::Delta {
                at: Place::new(0, index, 0),
                text: live.to_str().into_owned(),
            });
        }
        Ok(())
    }

    /// The block that an event is about. It must have begun.
    fn open_block(&mut self, event: &Value<'_>) -> Result<(usize, &mut Block), DecodeError> {
        let index = index(event)?;
        match self.blocks.get_mut(&index) {
            Some(block) => Ok((index, block)),
            None => Err(DecodeError::missing(
                &Path::Root.key("index"),
                "the index of a block that has begun",
            )),
        }
    }

    /// Read the blocks that are whole and have no gap before them.
    fn drain(&mut self, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        while self
            .blocks
            .get(&self.next)
            .is_some_and(|block| block.stopped)
        {
            self.read(self.next, events)?;
            self.next += 1;
        }
        Ok(())
    }

    /// Read one block as a whole.
    fn read(&mut self, index: usize, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let Some(block) = self.blocks.remove(&index) else {
            return Ok(());
        };
        let text = block.assembled()?;
        let root = Path::Root.key(CONTENT);
        let content = self.decoder.block(
            &parse_rebuilt(&text)?,
            decode::response_scope(self.id.as_deref()),
            &mut self.ordinal,
            &root.index(index),
        )?;
        let at = Place::new(0, index, 0);
        self.last.push(at, &content);
        events.push(Event::Content { at, content });
        Ok(())
    }

    /// The members of the message that are known at the end. Usage is cumulative: later numbers
    /// take the place of earlier ones.
    fn message_delta(&mut self, event: &Value<'_>) -> Result<(), DecodeError> {
        let message = self.message()?;
        let value = message.value();
        let mut sets: Vec<(String, String)> = Vec::new();
        let mut set = |key: String, json: String| {
            sets.retain(|(found, _)| *found != key);
            sets.push((key, json));
        };
        let beside = event.members().iter().filter(|member| {
            !["type", "delta", "usage"]
                .iter()
                .any(|key| member.key.is(key))
        });
        for member in object(event, "delta")?.members().iter().chain(beside) {
            let json = RawJson::of(&member.value);
            set(member.key.to_str().into_owned(), json.get().to_owned());
        }
        if let Some(usage) = member(event, "usage") {
            let before = member(&value, "usage").filter(|usage| usage.as_object().is_some());
            let merged = match before {
                Some(before) => merge(before, usage),
                None => RawJson::of(usage).get().to_owned(),
            };
            set("usage".to_owned(), merged);
        }
        let sets: Vec<(&str, String)> = sets
            .iter()
            .map(|(key, json)| (key.as_str(), json.clone()))
            .collect();
        self.message = Some(compact(&with_members(message, &sets))?);
        Ok(())
    }

    fn message(&self) -> Result<&RawJson, DecodeError> {
        let message = self.message.as_ref();
        message.ok_or_else(|| DecodeError::missing(&Path::Root, "message_start before anything"))
    }

    fn finish(&mut self, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.message()?;
        // Blocks beyond a gap, and blocks whose end was left out.
        while let Some(index) = self.blocks.keys().next().copied() {
            self.read(index, events)?;
            self.next = index + 1;
        }
        let message = self.message()?;
        let value = message.value();
        let is_array = value
            .get(CONTENT)
            .is_some_and(|content| content.as_array().is_some());
        let is_text = value
            .get(CONTENT)
            .is_some_and(|content| content.as_text().is_some());
        let kept = if self.next > 0 && !is_array && !is_text {
            compact(&with_members(message, &[(CONTENT, "[]".to_owned())]))?
        } else {
            message.clone()
        };
        let response = decode::response_without_content(&value, kept);
        events.extend(self.last.finished(&response.stop));
        events.push(response.finished());
        self.over = true;
        Ok(())
    }
}

impl Block {
    /// Take over all members of a delta but its tag.
    fn take_members(&mut self, delta: &Value<'_>) -> Result<(), DecodeError> {
        for member in delta.members() {
            if !member.key.is("type") {
                let key = member.key.to_str().into_owned();
                self.members.insert(key, RawJson::of(&member.value));
            }
        }
        Ok(())
    }
}

/// Usage with later numbers over earlier ones. What is null later was not counted again.
fn merge(before: &Value<'_>, later: &Value<'_>) -> String {
    let mut sets: Vec<(String, String)> = Vec::new();
    for found in later.members() {
        let key = found.key.to_str().into_owned();
        if found.value.is_null() && member(before, &key).is_some() {
            continue;
        }
        sets.retain(|(taken, _)| *taken != key);
        sets.push((key, RawJson::of(&found.value).get().to_owned()));
    }
    let sets: Vec<(&str, String)> = sets
        .iter()
        .map(|(key, json)| (key.as_str(), json.clone()))
        .collect();
    with_members(&RawJson::of(before), &sets)
}

fn unknown_event(event: &Value<'_>) -> Event {
    Event::Other {
        wire: Wire::Anthropic,
        event: RawJson::of(event),
    }
}

fn index(event: &Value<'_>) -> Result<usize, DecodeError> {
    number_of(event, &["index"])
        .and_then(|index| usize::try_from(index).ok())
        .filter(|index| *index < usize::MAX)
        .ok_or_else(|| DecodeError::missing(&Path::Root.key("index"), "the index of a block"))
}

fn object<'v, 'a>(event: &'v Value<'a>, key: &'static str) -> Result<&'v Value<'a>, DecodeError> {
    let path = Path::Root.key(key);
    match event.get(key) {
        None => Err(DecodeError::missing(&path, "an object")),
        Some(value) if value.as_object().is_none() => {
            Err(DecodeError::expected(&path, "an object", value))
        }
        Some(value) => Ok(value),
    }
}

impl StreamDecoder for Decoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if self.over || frame.is_done() {
            return Ok(events);
        }
        let value = json::parse(&frame.data)?;
        let kind = text_of(&value, "type").or_else(|| frame.event.clone());
        self.event(&kind.unwrap_or_default(), &value, &mut events)?;
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if !self.over {
            let whole: Vec<usize> = self
                .blocks
                .iter()
                .filter_map(|(index, block)| block.stopped.then_some(*index))
                .collect();
            for index in whole {
                self.read(index, &mut events)?;
            }
        }
        Ok(events)
    }
}
