//! Writing request bodies, response bodies and errors.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value, push_compact_with};
use throughline_model::{Path, Request, Response, Stop, Usage, VendorError};

use super::message_builder::{EncodeFor, MessageBuilder};
use super::{WIRE, encode};
use crate::foreign::{self, FunctionTool};
use crate::native;
use crate::template::{TemplateValue, push_array, restore};
use crate::{LossKind, Losses};

/// Write a request body.
pub(super) fn request(request: &Request, losses: &mut Losses) -> String {
    let own = native::body(request.vendor.as_ref(), &WIRE);
    if own.is_none() {
        foreign::note_request_keys(request, losses);
    }
    let mut messages = Vec::new();
    // System text outside the messages always comes from another vendor.
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
    foreign::write_tools(&mut object, &request.tools, functions, losses);
    object.end();
    out
}

/// Functions on offer, as an array.
pub(crate) fn functions(out: &mut String, tools: &[FunctionTool<'_>], losses: &mut Losses) {
    let root = Path::Root.key("tools");
    let mut array = ArrayWriter::new(out);
    for FunctionTool { index, tool } in tools {
        let path = root.index(*index);
        let mut item = ObjectWriter::new(array.slot());
        item.str("type", "function");
        let mut function = ObjectWriter::new(item.key("function"));
        function.str("name", &tool.name);
        if let Some(description) = &tool.description {
            function.str("description", description);
        }
        if let Some(parameters) = &tool.parameters {
            let schema = foreign::without_lone_surrogates(parameters, &path, losses);
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
    if native::body(response.vendor.as_ref(), &WIRE).is_none() && response.error.is_some() {
        let detail = "an answer has no place for an error";
        losses.note(&Path::Root.key("error"), LossKind::VendorItem, detail);
    }
    response_for(response, EncodeFor::Response, losses)
}

/// Write the body that the chunks of a stream add up to, and the error that follows them.
pub(super) fn streamed_body<'r>(
    response: &'r Response,
    losses: &mut Losses,
) -> (String, Option<&'r VendorError>) {
    let body = response_for(response, EncodeFor::Stream, losses);
    let within = native::body(response.vendor.as_ref(), &WIRE).is_some();
    (body, response.error.as_ref().filter(|_| !within))
}

fn response_for(response: &Response, target: EncodeFor, losses: &mut Losses) -> String {
    let answers = encode::answers(&response.messages, target, losses);
    match native::body(response.vendor.as_ref(), &WIRE) {
        Some(body) => restore_body(body, &answers, losses),
        None => build_body(response, &answers),
    }
}

/// Put the messages back into the places they were taken from.
fn restore_body(body: &RawJson, answers: &[String], losses: &mut Losses) -> String {
    let value = body.value();
    let choices = value.get("choices").and_then(Value::as_array);
    let choices = choices.unwrap_or_default();
    let places = choices.iter().filter_map(|choice| choice.get("message"));
    let answer = |index: usize| {
        answers
            .get(index)
            .map_or(MessageBuilder::nothing(), String::as_str)
    };
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

fn build_body(response: &Response, answers: &[String]) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", response.id.as_deref().unwrap_or("chatcmpl_0"))
        .str("object", "chat.completion")
        .number("created", 0)
        .str("model", response.model.as_deref().unwrap_or("unknown"));
    let nothing = [MessageBuilder::nothing().to_owned()];
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
