use std::borrow::Cow;

use super::text::{Escapes, Text};

/// A value and the text it was read from.
#[derive(Clone, Debug)]
pub struct Value<'a> {
    raw: &'a str,
    node: Node<'a>,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; its digits are the value's [`Value::raw`].
    Number,
    /// A string; its token is the value's [`Value::raw`].
    String(Escapes),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object, in order, duplicate keys included.
    Object(Vec<Member<'a>>),
}

/// One key and value of an object.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The key of the member.
    pub key: Text<'a>,
    /// The value of the member.
    pub value: Value<'a>,
}

impl<'a> Value<'a> {
    pub(super) fn new(raw: &'a str, node: Node<'a>) -> Self {
        Self { raw, node }
    }

    /// The source text, from the first to the last character of the value.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// What the value is.
    pub fn node(&self) -> &Node<'a> {
        &self.node
    }

    /// The member of an object. Of duplicate keys the last counts.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.members()
            .iter()
            .rev()
            .find(|member| member.key.is(key))
            .map(|member| &member.value)
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Value<'a>> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The members of an object; none for anything else.
    pub fn members(&self) -> &[Member<'a>] {
        match &self.node {
            Node::Object(members) => members,
            _ => &[],
        }
    }

    /// The values of an array.
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        match &self.node {
            Node::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&[Member<'a>]> {
        match &self.node {
            Node::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The string and the kinds of escapes in its token.
    pub fn as_text(&self) -> Option<Text<'a>> {
        match &self.node {
            Node::String(escapes) => Some(Text::new(&self.raw[1..self.raw.len() - 1], *escapes)),
            _ => None,
        }
    }

    /// The string with its escapes decoded; `None` if this is not a string.
    pub fn as_str(&self) -> Option<Cow<'a, str>> {
        self.as_text().map(|text| text.to_str())
    }

    /// The truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.node {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is a whole one that fits.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.node {
            Node::Number => self.raw.parse().ok(),
            _ => None,
        }
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.node, Node::Null)
    }

    /// Whether the value is a string equal to `text`.
    pub fn is_str(&self, text: &str) -> bool {
        self.as_text().is_some_and(|found| found.is(text))
    }

    /// Whether an object has a key twice.
    pub fn has_duplicate_keys(&self) -> bool {
        let members = self.members();
        // Objects of vendors have a dozen keys; a set would cost more than it saves. Long ones
        // (free-form arguments) are sorted instead.
        if members.len() <= 16 {
            return members.iter().enumerate().any(|(place, member)| {
                let key = member.key.to_str();
                members[..place].iter().any(|earlier| earlier.key.is(&key))
            });
        }
        let mut keys: Vec<_> = members.iter().map(|member| member.key.to_str()).collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.node {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Number => "a number",
            Node::String(_) => "a string",
            Node::Array(_) => "an array",
            Node::Object(_) => "an object",
        }
    }
}
