//! Objects that grow with each chunk of a stream.
//!
//! Tokens are joined as they are, never read and written again: a surrogate pair may be cut between
//! two chunks, and the body must come out byte for byte as the server would have sent it. MergedObject
//! keep the order in which they first came.

use std::borrow::Cow;
use std::collections::HashMap;

use throughline_model::json::{self, ArrayWriter, ObjectWriter, Value};

/// How a member grows.
#[derive(Clone, Copy)]
pub(super) enum MergeRule {
    /// The last value counts; null replaces nothing.
    Last,
    /// Strings and arrays are continued.
    Append,
    /// A string that some servers repeat with each fragment.
    Repeated,
    /// An object with rules of its own.
    Object(MergeRules),
    /// Only the place counts; what belongs there is collected separately.
    Placeholder,
    /// Belongs to the stream, not to the body.
    Skip,
}

pub(super) type MergeRules = fn(&str) -> MergeRule;

/// A value so far.
pub(super) enum MergedValue {
    /// As it came.
    Json(Cow<'static, str>),
    /// A string: its token without the quotes.
    Text(String),
    /// A text part made of strings that came between parts; the token without the quotes.
    TextPart(String),
    Array(Vec<MergedValue>),
    Object(MergedObject),
}

impl MergedValue {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Json(json) if json == "null")
    }

    fn merge(&mut self, value: &Value<'_>, rule: MergeRule) {
        if value.is_null() {
            return;
        }
        match rule {
            MergeRule::Last => self.replace(value),
            MergeRule::Placeholder if self.is_null() && value.as_array().is_some() => {
                *self = Self::Json("[]".into());
            }
            MergeRule::Placeholder | MergeRule::Skip => {}
            MergeRule::Repeated => match (value.as_text(), &mut *self) {
                (Some(more), Self::Text(text)) if text == more.token() => {}
                (Some(_), _) => self.append(value),
                (None, _) => self.replace(value),
            },
            MergeRule::Append => self.append(value),
            MergeRule::Object(rules) => {
                if value.as_object().is_none() {
                    return self.replace(value);
                }
                if !matches!(self, Self::Object(_)) {
                    *self = Self::Object(MergedObject::default());
                }
                if let Self::Object(members) = self {
                    members.take(value, rules);
                }
            }
        }
    }

    /// Replace the value. Most chunks repeat that of the first one.
    fn replace(&mut self, value: &Value<'_>) {
        if !matches!(self, Self::Json(json) if json == value.raw()) {
            *self = Self::Json(compact(value));
        }
    }

    /// Continue a string or an array. What is neither stands for itself: the body that comes out
    /// is then refused with the place of the mistake.
    fn append(&mut self, value: &Value<'_>) {
        if let Some(more) = value.as_text() {
            match self {
                Self::Text(text) => text.push_str(more.token()),
                Self::Array(list) => match list.last_mut() {
                    Some(Self::TextPart(text)) => text.push_str(more.token()),
                    _ => list.push(Self::TextPart(more.token().to_owned())),
                },
                _ => *self = Self::Text(more.token().to_owned()),
            }
        } else if let Some(values) = value.as_array() {
            let values = values.iter().map(|value| Self::Json(compact(value)));
            match self {
                Self::Array(list) => list.extend(values),
                Self::Text(text) if !text.is_empty() => {
                    let text = Self::TextPart(std::mem::take(text));
                    *self = Self::Array(std::iter::once(text).chain(values).collect());
                }
                _ => *self = Self::Array(values.collect()),
            }
        } else {
            self.replace(value);
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Json(json) => out.push_str(json),
            Self::Text(token) => push_token(out, token),
            Self::TextPart(token) => {
                let mut object = ObjectWriter::new(out);
                object.str("type", "text");
                push_token(object.key("text"), token);
                object.end();
            }
            Self::Array(list) => {
                let mut array = ArrayWriter::new(out);
                for value in list {
                    value.write(array.slot());
                }
                array.end();
            }
            Self::Object(members) => members.write(out, |_, _| false),
        }
    }
}

