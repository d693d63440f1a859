//! Writing items, request bodies, response bodies and errors.

use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson};
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Form, Message, Outcome, Output, Pairing, Path,
    Request, Response, Role, Runner, Stop, ToolCall, ToolResult, Usage, VendorError,
};

use super::{Dialect, parts};
use crate::fill::{Fill, fill};
use crate::flat::bare_input;
use crate::foreign;
use crate::gather::{Gather, array};
use crate::table::{ArgumentsAt, OutputAt};
use crate::{LossKind, Losses};

/// Where a message has its parts.
const CONTENT: &str = "content";

/// The longest `call_id`.
const ID_LENGTH: usize = 64;

/// Writes contents as items, one after the other.
struct ItemEncoder<'e> {
    dialect: &'e Dialect,
    losses: &'e mut Losses,
    gather: Gather,
    /// The call whose item, just written, holds its result too.
    hybrid: Option<CallId>,
}

/// Write messages as items, each as JSON text.
pub(crate) fn items(dialect: &Dialect, messages: &[Message], losses: &mut Losses) -> Vec<String> {
    let mut encoder = ItemEncoder {
        dialect,
        losses,
        gather: Gather::default(),
        hybrid: None,
    };
    let root = Path::Root.key("messages");
    for (index, message) in messages.iter().enumerate() {
        let path = root.index(index);
        let path = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            let next = message.contents.get(place + 1);
            encoder.content(message, index, content, next, &path.index(place));
        }
    }
    encoder.gather.finish()
}

