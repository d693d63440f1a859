//! What does not fit a schema, where, and in which words.

use std::fmt::Write as _;

use throughline_model::json::{self, Node as Json, RawJson, Value};

use super::{NodeId, Schema};

/// One thing that does not fit.
pub(in super::super) struct Finding {
    pub(in super::super) path: String,
    pub(in super::super) message: String,
    pub(super) kind: FindingKind,
    /// How many steps from the value that the check began with.
    pub(super) depth: usize,
}

/// What kind of thing, for choosing between alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingKind {
    /// It has another type.
    Type,
    /// It is not one of the values named.
    Value,
    /// Anything else.
    Other,
}

/// Where a value is: a list from the inside out, so that walking costs nothing.
#[derive(Clone, Copy)]
pub(super) enum ValuePath<'p> {
    Root,
    Key(&'p ValuePath<'p>, &'p str),
    Index(&'p ValuePath<'p>, usize),
}

impl ValuePath<'_> {
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Root => 0,
            Self::Key(outer, _) | Self::Index(outer, _) => 1 + outer.depth(),
        }
    }

    fn push_to(&self, out: &mut String) {
        match self {
            Self::Root => {}
            Self::Key(outer, key) => {
                outer.push_to(out);
                let plain = |letter: char| letter.is_alphanumeric() || "_-$".contains(letter);
                if !key.is_empty() && key.chars().all(plain) {
                    out.push_str(if out.is_empty() { "" } else { "." });
                    out.push_str(key);
                } else {
                    out.push('[');
                    json::push_string(out, key);
                    out.push(']');
                }
            }
            Self::Index(outer, index) => {
                outer.push_to(out);
                // Writing to a string cannot fail.
                let _ = write!(out, "[{index}]");
            }
        }
    }
}

/// What is told of what does not fit.
pub(super) enum Findings {
    /// Only whether there was something.
    Quiet { failed: bool },
    /// Everything, up to a number.
    Loud { found: Vec<Finding>, most: usize },
}

impl Findings {
    pub(super) fn loud(most: usize) -> Self {
        let found = Vec::new();
        Self::Loud { found, most }
    }

    /// Whether nothing more needs to be looked for.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Quiet { failed } => *failed,
            Self::Loud { found, most } => found.len() >= *most,
        }
    }

    pub(super) fn add(
        &mut self,
        kind: FindingKind,
        place: &ValuePath<'_>,
        message: impl FnOnce() -> String,
    ) {
        if self.is_full() {
            return;
        }
        match self {
            Self::Quiet { failed } => *failed = true,
            Self::Loud { found, .. } => {
                let mut path = String::new();
                place.push_to(&mut path);
                found.push(Finding {
                    path,
                    message: message(),
                    kind,
                    depth: place.depth(),
                });
            }
        }
    }

    pub(super) fn extend(&mut self, findings: Vec<Finding>) {
        match self {
            Self::Quiet { failed } => *failed |= !findings.is_empty(),
            Self::Loud { found, most } => {
                let room = most.saturating_sub(found.len());
                found.extend(findings.into_iter().take(room));
            }
        }
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        match self {
            Self::Quiet { .. } => Vec::new(),
            Self::Loud { found, .. } => found,
        }
    }
}

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

/// Names longer than this are not compared: the work grows with the product of the lengths.
const LONGEST_NAME: usize = 64;

/// The known name that is closest to another one, if one is close.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = normalized(name)?;
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .filter_map(|candidate| {
            let distance = strsim::osa_distance(&name, &normalized(candidate)?);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A name without case and separators: `portName`, `port_name` and `Port-Name` are the same. None if
/// nothing is left or too much.
fn normalized(name: &str) -> Option<String> {
    let letters = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '));
    let letters = letters.flat_map(char::to_lowercase);
    let name: String = letters.take(LONGEST_NAME + 1).collect();
    (1..=LONGEST_NAME)
        .contains(&name.chars().count())
        .then_some(name)
}
