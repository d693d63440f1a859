//! Streams: item events, their fragments, and the response at the end.

use std::collections::BTreeMap;

use throughline_model::json::{self, ObjectWriter, RawJson, Value};
use throughline_model::{Content, Event, Path, Place, Response, Stop};

use super::decode::{self, ItemDecoder};
use super::types::MESSAGE;
use super::{Dialect, Flavour, body, encode, parts};
use crate::flat::response_scope;
use crate::read::{member, number_of, text_of};
use crate::sse::Frame;
use crate::template::Extractor;
use crate::{DecodeError, Losses, StreamDecoder, truncated_call};

/// Reads the events of one response.
///
/// Fragments go on as they come. An item is whole at its `output_item.done`; items that are done
/// out of order wait for those before them, so that minted ids do not depend on the order of
/// arrival. The response at the end fills in what had no `done`.
pub(crate) struct Decoder {
    items: ItemDecoder<'static>,
    dialect: &'static Dialect,
    id: Option<String>,
    ordinal: usize,
    /// The next item to be read.
    next: usize,
    /// Items that are done and not read yet.
    done: BTreeMap<usize, RawJson>,
    /// All items that were done, for a response at the end that leaves them out.
    kept: BTreeMap<usize, RawJson>,
    /// The content that was reported last.
    last: truncated_call::LastContent,
    over: bool,
}

impl Decoder {
    pub(crate) fn new(dialect: &'static Dialect) -> Self {
        Self {
            items: ItemDecoder::new(dialect),
            dialect,
            id: None,
            ordinal: 0,
            next: 0,
            done: BTreeMap::new(),
            kept: BTreeMap::new(),
            last: truncated_call::LastContent::default(),
            over: false,
        }
    }

    /// Read the items that are done and have no gap before them.
    fn drain(&mut self, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        while let Some(item) = self.done.remove(&self.next) {
            let index = self.next;
            let root = Path::Root.key("output");
            let path = root.index(index);
            let scope = response_scope(self.id.as_deref());
            let contents = self
                .items
                .item(&item.value(), scope, &mut self.ordinal, &path)?;
            for (part, content) in contents.into_iter().enumerate() {
                let at = Place::new(0, index, part);
                self.last.push(at, &content);
                events.push(Event::Content { at, content });
            }
            self.next += 1;
        }
        Ok(())
    }

    /// The response object of an event that carries one.
    fn begin(&mut self, response: &Value<'_>, events: &mut Vec<Event>) {
        self.id = text_of(response, "id").or(self.id.take());
        events.push(Event::Started {
            id: self.id.clone(),
            model: text_of(response, "model"),
        });
    }

    /// The end: what was not done before is taken from the whole response.
    fn finish(&mut self, response: &Value<'_>, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        self.begin(response, events);
        let items = response.get("output").and_then(Value::as_array);
        for (index, item) in items.unwrap_or_default().iter().enumerate() {
            if index >= self.next {
                self.done.entry(index).or_insert_with(|| RawJson::of(item));
            }
        }
        // Items beyond a gap that nothing will fill any more.
        self.drain(events)?;
        while let Some(next) = self.done.keys().next().copied() {
            self.next = next;
            self.drain(events)?;
        }
        let mut extractor = Extractor::new(response);
        if let Some(output) = response.get("output") {
            extractor.elements(output);
        }
        let contents: Vec<Content> = events_contents(events);
        let whole = decode::response_with_output(
            self.dialect,
            response,
            self.id.clone(),
            contents,
            extractor.into_template(),
        );
        let stop = self.stop(response, &whole);
        events.extend(self.last.finished(&stop));
        events.push(Response { stop, ..whole }.finished());
        self.over = true;
        Ok(())
    }