impl ItemEncoder<'_> {
    fn content(
        &mut self,
        message: &Message,
        index: usize,
        content: &Content,
        next: Option<&Content>,
        path: &Path<'_>,
    ) {
        let Some(vendor) = content
            .vendor
            .as_ref()
            .filter(|vendor| vendor.wire == self.dialect.wire)
        else {
            return self.make(message, index, content, path);
        };
        if let Some(envelope) = &vendor.envelope {
            self.gather.open(envelope.clone());
        }
        match &vendor.form {
            Form::Item(item) => {
                let text = self.item(content, item, next, path);
                self.gather.item(text);
            }
            Form::Part(part) => {
                let mut text = String::with_capacity(part.get().len());
                parts::encode(&mut text, &content.body, part);
                if !self.gather.is_open() {
                    self.gather.open_for(index, || envelope(&message.role));
                }
                self.gather.own_element(CONTENT, text);
            }
            Form::Bare => match content.as_text() {
                Some(text) if vendor.envelope.is_some() => self.gather.bare(CONTENT, text),
                _ => self.make(message, index, content, path),
            },
            Form::Within => {
                let answers = content.as_tool_result().map(ToolResult::call);
                if answers.is_none() || answers != self.hybrid.as_ref() {
                    self.make(message, index, content, path);
                }
            }
        }
    }

    /// The item of a content that came from this format.
    fn item(
        &mut self,
        content: &Content,
        item: &RawJson,
        next: Option<&Content>,
        path: &Path<'_>,
    ) -> String {
        let mut out = String::with_capacity(item.get().len());
        match &content.body {
            Body::ToolCall(call) => {
                // The result that stands in the same item, if it is still there.
                let within = next.filter(|next| {
                    let form = next.vendor.as_ref().map(|vendor| &vendor.form);
                    form == Some(&Form::Within)
                });
                let result = within
                    .and_then(Content::as_tool_result)
                    .filter(|result| *result.call() == call.call);
                self.hybrid = result.map(|result| result.call().clone());
                self.call(&mut out, item, &call.arguments, result, path);
            }
            Body::ApprovalRequest(request) => {
                self.call(&mut out, item, &request.arguments, None, path);
            }
            Body::ToolResult(result) => {
                self.call(&mut out, item, &Arguments::None, Some(result), path);
            }
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Media(_)
            | Body::ApprovalResponse(_)
            | Body::Refusal(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => out.push_str(item.get()),
        }
        out
    }

    /// Fill arguments and output back into an item.
    fn call(
        &mut self,
        out: &mut String,
        item: &RawJson,
        arguments: &Arguments,
        result: Option<&ToolResult>,
        path: &Path<'_>,
    ) {
        let tag = item
            .locate(&["type"])
            .and_then(|at| json::parse(&item.get()[at]).ok()?.as_str());
        let Some(row) = tag.and_then(|tag| self.dialect.row(&tag)) else {
            out.push_str(item.get());
            return;
        };
        let mut fills: Vec<([&str; 1], Fill<'_>)> = Vec::new();
        match (&row.arguments, arguments) {
            (ArgumentsAt::Text(key), Arguments::Text(text))
            | (ArgumentsAt::Free(key), Arguments::Free(text)) => {
                fills.push(([*key], Fill::Text(text)));
            }
            (ArgumentsAt::Json(keys), Arguments::Json(json)) => {
                let hollow = keys.iter().find(|key| item.locate(&[key]).is_some());
                if let Some(key) = hollow {
                    fills.push(([*key], Fill::Json(json.get())));
                }
            }
            _ => {}
        }
        let mut elements = String::new();
        let place = match row.output {
            OutputAt::Any(key)
            | OutputAt::TextOrJson(key)
            | OutputAt::Json(key)
            | OutputAt::Image(key) => Some(key),
            OutputAt::Nowhere => None,
        };
        if let (Some(result), Some(key)) = (result, place) {
            match &result.output {
                Output::None => {}
                Output::Text(text) => fills.push(([key], Fill::Text(text))),
                Output::Json(json) => fills.push(([key], Fill::Json(json.get()))),
                Output::Parts(contents) => match (row.output, foreign::data(contents)) {
                    (OutputAt::Image(_), Some(data)) => fills.push(([key], Fill::Text(data))),
                    _ => {
                        let path = path.key("output");
                        let wire = &self.dialect.wire;
                        parts::encode_all(&mut elements, contents, wire, &path, self.losses);
                        fills.push(([key], Fill::Elements(&elements)));
                    }
                },
            }
        }
        fill(out, item, &fills);
    }

    /// Say a content that came from elsewhere.
    fn make(&mut self, message: &Message, index: usize, content: &Content, path: &Path<'_>) {
        foreign::note_lone_surrogates(content, path, self.losses);
        match &content.body {
            Body::Text(_) | Body::Refusal(_) | Body::Media(_) | Body::Error(_) => {
                foreign::note_vendor_fields(content, path, self.losses);
                let mut part = String::new();
                parts::make(&mut part, content, &role(message), path, self.losses);
                if part.is_empty() {
                    return;
                }
                self.gather.open_for(index, || envelope(&message.role));
                self.gather.own_element(CONTENT, part);
            }
            Body::ToolCall(call) => self.make_call(call, path),
            Body::ToolResult(result) => self.make_result(result, path),
            Body::ApprovalRequest(_) | Body::ApprovalResponse(_) => self.losses.note(
                path,
                LossKind::Approval,
                "approvals are control data of the vendor that asked",
            ),
            Body::Reasoning(_) => self.losses.note(
                path,
                LossKind::Reasoning,
                "reasoning goes back only to the vendor that made it",
            ),
            Body::Opaque(opaque) => self.losses.note(
                path,
                LossKind::VendorItem,
                format!("{} means nothing here", opaque.tag),
            ),
            Body::Unknown(_) => {
                self.losses
                    .note(path, LossKind::VendorItem, "unknown kind of content");
            }
        }
    }

    fn make_call(&mut self, call: &ToolCall, path: &Path<'_>) {
        if call.runner == Runner::Vendor {
            let detail = format!("{} call was run by another vendor", call.family);
            self.losses.note(path, LossKind::HostedTool, detail);
            return;
        }
        let id = foreign::short_id(call.call.value(), ID_LENGTH);
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        if let (true, Arguments::Free(text)) = (call.family == Family::CUSTOM, &call.arguments) {
            object
                .str("type", "custom_tool_call")
                .str("call_id", &id)
                .str("name", foreign::name(call))
                .str("input", text);
        } else {
            object
                .str("type", "function_call")
                .str("call_id", &id)
                .str("name", foreign::name(call))
                .str("arguments", &foreign::arguments_text(&call.arguments));
            if call.family != Family::FUNCTION {
                let detail = format!("{} call becomes a function call", call.family);
                self.losses.note(path, LossKind::HostedTool, detail);
            }
        }
        object.end();
        self.gather.item(out);
    }

    fn make_result(&mut self, result: &ToolResult, path: &Path<'_>) {
        if result.runner == Runner::Vendor {
            let detail = format!("{} result was made by another vendor", result.family);
            self.losses.note(path, LossKind::HostedTool, detail);
            return;
        }
        if result.outcome == Outcome::Error {
            self.losses
                .note(path, LossKind::Outcome, "there is no failure mark here");
        }
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        let custom = result.family == Family::CUSTOM;
        object.str(
            "type",
            if custom {
                "custom_tool_call_output"
            } else {
                "function_call_output"
            },
        );
        match (result.pairing(), custom) {
            (Pairing::Answers, _) | (Pairing::Standalone, true) => {
                let id = foreign::short_id(result.call().value(), ID_LENGTH);
                object.str("call_id", &id);
            }
            (Pairing::Standalone, false) => {
                object.raw("call_id", "null");
                if let Some(name) = &result.name {
                    object.str("name", name);
                }
            }
        }
        match &result.output {
            Output::Parts(contents) => {
                let mut elements = String::new();
                let path = path.key("output");
                parts::encode_all(
                    &mut elements,
                    contents,
                    &self.dialect.wire,
                    &path,
                    self.losses,
                );
                object.raw("output", &format!("[{elements}]"));
            }
            Output::None => {
                object.str("output", "");
            }
            Output::Text(text) => {
                object.str("output", text);
            }
            Output::Json(json) => {
                object.str("output", json.get());
            }
        }
        object.end();
        self.gather.item(out);
    }
}

/// The role under which a message is written; tools speak through items, not messages.
fn role(message: &Message) -> Role {
    match &message.role {
        Role::Tool => Role::User,
        role => role.clone(),
    }
}

/// A message of ours, hollow.
fn envelope(role: &Role) -> RawJson {
    let role = match role {
        Role::Tool => "user",
        role => role.as_str(),
    };
    RawJson::object(|object| {
        object
            .str("type", "message")
            .str("role", role)
            .raw("content", "[]");
    })
}

/// Write a request body.
pub(crate) fn request(dialect: &Dialect, request: &Request, losses: &mut Losses) -> String {
    let own = request
        .vendor
        .as_ref()
        .filter(|vendor| vendor.wire == dialect.wire);
    let mut out = String::new();
    if let Some(Form::Item(body)) = own.map(|vendor| &vendor.form) {
        let system: String = request.system.iter().filter_map(Content::as_text).collect();
        let elements;
        let input = match bare_input(request) {
            Some(text) => Fill::Text(text),
            // A body without input, as some prompts have, stays without.
            None if request.messages.is_empty() => Fill::Elements(""),
            None => {
                elements = array(&items(dialect, &request.messages, losses));
                Fill::Replace(&elements)
            }
        };
        fill(
            &mut out,
            body,
            &[
                (&["instructions"], Fill::Text(&system)),
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
    let tools = foreign::function_tools(request, losses);
    if !tools.is_empty() {
        let mut array = ArrayWriter::new(object.key("tools"));
        for tool in tools {
            let mut object = ObjectWriter::new(array.slot());
            object.str("type", "function").str("name", &tool.name);
            if let Some(description) = &tool.description {
                object.str("description", description);
            }
            let parameters = tool.parameters.as_ref().map_or("{}", RawJson::get);
            object.raw("parameters", parameters).bool("strict", false);
            object.end();
        }
        array.end();
    }
    object.end();
    out
}

/// Write a response body.
pub(crate) fn response(dialect: &Dialect, response: &Response, losses: &mut Losses) -> String {
    let items = items(dialect, &response.messages, losses);
    let mut out = String::new();
    let own = response
        .vendor
        .as_ref()
        .filter(|vendor| vendor.wire == dialect.wire);
    if let Some(Form::Item(body)) = own.map(|vendor| &vendor.form) {
        fill(&mut out, body, &[(&["output"], Fill::List(&items))]);
        return out;
    }
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", response.id.as_deref().unwrap_or("resp_0"))
        .str("object", "response")
        .number("created_at", 0);
    let (status, reason) = status(&response.stop);
    object.str("status", status);
    match &response.error {
        Some(found) => {
            let mut error = ObjectWriter::new(object.key("error"));
            error
                .str("code", found.code.as_deref().unwrap_or("server_error"))
                .str("message", &found.message);
            error.end();
        }
        None => {
            object.raw("error", "null");
        }
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
    object.str("model", response.model.as_deref().unwrap_or("unknown"));
    object.raw("output", &array(&items));
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
    object.number("total_tokens", usage.total.unwrap_or(input + output));
    object.end();
}

/// Write `{"error": {…}}`.
pub(crate) fn error(dialect: &Dialect, error: &VendorError) -> String {
    if error.wire == dialect.wire
        && let Some(body) = &error.body
    {
        return match body.value().get("error") {
            Some(_) => body.get().to_owned(),
            None => format!("{{\"error\":{}}}", body.get()),
        };
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut inner = ObjectWriter::new(object.key("error"));
    inner.str("message", &error.message);
    inner.str("type", error.kind.as_deref().unwrap_or("server_error"));
    for (key, value) in [("param", &error.param), ("code", &error.code)] {
        match value {
            Some(value) => inner.str(key, value),
            None => inner.raw(key, "null"),
        };
    }
    inner.end();
    object.end();
    out
}
