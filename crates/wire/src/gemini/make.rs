//! Saying what came from elsewhere as parts.

use std::borrow::Cow;
use std::collections::HashMap;

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{
    Body, Content, Family, Media, Outcome, Output, Pairing, Path, Role, Runner, Slot, Text,
    ToolCall, ToolResult, Wire,
};

use super::types::{FILE_DATA, FUNCTION_CALL, FUNCTION_RESPONSE, INLINE_DATA, PARTS, TEXT};
use crate::google::{Bytes, SystemText, arguments_object, bytes, usual_type};
use crate::{LossKind, Losses, foreign};

/// The calls written so far: results from elsewhere need the name of what they answer, and the id
/// if the service issued one.
#[derive(Debug, Default)]
pub(super) struct Calls<'m> {
    seen: HashMap<&'m str, Seen<'m>>,
}

#[derive(Debug)]
struct Seen<'m> {
    name: &'m str,
    issued: Option<&'m str>,
}

impl<'m> Calls<'m> {
    /// Remember a call.
    pub(super) fn see(&mut self, content: &'m Content) {
        let Some(call) = content.as_tool_call() else {
            return;
        };
        let vendor = content.vendor.as_ref();
        let own = vendor.filter(|vendor| vendor.wire == Wire::Gemini);
        let issued = own.and_then(|vendor| match &vendor.slots.call {
            Slot::Set(id) if !id.is_empty() => Some(&**id),
            Slot::Set(_) | Slot::Null | Slot::Missing | Slot::NoField => None,
        });
        let seen = Seen {
            name: foreign::name(call),
            issued,
        };
        self.seen.insert(call.call.value(), seen);
    }
}

/// Append the part for a content; nothing if it cannot be said.
pub(super) fn make(
    out: &mut String,
    role: &Role,
    content: &Content,
    (calls, system): (&Calls<'_>, &mut SystemText),
    path: &Path<'_>,
    losses: &mut Losses,
) {
    if matches!(role, Role::System | Role::Developer) {
        return system.take(content, path, losses);
    }
    if let Role::Other(word) = role {
        losses.note(path, LossKind::Role, format!("{word} speaks as the user"));
    }
    match &content.body {
        Body::Text(text) => {
            foreign::note_vendor_fields(content, path, losses);
            foreign::note_words(content, path, losses);
            make_text(out, text, path, losses);
        }
        Body::Refusal(text) => {
            losses.note(path, LossKind::Marking, "refusal becomes plain text");
            make_text(out, text, path, losses);
        }
        Body::Error(fault) => {
            losses.note(path, LossKind::Marking, "error becomes plain text");
            if !fault.message.is_empty() {
                text_part(out, &fault.message);
            }
        }
        Body::Media(media) => {
            foreign::note_vendor_fields(content, path, losses);
            foreign::note_words(content, path, losses);
            media_part(out, media, path, losses);
        }
        Body::ToolCall(call) => make_call(out, call, path, losses),
        Body::ToolResult(result) => make_result(out, result, calls, path, losses),
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
    }
}

/// Append a text part.
pub(super) fn text_part(out: &mut String, text: &str) {
    let mut object = ObjectWriter::new(out);
    object.str(TEXT, text);
    object.end();
}

fn make_text(out: &mut String, text: &Text, path: &Path<'_>, losses: &mut Losses) {
    if !text.citations.is_empty() {
        losses.note(path, LossKind::Citations, "parts cite nothing");
    }
    // The service refuses empty parts, and they say nothing.
    if !text.text.is_empty() {
        text_part(out, &text.text);
    }
}

fn media_part(out: &mut String, media: &Media, path: &Path<'_>, losses: &mut Losses) {
    let found = bytes(media);
    if let Bytes::Elsewhere = found {
        losses.note(path, LossKind::Media, "the file is kept by another vendor");
        return;
    }
    if media.name.is_some() || media.transcript.is_some() {
        losses.note(path, LossKind::Media, "file name or transcript");
    }
    let mut object = ObjectWriter::new(out);
    match found {
        Bytes::Inline(data, media_type) => {
            let mut inner = ObjectWriter::new(object.key(INLINE_DATA));
            let media_type = media_type.unwrap_or(usual_type(media.kind));
            inner.str("mimeType", media_type).str("data", &data);
            inner.end();
        }
        Bytes::Address(uri, media_type) => {
            let mut inner = ObjectWriter::new(object.key(FILE_DATA));
            if let Some(media_type) = media_type {
                inner.str("mimeType", media_type);
            }
            inner.str("fileUri", uri);
            inner.end();
        }
        Bytes::Elsewhere => {}
    }
    object.end();
}

fn make_call(out: &mut String, call: &ToolCall, path: &Path<'_>, losses: &mut Losses) {
    if call.runner == Runner::Vendor {
        let detail = format!("{} call was run by another vendor", call.family);
        losses.note(path, LossKind::HostedTool, detail);
        return;
    }
    if call.family != Family::FUNCTION {
        let detail = format!("{} call becomes a function call", call.family);
        losses.note(path, LossKind::HostedTool, detail);
    }
    let args = arguments_object(&call.arguments, path, losses);
    let mut object = ObjectWriter::new(out);
    let mut inner = ObjectWriter::new(object.key(FUNCTION_CALL));
    inner.str("name", foreign::name(call)).raw("args", &args);
    inner.end();
    object.end();
}

fn make_result(
    out: &mut String,
    result: &ToolResult,
    calls: &Calls<'_>,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    if result.runner == Runner::Vendor {
        let detail = format!("{} result was made by another vendor", result.family);
        losses.note(path, LossKind::HostedTool, detail);
        return;
    }
    if result.pairing() == Pairing::Standalone {
        let detail = "it is written as an answer, but no call asked for it";
        losses.note(path, LossKind::StandaloneResult, detail);
    }
    let seen = calls.seen.get(result.call().value());
    let name = result
        .name
        .as_deref()
        .or_else(|| seen.map(|seen| seen.name))
        .unwrap_or_else(|| result.call().value());
    let mut media = String::new();
    let answer = answer(result, &mut media, path, losses);
    let mut object = ObjectWriter::new(out);
    let mut inner = ObjectWriter::new(object.key(FUNCTION_RESPONSE));
    // An id that the service issued is echoed; no other may be sent.
    if let Some(id) = seen.and_then(|seen| seen.issued) {
        inner.str("id", id);
    }
    inner.str("name", name);
    let mut response = ObjectWriter::new(inner.key("response"));
    let key = match result.outcome {
        Outcome::Ok => "output",
        Outcome::Error
        | Outcome::Rejected
        | Outcome::Expired
        | Outcome::Withdrawn
        | Outcome::Limit
        | Outcome::Terminated
        | Outcome::Cancelled
        | Outcome::Unknown => "error",
    };
    match answer {
        Answer::Text(text) => response.str(key, &text),
        Answer::Json(json) => response.raw(key, &json),
    };
    response.end();
    if !media.is_empty() {
        inner.raw(PARTS, &media);
    }
    inner.end();
    object.end();
}

