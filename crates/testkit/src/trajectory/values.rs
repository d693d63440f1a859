//! Numbers and plain words of the past that calls use as arguments.

use std::collections::HashMap;

use throughline_model::Content;

use super::atoms::in_token;
use super::needs::BODIES;
use super::past::Past;
use super::text::argument_strings;
use super::{RECENT, Session};

/// Arguments that a model makes up: settings, and prose about the call itself.
const OWN: &[&str] = &[
    "-A",
    "-B",
    "-C",
    "activeForm",
    "context",
    "description",
    "head_limit",
    "justification",
    "limit",
    "prompt",
    "status",
    "subject",
    "thought",
    "timeout",
];

/// In more pieces than this, a value is found by chance.
const RARE: usize = 3;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueKind {
    /// Three digits or more, or a decimal fraction.
    Number,
    /// A word without anything that would make it a name.
    Word,
}

/// A rare value that a call uses and that the session last showed some calls before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RareValue {
    /// The index of the model's message that uses it.
    pub at: usize,
    /// Which kind of value it is.
    pub kind: ValueKind,
    /// The value as it was shown.
    pub text: String,
    /// The index of the message in which it occurred last.
    pub last: usize,
}

/// The rare values of a session's calls, in order. Names, long numbers included, are no values.
pub fn rare_values(session: &Session) -> Vec<RareValue> {
    let past = Past::of(session);
    let mut found = Vec::new();
    // The pieces in which each value stands.
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, message) in session.messages.iter().enumerate() {
        let mut used: Vec<&str> = Vec::new();
        let calls = message.contents.iter().filter_map(Content::as_tool_call);
        let arguments: Vec<_> = calls
            .flat_map(|call| argument_strings(&call.arguments))
            .filter(|(key, _)| !BODIES.contains(&key.as_str()) && !OWN.contains(&key.as_str()))
            .collect();
        for (text, kind) in arguments.iter().flat_map(|(_, text)| values(text)) {
            if !used.contains(&text) {
                used.push(text);
                found.extend(rare_value(&past, at, text, kind, places.get(text)));
            }
        }
        for (place, piece) in past.at(at) {
            for (text, _) in values(&piece.text) {
                let places = places.entry(text.to_owned()).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
    }
    found
}

fn rare_value(
    past: &Past,
    at: usize,
    text: &str,
    kind: ValueKind,
    places: Option<&Vec<usize>>,
) -> Option<RareValue> {
    let places = places.filter(|places| places.len() <= RARE)?;
    let first = past.piece(*places.first()?)?;
    let last = past.piece(*places.last()?)?;
    first.origin()?;
    (past.back(at, last) >= RECENT).then(|| RareValue {
        at,
        kind,
        text: text.to_owned(),
        last: last.at,
    })
}

/// The values in a text.
fn values(text: &str) -> impl Iterator<Item = (&str, ValueKind)> {
    let parts = text.split(|c: char| !in_token(c) && !c.is_alphabetic());
    parts.filter_map(|part| {
        let part = part.trim_matches(['.', '-', '~', '@', '+']);
        let kind = match part.starts_with(|c: char| c.is_ascii_digit()) {
            true => ValueKind::Number,
            false => ValueKind::Word,
        };
        let telling = match kind {
            ValueKind::Number => is_number(part),
            ValueKind::Word => is_word(part),
        };
        telling.then_some((part, kind))
    })
}

/// Not a single digit or two, which are everywhere, and not an id.
fn is_number(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let others = part.len() - digits;
    match part.contains('.') {
        true => others == 1 && (2..=8).contains(&digits),
        false => others == 0 && (3..=5).contains(&digits),
    }
}

/// One case throughout, except for the first letter: inner capitals make a name.
fn is_word(part: &str) -> bool {
    let long = match part.is_ascii() {
        true => part.len() >= 5,
        false => part.chars().count() >= 2,
    };
    let mut rest = part.chars().skip(1);
    long && part.chars().all(char::is_alphabetic) && !rest.any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use throughline_model::Outcome;

    use super::{ValueKind, rare_values, values};
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    #[test]
    fn values_are_told_from_names() {
        let found: Vec<_> =
            values("port 8443 at 0.75 of src/quay.rs, two 潮汐 for highTide 4421486")
                .map(|(text, _)| text)
                .collect();
        assert_eq!(found, ["8443", "0.75", "潮汐"]);
    }

    #[test]
    fn a_value_counts_when_it_is_rare_and_was_shown_some_calls_before() {
        let mut made = Maker::new(0);
        made.user("start the harbour");
        let mut round =
            |arguments: &str, output: &str| made.called("run", arguments, Outcome::Ok, output);
        round(
            r#"{"command":"up"}"#,
            "listens on 8443 as sluice, limit 500",
        );
        for _ in 0..6 {
            round(r#"{"command":"look"}"#, "common");
        }
        round(r#"{"command":"curl 8443 sluice common","limit":500}"#, "");
        let found = rare_values(&Session::new("s", made.messages));
        let found: Vec<_> = found
            .iter()
            .map(|value| (value.kind, value.text.as_str(), value.last))
            .collect();
        assert_eq!(
            found,
            [
                (ValueKind::Number, "8443", 2),
                (ValueKind::Word, "sluice", 2)
            ]
        );
    }
}
