//! Vendor items without their long texts.
//!
//! A vendor's item is kept beside our own fields so that it can go back exactly as it came. To keep
//! long texts once only, decoding takes them out of the item ([`Extractor`]) and leaves an empty
//! value in their place: the result is a template. Encoding puts them back ([`restore`]).

use std::ops::Range;

use throughline_model::Path;
use throughline_model::json::{RawJson, Value, push_string};

use crate::DecodeError;

/// Takes texts and values out of an item as it is decoded. What remains goes into
/// [`Vendor`](throughline_model::Vendor); [`restore`] puts the texts back.
///
/// A text is taken out only if writing it gives the same token again, so that going back is exact.
/// In its place stands `""`, `[]` or `null`; since the neutral field has what was there, an item
/// that really had an empty value comes back the same.
pub(crate) struct Extractor<'v, 'a> {
    item: &'v Value<'a>,
    edits: Vec<(&'v Value<'a>, &'static str)>,
}

impl<'v, 'a> Extractor<'v, 'a> {
    pub(crate) fn new(item: &'v Value<'a>) -> Self {
        Self {
            item,
            edits: Vec::new(),
        }
    }

    /// Take out a string.
    pub(crate) fn text(&mut self, at: &'v Value<'a>) -> Option<String> {
        let text = at.as_text()?;
        if text.is_canonical() {
            self.edits.push((at, "\"\""));
        }
        Some(text.to_str().into_owned())
    }

    /// Take out a string that must be there.
    pub(crate) fn required_text(
        &mut self,
        key: &str,
        expected: &'static str,
        path: &Path<'_>,
    ) -> Result<String, DecodeError> {
        let path = path.key(key);
        let Some(value) = self.item.get(key) else {
            return Err(DecodeError::missing(&path, expected));
        };
        self.text(value)
            .ok_or_else(|| DecodeError::expected(&path, expected, value))
    }

    /// Take out any value.
    pub(crate) fn json(&mut self, at: &'v Value<'a>) -> RawJson {
        self.edits.push((at, "null"));
        RawJson::of(at)
    }

    /// Take out the elements of an array, which are kept one by one as contents.
    pub(crate) fn elements(&mut self, at: &'v Value<'a>) -> Option<&'v [Value<'a>]> {
        let elements = at.as_array()?;
        self.edits.push((at, "[]"));
        Some(elements)
    }

    /// The item without what was taken out.
    pub(crate) fn into_template(self) -> RawJson {
        RawJson::of_with(self.item, &self.edits)
    }
}

/// A value that is put back into a template.
#[derive(Clone)]
pub(crate) enum TemplateValue<'f> {
    /// A string, into `""`.
    Text(&'f str),
    /// JSON text, into `null`.
    Json(&'f str),
    /// The elements of an array as JSON text with commas, into `[]`.
    Elements(&'f str),
    /// The elements of an array, each as JSON text, into `[]`.
    List(&'f [String]),
    /// JSON text instead of whatever stands there, or as a new member of the item.
    Replace(&'f str),
}

impl TemplateValue<'_> {
    /// About how much room it takes, before escapes.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Elements(text) | Self::Replace(text) => {
                text.len() + 2
            }
            Self::List(items) => items.iter().map(|item| item.len() + 1).sum(),
        }
    }
}

