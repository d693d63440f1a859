//! Reading arrays of messages, request bodies, response bodies and errors.

use std::borrow::Cow;

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Extra, Family, Message, Path, Request, Response, Role, Stop, ToolDef, Usage, Vendor,
    VendorError,
};

use super::WIRE;
use super::message::{CallScope, MessageDecoder, is_call};
use crate::read::{self, member, number_of, text_of};
use crate::template::Extractor;
use crate::{DecodeError, DocumentKind, Problem, truncated_call};

/// Why a choice ended that the output limit cut off.
const LENGTH: &str = "length";

/// Read an array of messages.
pub(super) fn messages(items: &[Value<'_>], path: &Path<'_>) -> Result<Vec<Message>, DecodeError> {
    let mut decoder = MessageDecoder::default();
    let mut messages: Vec<Message> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let message = decoder.message(item, CallScope::at_index(index), &path.index(index))?;
        match messages.last_mut() {
            Some(before) if before.role == Role::Tool && message.role == Role::Tool => {
                before.contents.extend(message.contents);
            }
            _ => messages.push(message),
        }
    }
    Ok(messages)
}

/// What a JSON object of this format is.
pub(super) fn document_kind(value: &Value<'_>) -> DocumentKind {
    let has = |key| value.get(key).is_some();
    if has("choices") {
        DocumentKind::Response
    } else if has("messages") {
        DocumentKind::Request
    } else if has("role") || (has("id") && is_call(value)) {
        // A call alone is no message, but reading it as one reports how to make it one.
        DocumentKind::Message
    } else if value
        .get("error")
        .is_some_and(|error| error.as_object().is_some())
    {
        DocumentKind::Error
    } else {
        DocumentKind::Unknown
    }
}

/// Read a request body.
pub(super) fn request(body: &Value<'_>) -> Result<Request, DecodeError> {
    let path = Path::Root.key("messages");
    read::required_array(body, "messages", &Path::Root)?;
    let mut extractor = Extractor::new(body);
    let items = body
        .get("messages")
        .and_then(|value| extractor.elements(value));
    Ok(Request {
        system: Vec::new(),
        messages: messages(items.unwrap_or_default(), &path)?,
        tools: tools(body),
        vendor: Some(Vendor::item(WIRE, extractor.into_template())),
    })
}

fn tools(body: &Value<'_>) -> Vec<ToolDef> {
    let list = |key| body.get(key).and_then(Value::as_array).unwrap_or_default();
    let define = |family: Family, inner: &Value<'_>| ToolDef {
        family,
        name: text_of(inner, "name").unwrap_or_default(),
        description: text_of(inner, "description"),
        parameters: member(inner, "parameters").map(RawJson::of),
        ..ToolDef::default()
    };
    let tools = list("tools").iter().map(|tool| {
        let tag = text_of(tool, "type").unwrap_or_default();
        define(Family::named(&tag), tool.get(&tag).unwrap_or(tool))
    });
    // The old way to offer functions.
    let functions = list("functions")
        .iter()
        .map(|function| define(Family::FUNCTION, function));
    tools.chain(functions).collect()
}

/// Read a response body.
pub(super) fn response(body: &Value<'_>) -> Result<Response, DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a response", body));
    }
    if member(body, "choices").is_none()
        && let Some(error) = error(body)
    {
        let message = error.message;
        return Err(DecodeError::new(
            &Path::Root,
            Problem::ErrorBody { message },
        ));
    }
    let choices = read::required_array(body, "choices", &Path::Root)?;
    let id = text_of(body, "id");
    let usage = member(body, "usage").map(usage);
    let root = Path::Root.key("choices");
    let mut decoder = MessageDecoder::default();
    let mut edits = Vec::with_capacity(choices.len());
    let mut messages = Vec::with_capacity(choices.len());
    for (index, choice) in choices.iter().enumerate() {
        let path = root.index(index);
        let path = path.key("message");
        let Some(message) = choice.get("message") else {
            return Err(DecodeError::missing(&path, "a message"));
        };
        if message.as_object().is_none() {
            return Err(DecodeError::expected(&path, "a message", message));
        }
        let origin = CallScope::choice(id.as_deref(), index);
        let mut contents = decoder.assistant_contents(message, origin, &path)?;
        // Each alternative has a limit of its own.
        if text_of(choice, "finish_reason").as_deref() == Some(LENGTH) {
            truncated_call::mark(&mut contents, &Stop::Length);
        }
        messages.push(Message::new(Role::Assistant, contents));
        // The messages are kept as contents.
        edits.push((message, "null"));
    }
    if let Some(first) = messages.first_mut() {
        first.usage.clone_from(&usage);
    }
    Ok(Response {
        id,
        model: text_of(body, "model"),
        stop: stop(body, choices, &messages),
        messages,
        usage,
        error: member(body, "error").map(error_object),
        vendor: Some(Vendor::item(WIRE, RawJson::of_with(body, &edits))),
        service: None,
    })
}

/// Why the first alternative ended. Servers send `stop` where a forced call ended it, or nothing.
fn stop(body: &Value<'_>, choices: &[Value<'_>], messages: &[Message]) -> Stop {
    let reason = choices
        .first()
        .and_then(|first| text_of(first, "finish_reason"));
    let reason = reason.filter(|reason| !reason.is_empty());
    let calls = messages
        .first()
        .is_some_and(|message| message.contents.iter().any(|c| c.as_tool_call().is_some()));
    match reason.as_deref() {
        None if member(body, "error").is_some() => Stop::Failed,
        Some("stop") | None if calls => Stop::ToolCalls,
        Some("stop") | None => Stop::Done,
        Some("tool_calls" | "function_call") => Stop::ToolCalls,
        Some(LENGTH) => Stop::Length,
        Some("content_filter") => Stop::ContentFilter,
        Some("error") => Stop::Failed,
        Some(other) => Stop::Other(other.into()),
    }
}

fn usage(value: &Value<'_>) -> Usage {
    let prompt = "prompt_tokens_details";
    Usage {
        input: number_of(value, &["prompt_tokens"]),
        output: number_of(value, &["completion_tokens"]),
        total: number_of(value, &["total_tokens"]),
        cache_read: number_of(value, &[prompt, "cached_tokens"]),
        cache_write: number_of(value, &[prompt, "cache_write_tokens"]),
        reasoning: number_of(value, &["completion_tokens_details", "reasoning_tokens"]),
        vendor: Some(RawJson::of(value)),
        extra: Extra::NONE,
    }
}

/// Read `{"error": {…}}`.
pub(super) fn error(body: &Value<'_>) -> Option<VendorError> {
    let error = member(body, "error")?;
    error.as_object()?;
    let mut found = error_object(error);
    found.body = Some(RawJson::of(body));
    Some(found)
}

/// Read the object with `message`, `type`, `code` and `param`. Compatible servers send numbers as
/// codes, or nothing but a text.
pub(super) fn error_object(error: &Value<'_>) -> VendorError {
    let number = |code: &Value<'_>| code.as_u64().map(|code| code.to_string());
    VendorError {
        wire: WIRE,
        message: text_of(error, "message")
            .or_else(|| error.as_str().map(Cow::into_owned))
            .unwrap_or_default(),
        kind: text_of(error, "type"),
        code: text_of(error, "code").or_else(|| error.get("code").and_then(number)),
        param: text_of(error, "param"),
        retry_after_ms: None,
        body: Some(RawJson::of(error)),
    }
}
