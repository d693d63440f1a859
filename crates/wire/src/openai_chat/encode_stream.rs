//! Writing a response as the frames of a stream.
//!
//! The first chunk names every member of the body, of its alternatives and of their messages in
//! their order, with nothing in the places of what is still to come. So the chunks add up to the
//! body exactly, unknown members and all.

use throughline_model::json::{self, ArrayWriter, ObjectWriter, Value, push_compact};
use throughline_model::{Path, Response};

use super::{WIRE, body};
use crate::openai;
use crate::read::{member, number_of, text_of};
use crate::sse::Frame;
use crate::{LossKind, Losses};

/// Write a response as frames: role, texts, calls, the reason of the end, usage, `[DONE]`.
pub(super) fn encode_stream(response: &Response, losses: &mut Losses) -> Vec<Frame> {
    let (text, error) = body::streamed_body(response, losses);
    let mut frames = Vec::new();
    if let Ok(body) = json::parse(&text) {
        let mut writer = Chunks {
            body: &body,
            frames: &mut frames,
        };
        writer.all(losses);
    }
    if let Some(error) = error {
        frames.push(frame(openai::encode_error(&WIRE, error)));
    }
    frames.push(frame("[DONE]".to_owned()));
    frames
}

fn frame(data: String) -> Frame {
    Frame {
        data,
        ..Frame::default()
    }
}

struct Chunks<'c, 'a> {
    body: &'c Value<'a>,
    frames: &'c mut Vec<Frame>,
}

impl Chunks<'_, '_> {
    fn all(&mut self, losses: &mut Losses) {
        let choices = self.body.get("choices").and_then(Value::as_array);
        let choices = choices.unwrap_or_default();
        if choices.is_empty() {
            self.first("");
        }
        for (place, choice) in choices.iter().enumerate() {
            let mut opening = String::new();
            open_choice(&mut opening, choice, place, choices.len());
            if place == 0 {
                self.first(&opening);
            } else {
                self.chunk(&opening, None);
            }
            for delta in deltas(choice, place, losses) {
                let more = choice_delta(choice, choice_index(choice, place, choices.len()), &delta);
                self.chunk(&more, None);
            }
        }
        for (place, choice) in choices.iter().enumerate() {
            let index = choice_index(choice, place, choices.len());
            if let Some(last) = choice_end(choice, index) {
                self.chunk(&last, None);
            }
        }
        if let Some(usage) = member(self.body, "usage") {
            self.chunk("", Some(usage));
        }
        if let Some(error) = member(self.body, "error") {
            let mut data = String::new();
            let mut object = ObjectWriter::new(&mut data);
            push_compact(object.key("error"), error);
            object.end();
            self.frames.push(frame(data));
        }
    }

    /// The chunk that names all members of the body.
    fn first(&mut self, choice: &str) {
        let mut data = String::new();
        let mut object = ObjectWriter::new(&mut data);
        for member in self.body.members() {
            let value = &member.value;
            match &*member.key.to_str() {
                // An error ends a stream, so it comes last.
                "error" if !value.is_null() => {}
                key => {
                    let out = object.key_token(&member.key);
                    match key {
                        "choices" => push_array(out, choice),
                        "usage" => out.push_str("null"),
                        "object" if value.is_str("chat.completion") => {
                            out.push_str("\"chat.completion.chunk\"");
                        }
                        _ => push_compact(out, value),
                    }
                }
            }
        }
        object.end();
        self.frames.push(frame(data));
    }

    /// A later chunk.
    fn chunk(&mut self, choice: &str, usage: Option<&Value<'_>>) {
        let mut data = String::new();
        let mut object = ObjectWriter::new(&mut data);
        for key in ["id", "object", "created", "model"] {
            let Some(value) = self.body.get(key) else {
                continue;
            };
            if value.is_str("chat.completion") {
                object.str(key, "chat.completion.chunk");
            } else {
                push_compact(object.key(key), value);
            }
        }
        push_array(object.key("choices"), choice);
        if let Some(usage) = usage {
            push_compact(object.key("usage"), usage);
        }
        object.end();
        self.frames.push(frame(data));
    }
}

/// The index of an alternative. Alone it may go without; among others it may not.
fn choice_index(choice: &Value<'_>, place: usize, of: usize) -> Option<u64> {
    let index = number_of(choice, &["index"]);
    index.or_else(|| (of > 1).then_some(place as u64))
}

/// A chunk of an alternative with a delta.
fn choice_delta(choice: &Value<'_>, index: Option<u64>, delta: &str) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(index) = index {
        object.number("index", index);
    }
    object.raw("delta", delta);
    if choice.get("finish_reason").is_some() {
        object.raw("finish_reason", "null");
    }
    object.end();
    out
}

