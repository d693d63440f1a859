//! What single vendors want beyond the common rules.

use std::borrow::Cow;

use throughline_model::json::{ObjectWriter, RawJson};
use throughline_model::{
    Body, Content, Family, Form, Message, Pairing, Runner, ToolCall, ToolResult, Vendor, Wire,
};

use super::legal;
use super::target::Target;
use super::words;
use crate::foreign;

/// Foundry's own pairs come in responses only; sent back they are function calls and outputs.
/// The second value says which contents changed.
pub(super) fn response_only<'m>(
    message: &'m Message,
    target: &Target,
) -> (Cow<'m, Message>, Vec<usize>) {
    if target.wire != Wire::Foundry {
        return (Cow::Borrowed(message), Vec::new());
    }
    let concerned: Vec<usize> = message
        .contents
        .iter()
        .enumerate()
        .filter(|(_, content)| is_response_only(content))
        .map(|(place, _)| place)
        .collect();
    if concerned.is_empty() {
        return (Cow::Borrowed(message), concerned);
    }
    let mut changed = message.clone();
    for place in &concerned {
        let content = &mut changed.contents[*place];
        let plain = match &content.body {
            Body::ToolCall(call) => Content::from(legal::as_function(call)),
            Body::ToolResult(result) => match result.pairing() {
                Pairing::Answers => Content::from(as_output(result)),
                Pairing::Standalone => Content::text(words::result(result)),
            },
            Body::Opaque(opaque) => Content::text(opaque_text(content, &opaque.tag)),
            _ => continue,
        };
        *content = plain;
    }
    (Cow::Owned(changed), concerned)
}

/// The output of a function in place of one that comes in responses only.
fn as_output(result: &ToolResult) -> ToolResult {
    let id = result.call().clone();
    let mut made = ToolResult::answering(id, Family::FUNCTION, result.output.clone());
    made.outcome = result.outcome;
    made.name.clone_from(&result.name);
    made.runner = Runner::Client;
    made
}

/// An item without a word of ours, to be read: its tag, and its output if it has one.
fn opaque_text(content: &Content, tag: &str) -> String {
    let Some(Form::Item(item)) = content.vendor.as_ref().map(|vendor| &vendor.form) else {
        return format!("[{tag}]");
    };
    match item.locate(&["output"]) {
        Some(at) => format!("[{tag}] {}", &item.get()[at]),
        None => format!("[{tag}]"),
    }
}

/// Whether a content is one of the items that Foundry makes and does not take back.
fn is_response_only(content: &Content) -> bool {
    // Only these can be: the look at the tag costs more.
    let kind = match &content.body {
        Body::ToolCall(call) => call.runner == Runner::Vendor,
        Body::ToolResult(result) => result.runner == Runner::Vendor,
        Body::Opaque(_) => true,
        _ => false,
    };
    let Some(vendor) = content.vendor.as_ref().filter(|_| kind) else {
        return false;
    };
    if vendor.wire != Wire::Foundry {
        return false;
    }
    let Form::Item(item) = &vendor.form else {
        return false;
    };
    let Some(at) = item.locate(&["type"]) else {
        return false;
    };
    let tag = item.get()[at].trim_matches('"');
    crate::foundry::is_response_only(tag)
}

/// Gemini wants a signature on the first call of a step; for a call from elsewhere the documented
/// placeholder. `None` if the call has a signature.
pub(super) fn signed(content: &Content) -> Option<Content> {
    const PLACEHOLDER: &str = "skip_thought_signature_validator";
    let Body::ToolCall(call) = &content.body else {
        return None;
    };
    let native = content
        .vendor
        .as_ref()
        .filter(|vendor| vendor.wire == Wire::Gemini);
    let part = match native.map(|vendor| &vendor.form) {
        Some(Form::Part(part)) => {
            let has = |key: &str| part.locate(&[key]).is_some();
            if has("thoughtSignature") || has("thought_signature") {
                return None;
            }
            RawJson::object(|object| {
                object
                    .members_of(part.get())
                    .str("thoughtSignature", PLACEHOLDER);
            })
        }
        _ => RawJson::object(|object| {
            let mut inner = ObjectWriter::new(object.key("functionCall"));
            inner
                .str("name", foreign::name(call))
                .raw("args", arguments(call).get());
            inner.end();
            object.str("thoughtSignature", PLACEHOLDER);
        }),
    };
    let mut signed = content.clone();
    let mut vendor = match native {
        Some(vendor) => (**vendor).clone(),
        None => Vendor::form(Wire::Gemini, Form::Bare),
    };
    vendor.form = Form::Part(part);
    signed.vendor = Some(Box::new(vendor));
    Some(signed)
}

/// Arguments as an object.
fn arguments(call: &ToolCall) -> RawJson {
    let text = foreign::arguments_text(&call.arguments);
    let object = RawJson::new(&text).ok();
    let object = object.filter(|raw| raw.get().starts_with('{'));
    object.unwrap_or_else(|| {
        RawJson::object(|object| {
            object.str("input", &text);
        })
    })
}
