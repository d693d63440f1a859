//! Writing a whole response as the frames of a stream.

use throughline_model::json::{self, ObjectWriter, RawJson, Value, push_string};
use throughline_model::{Response, Status, Stop};

use super::decode::parse_rebuilt;
use super::types::{self, INPUT};
use super::{CONTENT, encode};
use crate::Losses;
use crate::read::text_of;
use crate::sse::Frame;
use crate::wire_type::ItemRole;

/// Members of a message that are not known when it begins.
const SET_AT_END: [&str; 4] = ["stop_reason", "stop_sequence", "stop_details", "container"];

/// Write a response as frames: the message opens, each block opens, brings its text and stops,
/// and what is known only at the end follows.
///
/// What was cut or failed ends as it did: no reader may take it for a whole message.
pub(super) fn encode_stream(response: &Response, losses: &mut Losses) -> Vec<Frame> {
    let body = encode::message(response, losses);
    let mut frames = Frames::default();
    let Ok(value) = parse_rebuilt(&body) else {
        // Only absurdly deep nesting leads here; the message goes out in one piece.
        frames.message_start(&body);
        frames.push("message_stop", |_| {});
        return frames.list;
    };
    let blocks = value.get(CONTENT).and_then(Value::as_array);
    frames.message_start(&message_at_start(&value));
    let over = response.stop != Stop::Cut && response.error.is_none();
    let incomplete = response
        .messages
        .first()
        .is_some_and(|message| message.status == Some(Status::Incomplete));
    let blocks = blocks.unwrap_or_default();
    for (index, block) in blocks.iter().enumerate() {
        let truncated = !over && incomplete && index + 1 == blocks.len();
        frames.block(
            index,
            block,
            if truncated {
                BlockEnd::Truncated
            } else {
                BlockEnd::Complete
            },
        );
    }
    if let Some(error) = &response.error {
        encode::note_error_code(error, losses);
        frames.list.push(frame("error", encode::error(error)));
    } else if over {
        frames.message_delta(&value);
        frames.push("message_stop", |_| {});
    }
    frames.list
}

/// The message as it was at the start.
fn message_at_start(body: &Value<'_>) -> String {
    let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
    if let Some(content) = body.get(CONTENT).filter(|found| found.as_array().is_some()) {
        edits.push((content, "[]"));
    }
    for key in SET_AT_END {
        if let Some(value) = body.get(key) {
            edits.push((value, "null"));
        }
    }
    RawJson::of_with(body, &edits).get().to_owned()
}

fn frame(kind: &str, data: String) -> Frame {
    Frame {
        event: Some(kind.to_owned()),
        data,
        id: None,
        retry: None,
    }
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockEnd {
    /// It is complete.
    Complete,
    /// The stream ended inside it.
    Truncated,
}

#[derive(Default)]
struct Frames {
    list: Vec<Frame>,
}

impl Frames {
    fn push(&mut self, kind: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let mut data = String::new();
        let mut object = ObjectWriter::new(&mut data);
        object.str("type", kind);
        write(&mut object);
        object.end();
        self.list.push(frame(kind, data));
    }

    fn message_start(&mut self, message: &str) {
        self.push("message_start", |object| {
            object.raw("message", message);
        });
    }

    fn message_delta(&mut self, body: &Value<'_>) {
        self.push("message_delta", |object| {
            let mut delta = ObjectWriter::new(object.key("delta"));
            for key in SET_AT_END {
                if let Some(value) = body.get(key) {
                    delta.raw(key, RawJson::of(value).get());
                }
            }
            delta.end();
            let usage = body.get("usage");
            if let Some(usage) = usage.filter(|usage| usage.as_object().is_some()) {
                object.raw("usage", RawJson::of(usage).get());
            }
        });
    }

    fn block(&mut self, index: usize, block: &Value<'_>, end: BlockEnd) {
        let tag = text_of(block, "type").unwrap_or_default();
        let mut edits: Vec<(&Value<'_>, &str)> = Vec::new();
        let mut deltas: Vec<(&str, String)> = Vec::new();
        let is_call = types::block_type(&tag).is_some_and(|row| row.role == ItemRole::Call);
        let text = |key: &str| block.get(key).filter(|value| value.as_text().is_some());
        match tag.as_str() {
            "text" => {
                if let Some(found) = text("text") {
                    edits.push((found, "\"\""));
                    deltas.extend(text_delta("text_delta", "text", found));
                }
                let citations = block.get("citations");
                for found in citations.and_then(Value::as_array).unwrap_or_default() {
                    deltas.push(("citations_delta", object_of(&[member("citation", found)])));
                }
                edits.extend(
                    citations
                        .filter(|found| found.as_array().is_some())
                        .map(|found| (found, "[]")),
                );
            }
            "thinking" => {
                for (kind, key) in [
                    ("thinking_delta", "thinking"),
                    ("signature_delta", "signature"),
                ] {
                    if let Some(found) = text(key) {
                        edits.push((found, "\"\""));
                        deltas.extend(text_delta(kind, key, found));
                    }
                }
            }
            "compaction" => {
                let mut members = Vec::new();
                for key in ["content", "encrypted_content"] {
                    if let Some(found) = text(key) {
                        edits.push((found, "null"));
                        members.push(member(key, found));
                    }
                }
                if !members.is_empty() {
                    deltas.push(("compaction_delta", object_of(&members)));
                }
            }
            _ if is_call => {
                if let Some(input) = block.get(INPUT) {
                    edits.push((input, "{}"));
                    let partial = format!("\"partial_json\":{}", partial_json(input, end));
                    deltas.push(("input_json_delta", object_of(&[partial])));
                }
            }
            // Everything else comes whole at the start.
            _ => {}
        }
        self.push("content_block_start", |object| {
            let start = RawJson::of_with(block, &edits);
            object
                .number("index", index as u64)
                .raw("content_block", start.get());
        });
        for (kind, members) in deltas {
            self.push("content_block_delta", |object| {
                object.number("index", index as u64);
                let mut delta = ObjectWriter::new(object.key("delta"));
                delta.str("type", kind).members_of(&members);
                delta.end();
            });
        }
        if end == BlockEnd::Complete {
            self.push("content_block_stop", |object| {
                object.number("index", index as u64);
            });
        }
    }
}

/// A member as JSON text.
fn member(key: &str, value: &Value<'_>) -> String {
    format!("\"{key}\":{}", RawJson::of(value).get())
}

/// An object of members.
fn object_of(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

/// A text as one fragment; nothing for no text.
fn text_delta<'k>(kind: &'k str, key: &str, text: &Value<'_>) -> Option<(&'k str, String)> {
    let is_empty = text.as_text().is_none_or(|text| text.is_empty());
    (!is_empty).then(|| (kind, object_of(&[member(key, text)])))
}

/// The fragment from which a reader gets `input` again, as a string token.
fn partial_json(input: &Value<'_>, end: BlockEnd) -> String {
    let mut token = String::new();
    match input.as_str() {
        // A truncated text is sent as it came.
        Some(text)
            if end == BlockEnd::Truncated || (!text.is_empty() && json::parse(&text).is_err()) =>
        {
            token.push_str(input.raw());
        }
        _ if input.members().is_empty() && input.as_object().is_some() => token.push_str("\"\""),
        _ => push_string(&mut token, RawJson::of(input).get()),
    }
    token
}
