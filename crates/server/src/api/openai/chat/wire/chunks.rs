//! A completion as the frames of a stream.

use std::collections::BTreeMap;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{
    Body, Citation, Content, Event, Place, Runner, Stop, ToolCall, Usage, Vendor, Wire,
};

use super::completion::{Completion, of_choice, own_body};
use super::message::{self, SUMMARY_PARTS};
use crate::api::ignored::Ignored;
use crate::api::stateless::EventWriter;
use crate::error::ApiError;

/// Writes the events of an answer as chunks.
pub(in crate::api::openai::chat) struct ChunkWriter {
    completion: Completion,
    /// Whether the usage comes before the end.
    include_usage: bool,
    /// Whether the upstream speaks this API, so that its id of the answer is the client's.
    native: bool,
    begun: bool,
    /// What was sent of each content.
    sent: BTreeMap<Place, SentContent>,
    calls: usize,
    /// Characters of text so far; citations count from the start.
    length: u64,
    citations: Vec<Citation>,
    omitted: Vec<Ignored>,
}

/// What was sent of a content.
#[derive(Clone, Copy, Debug)]
struct SentContent {
    kind: DeltaKind,
    /// Whether some of its text was.
    has_text: bool,
    /// The part of a summary that was sent last.
    part: usize,
}

/// Where the text of a content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Refusal,
    Reasoning,
    /// The arguments of the call with this number.
    Call(usize),
    /// Nowhere.
    Omitted,
}

impl ChunkWriter {
    pub(in crate::api::openai::chat) fn new(
        completion: Completion,
        include_usage: bool,
        native: bool,
    ) -> Self {
        Self {
            completion,
            include_usage,
            native,
            begun: false,
            sent: BTreeMap::new(),
            calls: 0,
            length: 0,
            citations: Vec::new(),
            omitted: Vec::new(),
        }
    }

    /// A chunk with a delta, which `write` fills in.
    fn delta(&mut self, out: &mut String, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let begins = !std::mem::replace(&mut self.begun, true);
        self.chunk(out, |object, completion| {
            let mut choices = ArrayWriter::new(object.key("choices"));
            let mut choice = ObjectWriter::new(choices.slot());
            choice.number("index", 0);
            let mut delta = ObjectWriter::new(choice.key("delta"));
            if begins {
                delta.str("role", "assistant");
            }
            write(&mut delta);
            delta.end();
            choice.raw("finish_reason", "null");
            choice.end();
            choices.end();
            if begins {
                completion.extras(object, &[]);
            }
        });
    }

