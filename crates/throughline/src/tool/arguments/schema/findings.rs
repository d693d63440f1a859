//! Violations of a schema: place and text.

use std::fmt::Write as _;

use throughline_model::json::{self, Node as Json, RawJson, Value};

use super::{NodeId, Schema};

/// One violation.
pub(in super::super) struct Finding {
    pub(in super::super) path: String,
    pub(in super::super) message: String,
    pub(super) kind: FindingKind,
    /// The number of steps from the root value.
    pub(super) depth: usize,
}

/// The kind of a violation, for choosing between alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingKind {
    /// The value has another type.
    Type,
    /// The value is not one of the listed ones.
    Value,
    /// Any other violation.
    Other,
}

/// The place of a value: a linked list from the inside out, so that descending allocates nothing.
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

/// Collects violations.
pub(super) enum Findings {
    /// Only whether there is a violation.
    Flag { failed: bool },
    /// All violations, up to a number.
    List { found: Vec<Finding>, most: usize },
}

impl Findings {
    pub(super) fn collect(most: usize) -> Self {
        let found = Vec::new();
        Self::List { found, most }
    }

    /// Whether no more violations are needed.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Flag { failed } => *failed,
            Self::List { found, most } => found.len() >= *most,
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
            Self::Flag { failed } => *failed = true,
            Self::List { found, .. } => {
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
            Self::Flag { failed } => *failed |= !findings.is_empty(),
            Self::List { found, most } => {
                let room = most.saturating_sub(found.len());
                found.extend(findings.into_iter().take(room));
            }
        }
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        match self {
            Self::Flag { .. } => Vec::new(),
            Self::List { found, .. } => found,
        }
    }
}

/// How much of a string or number is shown, in characters.
const SHOWN: usize = 40;
/// How many allowed values are listed.
const LISTED: usize = 16;
/// How far references and alternatives are followed.
const MAX_DEPTH: usize = 6;

impl Schema {
    /// What a part, or each of some alternatives, expects: `string`, `one of "m", "ft"`, `integer
    /// or null`.
    pub(super) fn expected(&self, parts: &[NodeId]) -> String {
        let mut values = Vec::new();
        let mut types = Vec::new();
        for part in parts {
            self.gather(*part, MAX_DEPTH, &mut values, &mut types);
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
            // All parts of an allOf hold together: the first one that expects something is
            // enough.
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

/// A description of a value: `string "three"`, `number 3.5`, `array of 2`, `null`.
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

/// Longer names are not compared: the work grows with the product of the lengths.
const LONGEST_NAME: usize = 64;

/// The known name closest to a name, if one is close.
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

/// A name without case and separators: `portName`, `port_name` and `Port-Name` are equal. `None` if
/// nothing is left, or if the name is too long.
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
