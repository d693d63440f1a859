//! The forms that nearly everything has, recognised in one pass over their members.

use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Family, IdField, Runner};

use super::content_filter;
use super::format::PlainForms;

/// Whether a form is one that the vendor takes as it is and that has the same meaning as its
/// content. No means that it needs a closer look.
pub(super) fn is_plain(
    content: &Content,
    raw: &RawJson,
    by_model: bool,
    forms: PlainForms,
) -> bool {
    match &content.body {
        Body::Text(_) => (forms.text)(raw, by_model),
        Body::ToolCall(call) => {
            call.runner == Runner::Client
                && call.family == Family::FUNCTION
                && !call.name.is_empty()
                && (forms.call)(content, raw, call)
        }
        Body::ToolResult(result) => {
            result.runner == Runner::Client
                && result.family == Family::FUNCTION
                && (forms.result)(content, raw, result)
        }
        _ => false,
    }
}

/// The members that a plain form has.
pub(crate) struct FormMembers<'m> {
    /// The member with the tag, and the tag.
    pub(crate) tag: (&'m str, &'m str),
    /// The member with the id of the call.
    pub(crate) id: Option<&'m str>,
    /// The name of the function.
    pub(crate) name: Option<&'m str>,
    /// The member whose text is kept in the content.
    pub(crate) text: Option<&'m str>,
    /// The member whose value is kept in the content.
    pub(crate) value: Option<&'m str>,
    /// Strings that may be there too.
    pub(crate) strings: &'m [&'m str],
    /// Lists that may be there if they are empty.
    pub(crate) lists: &'m [&'m str],
    /// What may be true or false.
    pub(crate) flags: &'m [&'m str],
}

/// No member at all; the base from which patterns are written.
pub(crate) const NO_MEMBERS: FormMembers<'_> = FormMembers {
    tag: ("type", ""),
    id: None,
    name: None,
    text: None,
    value: None,
    strings: &[],
    lists: &[],
    flags: &[],
};

/// A string token without escapes, as the string.
pub(crate) fn plain_string(token: &str) -> Option<&str> {
    let word = token.strip_prefix('"')?.strip_suffix('"')?;
    (!word.contains('\\')).then_some(word)
}

impl FormMembers<'_> {
    /// Whether the members of a form are these, each of its type.
    pub(crate) fn matches(&self, content: Option<&Content>, raw: &RawJson) -> bool {
        let mut missing = 1
            + usize::from(self.id.is_some())
            + usize::from(self.name.is_some())
            + usize::from(self.text.is_some())
            + usize::from(self.value.is_some());
        for (key, at) in raw.members() {
            let token = &raw.get()[at];
            let fits = if key == self.tag.0 {
                missing = missing.wrapping_sub(1);
                plain_string(token) == Some(self.tag.1)
            } else if Some(key) == self.text {
                missing = missing.wrapping_sub(1);
                token.starts_with('"')
            } else if Some(key) == self.id {
                missing = missing.wrapping_sub(1);
                let id = plain_string(token).filter(|id| !id.is_empty());
                id.zip(content)
                    .is_some_and(|(id, content)| content_filter::has_call_id(content, id))
            } else if Some(key) == self.value {
                missing = missing.wrapping_sub(1);
                token == "null"
            } else if key == "name" && self.name.is_some() {
                missing = missing.wrapping_sub(1);
                plain_string(token) == self.name
            } else {
                (self.strings.contains(&key) && token.starts_with('"'))
                    || (self.lists.contains(&key) && token == "[]")
                    || (self.flags.contains(&key) && matches!(token, "true" | "false"))
            };
            if !fits {
                return false;
            }
        }
        missing == 0
    }
}

/// The JSON text at a path.
pub(crate) fn value_at<'r>(raw: &'r RawJson, path: &[&str]) -> Option<&'r str> {
    raw.locate(path).map(|at| &raw.get()[at])
}

/// Whether an id is the one that is kept beside the form, or there is none in both.
pub(crate) fn has_call_id_or_none(content: &Content, found: Option<&str>) -> bool {
    let kept = content.vendor.as_ref().map(|vendor| &vendor.id_fields.call);
    match found {
        None => matches!(kept, Some(IdField::Missing)),
        Some(token) => plain_string(token)
            .is_some_and(|id| !id.is_empty() && content_filter::has_call_id(content, id)),
    }
}
