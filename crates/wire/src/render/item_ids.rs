//! The ids that items have beside those of calls.

use std::borrow::Cow;

use throughline_model::json::{RawJson, parse};
use throughline_model::{Content, Form, IdField};

/// The item id of a content, or of the message that it opens.
pub(crate) fn item_id(content: &Content) -> Option<Cow<'_, str>> {
    let vendor = content.vendor.as_ref()?;
    if let Some(envelope) = &vendor.envelope {
        return string_at(envelope, "id");
    }
    let Form::Item(item) = &vendor.form else {
        return None;
    };
    // What stands in the item is what is written; the id field counts if there is nothing.
    let written = string_at(item, "id");
    match &vendor.id_fields.id {
        IdField::Set(id) if written.as_deref().is_none_or(str::is_empty) => Some(Cow::Borrowed(id)),
        _ => written,
    }
}

/// A string member.
pub(crate) fn string_at<'r>(raw: &'r RawJson, key: &str) -> Option<Cow<'r, str>> {
    let token = &raw.get()[raw.locate(&[key])?];
    let plain = token.strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        return parse(token).ok()?.as_str();
    }
    Some(Cow::Borrowed(plain))
}
