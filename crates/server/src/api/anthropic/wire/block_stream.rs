//! A message as the frames of a stream: its blocks one after the other.
//!
//! Upstreams may announce several contents before one of them is whole. Here a block ends before the
//! next begins, so that what comes for a later block waits until the one before has ended.

use std::collections::BTreeMap;

use throughline_model::json::{self, ObjectWriter, RawJson, Value};
use throughline_model::{Arguments, Body, Content, Event, Place, Stop, Usage, Vendor, Wire};

use super::block::{self, BlockForm, BlockOf, LedTo, SUMMARY_PARTS, is_client_call, text_of};
use super::message::{MessageBody, own_body};
use crate::api::anthropic::errors;
use crate::api::ignored::Ignored;
use crate::api::stateless::EventWriter;
use crate::error::ApiError;

/// Members of a message that are known only at its end.
const AT_END: [&str; 4] = ["container", "stop_details", "stop_reason", "stop_sequence"];

/// Writes the events of an answer as this API's events.
pub(in crate::api::anthropic) struct BlockWriter {
    message: MessageBody,
    form: BlockForm,
    /// The id of the request, for an error.
    request: Option<String>,
    begun: bool,
    contents: BTreeMap<Place, Arriving>,
    /// Contents in the order in which they were announced, without those that are over.
    waiting: Vec<Place>,
    /// How many blocks there are.
    blocks: u64,
    has_calls: bool,
    /// What the content that was announced last is to the next one.
    led_to: LedTo,
    omitted: Vec<Ignored>,
}

/// A content that comes.
struct Arriving {
    content: Content,
    is_whole: bool,
    /// The number of its block, once that has begun.
    block: Option<u64>,
    /// Text that was not sent yet.
    unsent: String,
    has_text: bool,
    /// The part of a summary that came last.
    part: usize,
    led_to: LedTo,
}

impl Arriving {
    fn new(content: Content, led_to: LedTo) -> Self {
        Self {
            led_to,
            content,
            is_whole: false,
            block: None,
            unsent: String::new(),
            has_text: false,
            part: 0,
        }
    }

    /// Append text that the upstream sent. Reasoning and calls collect it in their content too, because their
    /// block may have to end before the upstream says that they are whole.
    fn append(&mut self, text: &str) {
        self.unsent.push_str(text);
        self.has_text |= !text.is_empty();
        match &mut self.content.body {
            Body::Reasoning(reasoning) => match reasoning.text.last_mut() {
                Some(last) => last.push_str(text),
                None => reasoning.text.push(text.to_owned()),
            },
            Body::ToolCall(call) => match &mut call.arguments {
                Arguments::Text(arguments) | Arguments::Free(arguments) => arguments.push_str(text),
                Arguments::None | Arguments::Json(_) => {
                    call.arguments = Arguments::Text(text.to_owned());
                }
            },
            _ => {}
        }
    }

    /// Whether it is whole, as far as one can tell when another content has begun: texts are, and
    /// calls whose arguments are.
    fn seems_whole(&self) -> bool {
        match self.content.as_tool_call().map(|call| &call.arguments) {
            Some(Arguments::Text(text)) => json::parse(text).is_ok(),
            Some(Arguments::None | Arguments::Free(_)) => false,
            Some(Arguments::Json(_)) | None => true,
        }
    }
}

impl BlockWriter {
    pub(in crate::api::anthropic) fn new(message: MessageBody, request: Option<String>) -> Self {
        Self {
            form: message.form(),
            message,
            request,
            begun: false,
            contents: BTreeMap::new(),
            waiting: Vec::new(),
            blocks: 0,
            has_calls: false,
            led_to: LedTo::Otherwise,
            omitted: Vec::new(),
        }
    }

    /// The message begins, without a block.
    fn begin(&mut self, id: Option<&str>, out: &mut String) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        push(out, "message_start", |object| {
            let mut message = ObjectWriter::new(object.key("message"));
            message
                .str("id", id.unwrap_or(&self.message.id))
                .str("type", "message")
                .str("role", "assistant")
                .str("model", &self.message.model)
                .raw("content", "[]")
                .raw("stop_reason", "null")
                .raw("stop_sequence", "null")
                .raw("usage", r#"{"input_tokens":0,"output_tokens":0}"#);
            self.message.extras(&mut message, &[]);
            message.end();
        });
    }

    /// A content is announced.
    fn open(&mut self, at: Place, content: Content, out: &mut String) {
        let arriving = self.arriving(content);
        self.contents.insert(at, arriving);
        self.waiting.push(at);
        self.advance(out);
    }

    fn arriving(&mut self, content: Content) -> Arriving {
        let led_to = std::mem::replace(&mut self.led_to, LedTo::after(&content));
        Arriving::new(content, led_to)
    }

