//! Writes contents of other vendors as parts.

use std::borrow::Cow;
use std::collections::HashMap;

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{
    Body, Content, IdField, Media, Outcome, Output, Pairing, Path, Role, Text, ToolCall,
    ToolResult, Wire,
};

use super::types::{FILE_DATA, FUNCTION_CALL, FUNCTION_RESPONSE, INLINE_DATA, PARTS, TEXT};
use crate::google::{MediaData, SystemText, arguments_object, default_media_type, media_data};
use crate::{LossKind, Losses, foreign, native};

/// The calls written so far: results of other vendors need the name of what they answer, and the id
/// if the service issued one.
#[derive(Debug, Default)]
pub(super) struct KnownCalls<'m> {
    seen: HashMap<&'m str, KnownCall<'m>>,
}

#[derive(Debug)]
struct KnownCall<'m> {
    name: &'m str,
    issued: Option<&'m str>,
}

impl<'m> KnownCalls<'m> {
    /// Remember a call.
    pub(super) fn record(&mut self, content: &'m Content) {
        let Some(call) = content.as_tool_call() else {
            return;
        };
        let issued = native::vendor(content, &Wire::Gemini).and_then(|vendor| {
            match &vendor.id_fields.call {
                IdField::Set(id) if !id.is_empty() => Some(&**id),
                IdField::Set(_) | IdField::Null | IdField::Missing | IdField::NoField => None,
            }
        });
        let seen = KnownCall {
            name: foreign::tool_name(call),
            issued,
        };
        self.seen.insert(call.call.value(), seen);
    }
}

/// Append the part for a content; nothing if it has no form here.
pub(super) fn translate(
    out: &mut String,
    role: &Role,
    content: &Content,
    (calls, system): (&KnownCalls<'_>, &mut SystemText),
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
            foreign::note_transcript(content, path, losses);
            translate_text(out, text, path, losses);
        }
        Body::Refusal(text) => {
            losses.note(path, LossKind::Marking, "refusal becomes plain text");
            translate_text(out, text, path, losses);
        }
        Body::Error(fault) => {
            losses.note(path, LossKind::Marking, "error becomes plain text");
            if !fault.message.is_empty() {
                text_part(out, &fault.message);
            }
        }
        Body::Media(media) => {
            foreign::note_vendor_fields(content, path, losses);
            foreign::note_transcript(content, path, losses);
            media_part(out, media, path, losses);
        }
        Body::ToolCall(call) => translate_call(out, call, path, losses),
        Body::ToolResult(result) => translate_result(out, result, calls, path, losses),
        Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Reasoning(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => foreign::note_vendor_only(&content.body, path, losses),
    }
}

/// Append a text part.
pub(super) fn text_part(out: &mut String, text: &str) {
    let mut object = ObjectWriter::new(out);
    object.str(TEXT, text);
    object.end();
}

fn translate_text(out: &mut String, text: &Text, path: &Path<'_>, losses: &mut Losses) {
    if !text.citations.is_empty() {
        losses.note(path, LossKind::Citations, "parts cite nothing");
    }
    // The service refuses empty parts.
    if !text.text.is_empty() {
        text_part(out, &text.text);
    }
}

fn media_part(out: &mut String, media: &Media, path: &Path<'_>, losses: &mut Losses) {
    let found = media_data(media);
    if let MediaData::Elsewhere = found {
        losses.note(path, LossKind::Media, "the file is kept by another vendor");
        return;
    }
    if media.name.is_some() || media.transcript.is_some() {
        losses.note(path, LossKind::Media, "file name or transcript");
    }
    let mut object = ObjectWriter::new(out);
    match found {
        MediaData::Inline(data, media_type) => {
            let mut inner = ObjectWriter::new(object.key(INLINE_DATA));
            let media_type = media_type.unwrap_or(default_media_type(media.kind));
            inner.str("mimeType", media_type).str("data", &data);
            inner.end();
        }
        MediaData::Address(uri, media_type) => {
            let mut inner = ObjectWriter::new(object.key(FILE_DATA));
            if let Some(media_type) = media_type {
                inner.str("mimeType", media_type);
            }
            inner.str("fileUri", uri);
            inner.end();
        }
        MediaData::Elsewhere => {}
    }
    object.end();
}

fn translate_call(out: &mut String, call: &ToolCall, path: &Path<'_>, losses: &mut Losses) {
    if foreign::is_hosted_call(call, path, losses) {
        return;
    }
    foreign::note_becomes_function(call, path, losses);
    let args = arguments_object(&call.arguments, path, losses);
    let mut object = ObjectWriter::new(out);
    let mut inner = ObjectWriter::new(object.key(FUNCTION_CALL));
    inner
        .str("name", foreign::tool_name(call))
        .raw("args", &args);
    inner.end();
    object.end();
}

fn translate_result(
    out: &mut String,
    result: &ToolResult,
    calls: &KnownCalls<'_>,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    if foreign::is_hosted_result(result, path, losses) {
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
    let value = result_value(result, &mut media, path, losses);
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
    match value {
        ResultValue::Text(text) => response.str(key, &text),
        ResultValue::Json(json) => response.raw(key, &json),
    };
    response.end();
    if !media.is_empty() {
        inner.raw(PARTS, &media);
    }
    inner.end();
    object.end();
}

/// What a tool answered.
enum ResultValue<'r> {
    Text(Cow<'r, str>),
    Json(Cow<'r, str>),
}

/// The answer; media go to `media` as an array.
fn result_value<'r>(
    result: &'r ToolResult,
    media: &mut String,
    path: &Path<'_>,
    losses: &mut Losses,
) -> ResultValue<'r> {
    match &result.output {
        Output::None => ResultValue::Text(Cow::Borrowed("")),
        Output::Text(text) => ResultValue::Text(Cow::Borrowed(text)),
        Output::Json(json) => {
            ResultValue::Json(foreign::without_lone_surrogates(json, path, losses))
        }
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
            ResultValue::Text(Cow::Owned(texts))
        }
    }
}
