//! Whether the envelope of a vendor's message still fits the contents of the message.
//!
//! Contents are put into the holes of the message that they came in. Where a hole is gone or of
//! another kind, they would be lost without a word; where another member is not of its type, the
//! vendor would refuse the whole. Such an envelope is put aside and the message made anew.

use throughline_model::json::RawJson;
use throughline_model::{Content, Form, Wire};

use super::format::{EnvelopeFormat, RenderFormat};
use crate::vendors;

/// Whether an envelope is that of a message whose role is one of these words, as JSON. The first
/// of the contents is the one that has the envelope; behind it stand all others of the message.
pub(super) fn is_envelope(
    envelope: &RawJson,
    words: &[&str],
    contents: &[Content],
    wire: &Wire,
) -> bool {
    let facts = vendors::render_format(wire);
    let held = held(contents, wire, facts);
    let facts = &facts.envelope;
    let (mut role, mut hole) = (None, None);
    for (key, at) in envelope.members() {
        let token = &envelope.get()[at];
        if key == facts.role_key {
            role = Some(token);
        } else if key == facts.content_key {
            hole = Some(token);
        } else if !(facts.member_fits)(key, token) {
            return false;
        }
    }
    is_role(role, words, facts)
        && is_hole(hole, held, facts)
        && (facts.holds_contents)(envelope, held)
}

/// The contents that go into the message: those that came from its vendor, up to the next that
/// opens a message of its own.
fn held<'c>(contents: &'c [Content], wire: &Wire, facts: &RenderFormat) -> &'c [Content] {
    let joins = |content: &Content| {
        content.vendor.as_ref().is_some_and(|vendor| {
            let opens = vendor.envelope.is_some() && facts.flat;
            vendor.wire == *wire && !opens && !matches!(vendor.form, Form::Item(_))
        })
    };
    let others = contents.iter().skip(1);
    let count = others.take_while(|content| joins(content)).count();
    &contents[..(1 + count).min(contents.len())]
}

/// Whether the role is one of the words.
fn is_role(role: Option<&str>, words: &[&str], facts: &EnvelopeFormat) -> bool {
    match role {
        Some(role) => words.contains(&role),
        None => facts.role_defaults_to_user && words.contains(&"\"user\""),
    }
}

/// Whether the contents find the hole that they fill: an empty list for parts, an empty string
/// for a text alone.
fn is_hole(hole: Option<&str>, held: &[Content], facts: &EnvelopeFormat) -> bool {
    let (mut parts, mut texts) = (0, 0);
    for content in held {
        match content.vendor.as_ref().map(|vendor| &vendor.form) {
            Some(Form::Part(_)) if !is_listed(content, facts) => parts += 1,
            Some(Form::Bare) => texts += 1,
            Some(Form::Part(_) | Form::Item(_) | Form::Within) | None => {}
        }
    }
    match (parts, texts) {
        (0, 0) => match hole {
            Some(hole) => matches!(hole, "[]" | "\"\"" | "null"),
            None => facts.content_optional,
        },
        (_, 0) => hole == Some("[]"),
        (0, 1) => hole == Some("\"\""),
        _ => false,
    }
}

/// Whether a content stands in a list of calls beside the content of its message.
fn is_listed(content: &Content, facts: &EnvelopeFormat) -> bool {
    facts.calls_beside_content && content.as_tool_call().is_some()
}
