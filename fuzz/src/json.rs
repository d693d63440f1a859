//! The JSON reader of the model against that of serde_json.

use serde_json::Value as Other;
use throughline_model::json::{self, JsonErrorKind, Limits, Node, Value};

pub(crate) fn run(data: &[u8]) {
    let ours = json::parse_bytes(data, Limits::default());
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(ours.is_err(), "bytes that are not UTF-8 were read");
        return;
    };
    // Ours passes over a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Checks the grammar alone: any depth, any number, lone surrogates.
    let theirs = serde_json::from_str::<serde::de::IgnoredAny>(text);
    let value = match ours {
        Ok(value) => value,
        Err(error) => {
            let bounded = matches!(
                error.kind,
                JsonErrorKind::TooDeep { .. } | JsonErrorKind::TooManyValues { .. }
            );
            assert!(
                bounded || theirs.is_err(),
                "refused what serde_json reads: {error}"
            );
            assert!(
                error.offset <= data.len(),
                "an error beyond the end: {error}"
            );
            return;
        }
    };
    assert!(theirs.is_ok(), "read what serde_json refuses: {theirs:?}");
    assert_eq!(
        value.raw(),
        text.trim_matches([' ', '\t', '\n', '\r']),
        "the source text changed"
    );

    let mut compact = String::new();
    json::push_compact(&mut compact, &value);
    let again = json::parse(&compact).expect("a compact text is JSON");
    same_tokens(&value, &again);

    // Whole values are compared when serde_json can hold them: no lone surrogates, no number beyond a float.
    if let Ok(other) = serde_json::from_str::<Other>(text) {
        same_value(&value, &other);
    }
}

/// Two trees of ours, token by token.
fn same_tokens(one: &Value<'_>, two: &Value<'_>) {
    match (one.node(), two.node()) {
        (Node::Array(one), Node::Array(two)) => {
            assert_eq!(one.len(), two.len());
            one.iter()
                .zip(two)
                .for_each(|(one, two)| same_tokens(one, two));
        }
        (Node::Object(one), Node::Object(two)) => {
            assert_eq!(one.len(), two.len());
            for (one, two) in one.iter().zip(two) {
                assert_eq!(one.key.token(), two.key.token());
                same_tokens(&one.value, &two.value);
            }
        }
        _ => assert_eq!(one.raw(), two.raw()),
    }
}

fn same_value(ours: &Value<'_>, other: &Other) {
    match other {
        Other::Null => assert!(ours.is_null()),
        Other::Bool(value) => assert_eq!(ours.as_bool(), Some(*value)),
        Other::Number(number) => {
            assert!(matches!(ours.node(), Node::Number));
            // -0 is an integer to other parsers and a float to serde_json.
            if let Some(whole) = number.as_u64() {
                assert_eq!(ours.as_u64(), Some(whole));
            }
        }
        Other::String(text) => {
            assert_eq!(ours.as_str().as_deref(), Some(text.as_str()));
            assert!(ours.is_str(text));
        }
        Other::Array(others) => {
            let values = ours.as_array().expect("an array");
            assert_eq!(values.len(), others.len());
            values
                .iter()
                .zip(others)
                .for_each(|(ours, other)| same_value(ours, other));
        }
        Other::Object(others) => {
            let members = ours.as_object().expect("an object");
            assert!(members.len() >= others.len());
            assert_eq!(members.len() > others.len(), ours.has_duplicate_keys());
            for (key, other) in others {
                same_value(ours.get(key).expect("a member of this name"), other);
            }
        }
    }
}
