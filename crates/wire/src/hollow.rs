//! Keeping a vendor's item without keeping its long texts twice.

use throughline_model::json::{RawJson, Value};

/// Takes texts and values out of an item as it is decoded. What remains goes into
/// [`Vendor`](throughline_model::Vendor); [`fill`](crate::fill) puts the texts back.
///
/// A text is taken out only if writing it gives the same token again, so that going back is exact.
/// In its place stands `""`, `[]` or `null`; since the neutral field says what was there, an item
/// that really had an empty value comes back the same.
pub(crate) struct Hollow<'v, 'a> {
    item: &'v Value<'a>,
    edits: Vec<(&'v Value<'a>, &'static str)>,
}

impl<'v, 'a> Hollow<'v, 'a> {
    pub(crate) fn of(item: &'v Value<'a>) -> Self {
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

    /// Take out any value.
    pub(crate) fn json(&mut self, at: &'v Value<'a>) -> RawJson {
        self.edits.push((at, "null"));
        RawJson::of(at)
    }

    /// Take out the elements of an array, which are kept one by one elsewhere.
    pub(crate) fn elements(&mut self, at: &'v Value<'a>) -> Option<&'v [Value<'a>]> {
        let elements = at.as_array()?;
        self.edits.push((at, "[]"));
        Some(elements)
    }

    /// What remains.
    pub(crate) fn keep(self) -> RawJson {
        RawJson::of_with(self.item, &self.edits)
    }
}
