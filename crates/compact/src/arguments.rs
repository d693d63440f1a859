//! The arguments of a call, as far as digests understand them.

use std::borrow::Cow;

use throughline_model::Arguments;

use crate::text;
use throughline_model::json::{self, Node, Value};

/// Arguments that may be an object, some other text, or nothing.
pub(crate) struct Args<'a> {
    value: Option<Value<'a>>,
    free: &'a str,
}

/// Members that name what a call is about.
const PATHS: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "filename",
    "file_name",
    "file",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
    "dirPath",
    "dir_path",
    "directory",
    "dir",
    "uri",
    "url",
    "includePattern",
    "folder",
    "filepath",
];
const COMMANDS: &[&str] = &["command", "cmd", "script", "code", "input"];
const PATTERNS: &[&str] = &[
    "pattern",
    "query",
    "regex",
    "search_term",
    "q",
    "symbolName",
    "symbol",
    "term",
    "keywords",
    "name",
];
/// Members that hold text to be written; names in them count like those of results.
const BODIES: &[&str] = &[
    "old_string",
    "new_string",
    "oldText",
    "newText",
    "content",
    "contents",
    "old_str",
    "new_str",
    "patch",
    "diff",
    "file_text",
    "new_source",
    "edits",
    "plan",
    "oldString",
    "newString",
    "insert_text",
    "replacement",
    "body",
    "text",
    "prompt",
];

impl<'a> Args<'a> {
    pub(crate) fn of(arguments: &'a Arguments) -> Self {
        let (value, free) = match arguments {
            Arguments::None => (None, ""),
            Arguments::Text(text) => match json::parse(text) {
                Ok(value) if value.as_object().is_some() => (Some(value), ""),
                _ => (None, text.as_str()),
            },
            Arguments::Json(json) => (Some(json.value()), ""),
            Arguments::Free(text) => (None, text.as_str()),
        };
        Self { value, free }
    }

    /// Text that is not an object.
    pub(crate) fn free(&self) -> &'a str {
        self.free
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.value.as_ref()?.get(key)
    }

    pub(crate) fn str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.as_str()
    }

    pub(crate) fn number(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| {
            let value = self.get(key)?;
            value
                .as_u64()
                .or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))
        })
    }

    fn first(&self, keys: &[&str]) -> Option<Cow<'a, str>> {
        let found = keys.iter().filter_map(|key| self.str(key));
        found.into_iter().find(|text| !text.trim().is_empty())
    }

    /// What the call is about: a path or an address.
    pub(crate) fn path(&self) -> Option<Cow<'a, str>> {
        self.first(PATHS)
    }

    /// What is run; a list of words is joined.
    pub(crate) fn command(&self) -> Option<Cow<'a, str>> {
        let joined = || {
            let words = COMMANDS.iter().find_map(|key| self.get(key)?.as_array())?;
            let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| Cow::Owned(words.join(" ")))
        };
        let free = || (!self.free.trim().is_empty()).then_some(Cow::Borrowed(self.free));
        self.first(COMMANDS).or_else(joined).or_else(free)
    }

    /// What is looked for.
    pub(crate) fn pattern(&self) -> Option<Cow<'a, str>> {
        let free = || (!self.free.trim().is_empty()).then_some(Cow::Borrowed(self.free));
        self.first(PATTERNS).or_else(free)
    }

    /// All texts of the arguments with whether each is a body to be written.
    pub(crate) fn each_text(&self, mut found: impl FnMut(&str, bool)) {
        if !self.free.is_empty() {
            found(self.free, self.free.len() > 400);
        }
        if let Some(value) = &self.value {
            walk(value, false, 0, &mut found);
        }
    }

    /// What distinguishes a part of a resource from its other parts, such as a range; `None` for
    /// the whole.
    pub(crate) fn part(&self) -> Option<String> {
        let members = self.value.as_ref()?.members();
        if members.iter().any(|one| one.value.as_array().is_some()) {
            return None;
        }
        let first = members.first()?;
        Some(text::one_line(first.value.raw(), 80))
    }

    /// The arguments in short: `key: value` without bodies.
    pub(crate) fn short(&self, most: usize) -> String {
        let mut out = String::new();
        for member in self.value.iter().flat_map(Value::members) {
            if out.len() >= most {
                break;
            }
            let key = member.key.to_str();
            if BODIES.contains(&key.as_ref()) && member.value.raw().len() > 80 {
                continue;
            }
            let shown = match member.value.as_str() {
                Some(text) => text::one_line(&text, 120),
                None => text::one_line(member.value.raw(), 120),
            };
            if !out.is_empty() {
                out.push_str(", ");
            }
            out.push_str(&text::one_line(&key, 40));
            out.push_str(": ");
            out.push_str(&shown);
        }
        if out.is_empty() {
            out = text::one_line(self.free, most);
        }
        text::one_line(&out, most)
    }
}

/// Nested values are read down to this depth.
const DEEPEST: usize = 16;

fn walk(value: &Value<'_>, body: bool, depth: usize, found: &mut impl FnMut(&str, bool)) {
    if depth > DEEPEST {
        return;
    }
    match value.node() {
        Node::String(_) => {
            if let Some(text) = value.as_str() {
                found(&text, body);
            }
        }
        Node::Number => found(value.raw(), body),
        Node::Array(values) => {
            for value in values {
                walk(value, body, depth + 1, found);
            }
        }
        Node::Object(members) => {
            for member in members {
                let body = body || BODIES.iter().any(|key| member.key.is(key));
                walk(&member.value, body, depth + 1, found);
            }
        }
        Node::Null | Node::Bool(_) => {}
    }
}
