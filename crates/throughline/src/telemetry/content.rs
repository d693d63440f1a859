//! Messages as the JSON that the conventions prescribe for attributes. Used only by agents that
//! record content.

use std::error::Error;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, push_string};
use throughline_model::{
    Arguments, Body, Content, Media, MediaKind, MediaSource, Message, Output, Runner, Stop,
};

use super::words::finish_reason;

/// An error and its causes.
pub(super) fn error(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

pub(super) fn instructions(text: &str) -> String {
    let mut out = String::new();
    let mut parts = ArrayWriter::new(&mut out);
    self::text(parts.slot(), "text", text);
    parts.end();
    out
}

pub(super) fn input<'m>(messages: impl Iterator<Item = &'m Message>) -> String {
    list(messages, None)
}

pub(super) fn output(messages: &[Message], stop: Option<&Stop>) -> String {
    list(messages.iter(), stop)
}

fn list<'m>(messages: impl Iterator<Item = &'m Message>, stop: Option<&Stop>) -> String {
    let mut out = String::new();
    let mut list = ArrayWriter::new(&mut out);
    for message in messages {
        let mut object = ObjectWriter::new(list.slot());
        object.str("role", message.role.as_str());
        let mut parts = ArrayWriter::new(object.key("parts"));
        for content in &message.contents {
            part(parts.slot(), content);
        }
        parts.end();
        if let Some(author) = &message.author {
            object.str("name", author);
        }
        if let Some(stop) = stop {
            object.str("finish_reason", finish_reason(stop));
        }
        object.end();
    }
    list.end();
    out
}

/// The result of a tool: JSON as it is, everything else converted to JSON.
pub(super) fn result(output: &Output) -> String {
    let mut out = String::new();
    match output {
        // A text alone is the attribute's value.
        Output::Text(text) => out.push_str(text),
        Output::None | Output::Json(_) | Output::Parts(_) => value(&mut out, output),
    }
    out
}

fn value(out: &mut String, output: &Output) {
    match output {
        Output::None => out.push_str("null"),
        Output::Text(text) => push_string(out, text),
        Output::Json(json) => out.push_str(json.get()),
        Output::Parts(contents) => {
            let mut parts = ArrayWriter::new(out);
            for content in contents {
                part(parts.slot(), content);
            }
            parts.end();
        }
    }
}

fn part(out: &mut String, content: &Content) {
    match &content.body {
        Body::Text(said) => text(out, "text", &said.text),
        Body::Refusal(said) => text(out, "refusal", &said.text),
        Body::Reasoning(reasoning) => {
            let readable = match reasoning.text.is_empty() {
                true => &reasoning.summary,
                false => &reasoning.text,
            };
            text(out, "reasoning", &readable.concat());
        }
        Body::Error(fault) => text(out, "error", &fault.message),
        Body::Media(media) => self::media(out, media),
        Body::ToolCall(call) => {
            let mut object = ObjectWriter::new(out);
            object.str("type", kind("tool_call", "server_tool_call", call.runner));
            object.str("id", call.call.value());
            object.str("name", &call.name);
            arguments(object.key("arguments"), &call.arguments);
            object.end();
        }
        Body::ToolResult(result) => {
            let server = "server_tool_call_response";
            let mut object = ObjectWriter::new(out);
            object.str("type", kind("tool_call_response", server, result.runner));
            object.str("id", result.call().value());
            value(object.key("response"), &result.output);
            object.end();
        }
        Body::ApprovalRequest(_) => bare(out, "approval_request"),
        Body::ApprovalResponse(_) => bare(out, "approval_response"),
        Body::Opaque(opaque) => bare(out, &opaque.tag),
        Body::Unknown(_) => bare(out, "unknown"),
    }
}

fn kind(here: &'static str, there: &'static str, runner: Runner) -> &'static str {
    match runner {
        Runner::Client => here,
        Runner::Vendor => there,
    }
}

fn bare(out: &mut String, kind: &str) {
    let mut object = ObjectWriter::new(out);
    object.str("type", kind);
    object.end();
}

fn text(out: &mut String, kind: &str, text: &str) {
    let mut object = ObjectWriter::new(out);
    object.str("type", kind);
    object.str("content", text);
    object.end();
}

/// Arguments that parse are an object, as the conventions prescribe; others are a string.
fn arguments(out: &mut String, arguments: &Arguments) {
    match arguments {
        Arguments::None => out.push_str("null"),
        Arguments::Json(json) => out.push_str(json.get()),
        Arguments::Free(text) => push_string(out, text),
        Arguments::Text(text) => match RawJson::new(text) {
            Ok(json) => out.push_str(json.get()),
            Err(_) => push_string(out, text),
        },
    }
}

/// Media without their bytes: spans get the size only.
fn media(out: &mut String, media: &Media) {
    let modality = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::File => "document",
    };
    let mut object = ObjectWriter::new(out);
    let inline = |object: &mut ObjectWriter<'_>, data: &str| {
        object.str("type", "blob");
        object.str("content", "");
        let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
        object.number("throughline.omitted", length);
    };
    match &media.source {
        MediaSource::Uri(uri) if uri.starts_with("data:") => inline(&mut object, uri),
        MediaSource::Data(data) => inline(&mut object, data),
        MediaSource::Uri(uri) => {
            object.str("type", "uri").str("uri", uri);
        }
        MediaSource::File(file) => {
            object.str("type", "file").str("file_id", file);
        }
    }
    object.str("modality", modality);
    if let Some(media_type) = &media.media_type {
        object.str("mime_type", media_type);
    }
    object.end();
}