    /// Calls may have been read long before the end, so the stop is decided by all items.
    fn stop(&self, response: &Value<'_>, whole: &Response) -> Stop {
        let waits = |item: &RawJson| {
            let mut decoder = ItemDecoder::new(self.dialect);
            let scope = response_scope(None);
            let contents = decoder.item(&item.value(), scope, &mut 0, &Path::Root);
            contents.is_ok_and(|contents| {
                contents
                    .iter()
                    .filter_map(Content::as_tool_call)
                    .any(|call| call.runner == throughline_model::Runner::Client)
            })
        };
        let completed = response
            .get("status")
            .is_none_or(|status| status.is_str("completed"));
        if completed && self.kept.values().any(waits) {
            Stop::ToolCalls
        } else {
            whole.stop.clone()
        }
    }

    fn event(&mut self, event: &Value<'_>, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let kind = text_of(event, "type").unwrap_or_default();
        let item_at = number_of(event, &["output_index"]).map(|index| index as usize);
        let part_at = ["content_index", "summary_index", "command_index"]
            .iter()
            .find_map(|key| number_of(event, &[key]))
            .unwrap_or(0) as usize;
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = member(event, "response") {
                    self.begin(response, events);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let Some(response) = member(event, "response") else {
                    let path = Path::Root.key("response");
                    return Err(DecodeError::missing(&path, "the whole response"));
                };
                self.finish(response, events)?;
            }
            "response.output_item.added" => {
                if let (Some(index), Some(item)) = (item_at, member(event, "item")) {
                    self.opened(item, index, events);
                }
            }
            "response.output_item.done" => {
                let (Some(index), Some(item)) = (item_at, member(event, "item")) else {
                    let path = Path::Root.key("item");
                    return Err(DecodeError::missing(&path, "an item and its output_index"));
                };
                if index >= self.next {
                    self.done.insert(index, RawJson::of(item));
                    self.kept.insert(index, RawJson::of(item));
                }
                self.drain(events)?;
            }
            "response.content_part.added" => {
                if let (Some(index), Some(part)) = (item_at, member(event, "part")) {
                    let root = Path::Root.key("part");
                    if let Ok(content) = parts::decode(&self.dialect.wire, part, &root) {
                        let at = Place::new(0, index, part_at);
                        events.push(Event::Opened { at, content });
                    }
                }
            }
            "error" => {
                let error = decode::error_object(&self.dialect.wire, event);
                events.push(Event::failed(Some(error), None));
                self.over = true;
            }
            _ => match (fragment(&kind), item_at, text_of(event, "delta")) {
                (Some(Fragment::Item), Some(index), Some(text)) if index >= self.next => {
                    let at = Place::new(0, index, 0);
                    events.push(Event::Delta { at, text });
                }
                (Some(Fragment::Part), Some(index), Some(text)) if index >= self.next => {
                    let at = Place::new(0, index, part_at);
                    events.push(Event::Delta { at, text });
                }
                (Some(Fragment::Summary), Some(index), Some(text)) if index >= self.next => {
                    let at = Place::new(0, index, 0);
                    events.push(Event::Summary {
                        at,
                        part: part_at,
                        text,
                    });
                }
                _ => events.push(Event::Other {
                    wire: self.dialect.wire.clone(),
                    event: RawJson::of(event),
                }),
            },
        }
        Ok(())
    }

    /// What is known of an item when it begins. Messages open with their parts.
    fn opened(&mut self, item: &Value<'_>, index: usize, events: &mut Vec<Event>) {
        if item.get("type").is_some_and(|tag| tag.is_str(MESSAGE)) || index < self.next {
            return;
        }
        // A decoder apart: an item that only begins must not claim anything.
        let mut items = ItemDecoder::new(self.dialect);
        let scope = response_scope(self.id.as_deref());
        let mut ordinal = self.ordinal;
        let Ok(contents) = items.item(item, scope, &mut ordinal, &Path::Root) else {
            return;
        };
        for (part, content) in contents.into_iter().enumerate() {
            let at = Place::new(0, index, part);
            events.push(Event::Opened { at, content });
        }
    }
}

