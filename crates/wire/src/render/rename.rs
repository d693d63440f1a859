//! Calls and results under another id.

use throughline_model::json::{RawJson, push_string};
use throughline_model::{Body, CallId, Content, Form, IdField};

use crate::vendors;

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
    let facts = vendors::render_format(&vendor.wire);
    let key = match is_call {
        true => facts.call_id_key,
        false => facts.result_id_key,
    };
    let edited = match &vendor.form {
        Form::Item(item) => set(item, key, id).map(Form::Item),
        Form::Part(part) => set(part, key, id).map(Form::Part),
        Form::Bare | Form::Within => None,
    };
    match edited {
        Some(form) => {
            vendor.form = form;
            vendor.id_fields.call = IdField::Set(id.value().into());
        }
        None => content.vendor = None,
    }
}

/// The item with another string as a member, which is added if it is not there.
fn set(item: &RawJson, key: Option<&str>, id: &CallId) -> Option<RawJson> {
    let key = key?;
    let Some(at) = item.locate(&[key]) else {
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