    /// A chunk; with usage only if `write` adds it.
    fn chunk(&self, out: &mut String, write: impl FnOnce(&mut ObjectWriter<'_>, &Completion)) {
        out.push_str("data: ");
        let mut object = ObjectWriter::new(out);
        object
            .str("id", &self.completion.id)
            .str("object", "chat.completion.chunk")
            .number("created", self.completion.created)
            .str("model", &self.completion.model);
        write(&mut object, &self.completion);
        object.end();
        out.push_str("\n\n");
    }

    /// A content begins.
    fn open(&mut self, at: Place, content: &Content, out: &mut String) -> SentContent {
        let kind = match &content.body {
            Body::Text(_) => DeltaKind::Text,
            Body::Refusal(_) => DeltaKind::Refusal,
            Body::Reasoning(_) => DeltaKind::Reasoning,
            Body::ToolCall(call) if call.runner == Runner::Client => {
                let number = self.calls;
                self.calls += 1;
                self.open_call(number, call, out);
                DeltaKind::Call(number)
            }
            _ => {
                self.omitted.extend(message::omitted(content));
                DeltaKind::Omitted
            }
        };
        let sent = SentContent {
            kind,
            has_text: false,
            part: 0,
        };
        self.sent.insert(at, sent);
        sent
    }

    fn open_call(&mut self, number: usize, call: &ToolCall, out: &mut String) {
        self.delta(out, |delta| {
            let mut calls = ArrayWriter::new(delta.key("tool_calls"));
            let mut object = ObjectWriter::new(calls.slot());
            object
                .number("index", number as u64)
                .str("id", call.call.value())
                .str("type", "function");
            let mut function = ObjectWriter::new(object.key("function"));
            function.str("name", &call.name).str("arguments", "");
            function.end();
            object.end();
            calls.end();
        });
    }

    /// More text of a content.
    fn text(&mut self, at: Place, text: &str, out: &mut String) {
        let Some(sent) = self.sent.get_mut(&at).filter(|_| !text.is_empty()) else {
            return;
        };
        sent.has_text = true;
        match sent.kind {
            DeltaKind::Omitted => {}
            DeltaKind::Text => {
                self.length += text.chars().count() as u64;
                self.delta(out, |delta| {
                    delta.str("content", text);
                });
            }
            DeltaKind::Refusal => self.delta(out, |delta| {
                delta.str("refusal", text);
            }),
            DeltaKind::Reasoning => {
                self.delta(out, |delta| {
                    delta.str("reasoning_content", text);
                });
            }
            DeltaKind::Call(number) => self.delta(out, |delta| {
                let mut calls = ArrayWriter::new(delta.key("tool_calls"));
                let mut object = ObjectWriter::new(calls.slot());
                object.number("index", number as u64);
                let mut function = ObjectWriter::new(object.key("function"));
                function.str("arguments", text);
                function.end();
                object.end();
                calls.end();
            }),
        }
    }

    /// More of the summary of a reasoning.
    fn summary(&mut self, at: Place, part: usize, text: &str, out: &mut String) {
        let Some(sent) = self.sent.get_mut(&at) else {
            return;
        };
        let between = match sent.has_text && sent.part != part {
            true => SUMMARY_PARTS,
            false => "",
        };
        sent.part = part;
        self.text(at, &format!("{between}{text}"), out);
    }

    /// A content is whole: what was not sent of it follows.
    fn whole(&mut self, at: Place, content: &Content, out: &mut String) {
        let before = self.length;
        let sent = match self.sent.get(&at) {
            Some(sent) => *sent,
            None => self.open(at, content, out),
        };
        if let Body::Text(text) = &content.body {
            let before = match sent.has_text {
                true => before.saturating_sub(text.text.chars().count() as u64),
                false => before,
            };
            self.citations
                .extend(message::shifted(&text.citations, before));
        }
        if sent.has_text {
            return;
        }
        match &content.body {
            Body::Text(text) | Body::Refusal(text) => self.text(at, &text.text, out),
            Body::Reasoning(_) => self.text(at, &message::reasoning_text(content), out),
            Body::ToolCall(call) => self.text(at, &message::arguments_text(call), out),
            _ => {}
        }
    }

    /// The end: why, the usage, and the mark.
    fn finish(
        &mut self,
        stop: &Stop,
        usage: Option<&Usage>,
        vendor: Option<&Vendor>,
        out: &mut String,
    ) {
        if let Some(annotations) = message::annotations(&self.citations) {
            self.delta(out, |delta| {
                delta.raw("annotations", &annotations);
            });
        }
        if !self.begun {
            self.delta(out, |delta| {
                delta.str("content", "");
            });
        }
        let own = own_body(vendor).map(RawJson::value);
        let reason = own.as_ref().and_then(|own| of_choice(own, "finish_reason"));
        let logprobs = own.as_ref().and_then(|own| of_choice(own, "logprobs"));
        let has_calls = self.calls > 0;
        self.chunk(out, |object, completion| {
            let mut choices = ArrayWriter::new(object.key("choices"));
            let mut choice = ObjectWriter::new(choices.slot());
            choice.number("index", 0).raw("delta", "{}");
            if let Some(logprobs) = logprobs {
                choice.raw("logprobs", logprobs.raw());
            }
            match reason {
                Some(reason) => choice.raw("finish_reason", reason.raw()),
                None => choice.str("finish_reason", message::finish_reason(stop, has_calls)),
            };
            choice.end();
            choices.end();
            for key in ["service_tier", "system_fingerprint"] {
                let value = own.as_ref().and_then(|own| own.get(key));
                if let Some(value) = value.filter(|value| !value.is_null()) {
                    object.raw(key, value.raw());
                }
            }
            if !self.omitted.is_empty() {
                completion.extras(object, &self.omitted);
            }
        });
        if self.include_usage {
            let own = own.as_ref().and_then(|own| own.get("usage"));
            let own = own.filter(|usage| !usage.is_null()).map(Value::raw);
            let ours = usage.map(message::usage);
            let usage = own.or(ours.as_ref().map(RawJson::get)).unwrap_or("null");
            self.chunk(out, |object, _| {
                object.raw("choices", "[]").raw("usage", usage);
            });
        }
        out.push_str("data: [DONE]\n\n");
    }
}

impl EventWriter for ChunkWriter {
    const KEEP_ALIVE: &'static str = ": keep-alive\n\n";

    fn event(&mut self, event: Event, out: &mut String) {
        match event {
            Event::Started { id, .. } => {
                if let Some(id) = id.filter(|_| self.native && !self.begun) {
                    self.completion.id = id;
                }
            }
            Event::Opened { at, content } => {
                self.open(at, &content, out);
            }
            Event::Delta { at, text } => self.text(at, &text, out),
            Event::Summary { at, part, text } => self.summary(at, part, &text, out),
            Event::Content { at, content } => self.whole(at, &content, out),
            Event::Other {
                wire: Wire::OpenAiChat,
                event,
            } => {
                out.push_str("data: ");
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
        out.push_str("data: ");
        out.push_str(error.body().get());
        out.push_str("\n\n");
    }
}
