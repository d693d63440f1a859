//! Writing request bodies, response bodies and errors.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value, push_compact_with};
use throughline_model::{Form, Path, Request, Response, Stop, Usage, Vendor, VendorError};

use super::made::{Made, Target};
use super::{WIRE, encode};
use crate::foreign::{self, Function};
use crate::template::{TemplateValue, push_array, restore};
use crate::{LossKind, Losses};

fn own_body(vendor: Option<&Vendor>) -> Option<&RawJson> {
    match vendor.map(|vendor| (&vendor.wire, &vendor.form)) {
        Some((wire, Form::Item(body))) if *wire == WIRE => Some(body),
        _ => None,
    }
}

/// Write a request body.
pub(super) fn request(request: &Request, losses: &mut Losses) -> String {
    let own = own_body(request.vendor.as_ref());
    if own.is_none() {
        foreign::note_request_keys(request, losses);
    }
    let mut messages = Vec::new();
    // System text outside the messages always comes from elsewhere.
    let system = foreign::system_text(&request.system, losses);
    if !system.is_empty() {
        messages.push(encode::system(&system));
    }
    messages.extend(encode::messages(&request.messages, losses));
    let mut out = String::new();
    if let Some(body) = own {
        restore(
            &mut out,
            body,
            &[(&["messages"], TemplateValue::List(&messages))],
        );
        return out;
    }
    let mut object = ObjectWriter::new(&mut out);
    push_array(object.key("messages"), &messages);
    let tools = foreign::function_tools(&request.tools, losses);
    if !tools.is_empty() {
        functions(object.key("tools"), &tools, losses);
    }
    object.end();
    out
}

/// Functions on offer, as an array.
pub(crate) fn functions(out: &mut String, tools: &[Function<'_>], losses: &mut Losses) {
    let root = Path::Root.key("tools");
    let mut array = ArrayWriter::new(out);
    for Function { index, tool } in tools {
        let path = root.index(*index);
        let mut item = ObjectWriter::new(array.slot());
        item.str("type", "function");
        let mut function = ObjectWriter::new(item.key("function"));
        function.str("name", &tool.name);
        if let Some(description) = &tool.description {
            function.str("description", description);
        }
        if let Some(parameters) = &tool.parameters {
            let schema = foreign::sound_json(parameters, &path, losses);
            function.raw("parameters", &schema);
        }
        if let Some(strict) = tool.strict {
            function.bool("strict", strict);
        }
        function.end();
        item.end();
    }
    array.end();
}

/// Write a response body.
pub(super) fn response(response: &Response, losses: &mut Losses) -> String {
    if own_body(response.vendor.as_ref()).is_none() && response.error.is_some() {
        let detail = "an answer has no place for an error";
        losses.note(&Path::Root.key("error"), LossKind::VendorItem, detail);
    }
    response_for(response, Target::Response, losses)
}

/// Write the body that the chunks of a stream add up to, and the error that follows them.
pub(super) fn streamed<'r>(
    response: &'r Response,
    losses: &mut Losses,
) -> (String, Option<&'r VendorError>) {
    let body = response_for(response, Target::Stream, losses);
    let within = own_body(response.vendor.as_ref()).is_some();
    (body, response.error.as_ref().filter(|_| !within))
}

fn response_for(response: &Response, target: Target, losses: &mut Losses) -> String {
    let answers = encode::answers(&response.messages, target, losses);
    match own_body(response.vendor.as_ref()) {
        Some(body) => refill(body, &answers, losses),
        None => build(response, &answers),
    }
}

