//! The members of a request body while it is put together: each key once, in order, and the long
//! list of messages borrowed until the end, so that it is copied once and never read.

use std::borrow::Cow;
use std::fmt;

use throughline_model::json::{ObjectWriter, RawJson, push_string};

/// The members of an object.
#[derive(Debug, Default)]
pub(crate) struct ObjectBuilder<'m>(Vec<(Cow<'m, str>, Json<'m>)>);

#[derive(Debug)]
enum Json<'m> {
    Text(Cow<'m, str>),
    /// An array, with one more element in front if there is one.
    Items {
        first: Option<String>,
        items: Items<'m>,
    },
}

impl<'m> ObjectBuilder<'m> {
    fn set(&mut self, key: Cow<'m, str>, json: Json<'m>) {
        match self.0.iter_mut().find(|(found, _)| *found == key) {
            Some((_, place)) => *place = json,
            None => self.0.push((key, json)),
        }
    }

    /// Add a member given as JSON text.
    pub(crate) fn raw(&mut self, key: &'m str, json: impl Into<Cow<'m, str>>) {
        self.set(Cow::Borrowed(key), Json::Text(json.into()));
    }

    /// Add a string.
    pub(crate) fn str(&mut self, key: &'m str, text: &str) {
        let mut json = String::new();
        push_string(&mut json, text);
        self.raw(key, json);
    }

    /// Add a boolean.
    pub(crate) fn bool(&mut self, key: &'m str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    /// A whole number.
    pub(crate) fn number(&mut self, key: &'m str, value: u64) {
        self.raw(key, value.to_string());
    }

    /// An object; none if it would be empty.
    pub(crate) fn object(&mut self, key: &'m str, members: ObjectBuilder<'_>) {
        if !members.0.is_empty() {
            self.raw(key, members.into_text());
        }
    }

    /// A list of strings.
    pub(crate) fn strings(&mut self, key: &'m str, texts: &[String]) {
        let mut json = String::from("[");
        for text in texts {
            if json.len() > 1 {
                json.push(',');
            }
            push_string(&mut json, text);
        }
        json.push(']');
        self.raw(key, json);
    }

    /// Rendered messages, with one more in front if there is one.
    pub(crate) fn items(&mut self, key: &'m str, first: Option<String>, items: Items<'m>) {
        self.set(Cow::Borrowed(key), Json::Items { first, items });
    }

    /// Without a member.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(found, _)| found != key);
    }

    /// Every member of another object; one that is here already is replaced where it stands.
    pub(crate) fn replace_by(&mut self, object: &'m RawJson) {
        for member in object.value().members() {
            let json = Json::Text(Cow::Owned(RawJson::of(&member.value).get().to_owned()));
            self.set(Cow::Owned(member.key.to_str().into_owned()), json);
        }
    }

    /// The object's text.
    pub(crate) fn into_text(self) -> String {
        // Measured first: a buffer that grows behind the messages would copy them again.
        let room = |(key, json): &(Cow<'_, str>, Json<'_>)| {
            let json = match json {
                Json::Text(text) => text.len(),
                Json::Items { first, items } => {
                    first.as_ref().map_or(0, |first| first.len() + 1) + items.len()
                }
            };
            key.len() + key.len() / 8 + json + 6
        };
        let size: usize = self.0.iter().map(room).sum();
        let mut out = String::with_capacity(size + 2);
        let mut object = ObjectWriter::new(&mut out);
        for (key, json) in &self.0 {
            let out = object.key(key);
            match json {
                Json::Text(text) => out.push_str(text),
                Json::Items { first: None, items } => items.push_to(out),
                Json::Items {
                    first: Some(first),
                    items,
                } => items.push_after(first, out),
            }
        }
        object.end();
        out
    }
}

/// The text of a JSON array in two pieces: what is settled, and what stands behind it. A long
/// history is kept by the caller that rendered it and copied once, into the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'i> {
    /// The array from its opening bracket on. It may be all of it.
    pub settled: &'i str,
    /// The rest, to its closing bracket.
    pub rest: &'i str,
}

impl Items<'_> {
    pub(crate) fn len(self) -> usize {
        self.settled.len() + self.rest.len()
    }

    /// Write the array.
    pub(crate) fn push_to(self, out: &mut String) {
        out.push_str(self.settled);
        out.push_str(self.rest);
    }

    /// Write the array with one more element in front.
    pub(crate) fn push_after(self, first: &str, out: &mut String) {
        let settled = self.settled.trim_start();
        let settled = settled.strip_prefix('[').unwrap_or(settled).trim_start();
        let (rest, next) = match settled.is_empty() {
            true => (self.rest.trim_start(), self.rest.trim_start()),
            false => (self.rest, settled),
        };
        out.push('[');
        out.push_str(first);
        if !next.starts_with(']') {
            out.push(',');
        }
        out.push_str(settled);
        out.push_str(rest);
    }
}

impl<'i> From<&'i str> for Items<'i> {
    /// An array in one piece.
    fn from(settled: &'i str) -> Self {
        Self { settled, rest: "" }
    }
}

impl<'i> From<&'i String> for Items<'i> {
    fn from(settled: &'i String) -> Self {
        Self::from(settled.as_str())
    }
}

impl fmt::Display for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.settled)?;
        f.write_str(self.rest)
    }
}
