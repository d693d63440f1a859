//! What every codec needs to write contents of other vendors.

use std::borrow::Cow;

use throughline_model::json::{
    ArrayWriter, Escapes, Node, ObjectWriter, RawJson, Value, push_string,
};
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Form, MediaSource, Path, Request, Runner, Scope,
    ToolCall, ToolDef, ToolResult,
};

use crate::{LossKind, Losses};

/// The name of a call; where it has none, that of its family.
pub(crate) fn tool_name(call: &ToolCall) -> &str {
    if call.name.is_empty() {
        call.family.as_str()
    } else {
        &call.name
    }
}

/// An id that fits a field of `longest` characters. One that is too long becomes a hash of itself, so
/// that both ends of a pair still agree.
pub(crate) fn fit_id(id: &str, longest: usize) -> Cow<'_, str> {
    if id.chars().count() <= longest {
        return Cow::Borrowed(id);
    }
    Cow::Owned(CallId::minted(Scope::Response(id), 0).value().to_owned())
}

/// Arguments as JSON text. Free text becomes an object with one member, `input`.
pub(crate) fn arguments_text(arguments: &Arguments) -> Cow<'_, str> {
    match arguments {
        Arguments::None => Cow::Borrowed("{}"),
        Arguments::Text(text) => Cow::Borrowed(text),
        Arguments::Json(json) => Cow::Borrowed(json.get()),
        Arguments::Free(text) => {
            let mut out = String::new();
            let mut object = ObjectWriter::new(&mut out);
            object.str("input", text);
            object.end();
            Cow::Owned(out)
        }
    }
}

/// The bytes of the one piece of media in a list.
pub(crate) fn single_data(contents: &[Content]) -> Option<&str> {
    match contents {
        [
            Content {
                body: Body::Media(media),
                ..
            },
        ] => match &media.source {
            MediaSource::Data(data) => Some(data),
            MediaSource::Uri(_) | MediaSource::File(_) => None,
        },
        _ => None,
    }
}

/// System text outside the messages, joined; what is not text is a loss.
pub(crate) fn system_text(system: &[Content], losses: &mut Losses) -> String {
    let mut texts = Vec::new();
    let root = Path::Root.key("system");
    for (index, content) in system.iter().enumerate() {
        match content.as_text() {
            Some(text) => texts.push(text),
            None => losses.note(
                &root.index(index),
                LossKind::SystemText,
                "only text fits here",
            ),
        }
    }
    texts.join("\n\n")
}

/// A plain function on offer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionTool<'t> {
    /// Its place among the tools.
    pub(crate) index: usize,
    pub(crate) tool: &'t ToolDef,
}

/// The plain functions among the tools.
pub(crate) fn function_tools(all: &[ToolDef]) -> impl Iterator<Item = FunctionTool<'_>> {
    let numbered = all.iter().enumerate();
    let plain = numbered.filter(|(_, tool)| tool.family == Family::FUNCTION);
    plain.map(|(index, tool)| FunctionTool { index, tool })
}

/// Write the tools of a request that are functions as its member `tools`; the others are losses.
pub(crate) fn write_tools(
    object: &mut ObjectWriter<'_>,
    tools: &[ToolDef],
    write: fn(&mut String, &[FunctionTool<'_>], &mut Losses),
    losses: &mut Losses,
) {
    let tools = only_function_tools(tools, losses);
    if !tools.is_empty() {
        write(object.key("tools"), &tools, losses);
    }
}

/// The plain functions among the tools; the others are losses.
fn only_function_tools<'t>(all: &'t [ToolDef], losses: &mut Losses) -> Vec<FunctionTool<'t>> {
    let root = Path::Root.key("tools");
    let mut tools = Vec::new();
    for (index, tool) in all.iter().enumerate() {
        if tool.family == Family::FUNCTION {
            tools.push(FunctionTool { index, tool });
        } else {
            let detail = format!("{} tool {}", tool.family, tool.name);
            losses.note(&root.index(index), LossKind::ToolDefinition, detail);
        }
    }
    tools
}

/// Each member of another vendor's request body that is not system text, messages or tools.
pub(crate) fn note_request_keys(request: &Request, losses: &mut Losses) {
    let Some(vendor) = &request.vendor else {
        return;
    };
    let Form::Item(body) = &vendor.form else {
        return;
    };
    let root = Path::Root.key("request");
    for member in body.value().members() {
        let key = member.key.to_str();
        let carried = [
            "instructions",
            "input",
            "messages",
            "system",
            "systemInstruction",
            "system_instruction",
            "contents",
            "tools",
            "functions",
        ];
        if !carried.contains(&&*key) {
            losses.note(
                &root.key(&key),
                LossKind::RequestKey,
                format!("{key} of {}", vendor.wire),
            );
        }
    }
}

/// The words of a sound, where the sound itself is all that can be sent.
pub(crate) fn note_transcript(content: &Content, path: &Path<'_>, losses: &mut Losses) {
    if let Body::Media(media) = &content.body
        && media.transcript.is_some()
    {
        losses.note(path, LossKind::Media, "its words; the sound itself is sent");
    }
}