    /// More text of a content.
    fn text(&mut self, at: Place, text: &str, out: &mut String) {
        let Some(arriving) = self.contents.get_mut(&at) else {
            return;
        };
        if !self.waiting.contains(&at) {
            if matches!(arriving.content.body, Body::ToolCall(_)) {
                // Its arguments were whole; this is white space behind them.
                return;
            }
            // Its block has ended, because another one began: it goes on in a new one.
            arriving.block = None;
            arriving.is_whole = false;
            self.waiting.push(at);
        }
        arriving.append(text);
        self.advance(out);
    }

    fn summary(&mut self, at: Place, part: usize, text: &str, out: &mut String) {
        let Some(arriving) = self.contents.get_mut(&at) else {
            return;
        };
        let between = match arriving.has_text && arriving.part != part {
            true => SUMMARY_PARTS,
            false => "",
        };
        arriving.part = part;
        self.text(at, &format!("{between}{text}"), out);
    }

    /// A content is whole.
    fn whole(&mut self, at: Place, content: Content, out: &mut String) {
        match self.contents.get_mut(&at) {
            Some(arriving) => {
                arriving.content = content;
                arriving.is_whole = true;
            }
            None => {
                let mut arriving = self.arriving(content);
                arriving.is_whole = true;
                self.contents.insert(at, arriving);
                self.waiting.push(at);
            }
        }
        self.advance(out);
    }

    /// Send what can be sent: all of the first waiting block, and of later ones once it has ended.
    fn advance(&mut self, out: &mut String) {
        while let Some(at) = self.waiting.first().copied() {
            let Some(arriving) = self.contents.get_mut(&at) else {
                self.waiting.remove(0);
                continue;
            };
            let is_last = self.waiting.len() == 1;
            if !is_last && arriving.seems_whole() {
                arriving.is_whole = true;
            }
            let is_whole = arriving.is_whole;
            self.send(at, out);
            if !is_whole {
                return;
            }
            self.waiting.remove(0);
        }
    }

    /// Send what there is of a content; to its end if it is whole.
    fn send(&mut self, at: Place, out: &mut String) {
        let Some(arriving) = self.contents.get_mut(&at) else {
            return;
        };
        let block = match self.form.block(&arriving.content, arriving.is_whole) {
            BlockOf::Block(block) => block,
            BlockOf::Nothing => return arriving.unsent.clear(),
            BlockOf::Omitted(what) => {
                if arriving.is_whole {
                    self.omitted.push(what);
                }
                return arriving.unsent.clear();
            }
        };
        let value = block.value();
        let index = match arriving.block {
            Some(index) => index,
            None => {
                let index = self.blocks;
                self.blocks += 1;
                self.has_calls |= is_client_call(&arriving.content);
                start(out, index, &empty(&value));
                arriving.block = Some(index);
                index
            }
        };
        let kind = DeltaKind::of(&value);
        if !arriving.unsent.is_empty() {
            let text = std::mem::take(&mut arriving.unsent);
            kind.write(out, index, &text);
        }
        if !arriving.is_whole {
            return;
        }
        if !arriving.has_text {
            kind.write_whole(out, index, &value);
        }
        kind.write_end(out, index, &value);
        stop(out, index);
        if let Some(after) = self.form.after(&arriving.content, arriving.led_to) {
            let index = self.blocks;
            self.blocks += 1;
            start(out, index, after.get());
            stop(out, index);
        }
    }

    fn finish(
        &mut self,
        reason: &Stop,
        usage: Option<&Usage>,
        vendor: Option<&Vendor>,
        out: &mut String,
    ) {
        self.begin(None, out);
        for arriving in self.contents.values_mut() {
            arriving.is_whole = true;
        }
        self.advance(out);
        let own = own_body(vendor).map(RawJson::value);
        let member = |key: &str| own.as_ref().and_then(|own| own.get(key));
        push(out, "message_delta", |object| {
            let mut delta = ObjectWriter::new(object.key("delta"));
            match own {
                Some(_) => {
                    for key in AT_END {
                        if let Some(value) = member(key) {
                            delta.raw(key, value.raw());
                        }
                    }
                }
                None => {
                    delta
                        .str("stop_reason", block::stop_reason(reason, self.has_calls))
                        .raw("stop_sequence", "null");
                }
            }
            delta.end();
            match member("usage").filter(|usage| !usage.is_null()) {
                Some(usage) => object.raw("usage", usage.raw()),
                None => object.raw("usage", block::usage(usage).get()),
            };
            if let Some(context) = member("context_management") {
                object.raw("context_management", context.raw());
            }
            if !self.omitted.is_empty() {
                self.message.extras(object, &self.omitted);
            }
        });
        push(out, "message_stop", |_| {});
    }
}

/// How the text of a block is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Thinking,
    Input,
    Compaction,
    /// The block came whole at its start.
    None,
}

impl DeltaKind {
    fn of(block: &Value<'_>) -> Self {
        let tag = block.get("type").and_then(Value::as_str);
        match tag.as_deref() {
            Some("text") => Self::Text,
            Some("thinking") => Self::Thinking,
            Some("compaction") => Self::Compaction,
            _ if block.get("input").is_some() => Self::Input,
            _ => Self::None,
        }
    }