/// The end of an alternative, if it has a finish reason.
fn choice_end(choice: &Value<'_>, index: Option<u64>) -> Option<String> {
    let reason = member(choice, "finish_reason");
    let logprobs = member(choice, "logprobs");
    if reason.is_none() && logprobs.is_none() {
        return None;
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(index) = index {
        object.number("index", index);
    }
    object.raw("delta", "{}");
    for (key, value) in [("logprobs", logprobs), ("finish_reason", reason)] {
        if let Some(value) = value {
            push_compact(object.key(key), value);
        }
    }
    object.end();
    Some(out)
}

fn push_array(out: &mut String, element: &str) {
    let mut array = ArrayWriter::new(out);
    if !element.is_empty() {
        array.raw(element);
    }
    array.end();
}

/// An alternative as it begins: all its members, with nothing where the rest will come.
fn open_choice(out: &mut String, choice: &Value<'_>, place: usize, of: usize) {
    let mut object = ObjectWriter::new(out);
    if let Some(index) = choice_index(choice, place, of).filter(|_| choice.get("index").is_none()) {
        object.number("index", index);
    }
    for member in choice.members() {
        match &*member.key.to_str() {
            "message" => open_message(object.key("delta"), &member.value),
            "finish_reason" | "logprobs" => object.key_token(&member.key).push_str("null"),
            _ => push_compact(object.key_token(&member.key), &member.value),
        }
    }
    object.end();
}

fn open_message(out: &mut String, message: &Value<'_>) {
    // A key that comes twice cannot be continued; such a message comes whole.
    if message.has_duplicate_keys() {
        return push_compact(out, message);
    }
    let mut object = ObjectWriter::new(out);
    let members = message.members();
    for (place, member) in members.iter().enumerate() {
        let value = &member.value;
        let is_text = value.as_text().is_some_and(|text| !text.is_empty());
        match &*member.key.to_str() {
            // The last member needs no place kept for it.
            "tool_calls" if has_calls(value) && place + 1 == members.len() => {}
            "tool_calls" if has_calls(value) => object.key_token(&member.key).push_str("[]"),
            "content" if is_text => object.key_token(&member.key).push_str("\"\""),
            "refusal" | "reasoning_content" | "reasoning" if is_text => {
                object.key_token(&member.key).push_str("null");
            }
            "function_call" => {
                let out = object.key_token(&member.key);
                open_call(out, value, None);
            }
            _ => push_compact(object.key_token(&member.key), value),
        }
    }
    object.end();
}

fn has_calls(value: &Value<'_>) -> bool {
    value.as_array().is_some_and(|calls| !calls.is_empty())
}

/// A call as it begins: everything but its arguments.
fn open_call(out: &mut String, call: &Value<'_>, index: Option<u64>) {
    let held = [
        call.get("arguments"),
        call.at(&["function", "arguments"]),
        call.at(&["custom", "input"]),
    ];
    let edits: Vec<_> = held
        .into_iter()
        .flatten()
        .filter(|value| value.as_text().is_some())
        .map(|value| (value, "\"\""))
        .collect();
    let Some(index) = index else {
        return json::push_compact_with(out, call, &edits);
    };
    let mut object = ObjectWriter::new(out);
    object.number("index", index);
    for member in call.members() {
        if !member.key.is("index") {
            json::push_compact_with(object.key_token(&member.key), &member.value, &edits);
        }
    }
    object.end();
}

/// What follows the opening of an alternative: its texts and its calls.
fn deltas(choice: &Value<'_>, place: usize, losses: &mut Losses) -> Vec<String> {
    let mut deltas = Vec::new();
    let message = choice.get("message");
    let Some(message) = message.filter(|message| !message.has_duplicate_keys()) else {
        return deltas;
    };
    for key in ["reasoning_content", "reasoning", "content", "refusal"] {
        let text = message.get(key).filter(|value| value.as_text().is_some());
        if let Some(text) = text.filter(|text| text.raw() != "\"\"") {
            deltas.push(nested(&[key], text.raw()));
        }
    }
    if let Some(arguments) = message.at(&["function_call", "arguments"]) {
        deltas.push(nested(&["function_call", "arguments"], arguments.raw()));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for (index, call) in calls.unwrap_or_default().iter().enumerate() {
        if call.get("index").is_some() {
            let root = Path::Root.key("messages");
            let detail = "the index of a call belongs to the stream";
            losses.note(&root.index(place), LossKind::VendorFields, detail);
        }
        let mut opening = String::new();
        open_call(&mut opening, call, Some(index as u64));
        deltas.push(nested(&["tool_calls"], &format!("[{opening}]")));
        let (key, inner) = match text_of(call, "type").as_deref() {
            Some("custom") => ("custom", "input"),
            _ => ("function", "arguments"),
        };
        let arguments = call
            .at(&[key, inner])
            .filter(|text| text.as_text().is_some());
        if let Some(arguments) = arguments.filter(|text| text.raw() != "\"\"") {
            let rest = nested(&[key, inner], arguments.raw());
            let rest = rest.strip_prefix('{').unwrap_or(&rest);
            let fragment = format!("[{{\"index\":{index},{rest}]");
            deltas.push(nested(&["tool_calls"], &fragment));
        }
    }
    deltas
}

/// `{"a":{"b":json}}`
fn nested(path: &[&str], json: &str) -> String {
    path.iter().rev().fold(json.to_owned(), |inner, key| {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.raw(key, &inner);
        object.end();
        out
    })
}
