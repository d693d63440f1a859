use super::VERSION;
use crate::json::{ArrayWriter, ObjectWriter};
use crate::{
    ApprovalRequest, ApprovalResponse, Arguments, Body, CallId, Citation, Content, Extra, Form,
    IdField, Media, MediaKind, MediaSource, Message, Output, Pairing, Reasoning, Runner, Text,
    ToolCall, ToolResult, Usage, Vendor,
};

pub(super) fn message(out: &mut String, message: &Message) {
    let mut object = ObjectWriter::new(out);
    object.number("v", VERSION);
    if let Some(id) = &message.id {
        object.str("id", id.as_str());
    }
    object.str("role", message.role.as_str());
    list(&mut object, "contents", &message.contents, content);
    optional(&mut object, "author", message.author.as_deref());
    if let Some(created) = message.created {
        object.number("created", created);
    }
    optional(
        &mut object,
        "source",
        message
            .source
            .as_ref()
            .map(super::super::message::Source::as_str),
    );
    optional(
        &mut object,
        "status",
        message
            .status
            .as_ref()
            .map(super::super::content::Status::as_str),
    );
    if let Some(found) = &message.usage {
        usage(object.key("usage"), found);
    }
    if let Some(meta) = &message.meta {
        object.raw("meta", meta.get());
    }
    extra(&mut object, &message.extra);
    object.end();
}

pub(super) fn content(out: &mut String, content: &Content) {
    if let Body::Unknown(raw) = &content.body {
        out.push_str(raw.get());
        return;
    }
    let mut object = ObjectWriter::new(out);
    object.str("kind", kind(&content.body));
    match &content.body {
        Body::Text(found) | Body::Refusal(found) => text(&mut object, found),
        Body::Reasoning(found) => reasoning(&mut object, found),
        Body::Media(found) => media(&mut object, found),
        Body::ToolCall(found) => tool_call(&mut object, found),
        Body::ToolResult(found) => tool_result(&mut object, found),
        Body::ApprovalRequest(found) => approval_request(&mut object, found),
        Body::ApprovalResponse(found) => approval_response(&mut object, found),
        Body::Error(found) => {
            object.str("message", &found.message);
            optional(&mut object, "code", found.code.as_deref());
        }
        Body::Opaque(found) => {
            object.str("tag", &found.tag);
        }
        Body::Unknown(_) => {}
    }
    if let Some(found) = &content.vendor {
        vendor(object.key("vendor"), found);
    }
    extra(&mut object, &content.extra);
    object.end();
}

fn kind(body: &Body) -> &'static str {
    match body {
        Body::Text(_) => "text",
        Body::Reasoning(_) => "reasoning",
        Body::Media(_) => "media",
        Body::ToolCall(_) => "tool_call",
        Body::ToolResult(_) => "tool_result",
        Body::ApprovalRequest(_) => "approval_request",
        Body::ApprovalResponse(_) => "approval_response",
        Body::Refusal(_) => "refusal",
        Body::Error(_) => "error",
        Body::Opaque(_) => "opaque",
        Body::Unknown(_) => "unknown",
    }
}

fn text(object: &mut ObjectWriter<'_>, text: &Text) {
    object.str("text", &text.text);
    if !text.citations.is_empty() {
        list(object, "citations", &text.citations, citation);
    }
}

fn citation(out: &mut String, citation: &Citation) {
    let mut object = ObjectWriter::new(out);
    optional(&mut object, "url", citation.url.as_deref());
    optional(&mut object, "title", citation.title.as_deref());
    optional(&mut object, "file", citation.file.as_deref());
    count(&mut object, "start", citation.start);
    count(&mut object, "end", citation.end);
    extra(&mut object, &citation.extra);
    object.end();
}

fn reasoning(object: &mut ObjectWriter<'_>, reasoning: &Reasoning) {
    let strings = |out: &mut String, text: &String| crate::json::push_string(out, text);
    if !reasoning.summary.is_empty() {
        list(object, "summary", &reasoning.summary, strings);
    }
    if !reasoning.text.is_empty() {
        list(object, "text", &reasoning.text, strings);
    }
    if reasoning.sealed {
        object.bool("sealed", true);
    }
}

fn media(object: &mut ObjectWriter<'_>, media: &Media) {
    object.str(
        "media",
        match media.kind {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
            MediaKind::File => "file",
        },
    );
    optional(object, "media_type", media.media_type.as_deref());
    match &media.source {
        MediaSource::Uri(uri) => object.str("uri", uri),
        MediaSource::Data(data) => object.str("data", data),
        MediaSource::File(file) => object.str("file", file),
    };
    optional(object, "name", media.name.as_deref());
    optional(object, "transcript", media.transcript.as_deref());
}