/// Which text a fragment continues.
#[derive(Clone, Copy)]
enum Fragment {
    Item,
    Part,
    Summary,
}

fn fragment(kind: &str) -> Option<Fragment> {
    match kind {
        "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta"
        | "response.mcp_call_arguments.delta"
        | "response.code_interpreter_call_code.delta"
        | "response.reasoning_text.delta" => Some(Fragment::Item),
        "response.reasoning_summary_text.delta" => Some(Fragment::Summary),
        "response.output_text.delta" | "response.refusal.delta" => Some(Fragment::Part),
        _ => None,
    }
}

fn events_contents(events: &[Event]) -> Vec<Content> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Content { content, .. } => Some(content.clone()),
            _ => None,
        })
        .collect()
}

impl StreamDecoder for Decoder {
    fn push(&mut self, frame: &Frame) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if self.over || frame.is_done() {
            return Ok(events);
        }
        let value = json::parse(&frame.data)?;
        self.event(&value, &mut events)?;
        Ok(events)
    }

    fn end(&mut self) -> Result<Vec<Event>, DecodeError> {
        let mut events = Vec::new();
        if !self.over {
            while let Some(next) = self.done.keys().next().copied() {
                self.next = next;
                self.drain(&mut events)?;
            }
        }
        Ok(events)
    }
}

/// Write a response as the frames of a stream: each item opens, brings its text, and is done.
pub(crate) fn encode_stream(
    dialect: &Dialect,
    response: &Response,
    losses: &mut Losses,
) -> Vec<Frame> {
    let body = body::response(dialect, response, losses);
    let items = encode::response_items(dialect, response, &mut Losses::default());
    let mut frames = Frames {
        flavour: dialect.flavour,
        list: Vec::new(),
    };
    let value = json::parse(&body);
    let begun = match &value {
        Ok(value) => response_at_start(dialect, value),
        Err(_) => body.clone(),
    };
    frames.with_response("response.created", &begun);
    frames.with_response("response.in_progress", &begun);
    for (index, item) in items.iter().enumerate() {
        let Ok(value) = json::parse(item) else {
            continue;
        };
        frames.item("response.output_item.added", index, &item_at_start(&value));
        frames.fragments(index, &value);
        frames.item("response.output_item.done", index, item);
    }
    let last = match value
        .ok()
        .and_then(|value| text_of(&value, "status"))
        .as_deref()
    {
        // There is no event for a response that was cancelled, nor for one that continues in the
        // background. The body has its status.
        Some("incomplete" | "cancelled" | "in_progress" | "queued") => "response.incomplete",
        Some("failed") => "response.failed",
        _ => "response.completed",
    };
    frames.with_response(last, &body);
    frames.list
}

/// The response as it was at the start.
fn response_at_start(dialect: &Dialect, body: &Value<'_>) -> String {
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    for (key, text) in [
        ("status", "\"in_progress\""),
        ("output", "[]"),
        ("usage", "null"),
        ("error", "null"),
        ("incomplete_details", "null"),
    ] {
        if let Some(value) = body.get(key) {
            edits.push((value, text));
        }
    }
    let begun = RawJson::of_with(body, &edits);
    match dialect.flavour {
        Flavour::OpenAi => begun.get().to_owned(),
        // Where OpenAI has null, Foundry has no member.
        Flavour::Foundry => begun.without(|key| key == "usage").get().to_owned(),
    }
}

/// The item as it was at the start.
fn item_at_start(item: &Value<'_>) -> String {
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    for (key, text) in [
        ("arguments", "\"\""),
        ("input", "\"\""),
        ("content", "[]"),
        ("status", "\"in_progress\""),
    ] {
        if let Some(value) = item.get(key).filter(|value| !value.is_null()) {
            // Arguments may be a value instead of text; those come whole.
            let same_kind = value.as_text().is_some() == text.starts_with('"');
            if same_kind {
                edits.push((value, text));
            }
        }
    }
    RawJson::of_with(item, &edits).get().to_owned()
}

