//! Writing request bodies, response bodies and errors.

use std::borrow::Cow;

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_model::{Content, Path, Request, Response, Stop, Usage, VendorError};

use super::encode::{items, response_items};
use super::{Dialect, Flavour};
use crate::flat::bare_string_input;
use crate::foreign::{self, FunctionTool};
use crate::message_writer::array;
use crate::native;
use crate::openai::tool_definition;
use crate::template::{TemplateValue, push_array, restore};
use crate::{LossKind, Losses};

/// Write a request body.
pub(crate) fn request(dialect: &Dialect, request: &Request, losses: &mut Losses) -> String {
    let mut out = String::new();
    if let Some(body) = native::body(request.vendor.as_ref(), &dialect.wire) {
        let system: String = request.system.iter().filter_map(Content::as_text).collect();
        let elements;
        let input = match bare_string_input(request) {
            Some(text) => TemplateValue::Text(text),
            // A body without input, as some prompts have, stays without.
            None if request.messages.is_empty() => TemplateValue::Elements(""),
            None => {
                elements = array(&items(dialect, &request.messages, losses));
                TemplateValue::Replace(&elements)
            }
        };
        restore(
            &mut out,
            body,
            &[
                (&["instructions"], TemplateValue::Text(&system)),
                (&["input"], input),
            ],
        );
        return out;
    }
    let mut object = ObjectWriter::new(&mut out);
    foreign::note_request_keys(request, losses);
    let system = foreign::system_text(&request.system, losses);
    if !system.is_empty() {
        object.str("instructions", &system);
    }
    object.raw("input", &array(&items(dialect, &request.messages, losses)));
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
        if let Some(own) = tool_definition(tool) {
            array.raw(own.get());
            continue;
        }
        let mut object = ObjectWriter::new(array.slot());
        object.str("type", "function").str("name", &tool.name);
        if let Some(description) = &tool.description {
            object.str("description", description);
        }
        let parameters = match &tool.parameters {
            Some(schema) => foreign::without_lone_surrogates(schema, &path, losses),
            None => Cow::Borrowed("{}"),
        };
        object
            .raw("parameters", &parameters)
            .bool("strict", tool.strict.unwrap_or(false));
        object.end();
    }
    array.end();
}

/// The id of a response in its body, and in what is derived from it.
pub(super) fn response_id(response: &Response) -> &str {
    response.id.as_deref().unwrap_or("resp_0")
}

/// Write a response body.
pub(crate) fn response(dialect: &Dialect, response: &Response, losses: &mut Losses) -> String {
    let items = response_items(dialect, response, losses);
    let mut out = String::new();
    if let Some(body) = native::body(response.vendor.as_ref(), &dialect.wire) {
        restore(
            &mut out,
            body,
            &[(&["output"], TemplateValue::List(&items))],
        );
        return out;
    }
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", response_id(response))
        .str("object", "response")
        .number("created_at", 0);
    let (status, reason) = status(&response.stop);
    object.str("status", status);
    match &response.error {
        Some(found) => push_failure(object.key("error"), dialect, found, losses),
        None => object.key("error").push_str("null"),
    }
    match reason {
        Some(reason) => {
            let mut details = ObjectWriter::new(object.key("incomplete_details"));
            details.str("reason", reason);
            details.end();
        }
        None => {
            object.raw("incomplete_details", "null");
        }
    }
    if dialect.flavour == Flavour::Foundry {
        object
            .raw("instructions", "null")
            .raw("agent_reference", "null");
    }
    object.str("model", response.model.as_deref().unwrap_or("unknown"));
    push_array(object.key("output"), &items);
    object
        .bool("parallel_tool_calls", true)
        .str("tool_choice", "auto")
        .raw("tools", "[]");
    if let Some(found) = &response.usage {
        usage(object.key("usage"), found);
    }
    object.end();
    out
}

/// The error of a response that failed. Its codes are a closed list.
fn push_failure(out: &mut String, dialect: &Dialect, error: &VendorError, losses: &mut Losses) {
    const OTHER: &str = "server_error";
    let path = Path::Root.key("error");
    let known = |code: &&str| dialect.error_codes.iter().any(|list| list.contains(code));
    let code = error.code.as_deref();
    if let Some(code) = code.filter(|code| !known(code)) {
        let detail = format!("the code {code} becomes {OTHER}");
        losses.note(&path.key("code"), LossKind::VendorFields, detail);
    }
    if let Some(kind) = &error.kind {
        let detail = format!("{kind}: a response has only the code");
        losses.note(&path.key("kind"), LossKind::VendorFields, detail);
    }
    let code = code.filter(known).unwrap_or(OTHER);
    let mut object = ObjectWriter::new(out);
    object.str("code", code).str("message", &error.message);
    object.end();
}

fn status(stop: &Stop) -> (&'static str, Option<&'static str>) {
    match stop {
        Stop::Done | Stop::ToolCalls | Stop::Refusal | Stop::Paused | Stop::Other(_) => {
            ("completed", None)
        }
        Stop::Length => ("incomplete", Some("max_output_tokens")),
        Stop::ContentFilter => ("incomplete", Some("content_filter")),
        Stop::Cancelled => ("cancelled", None),
        Stop::Failed => ("failed", None),
        Stop::InProgress => ("in_progress", None),
        Stop::Cut => ("incomplete", None),
    }
}

/// The status of the items of a response that ended like this.
pub(super) fn item_status(stop: &Stop) -> &'static str {
    match status(stop).0 {
        "completed" => "completed",
        "in_progress" => "in_progress",
        _ => "incomplete",
    }
}

fn usage(out: &mut String, usage: &Usage) {
    let mut object = ObjectWriter::new(out);
    let input = usage.input.unwrap_or(0);
    let output = usage.output.unwrap_or(0);
    object.number("input_tokens", input);
    let mut details = ObjectWriter::new(object.key("input_tokens_details"));
    details
        .number("cached_tokens", usage.cache_read.unwrap_or(0))
        .number("cache_write_tokens", usage.cache_write.unwrap_or(0));
    details.end();
    object.number("output_tokens", output);
    let mut details = ObjectWriter::new(object.key("output_tokens_details"));
    details.number("reasoning_tokens", usage.reasoning.unwrap_or(0));
    details.end();
    let total = usage.total.unwrap_or_else(|| input.saturating_add(output));
    object.number("total_tokens", total);
    object.end();
}