fn call_id(object: &mut ObjectWriter<'_>, key: &str, id: &CallId) {
    object.str(key, id.value());
    object.str("origin", id.origin().as_str());
}

fn arguments(object: &mut ObjectWriter<'_>, arguments: &Arguments) {
    match arguments {
        Arguments::None => {}
        Arguments::Text(text) => {
            object.str("arguments", text);
        }
        Arguments::Json(raw) => {
            object.raw("arguments_json", raw.get());
        }
        Arguments::Free(text) => {
            object.str("input", text);
        }
    }
}

fn runner(object: &mut ObjectWriter<'_>, runner: Runner) {
    match runner {
        Runner::Client => {}
        Runner::Vendor => {
            object.str("runner", "vendor");
        }
    }
}

fn tool_call(object: &mut ObjectWriter<'_>, call: &ToolCall) {
    call_id(object, "call", &call.call);
    object.str("family", call.family.as_str());
    if !call.name.is_empty() {
        object.str("name", &call.name);
    }
    arguments(object, &call.arguments);
    optional(
        object,
        "status",
        call.status
            .as_ref()
            .map(super::super::content::Status::as_str),
    );
    runner(object, call.runner);
}

fn tool_result(object: &mut ObjectWriter<'_>, result: &ToolResult) {
    call_id(object, "call", result.call());
    match result.pairing() {
        Pairing::Answers => {}
        Pairing::Standalone => {
            object.bool("standalone", true);
        }
    }
    if let Some(occurrence) = result.occurrence() {
        object.number("occurrence", u64::from(occurrence));
    }
    object.str("family", result.family.as_str());
    optional(object, "name", result.name.as_deref());
    object.str("outcome", result.outcome.as_str());
    match &result.output {
        Output::None => {}
        Output::Text(text) => {
            object.str("text", text);
        }
        Output::Json(raw) => {
            object.raw("json", raw.get());
        }
        Output::Parts(parts) => list(object, "parts", parts, content),
    }
    runner(object, result.runner);
}

fn approval_request(object: &mut ObjectWriter<'_>, request: &ApprovalRequest) {
    call_id(object, "request", &request.request);
    object.str("name", &request.name);
    arguments(object, &request.arguments);
    optional(object, "server", request.server.as_deref());
}

fn approval_response(object: &mut ObjectWriter<'_>, response: &ApprovalResponse) {
    call_id(object, "request", &response.request);
    object.bool("approved", response.approved);
    optional(object, "reason", response.reason.as_deref());
}

pub(super) fn vendor(out: &mut String, vendor: &Vendor) {
    let mut object = ObjectWriter::new(out);
    object.str("wire", vendor.wire.as_str());
    id_field(&mut object, "id", &vendor.id_fields.id);
    id_field(&mut object, "call", &vendor.id_fields.call);
    if let Some(envelope) = &vendor.envelope {
        object.raw("envelope", envelope.get());
    }
    match &vendor.form {
        Form::Item(item) => object.raw("item", item.get()),
        Form::Part(part) => object.raw("part", part.get()),
        Form::Bare => object.bool("bare", true),
        Form::Within => object.bool("within", true),
    };
    extra(&mut object, &vendor.extra);
    object.end();
}

/// An id field is a member: absent if the wire has no such field, `false` if it was missing.
fn id_field(object: &mut ObjectWriter<'_>, key: &str, field: &IdField) {
    match field {
        IdField::NoField => {}
        IdField::Missing => {
            object.bool(key, false);
        }
        IdField::Null => {
            object.raw(key, "null");
        }
        IdField::Set(value) => {
            object.str(key, value);
        }
    }
}

fn usage(out: &mut String, usage: &Usage) {
    let mut object = ObjectWriter::new(out);
    count(&mut object, "input", usage.input);
    count(&mut object, "output", usage.output);
    count(&mut object, "total", usage.total);
    count(&mut object, "cache_read", usage.cache_read);
    count(&mut object, "cache_write", usage.cache_write);
    count(&mut object, "reasoning", usage.reasoning);
    if let Some(vendor) = &usage.vendor {
        object.raw("vendor", vendor.get());
    }
    extra(&mut object, &usage.extra);
    object.end();
}

fn optional(object: &mut ObjectWriter<'_>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        object.str(key, value);
    }
}

fn count(object: &mut ObjectWriter<'_>, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        object.number(key, value);
    }
}

fn list<T>(
    object: &mut ObjectWriter<'_>,
    key: &str,
    values: &[T],
    write: impl Fn(&mut String, &T),
) {
    let mut array = ArrayWriter::new(object.key(key));
    for value in values {
        write(array.slot(), value);
    }
    array.end();
}

fn extra(object: &mut ObjectWriter<'_>, extra: &Extra) {
    if let Some(raw) = extra.as_json() {
        object.members_of(raw.get());
    }
}