fn compact(value: &Value<'_>) -> Cow<'static, str> {
    let mut out = String::with_capacity(value.raw().len());
    json::push_compact(&mut out, value);
    Cow::Owned(out)
}

pub(super) fn push_token(out: &mut String, token: &str) {
    out.push('"');
    out.push_str(token);
    out.push('"');
}

/// The members of an object, in the order in which they first came. A key that comes twice in one
/// chunk is two members.
#[derive(Default)]
pub(super) struct MergedObject {
    list: Vec<(String, MergedValue)>,
    /// Where keys stand, once there are many.
    places: HashMap<String, Vec<usize>>,
}

/// So many members are looked through one by one.
const FEW: usize = 24;

impl MergedObject {
    pub(super) fn take(&mut self, object: &Value<'_>, rules: MergeRules) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let duplicates = object.has_duplicate_keys();
        for member in object.members() {
            let rule = rules(&member.key.to_str());
            if matches!(rule, MergeRule::Skip) {
                continue;
            }
            let token = match member.key.token() {
                "delta" if matches!(rule, MergeRule::Placeholder) => "message",
                token => token,
            };
            let nth = if duplicates {
                let count = seen.entry(token).or_default();
                *count += 1;
                *count - 1
            } else {
                0
            };
            self.entry(token, nth).merge(&member.value, rule);
        }
    }

    fn entry(&mut self, key: &str, nth: usize) -> &mut MergedValue {
        let place = self.place(key, nth).unwrap_or_else(|| {
            let place = self.list.len();
            let null = MergedValue::Json("null".into());
            self.list.push((key.to_owned(), null));
            let unplaced = match place {
                0..FEW => place + 1..place + 1,
                FEW => 0..place + 1,
                _ => place..place + 1,
            };
            for place in unplaced {
                let key = self.list[place].0.clone();
                self.places.entry(key).or_default().push(place);
            }
            place
        });
        &mut self.list[place].1
    }

    /// Where the nth member with a key stands.
    fn place(&self, key: &str, nth: usize) -> Option<usize> {
        if self.list.len() > FEW {
            return self.places.get(key)?.get(nth).copied();
        }
        let same = self
            .list
            .iter()
            .enumerate()
            .filter(|(_, (known, _))| known == key);
        same.map(|(place, _)| place).nth(nth)
    }

    pub(super) fn get(&self, key: &str) -> Option<&MergedValue> {
        let place = match self.list.len() > FEW {
            true => *self.places.get(key)?.last()?,
            false => self.list.iter().rposition(|(known, _)| known == key)?,
        };
        self.list.get(place).map(|(_, value)| value)
    }

    /// The token of a string.
    pub(super) fn token(&self, key: &str) -> &str {
        match self.get(key) {
            Some(MergedValue::Text(token)) => token,
            _ => "",
        }
    }

    /// Append the object; `special` writes the values that are collected separately.
    pub(super) fn write(&self, out: &mut String, special: impl FnMut(&str, &mut String) -> bool) {
        let mut object = TokenWriter::new(out);
        self.write_members(&mut object, special);
        object.end();
    }

    pub(super) fn write_members(
        &self,
        object: &mut TokenWriter<'_>,
        mut special: impl FnMut(&str, &mut String) -> bool,
    ) {
        for (token, value) in &self.list {
            let out = object.key(token);
            if !special(token, out) {
                value.write(out);
            }
        }
    }
}

/// Writes an object whose keys are tokens without their quotes.
pub(super) struct TokenWriter<'o> {
    out: &'o mut String,
    first: bool,
}

impl<'o> TokenWriter<'o> {
    pub(super) fn new(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, first: true }
    }

    pub(super) fn key(&mut self, token: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        push_token(self.out, token);
        self.out.push(':');
        self.out
    }

    pub(super) fn end(self) {
        self.out.push('}');
    }
}
