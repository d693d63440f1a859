//! What two requests have in common of a message that a client sends again: the parts that clients send
//! back as they got them. Ids, signatures, reasoning, status fields, cache marks, the spelling of JSON
//! and texts that a client adds and removes by itself are left out.

use std::borrow::Cow;

use throughline_model::json::{self, Node, Value};
use throughline_model::{
    Arguments, Body, Content, Form, Media, MediaSource, Message, Outcome, Output, Role, Runner,
    ToolCall, ToolResult,
};

/// The canonical form of a message: equal bytes mean the same message.
///
/// Every part is a tag, a length and bytes, so that no text can imitate the boundary of another part.
pub(super) fn canonical(message: &Message) -> Vec<u8> {
    let mut form = CanonicalForm::default();
    form.part(b'm', role(message).as_bytes());
    if let Some(author) = &message.author {
        form.part(b'n', author.as_bytes());
    }
    for content in &message.contents {
        form.content(content);
    }
    form.flush_text();
    form.bytes
}

/// The word for the role. Results of tools are a message of the user in one format and of the tool in
/// others, and one vendor has two words for the application.
fn role(message: &Message) -> &str {
    let is_result = |content: &Content| matches!(content.body, Body::ToolResult(_));
    if !message.contents.is_empty() && message.contents.iter().all(is_result) {
        return "tool";
    }
    match &message.role {
        Role::System | Role::Developer => "system",
        other => other.as_str(),
    }
}

#[derive(Default)]
struct CanonicalForm {
    bytes: Vec<u8>,
    /// Text that is not written yet: clients split and join neighbouring texts.
    text: String,
}

impl CanonicalForm {
    fn part(&mut self, tag: u8, bytes: &[u8]) {
        self.bytes.push(tag);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// Write the text so far. White space at its ends is not sent back by every client.
    fn flush_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = without_reminders(&text);
        let text = text.trim();
        if !text.is_empty() {
            self.part(b't', text.as_bytes());
        }
    }

    fn content(&mut self, content: &Content) {
        match &content.body {
            Body::Text(text) => return self.text.push_str(&text.text),
            // Sealed, shortened or dropped by clients.
            Body::Reasoning(_) => return,
            // What a vendor ran itself is not shown to clients of other formats.
            Body::ToolCall(ToolCall {
                runner: Runner::Vendor,
                ..
            })
            | Body::ToolResult(ToolResult {
                runner: Runner::Vendor,
                ..
            }) => return,
            _ => self.flush_text(),
        }
        match &content.body {
            Body::Text(_) | Body::Reasoning(_) => {}
            Body::Refusal(text) => self.part(b'r', text.text.trim().as_bytes()),
            Body::Media(media) => self.media(media),
            Body::ToolCall(call) => {
                self.part(b'c', call.name.as_bytes());
                let arguments = arguments(&call.arguments);
                self.part(b'a', arguments.as_bytes());
            }
            Body::ToolResult(result) => self.result(result),
            Body::ApprovalRequest(request) => {
                self.part(b'q', request.name.as_bytes());
                self.part(b'a', arguments(&request.arguments).as_bytes());
            }
            Body::ApprovalResponse(response) => {
                self.part(b'p', if response.approved { b"yes" } else { b"no" });
            }
            Body::Error(fault) => self.part(b'e', fault.message.as_bytes()),
            Body::Opaque(opaque) => {
                self.part(b'o', opaque.tag.as_bytes());
                if let Some(Form::Item(item) | Form::Part(item)) =
                    content.vendor.as_ref().map(|vendor| &vendor.form)
                {
                    self.part(b'j', canonical_item(&item.value()).as_bytes());
                }
            }
            Body::Unknown(raw) => self.part(b'j', canonical_item(&raw.value()).as_bytes()),
        }
    }

