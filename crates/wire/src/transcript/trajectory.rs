//! Recorded agent sessions: `throughline.trajectory/1`. Read only.

use throughline_model::json::{RawJson, Value};
use throughline_model::{
    Arguments, Body, CallId, Content, Extra, Family, Message, Outcome, Output, Path, Reasoning,
    Role, Runner, Scope, Source, ToolCall, ToolResult, Usage,
};

use crate::DecodeError;
use crate::read::{self, member, number_of, text_of};

pub(super) const FORMAT: &str = "throughline.trajectory/1";

pub(super) fn read(value: &Value<'_>) -> Result<Vec<Message>, DecodeError> {
    let path = Path::Root.key("messages");
    let mut messages: Vec<Message> = Vec::new();
    for (index, entry) in read::required_array(value, "messages", &Path::Root)?
        .iter()
        .enumerate()
    {
        let path = path.index(index);
        let mut message = message(entry, index, &path)?;
        // Results of one round are one message.
        match messages.last_mut() {
            Some(last) if last.role == Role::Tool && message.role == Role::Tool => {
                last.contents.append(&mut message.contents);
            }
            _ => messages.push(message),
        }
    }
    Ok(messages)
}

fn message(entry: &Value<'_>, index: usize, path: &Path<'_>) -> Result<Message, DecodeError> {
    let role = Role::named(&read::required_str(entry, "role", path)?);
    let text = read::optional_str(entry, "text", path)?.unwrap_or_default();
    let mut contents = Vec::new();
    if role == Role::Tool {
        contents.push(result(entry, &text, index, path)?.into());
    } else {
        if let Some(reasoning) = read::optional_str(entry, "reasoning", path)? {
            contents.push(Content::new(Body::Reasoning(Reasoning {
                text: vec![reasoning.into_owned()],
                ..Reasoning::default()
            })));
        }
        if !text.is_empty() {
            contents.push(Content::text(text));
        }
        if member(entry, "tool_calls").is_some() {
            let path = path.key("tool_calls");
            for (ordinal, found) in read::required_array(entry, "tool_calls", &path)?
                .iter()
                .enumerate()
            {
                contents.push(call(found, index, ordinal, &path.index(ordinal))?.into());
            }
        }
    }
    let mut message = Message::new(role, contents);
    message.source = Some(Source::Import);
    message.usage = member(entry, "usage").map(usage);
    message.meta = meta(entry);
    Ok(message)
}

fn call(
    found: &Value<'_>,
    index: usize,
    ordinal: usize,
    path: &Path<'_>,
) -> Result<ToolCall, DecodeError> {
    let given = read::optional_str(found, "id", path)?;
    let minted = || CallId::minted(Scope::Place(index), ordinal);
    Ok(ToolCall {
        call: given
            .and_then(|id| CallId::natural(&id))
            .unwrap_or_else(minted),
        family: Family::FUNCTION,
        name: read::required_str(found, "name", path)?.into_owned(),
        arguments: match member(found, "arguments") {
            None => Arguments::None,
            Some(value) => match value.as_str() {
                Some(text) => Arguments::Text(text.into_owned()),
                None => Arguments::Json(RawJson::of(value)),
            },
        },
        status: None,
        runner: Runner::Client,
    })
}

fn result(
    entry: &Value<'_>,
    text: &str,
    index: usize,
    path: &Path<'_>,
) -> Result<ToolResult, DecodeError> {
    let given = read::optional_str(entry, "tool_call_id", path)?;
    let output = Output::Text(text.to_owned());
    let mut result = match given.and_then(|id| CallId::natural(&id)) {
        Some(call) => ToolResult::answering(call, Family::FUNCTION, output),
        None => {
            let handle = CallId::minted(Scope::Place(index), 0);
            ToolResult::standalone(handle, Family::FUNCTION, output)
        }
    };
    result.name = text_of(entry, "tool_name");
    if entry.get("is_error").and_then(Value::as_bool) == Some(true) {
        result.outcome = Outcome::Error;
    }
    Ok(result)
}

fn usage(value: &Value<'_>) -> Usage {
    Usage {
        input: number_of(value, &["input"]),
        output: number_of(value, &["output"]),
        cache_read: number_of(value, &["cache_read"]),
        cache_write: number_of(value, &["cache_write"]),
        vendor: Some(RawJson::of(value)),
        extra: Extra::NONE,
        ..Usage::default()
    }
}

/// What has no place of its own in a message.
fn meta(entry: &Value<'_>) -> Option<RawJson> {
    let kept = ["kind", "compaction", "ts"];
    let mut found = entry
        .members()
        .iter()
        .filter(|member| kept.iter().any(|key| member.key.is(key)))
        .peekable();
    found.peek()?;
    Some(RawJson::object(|object| {
        for member in found {
            let out = object.key_token(&member.key);
            throughline_model::json::push_compact(out, &member.value);
        }
    }))
}