    fn write(self, out: &mut String, index: u64, text: &str) {
        let (kind, key) = match self {
            Self::Text => ("text_delta", "text"),
            Self::Thinking => ("thinking_delta", "thinking"),
            Self::Input => ("input_json_delta", "partial_json"),
            Self::Compaction | Self::None => return,
        };
        delta(out, index, kind, |delta| {
            delta.str(key, text);
        });
    }

    /// The text of a block of which no piece came.
    fn write_whole(self, out: &mut String, index: u64, block: &Value<'_>) {
        let text = match self {
            Self::Text => text_of(block, "text"),
            Self::Thinking => text_of(block, "thinking"),
            Self::Input => block.get("input").map(|input| input.raw().into()),
            Self::Compaction | Self::None => None,
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.write(out, index, &text);
        }
    }

    /// What is known of a block at its end.
    fn write_end(self, out: &mut String, index: u64, block: &Value<'_>) {
        match self {
            Self::Text => {
                let citations = block.get("citations").and_then(Value::as_array);
                for citation in citations.unwrap_or_default() {
                    delta(out, index, "citations_delta", |delta| {
                        delta.raw("citation", citation.raw());
                    });
                }
            }
            Self::Thinking => {
                if let Some(signature) = text_of(block, "signature") {
                    delta(out, index, "signature_delta", |delta| {
                        delta.str("signature", &signature);
                    });
                }
            }
            Self::Compaction => delta(out, index, "compaction_delta", |delta| {
                for key in COMPACTION {
                    if let Some(value) = block.get(key) {
                        delta.raw(key, value.raw());
                    }
                }
            }),
            Self::Input | Self::None => {}
        }
    }
}

/// Members of a compacted conversation that come in a delta.
const COMPACTION: [&str; 2] = ["content", "encrypted_content"];

/// A block as it begins: without what deltas bring.
fn empty(block: &Value<'_>) -> String {
    let kind = DeltaKind::of(block);
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    let texts: &[(&str, &str)] = match kind {
        DeltaKind::Text => &[("text", "\"\""), ("citations", "[]")],
        DeltaKind::Thinking => &[("thinking", "\"\""), ("signature", "\"\"")],
        DeltaKind::Input => &[("input", "{}")],
        DeltaKind::Compaction => &[("content", "null"), ("encrypted_content", "null")],
        DeltaKind::None => &[],
    };
    for (key, nothing) in texts {
        if let Some(value) = block.get(key).filter(|value| !value.is_null()) {
            edits.push((value, *nothing));
        }
    }
    RawJson::of_with(block, &edits).get().to_owned()
}

fn start(out: &mut String, index: u64, block: &str) {
    push(out, "content_block_start", |object| {
        object.number("index", index).raw("content_block", block);
    });
}

fn stop(out: &mut String, index: u64) {
    push(out, "content_block_stop", |object| {
        object.number("index", index);
    });
}

fn delta(out: &mut String, index: u64, kind: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
    push(out, "content_block_delta", |object| {
        object.number("index", index);
        let mut delta = ObjectWriter::new(object.key("delta"));
        delta.str("type", kind);
        write(&mut delta);
        delta.end();
    });
}

/// A frame.
fn push(out: &mut String, kind: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
    out.push_str("event: ");
    out.push_str(kind);
    out.push_str("\ndata: ");
    let mut object = ObjectWriter::new(out);
    object.str("type", kind);
    write(&mut object);
    object.end();
    out.push_str("\n\n");
}

impl EventWriter for BlockWriter {
    const KEEP_ALIVE: &'static str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

    fn event(&mut self, event: Event, out: &mut String) {
        match event {
            Event::Started { id, .. } => {
                let id = id.filter(|id| id.starts_with("msg_"));
                self.begin(id.as_deref(), out);
            }
            Event::Opened { at, content } => {
                self.begin(None, out);
                self.open(at, content, out);
            }
            Event::Delta { at, text } => self.text(at, &text, out),
            Event::Summary { at, part, text } => self.summary(at, part, &text, out),
            Event::Content { at, content } => {
                self.begin(None, out);
                self.whole(at, content, out);
            }
            Event::Other {
                wire: Wire::Anthropic,
                event,
            } => {
                let kind = event.value();
                let kind = kind.get("type").and_then(Value::as_str);
                out.push_str("event: ");
                out.push_str(&kind.unwrap_or_default().replace(['\r', '\n'], ""));
                out.push_str("\ndata: ");
                out.push_str(event.get());
                out.push_str("\n\n");
            }
            Event::Accepted { .. } | Event::Speaker { .. } | Event::Other { .. } => {}
            Event::Finished {
                stop,
                usage,
                vendor,
                ..
            } => self.finish(&stop, usage.as_ref(), vendor.as_deref(), out),
        }
    }

    fn failed(&mut self, error: &ApiError, out: &mut String) {
        let body = errors::body(error, self.request.as_deref());
        out.push_str("event: error\ndata: ");
        out.push_str(body.get());
        out.push_str("\n\n");
    }
}
