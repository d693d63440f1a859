use std::cmp::Ordering;

use throughline_model::json::{Node, RawJson, Value};

use super::number::Number;

/// A value that a schema names, to compare with.
pub(super) struct Literal {
    /// As it stands in the schema.
    pub(super) raw: RawJson,
    kind: Kind,
}

enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Kind>),
    Object(Vec<(String, Kind)>),
}

impl Literal {
    pub(super) fn of(value: &Value<'_>) -> Self {
        Self {
            raw: RawJson::of(value),
            kind: Kind::of(value),
        }
    }

    /// Whether a value is the same; `1` and `1.0` are.
    pub(super) fn is(&self, value: &Value<'_>) -> bool {
        self.kind.is(value)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }
}

impl Kind {
    fn of(value: &Value<'_>) -> Self {
        match value.node() {
            Node::Null => Self::Null,
            Node::Bool(found) => Self::Bool(*found),
            Node::Number => Self::Number(Number::read(value.raw())),
            Node::String(_) => Self::String(value.as_str().unwrap_or_default().into_owned()),
            Node::Array(values) => Self::Array(values.iter().map(Self::of).collect()),
            Node::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|member| (member.key.to_str().into_owned(), Self::of(&member.value)))
                    .collect(),
            ),
        }
    }

    fn is(&self, value: &Value<'_>) -> bool {
        match (self, value.node()) {
            (Self::Null, Node::Null) => true,
            (Self::Bool(one), Node::Bool(two)) => one == two,
            (Self::Number(one), Node::Number) => {
                one.compare(Number::read(value.raw())) == Ordering::Equal
            }
            (Self::String(one), Node::String(_)) => value.is_str(one),
            (Self::Array(ones), Node::Array(twos)) => {
                ones.len() == twos.len() && ones.iter().zip(twos).all(|(one, two)| one.is(two))
            }
            (Self::Object(ones), Node::Object(twos)) => {
                ones.len() == twos.len()
                    && ones
                        .iter()
                        .all(|(key, one)| value.get(key).is_some_and(|two| one.is(two)))
            }
            _ => false,
        }
    }
}