struct Frames {
    flavour: Flavour,
    list: Vec<Frame>,
}

impl Frames {
    fn push(&mut self, kind: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut data = String::new();
        let mut object = ObjectWriter::new(&mut data);
        object.str("type", kind);
        write(&mut object);
        object.number("sequence_number", self.list.len() as u64);
        object.end();
        self.list.push(Frame {
            event: Some(kind.to_owned()),
            data,
            id: None,
            retry: None,
        });
    }

    fn with_response(&mut self, kind: &str, body: &str) {
        self.push(kind, |object| {
            object.raw("response", body);
        });
    }

    fn item(&mut self, kind: &str, index: usize, item: &str) {
        self.push(kind, |object| {
            object
                .number("output_index", index as u64)
                .raw("item", item);
        });
    }

    /// The texts of an item, as one fragment each.
    fn fragments(&mut self, index: usize, item: &Value<'_>) {
        let id = text_of(item, "id").unwrap_or_default();
        let kind = text_of(item, "type").unwrap_or_default();
        let argument = match kind.as_str() {
            "function_call" => Some(("arguments", "response.function_call_arguments")),
            "mcp_call" => Some(("arguments", "response.mcp_call_arguments")),
            "custom_tool_call" => Some(("input", "response.custom_tool_call_input")),
            _ => None,
        };
        let position = EventPosition {
            item: &id,
            index,
            part: None,
        };
        if let Some((key, name)) = argument
            && let Some(text) = item.get(key).filter(|text| text.as_text().is_some())
        {
            self.at(position, &format!("{name}.delta"), |object| {
                object.raw("delta", text.raw());
            });
            let named = item
                .get("name")
                .filter(|_| self.flavour == Flavour::Foundry && kind == "function_call");
            self.at(position, &format!("{name}.done"), |object| {
                if let Some(name) = named {
                    object.raw("name", name.raw());
                }
                object.raw(key, text.raw());
            });
        }
        let parts = item.get("content").and_then(Value::as_array);
        if kind == "reasoning" {
            return;
        }
        for (place, part) in parts.unwrap_or_default().iter().enumerate() {
            let position = EventPosition {
                part: Some(place),
                ..position
            };
            self.part(position, part);
        }
    }

    /// A part of a message: it opens, brings its text, and is done.
    fn part(&mut self, position: EventPosition<'_>, part: &Value<'_>) {
        let (key, name, extra) = if part.get("refusal").is_some() {
            ("refusal", "response.refusal", None)
        } else {
            ("text", "response.output_text", Some("logprobs"))
        };
        let Some(text) = part.get(key).filter(|text| text.as_text().is_some()) else {
            return;
        };
        let opened = RawJson::of_with(part, &[(text, "\"\"")]);
        self.at(position, "response.content_part.added", |object| {
            object.raw("part", opened.get());
        });
        for (ending, key) in [("delta", "delta"), ("done", key)] {
            self.at(position, &format!("{name}.{ending}"), |object| {
                object.raw(key, text.raw());
                // The part has them, if there are any.
                if let Some(extra) = extra {
                    object.raw(extra, "[]");
                }
            });
        }
        self.at(position, "response.content_part.done", |object| {
            object.raw("part", part.raw());
        });
    }

    fn at(
        &mut self,
        position: EventPosition<'_>,
        kind: &str,
        write: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.push(kind, |object| {
            object
                .str("item_id", position.item)
                .number("output_index", position.index as u64);
            if let Some(part) = position.part {
                object.number("content_index", part as u64);
            }
            write(object);
        });
    }
}

/// The place that an event of a stream is about.
#[derive(Clone, Copy)]
struct EventPosition<'s> {
    /// The id of the item.
    item: &'s str,
    index: usize,
    part: Option<usize>,
}
