//! Calls and results under another id.

use throughline_model::json::{RawJson, push_string};
use throughline_model::{Body, CallId, Content, Form, Slot, Wire};

/// Give a call or a result another id, in our words and in the vendor's.
pub(super) fn rename(content: &mut Content, id: &CallId) {
    match &mut content.body {
        Body::ToolCall(call) => call.call = id.clone(),
        Body::ToolResult(result) => *result = result.renamed(id.clone()),
        _ => return,
    }
    let is_call = matches!(content.body, Body::ToolCall(_));
    let Some(vendor) = &mut content.vendor else {
        return;
    };
    let path: &[&str] = match (&vendor.wire, is_call) {
        (Wire::OpenAiResponses | Wire::Foundry, _) => &["call_id"],
        (Wire::OpenAiChat | Wire::Anthropic | Wire::GeminiInteractions, true) => &["id"],
        (Wire::OpenAiChat, false) => &["tool_call_id"],
        (Wire::Anthropic, false) => &["tool_use_id"],
        (Wire::GeminiInteractions, false) => &["call_id"],
        (Wire::Gemini | Wire::Other(_), _) => &[],
    };
    let edited = match &vendor.form {
        Form::Item(item) => set(item, path, id).map(Form::Item),
        Form::Part(part) => set(part, path, id).map(Form::Part),
        Form::Bare | Form::Within => None,
    };
    match edited {
        Some(form) => {
            vendor.form = form;
            vendor.slots.call = Slot::Set(id.value().into());
        }
        None => content.vendor = None,
    }
}

/// The item with another string at a path, which is added if it is not there.
fn set(item: &RawJson, path: &[&str], id: &CallId) -> Option<RawJson> {
    let [key] = path else { return None };
    let Some(at) = item.locate(path) else {
        return Some(RawJson::object(|object| {
            object.members_of(item.get()).str(key, id.value());
        }));
    };
    let mut text = String::with_capacity(item.get().len() + id.value().len());
    text.push_str(&item.get()[..at.start]);
    push_string(&mut text, id.value());
    text.push_str(&item.get()[at.end..]);
    RawJson::new(&text).ok()
}
