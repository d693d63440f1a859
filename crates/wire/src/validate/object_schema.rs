//! The shapes of known items as data: which members, of which JSON type, required or not.

use throughline_model::Path;
use throughline_model::json::{Node, Value};

use super::report::Report;

/// A set of JSON types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u8);

impl Kind {
    pub(crate) const TEXT: Self = Self(1);
    pub(crate) const FLAG: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(4);
    pub(crate) const LIST: Self = Self(8);
    pub(crate) const OBJECT: Self = Self(16);
    pub(crate) const ANY: Self = Self(31);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::TEXT, "a string"),
        (Self::FLAG, "a boolean"),
        (Self::NUMBER, "a number"),
        (Self::LIST, "an array"),
        (Self::OBJECT, "an object"),
    ];

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn of(value: &Value<'_>) -> Self {
        match value.node() {
            Node::Null => Self(0),
            Node::Bool(_) => Self::FLAG,
            Node::Number => Self::NUMBER,
            Node::String(_) => Self::TEXT,
            Node::Array(_) => Self::LIST,
            Node::Object(_) => Self::OBJECT,
        }
    }

    pub(crate) fn allows(self, value: &Value<'_>) -> bool {
        let kind = Self::of(value);
        kind.0 & self.0 == kind.0 && kind.0 != 0
    }

    pub(crate) fn words(self) -> String {
        if self == Self::ANY {
            return "a value".to_owned();
        }
        let names: Vec<&str> = Self::NAMES
            .iter()
            .filter(|(kind, _)| kind.0 & self.0 != 0)
            .map(|(_, name)| *name)
            .collect();
        names.join(" or ")
    }
}

/// Whether a member must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// There and not null.
    Required,
    /// There, possibly null.
    Nullable,
    /// Absent and null are fine.
    Optional,
}

/// One member of a known object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    kind: Kind,
    need: Need,
}

pub(crate) const fn required(key: &'static str, kind: Kind) -> Field {
    let need = Need::Required;
    Field { key, kind, need }
}

pub(crate) const fn nullable(key: &'static str, kind: Kind) -> Field {
    let need = Need::Nullable;
    Field { key, kind, need }
}

pub(crate) const fn optional(key: &'static str, kind: Kind) -> Field {
    let need = Need::Optional;
    Field { key, kind, need }
}

/// A tag and its members.
pub(crate) type ObjectSchema = (&'static str, &'static [Field]);

pub(crate) fn fields(shapes: &'static [ObjectSchema], tag: &str) -> Option<&'static [Field]> {
    shapes
        .iter()
        .find(|(name, _)| *name == tag)
        .map(|(_, fields)| *fields)
}

/// An object whose tag is known.
pub(crate) struct KnownObject<'k> {
    /// The rule that is broken when a member is wrong.
    pub(crate) rule: &'static str,
    pub(crate) tag: &'k str,
    pub(crate) object: &'k Value<'k>,
    pub(crate) path: &'k Path<'k>,
}

impl KnownObject<'_> {
    /// Check the known members; what the object has beyond them is not looked at.
    pub(crate) fn check(&self, fields: &[Field], report: &mut Report) {
        for field in fields {
            let problem = match (self.object.get(field.key), field.need) {
                (None, Need::Optional) => None,
                (None, Need::Required | Need::Nullable) => Some("is missing".to_owned()),
                (Some(value), Need::Optional | Need::Nullable) if value.is_null() => None,
                (Some(value), _) if field.kind.allows(value) => None,
                (Some(value), _) => Some(format!("is {}", value.kind())),
            };
            if let Some(problem) = problem {
                let (key, tag, expected) = (field.key, self.tag, field.kind.words());
                let message = format!("`{key}` of `{tag}` {problem}; it must be {expected}");
                report
                    .add(self.rule, &self.path.key(key), message)
                    .about([tag]);
            }
        }
    }
}

/// A member that is neither absent nor null.
pub(crate) fn member<'v, 'a>(object: &'v Value<'a>, key: &str) -> Option<&'v Value<'a>> {
    object.get(key).filter(|value| !value.is_null())
}

/// A string member; nothing for whatever else stands there.
pub(crate) fn text(object: &Value<'_>, key: &str) -> Option<String> {
    object
        .get(key)
        .and_then(Value::as_str)
        .map(std::borrow::Cow::into_owned)
}

/// The same, but an empty string is nothing too.
pub(crate) fn filled(object: &Value<'_>, key: &str) -> Option<String> {
    text(object, key).filter(|found| !found.is_empty())
}

/// Enough of a long opaque text to know it by.
pub(crate) fn short(text: &str) -> String {
    const END: usize = 4;
    let count = text.chars().count();
    if count <= 3 * END {
        return text.to_owned();
    }
    let head: String = text.chars().take(END).collect();
    let tail: String = text.chars().skip(count - END).collect();
    format!("{head}…{tail}")
}
