//! Words for what a schema wants and for what a value is.

use throughline_model::json::{Node as Json, RawJson, Value};

use super::{NodeId, Schema};

/// How much of a string or number is shown, in characters.
const SHOWN: usize = 40;
/// How many of the allowed values are listed.
const LISTED: usize = 16;
/// How far references and alternatives are followed.
const DEEP: usize = 6;

impl Schema {
    /// What a part wants, or each of some alternatives: `string`, `one of "m", "ft"`,
    /// `integer or null`.
    pub(super) fn expected(&self, parts: &[NodeId]) -> String {
        let mut values = Vec::new();
        let mut types = Vec::new();
        for part in parts {
            self.gather(*part, DEEP, &mut values, &mut types);
        }
        let mut words = types;
        match values.as_slice() {
            [] => {}
            [only] => words.insert(0, only.clone()),
            some => words.insert(0, one_of(some)),
        }
        if words.is_empty() {
            return "a value".to_owned();
        }
        words.join(" or ")
    }

    fn gather(&self, id: NodeId, deep: usize, values: &mut Vec<String>, types: &mut Vec<String>) {
        let node = self.node(id);
        let add = |list: &mut Vec<String>, word: String| {
            if !list.contains(&word) && list.len() <= LISTED {
                list.push(word);
            }
        };
        if let Some(allowed) = &node.allowed {
            for literal in allowed {
                add(values, cut(literal.raw.get()));
            }
        } else if let Some(found) = node.types {
            for name in found.names() {
                add(types, name.to_owned());
            }
        } else if deep > 0 {
            let lists = node.any_of.iter().chain(&node.one_of);
            let parts = lists.copied().chain(node.reference);
            // All parts of an allOf hold together: the first one that says something is enough.
            for part in parts.chain(node.all_of.first().copied()) {
                self.gather(part, deep - 1, values, types);
            }
        }
        let says = !values.is_empty() || !types.is_empty();
        if node.nullable && says {
            add(types, "null".to_owned());
        }
    }
}

fn one_of(values: &[String]) -> String {
    let more = values.len() > LISTED;
    let listed = values[..values.len().min(LISTED)].join(", ");
    format!("one of {listed}{}", if more { ", …" } else { "" })
}

/// What a value is: `string "three"`, `number 3.5`, `array of 2`, `null`.
pub(in super::super) fn found(value: &Value<'_>) -> String {
    match value.node() {
        Json::Null => "null".to_owned(),
        Json::Bool(found) => format!("boolean {found}"),
        Json::Number => format!("number {}", cut(value.raw())),
        Json::String(_) => format!("string {}", cut(value.raw())),
        Json::Array(values) => format!("array of {}", values.len()),
        Json::Object(members) => match members.len() {
            0 => "empty object".to_owned(),
            _ => "object".to_owned(),
        },
    }
}

/// A value as it was written, if it is short.
pub(super) fn shown(value: &Value<'_>) -> String {
    match value.node() {
        Json::Array(_) | Json::Object(_) => cut(RawJson::of(value).get()),
        _ => cut(value.raw()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((place, _)) => format!("{}…", &text[..place]),
    }
}

/// A count with its noun.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