/// Note a content that only the vendor that made it understands.
pub(crate) fn note_vendor_only(body: &Body, path: &Path<'_>, losses: &mut Losses) {
    match body {
        Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => losses.note(
            path,
            LossKind::Approval,
            "approvals are control data of the vendor that asked",
        ),
        Body::Reasoning(_) => losses.note(
            path,
            LossKind::Reasoning,
            "reasoning goes back only to the vendor that made it",
        ),
        Body::Opaque(opaque) => losses.note(
            path,
            LossKind::VendorItem,
            format!("{} means nothing here", opaque.tag),
        ),
        Body::Unknown(_) => losses.note(path, LossKind::VendorItem, "unknown kind of content"),
        Body::Text(_)
        | Body::Media(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::Refusal(_)
        | Body::Error(_) => {}
    }
}

/// Whether another vendor ran a call itself; that is noted as a loss.
pub(crate) fn is_hosted_call(call: &ToolCall, path: &Path<'_>, losses: &mut Losses) -> bool {
    let hosted = call.runner == Runner::Vendor;
    if hosted {
        let detail = format!("{} call was run by another vendor", call.family);
        losses.note(path, LossKind::HostedTool, detail);
    }
    hosted
}

/// Whether another vendor made a result itself; that is noted as a loss.
pub(crate) fn is_hosted_result(result: &ToolResult, path: &Path<'_>, losses: &mut Losses) -> bool {
    let hosted = result.runner == Runner::Vendor;
    if hosted {
        let detail = format!("{} result was made by another vendor", result.family);
        losses.note(path, LossKind::HostedTool, detail);
    }
    hosted
}

/// Note that a call of another kind is written as the call of a function.
pub(crate) fn note_becomes_function(call: &ToolCall, path: &Path<'_>, losses: &mut Losses) {
    if call.family != Family::FUNCTION {
        let detail = format!("{} call becomes a function call", call.family);
        losses.note(path, LossKind::HostedTool, detail);
    }
}

/// Vendor members of a content that is written in its neutral form only.
pub(crate) fn note_vendor_fields(content: &Content, path: &Path<'_>, losses: &mut Losses) {
    let Some(vendor) = &content.vendor else {
        return;
    };
    let (Form::Item(item) | Form::Part(item)) = &vendor.form else {
        return;
    };
    let known = [
        "type",
        "text",
        "refusal",
        "annotations",
        "logprobs",
        "image_url",
        "file_id",
        "file_url",
        "file_data",
        "filename",
        "input_audio",
        "detail",
        "file",
        "source",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
        "citations",
        "mime_type",
        "uri",
        "data",
    ];
    // Nearly always there is nothing else, which the tokens of the keys show; a key in another
    // spelling only costs the closer look.
    let mut members = item.members();
    if members.all(|(key, at)| known.contains(&key) || &item.get()[at] == "null") {
        return;
    }
    let value = item.value();
    let lost: Vec<_> = value
        .members()
        .iter()
        .filter(|member| !member.value.is_null())
        .map(|member| member.key.to_str())
        .filter(|key| !known.contains(&&**key))
        .collect();
    if !lost.is_empty() {
        let detail = format!("{} of {}", lost.join(", "), vendor.wire);
        losses.note(path, LossKind::VendorFields, detail);
    }
}

/// Unpaired surrogates survive only as their vendor wrote them.
pub(crate) fn note_lone_surrogates(content: &Content, path: &Path<'_>, losses: &mut Losses) {
    let Some(vendor) = &content.vendor else {
        return;
    };
    let kept = match &vendor.form {
        Form::Item(item) | Form::Part(item) => Some(item),
        Form::Bare | Form::Within => vendor.envelope.as_ref(),
    };
    // Most items have no surrogate escape at all; a look at the bytes saves reading them.
    if kept.is_some_and(|kept| kept.get().contains("\\u") && has_lone_surrogate(&kept.value())) {
        losses.note(path, LossKind::LoneSurrogate, "shown as U+FFFD");
    }
}

fn has_lone_surrogate(value: &Value<'_>) -> bool {
    match value.node() {
        Node::String(escapes) => *escapes == Escapes::LoneSurrogate,
        Node::Array(values) => values.iter().any(has_lone_surrogate),
        Node::Object(members) => members.iter().any(|member| {
            member.key.escapes() == Escapes::LoneSurrogate || has_lone_surrogate(&member.value)
        }),
        Node::Null | Node::Bool(_) | Node::Number => false,
    }
}

/// JSON of another vendor without unpaired surrogates, which strict readers refuse. Everything else
/// stays as it is.
pub(crate) fn without_lone_surrogates<'j>(
    json: &'j RawJson,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Cow<'j, str> {
    // Only an escape can be an unpaired surrogate.
    if !json.get().contains("\\u") || !has_lone_surrogate(&json.value()) {
        return Cow::Borrowed(json.get());
    }
    losses.note(path, LossKind::LoneSurrogate, "shown as U+FFFD");
    let mut out = String::with_capacity(json.get().len());
    push_replacing_surrogates(&mut out, &json.value());
    Cow::Owned(out)
}

fn push_replacing_surrogates(out: &mut String, value: &Value<'_>) {
    match value.node() {
        Node::String(Escapes::LoneSurrogate) => {
            push_string(out, &value.as_str().unwrap_or_default());
        }
        Node::Array(values) => {
            let mut array = ArrayWriter::new(out);
            for value in values {
                push_replacing_surrogates(array.slot(), value);
            }
            array.end();
        }
        Node::Object(members) => {
            let mut object = ObjectWriter::new(out);
            for member in members {
                push_replacing_surrogates(object.key(&member.key.to_str()), &member.value);
            }
            object.end();
        }
        Node::Null | Node::Bool(_) | Node::Number | Node::String(_) => out.push_str(value.raw()),
    }
}