/// What a tool answered.
enum Answer<'r> {
    Text(Cow<'r, str>),
    Json(Cow<'r, str>),
}

/// The answer; media go to `media` as an array.
fn answer<'r>(
    result: &'r ToolResult,
    media: &mut String,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Answer<'r> {
    match &result.output {
        Output::None => Answer::Text(Cow::Borrowed("")),
        Output::Text(text) => Answer::Text(Cow::Borrowed(text)),
        Output::Json(json) => Answer::Json(foreign::sound_json(json, path, losses)),
        Output::Parts(contents) => {
            let path = path.key("output");
            let mut texts = String::new();
            let mut parts = Vec::new();
            for (index, content) in contents.iter().enumerate() {
                let path = path.index(index);
                match &content.body {
                    Body::Media(found) => {
                        let mut part = String::new();
                        media_part(&mut part, found, &path, losses);
                        parts.push(part);
                    }
                    Body::Text(text) | Body::Refusal(text) => {
                        if !text.citations.is_empty() {
                            losses.note(&path, LossKind::Citations, "parts cite nothing");
                        }
                        texts.push_str(&text.text);
                    }
                    Body::Error(fault) => texts.push_str(&fault.message),
                    Body::Opaque(opaque) => losses.note(
                        &path,
                        LossKind::VendorItem,
                        format!("{} means nothing here", opaque.tag),
                    ),
                    Body::Reasoning(_)
                    | Body::ToolCall(_)
                    | Body::ToolResult(_)
                    | Body::ApprovalRequest(_)
                    | Body::ApprovalResponse(_)
                    | Body::Unknown(_) => {
                        losses.note(&path, LossKind::VendorItem, "not a part of a result");
                    }
                }
            }
            parts.retain(|part| !part.is_empty());
            if !parts.is_empty() {
                let mut list = ArrayWriter::new(media);
                for part in &parts {
                    list.raw(part);
                }
                list.end();
            }
            Answer::Text(Cow::Owned(texts))
        }
    }
}
