//! The ids that items have beside those of calls.

use std::borrow::Cow;

use throughline_model::json::RawJson;
use throughline_model::{Content, Form, Slot};

/// The item id of a content, or of the message that it opens.
pub(super) fn item_id(content: &Content) -> Option<String> {
    let vendor = content.vendor.as_ref()?;
    if let Some(envelope) = &vendor.envelope {
        return string_at(envelope, "id");
    }
    match (&vendor.form, &vendor.slots.id) {
        (Form::Item(_), Slot::Set(id)) => Some(id.as_ref().to_owned()),
        (Form::Item(item), Slot::NoField) => string_at(item, "id"),
        _ => None,
    }
}

/// A string member.
pub(super) fn string_at(raw: &RawJson, key: &str) -> Option<String> {
    let at = raw.locate(&[key])?;
    let value = throughline_model::json::parse(&raw.get()[at]).ok()?;
    value.as_str().map(Cow::into_owned)
}

/// Whether an item id has the prefix of its kind, where the kind has a known one.
pub(super) fn has_prefix(content: &Content) -> bool {
    let Some(id) = item_id(content) else {
        return true;
    };
    let Some(vendor) = content.vendor.as_ref() else {
        return true;
    };
    let tag = match (&vendor.envelope, &vendor.form) {
        (Some(_), _) => "message".to_owned(),
        (None, Form::Item(item)) => string_at(item, "type").unwrap_or_default(),
        (None, _) => return true,
    };
    let prefix = match tag.as_str() {
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
