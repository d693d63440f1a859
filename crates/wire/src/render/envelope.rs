//! Whether what a vendor's message says of itself still fits what the message holds.
//!
//! Contents are put into the holes of the message that they came in. Where a hole is gone or of
//! another kind, they would be lost without a word; where another member is not of its type, the
//! vendor would refuse the whole. Such an envelope is put aside and the message made anew.

use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Form, Wire};

use super::legal;

/// Whether an envelope is that of a message whose role is one of these words, as JSON. The first
/// of the contents is the one that has the envelope; behind it stand all others of the message.
pub(super) fn is_envelope(
    envelope: &RawJson,
    words: &[&str],
    contents: &[Content],
    wire: &Wire,
) -> bool {
    let held = held(contents, wire);
    let (says, holds) = match wire {
        Wire::GeminiInteractions => ("type", "content"),
        Wire::Gemini => ("role", "parts"),
        _ => ("role", "content"),
    };
    let (mut said, mut hole) = (None, None);
    for (key, at) in envelope.members() {
        let token = &envelope.get()[at];
        if key == says {
            said = Some(token);
        } else if key == holds {
            hole = Some(token);
        } else if !is_sound(key, token, wire) {
            return false;
        }
    }
    is_said(said, words, wire) && is_hole(hole, held, wire) && holds_others(envelope, held, wire)
}

/// The contents that go into the message: those that came from its vendor, up to the next that
/// opens a message of its own.
fn held<'c>(contents: &'c [Content], wire: &Wire) -> &'c [Content] {
    let joins = |content: &Content| {
        content.vendor.as_ref().is_some_and(|vendor| {
            let opens = vendor.envelope.is_some() && legal::is_flat(wire);
            vendor.wire == *wire && !opens && !matches!(vendor.form, Form::Item(_))
        })
    };
    let others = contents.iter().skip(1);
    let count = others.take_while(|content| joins(content)).count();
    &contents[..(1 + count).min(contents.len())]
}

/// Whether who speaks is said with one of the words.
fn is_said(said: Option<&str>, words: &[&str], wire: &Wire) -> bool {
    match said {
        Some(said) => words.contains(&said),
        // There a content without a role is the user's.
        None => *wire == Wire::Gemini && words.contains(&"\"user\""),
    }
}

/// Whether the contents find the hole that they fill: an empty list for parts, an empty string
/// for a text alone.
fn is_hole(hole: Option<&str>, held: &[Content], wire: &Wire) -> bool {
    let (mut parts, mut texts) = (0, 0);
    for content in held {
        match content.vendor.as_ref().map(|vendor| &vendor.form) {
            Some(Form::Part(_)) if !is_listed(content, wire) => parts += 1,
            Some(Form::Bare) => texts += 1,
            Some(Form::Part(_) | Form::Item(_) | Form::Within) | None => {}
        }
    }
    match (parts, texts) {
        (0, 0) => match hole {
            Some(hole) => matches!(hole, "[]" | "\"\"" | "null"),
            // A message of calls alone may go without content there.
            None => *wire == Wire::OpenAiChat,
        },
        (_, 0) => hole == Some("[]"),
        (0, 1) => hole == Some("\"\""),
        _ => false,
    }
}

/// Whether a content stands in the list of calls that messages have there beside their content.
fn is_listed(content: &Content, wire: &Wire) -> bool {
    *wire == Wire::OpenAiChat && content.as_tool_call().is_some()
}

/// Whether a member beside role and content is of its type. What messages do not have is left
/// out later.
fn is_sound(key: &str, token: &str, wire: &Wire) -> bool {
    let text = token.starts_with('"');
    let null = token == "null";
    match (wire, key) {
        (Wire::OpenAiResponses | Wire::Foundry, "type") => token == "\"message\"",
        (Wire::OpenAiResponses | Wire::Foundry, "id" | "status" | "phase") => text || null,
        (Wire::OpenAiChat, "name" | "refusal" | "tool_call_id") => text || null,
        (Wire::OpenAiChat, "audio" | "function_call") => token.starts_with('{') || null,
        (Wire::OpenAiChat, "tool_calls") => token == "[]" || null,
        _ => true,
    }
}

/// Whether a chat message has the members that hold what stands beside its content.
fn holds_others(envelope: &RawJson, held: &[Content], wire: &Wire) -> bool {
    if *wire != Wire::OpenAiChat {
        return true;
    }
    let starts = |key: &str, with: char| {
        let at = envelope.locate(&[key]);
        at.is_some_and(|at| envelope.get()[at].starts_with(with))
    };
    held.iter().all(|content| {
        let form = content.vendor.as_ref().map(|vendor| &vendor.form);
        match (&content.body, form) {
            (Body::ToolCall(_), Some(Form::Part(_))) => starts("tool_calls", '['),
            (Body::ToolCall(_), Some(Form::Within)) => starts("function_call", '{'),
            (Body::Refusal(_), Some(Form::Within)) => starts("refusal", '"'),
            (Body::Media(_), Some(Form::Within)) => starts("audio", '{'),
            _ => true,
        }
    })
}