/// Put the messages back into the places they were taken from.
fn refill(body: &RawJson, answers: &[String], losses: &mut Losses) -> String {
    let value = body.value();
    let choices = value.get("choices").and_then(Value::as_array);
    let choices = choices.unwrap_or_default();
    let places = choices.iter().filter_map(|choice| choice.get("message"));
    let answer = |index: usize| answers.get(index).map_or(Made::nothing(), String::as_str);
    let edits: Vec<_> = places
        .enumerate()
        .map(|(index, place)| (place, answer(index)))
        .collect();
    let root = Path::Root.key("messages");
    for index in edits.len()..answers.len() {
        let detail = "the body has no place for another alternative";
        losses.note(&root.index(index), LossKind::VendorItem, detail);
    }
    let size: usize = edits.iter().map(|(_, answer)| answer.len()).sum();
    let mut out = String::with_capacity(body.get().len() + size);
    push_compact_with(&mut out, &value, &edits);
    out
}

fn build(response: &Response, answers: &[String]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", response.id.as_deref().unwrap_or("chatcmpl_0"))
        .str("object", "chat.completion")
        .number("created", 0)
        .str("model", response.model.as_deref().unwrap_or("unknown"));
    let nothing = [Made::nothing().to_owned()];
    let answers = if answers.is_empty() {
        &nothing
    } else {
        answers
    };
    let mut choices = ArrayWriter::new(object.key("choices"));
    for (index, answer) in answers.iter().enumerate() {
        let mut choice = ObjectWriter::new(choices.slot());
        choice
            .number("index", index as u64)
            .raw("message", answer)
            .raw("logprobs", "null")
            .str("finish_reason", finish_reason(&response.stop));
        choice.end();
    }
    choices.end();
    if let Some(found) = &response.usage {
        usage(object.key("usage"), found);
    }
    object.end();
    out
}

/// The word for the end. There is none for an answer that is not whole; the one for an answer that
/// grew too long comes nearest, since such an answer is not taken for finished.
fn finish_reason(stop: &Stop) -> &'static str {
    match stop {
        Stop::Done | Stop::Paused | Stop::Other(_) => "stop",
        Stop::ToolCalls => "tool_calls",
        Stop::ContentFilter | Stop::Refusal => "content_filter",
        Stop::Length | Stop::Cancelled | Stop::Failed | Stop::InProgress | Stop::Cut => "length",
    }
}

fn usage(out: &mut String, usage: &Usage) {
    let mut object = ObjectWriter::new(out);
    let input = usage.input.unwrap_or(0);
    let output = usage.output.unwrap_or(0);
    let total = usage.total.unwrap_or_else(|| input.saturating_add(output));
    object
        .number("prompt_tokens", input)
        .number("completion_tokens", output)
        .number("total_tokens", total);
    if usage.cache_read.is_some() || usage.cache_write.is_some() {
        let mut details = ObjectWriter::new(object.key("prompt_tokens_details"));
        if let Some(read) = usage.cache_read {
            details.number("cached_tokens", read);
        }
        if let Some(written) = usage.cache_write {
            details.number("cache_write_tokens", written);
        }
        details.end();
    }
    if let Some(reasoning) = usage.reasoning {
        let mut details = ObjectWriter::new(object.key("completion_tokens_details"));
        details.number("reasoning_tokens", reasoning);
        details.end();
    }
    object.end();
}

/// Write `{"error": {…}}`.
pub(super) fn error(error: &VendorError) -> String {
    if let Some(body) = error.body.as_ref().filter(|_| error.wire == WIRE)
        && body.value().get("error").is_some()
    {
        return body.get().to_owned();
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    error_object(object.key("error"), error);
    object.end();
    out
}

/// The object inside.
fn error_object(out: &mut String, error: &VendorError) {
    if let Some(body) = error.body.as_ref().filter(|_| error.wire == WIRE) {
        let value = body.value();
        return match value.get("error") {
            Some(inner) => push_compact_with(out, inner, &[]),
            None => out.push_str(body.get()),
        };
    }
    let mut object = ObjectWriter::new(out);
    object
        .str("message", &error.message)
        .str("type", error.kind.as_deref().unwrap_or("server_error"));
    for (key, value) in [("param", &error.param), ("code", &error.code)] {
        match value {
            Some(value) => object.str(key, value),
            None => object.raw(key, "null"),
        };
    }
    object.end();
}
