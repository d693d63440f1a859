//! The values of a structured result.

use throughline_model::json::{self, Limits, Node, Value};

use crate::text;

/// Bytes of a structured result that are read.
const READ: usize = 1 << 20;

/// The scalars of a JSON text, depth first: `k=v, …`.
pub(super) fn scalars(text: &str, most: usize) -> Option<String> {
    let trimmed = text.trim();
    if trimmed.len() > READ {
        return None;
    }
    let limits = Limits {
        depth: 64,
        values: 200_000,
    };
    let value = json::parse_with(trimmed, limits).ok()?;
    let mut out = String::new();
    walk(&value, "", most, &mut out);
    (!out.is_empty()).then(|| text::one_line(&out, most))
}

fn walk(value: &Value<'_>, key: &str, most: usize, out: &mut String) {
    if out.len() >= most * 2 {
        return;
    }
    match value.node() {
        Node::Object(members) => {
            for member in members {
                walk(&member.value, &member.key.to_str(), most, out);
            }
        }
        Node::Array(values) => {
            for value in values {
                walk(value, key, most, out);
            }
        }
        Node::Null => {}
        Node::String(_) | Node::Number | Node::Bool(_) => {
            let text = match value.as_str() {
                Some(text) => text::one_line(&text, 80),
                None => value.raw().to_owned(),
            };
            if !out.is_empty() {
                out.push_str(", ");
            }
            if !key.is_empty() {
                out.push_str(&text::one_line(key, 40));
                out.push('=');
            }
            out.push_str(&text);
        }
    }
}
