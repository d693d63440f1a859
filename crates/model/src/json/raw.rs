use std::fmt;
use std::ops::Range;

use super::error::JsonError;
use super::locate::{locate, members};
use super::parse::{Limits, parse, parse_with};
use super::value::Value;
use super::write::{ObjectWriter, push_compact, push_compact_with};

/// A JSON document that we keep as text, without insignificant white space.
///
/// Invariant: the text is valid JSON. Two are equal when their texts are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Keep a document.
    ///
    /// ```
    /// use throughline_model::json::RawJson;
    ///
    /// let raw = RawJson::new("{ \"n\": 1.50 }")?;
    /// assert_eq!(raw.get(), r#"{"n":1.50}"#);
    /// # Ok::<(), throughline_model::json::JsonError>(())
    /// ```
    pub fn new(text: &str) -> Result<Self, JsonError> {
        Ok(Self::of(&parse(text)?))
    }

    /// Keep a value that was read before.
    pub fn of(value: &Value<'_>) -> Self {
        let mut out = String::with_capacity(value.raw().len());
        push_compact(&mut out, value);
        Self(out.into_boxed_str())
    }

    /// Keep a value with some of its parts replaced by other JSON text.
    pub fn of_with(value: &Value<'_>, edits: &[(&Value<'_>, &str)]) -> Self {
        let mut out = String::with_capacity(value.raw().len());
        push_compact_with(&mut out, value, edits);
        Self(out.into_boxed_str())
    }

    /// An object made by writing its members.
    pub fn object(write: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        Self::object_of(64, write)
    }

    /// The same with a known size: a buffer that grows is copied.
    pub fn object_of(room: usize, write: impl FnOnce(&mut ObjectWriter<'_>)) -> Self {
        let mut out = String::with_capacity(room);
        let mut object = ObjectWriter::new(&mut out);
        write(&mut object);
        object.end();
        debug_assert!(parse_with(&out, Limits::TRUSTED).is_ok(), "{out}");
        Self(out.into_boxed_str())
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// Where the value at a path of keys stands in the text. Of duplicate keys the last counts.
    ///
    /// ```
    /// use throughline_model::json::RawJson;
    ///
    /// let raw = RawJson::new(r#"{"a": {"b": [1, 2]}}"#)?;
    /// let range = raw.locate(&["a", "b"]).unwrap();
    /// assert_eq!(&raw.get()[range], "[1,2]");
    /// # Ok::<(), throughline_model::json::JsonError>(())
    /// ```
    pub fn locate(&self, path: &[&str]) -> Option<Range<usize>> {
        locate(&self.0, path)
    }

    /// The members of an object, without building its tree: the token of each key without its
    /// quotes, and where its value stands in the text. Nothing for other values.
    pub fn members(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        members(&self.0)
    }

    /// The same object without some of its members; `drop` is asked for the token of each key.
    ///
    /// ```
    /// use throughline_model::json::RawJson;
    ///
    /// let raw = RawJson::new(r#"{"a": 1, "b": 2}"#)?;
    /// assert_eq!(raw.without(|key| key == "a").get(), r#"{"b":2}"#);
    /// # Ok::<(), throughline_model::json::JsonError>(())
    /// ```
    #[must_use]
    pub fn without(&self, mut drop: impl FnMut(&str) -> bool) -> Self {
        if !self.0.starts_with('{') {
            return self.clone();
        }
        let mut out = String::with_capacity(self.0.len());
        out.push('{');
        for (key, value) in self.members() {
            if drop(key) {
                continue;
            }
            if out.len() > 1 {
                out.push(',');
            }
            out.push('"');
            out.push_str(key);
            out.push_str("\":");
            out.push_str(&self.0[value]);
        }
        out.push('}');
        Self(out.into_boxed_str())
    }

    /// The tree of the document.
    pub fn value(&self) -> Value<'_> {
        parse_with(&self.0, Limits::TRUSTED).expect("the text was valid JSON when it was kept")
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