/// Append an item with its texts put back. A place that is not empty stays as it is; of two values
/// for one place the later one counts, as vendors may send a member twice.
pub(crate) fn restore<'p, P: AsRef<[&'p str]>>(
    out: &mut String,
    item: &RawJson,
    values: &[(P, TemplateValue<'_>)],
) {
    let text = item.get();
    // With room for escapes and for what closes the message around it: a buffer that grows at the
    // end is copied whole.
    let size: usize = values.iter().map(|(_, value)| value.size()).sum();
    out.reserve(text.len() + size + size / 8 + 8);
    let mut edits = Edits::default();
    let mut added = Vec::new();
    for (path, value) in values {
        let path = path.as_ref();
        let Some(at) = item.locate(path) else {
            if let ([key], TemplateValue::Replace(json)) = (path, value) {
                added.retain(|(before, _)| before != key);
                added.push((*key, *json));
            }
            continue;
        };
        let found = &text[at.clone()];
        let fits = match value {
            TemplateValue::Text(text) => found == "\"\"" && !text.is_empty(),
            TemplateValue::Json(_) => found == "null",
            TemplateValue::Elements(_) | TemplateValue::List(_) => found == "[]",
            TemplateValue::Replace(_) => true,
        };
        if fits {
            edits.push(at, value);
        }
    }
    let mut from = 0;
    for (at, value) in edits.in_order() {
        // A place inside one that was replaced is gone with it.
        if at.start < from {
            continue;
        }
        out.push_str(&text[from..at.start]);
        match value {
            TemplateValue::Text(text) => push_string(out, text),
            TemplateValue::Json(json) | TemplateValue::Replace(json) => out.push_str(json),
            TemplateValue::Elements(elements) => {
                out.push('[');
                out.push_str(elements);
                out.push(']');
            }
            TemplateValue::List(items) => push_array(out, items),
        }
        from = at.end;
    }
    let rest = &text[from..];
    if added.is_empty() {
        out.push_str(rest);
        return;
    }
    // New members go before the brace that closes the item.
    let rest = rest.strip_suffix('}').unwrap_or(rest);
    out.push_str(rest);
    let mut first = text == "{}";
    for (key, json) in added {
        if !first {
            out.push(',');
        }
        first = false;
        push_string(out, key);
        out.push(':');
        out.push_str(json);
    }
    out.push('}');
}

/// Append JSON texts as an array.
pub(crate) fn push_array(out: &mut String, items: &[String]) {
    let size: usize = items.iter().map(|item| item.len() + 1).sum();
    out.reserve(size + 2);
    out.push('[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push_str(item);
    }
    out.push(']');
}

/// The places to write to. Items have one or two, so these stand without an allocation.
#[derive(Default)]
struct Edits<'f> {
    few: [Option<(Range<usize>, &'f TemplateValue<'f>)>; 2],
    more: Vec<(Range<usize>, &'f TemplateValue<'f>)>,
}

impl<'f> Edits<'f> {
    fn push(&mut self, at: Range<usize>, value: &'f TemplateValue<'f>) {
        let mut before = self.few.iter_mut().flatten().chain(&mut self.more);
        if let Some(same) = before.find(|(place, _)| *place == at) {
            same.1 = value;
            return;
        }
        match self.few.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some((at, value)),
            None => self.more.push((at, value)),
        }
    }

    fn in_order(mut self) -> impl Iterator<Item = (Range<usize>, &'f TemplateValue<'f>)> {
        if !self.more.is_empty() {
            self.more
                .extend(self.few.iter_mut().filter_map(Option::take));
            self.more.sort_unstable_by_key(|(at, _)| at.start);
        }
        if let [Some((first, _)), Some((second, _))] = &self.few
            && second.start < first.start
        {
            self.few.swap(0, 1);
        }
        self.few.into_iter().flatten().chain(self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(item: &str, values: &[(&[&str], TemplateValue<'_>)]) -> String {
        let item = RawJson::new(item).expect("JSON");
        let mut out = String::new();
        restore(&mut out, &item, values);
        out
    }

    #[test]
    fn of_two_fills_for_one_place_the_later_one_counts() {
        let twice = [
            (&["a"][..], TemplateValue::Replace("1")),
            (&["b"][..], TemplateValue::Replace("2")),
            (&["a"][..], TemplateValue::Replace("3")),
            (&["b"][..], TemplateValue::Replace("4")),
        ];
        assert_eq!(filled(r#"{"a":0}"#, &twice), r#"{"a":3,"b":4}"#);
        assert_eq!(
            filled(r#"{"x":9,"b":0,"a":0}"#, &twice),
            r#"{"x":9,"b":4,"a":3}"#
        );
    }

    #[test]
    fn a_place_inside_one_that_is_replaced_is_gone_with_it() {
        let nested = [
            (&["a", "b"][..], TemplateValue::Replace("1")),
            (&["a"][..], TemplateValue::Replace("2")),
            (&["c"][..], TemplateValue::Replace("3")),
        ];
        assert_eq!(
            filled(r#"{"a":{"b":0},"c":0}"#, &nested),
            r#"{"a":2,"c":3}"#
        );
    }
}
