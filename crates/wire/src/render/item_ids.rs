//! The ids that items have beside those of calls.

use std::borrow::Cow;

use throughline_model::json::{RawJson, parse};
use throughline_model::{Content, Form, Slot};

/// The item id of a content, or of the message that it opens.
pub(super) fn item_id(content: &Content) -> Option<Cow<'_, str>> {
    let vendor = content.vendor.as_ref()?;
    if let Some(envelope) = &vendor.envelope {
        return string_at(envelope, "id");
    }
    let Form::Item(item) = &vendor.form else {
        return None;
    };
    // What stands in the item is what is written; the slot fills it if nothing does.
    let written = string_at(item, "id");
    match &vendor.slots.id {
        Slot::Set(id) if written.as_deref().is_none_or(str::is_empty) => Some(Cow::Borrowed(id)),
        _ => written,
    }
}

/// A string member.
pub(super) fn string_at<'r>(raw: &'r RawJson, key: &str) -> Option<Cow<'r, str>> {
    let token = &raw.get()[raw.locate(&[key])?];
    let plain = token.strip_prefix('"')?.strip_suffix('"')?;
    if plain.contains('\\') {
        return parse(token).ok()?.as_str();
    }
    Some(Cow::Borrowed(plain))
}

/// Whether an item id has the prefix of its kind, where the kind has a known one.
pub(super) fn has_prefix(content: &Content, id: &str) -> bool {
    let Some(vendor) = content.vendor.as_ref() else {
        return true;
    };
    let tag = match (&vendor.envelope, &vendor.form) {
        (Some(_), _) => Cow::Borrowed("message"),
        (None, Form::Item(item)) => string_at(item, "type").unwrap_or_default(),
        (None, _) => return true,
    };
    let prefix = match &*tag {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" | "function_call_output" => "fc",
        "custom_tool_call" | "custom_tool_call_output" => "ctc",
        "web_search_call" => "ws",
        "tool_search_call" => "tsc",
        "code_interpreter_call" => "ci",
        "file_search_call" => "fs",
        "image_generation_call" => "ig",
        "mcp_call" => "mcp",
        "mcp_approval_request" => "mcpr",
        "mcp_list_tools" => "mcpl",
        "compaction" => "cmp",
        _ => return !id.is_empty(),
    };
    id.starts_with(prefix)
}

/// Whether an item is none without its id: others name it, or it is all that there is.
pub(super) fn needs_id(item: &RawJson) -> bool {
    let tag = string_at(item, "type");
    matches!(
        tag.as_deref(),
        None | Some("mcp_approval_request" | "program" | "program_output" | "item_reference")
    )
}