    fn media(&mut self, media: &Media) {
        let (media_type, source) = match &media.source {
            MediaSource::Data(data) => (media.media_type.as_deref(), data.as_str()),
            MediaSource::File(file) => (None, file.as_str()),
            MediaSource::Uri(uri) => {
                let data = uri
                    .strip_prefix("data:")
                    .and_then(|uri| uri.split_once(";base64,"));
                match data {
                    Some((media_type, data)) => (Some(media_type), data),
                    None => (None, uri.as_str()),
                }
            }
        };
        self.part(b'd', media_type.unwrap_or_default().as_bytes());
        self.part(b'b', source.as_bytes());
    }

    fn result(&mut self, result: &ToolResult) {
        let failed = matches!(result.outcome, Outcome::Error | Outcome::Unknown);
        self.part(b'x', if failed { b"error" } else { b"ok" });
        match &result.output {
            Output::None => {}
            Output::Text(text) => self.text.push_str(text),
            Output::Json(json) => self.text.push_str(&canonical_json(&json.value())),
            Output::Parts(parts) => {
                for part in parts {
                    self.content(part);
                }
            }
        }
        self.flush_text();
        self.part(b'.', b"");
    }
}

/// Arguments without the spelling of their JSON. What is no JSON stays as it is.
fn arguments(arguments: &Arguments) -> Cow<'_, str> {
    let text = match arguments {
        Arguments::None => "",
        Arguments::Text(text) => text.trim(),
        Arguments::Free(text) => return Cow::Borrowed(text),
        Arguments::Json(json) => json.get(),
    };
    match json::parse(text) {
        Ok(value) => Cow::Owned(canonical_json(&value)),
        // A call without arguments has an empty object in formats that need one.
        Err(_) if text.is_empty() => Cow::Borrowed("{}"),
        Err(_) => Cow::Borrowed(text),
    }
}

/// Members that vendors and clients add to an item, and that do not change what it says.
const UNSTABLE: [&str; 6] = [
    "id",
    "status",
    "signature",
    "cache_control",
    "encrypted_content",
    "created_by",
];

/// JSON with sorted keys, without white space, escapes only where they are needed, and numbers as a
/// client that reads them as doubles writes them.
fn canonical_json(value: &Value<'_>) -> String {
    let mut out = String::new();
    push_json(&mut out, value, &[]);
    out
}

/// The same of a vendor's item, without what does not last.
fn canonical_item(item: &Value<'_>) -> String {
    let mut out = String::new();
    push_json(&mut out, item, &UNSTABLE);
    out
}

/// Write a value; `without` are members of the object itself that are left out.
fn push_json(out: &mut String, value: &Value<'_>, without: &[&str]) {
    match value.node() {
        Node::Null | Node::Bool(_) => out.push_str(value.raw()),
        Node::Number => push_number(out, value.raw()),
        Node::String(_) => json::push_string(out, &value.as_str().unwrap_or_default()),
        Node::Array(values) => {
            out.push('[');
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push_json(out, value, &[]);
            }
            out.push(']');
        }
        Node::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|member| (member.key.to_str(), &member.value))
                .filter(|(key, _)| !without.contains(&&**key))
                .collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            out.push('{');
            for (place, (key, value)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                json::push_string(out, &key);
                out.push(':');
                push_json(out, value, &[]);
            }
            out.push('}');
        }
    }
}

/// The largest whole number up to which doubles are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn push_number(out: &mut String, raw: &str) {
    match raw.parse::<f64>() {
        Ok(number) if number.abs() < EXACT => {
            // `-0` and `0` are one number.
            let number = if number == 0.0 { 0.0 } else { number };
            out.push_str(&number.to_string());
        }
        _ => out.push_str(raw),
    }
}

const REMINDER: &str = "<system-reminder>";
const REMINDER_END: &str = "</system-reminder>";

/// A text without the reminders that a client puts beside what its user wrote: it dates them, and adds
/// and removes them between requests.
fn without_reminders(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, inside)) = rest.split_once(REMINDER) {
        // One that does not end is text.
        let Some((_, after)) = inside.split_once(REMINDER_END) else {
            break;
        };
        kept.push_str(before.trim_end());
        rest = after;
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
