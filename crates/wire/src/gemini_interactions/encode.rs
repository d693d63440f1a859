//! Writing steps, request bodies and response bodies.

use std::borrow::Cow;
use std::sync::LazyLock;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, push_string};
use throughline_model::{
    Arguments, Body, Content, Form, Message, Outcome, Output, Pairing, Path, Request, Response,
    Role, ToolCall, ToolResult, Usage, VendorError, Wire,
};

use super::decode::steps_key;
use super::parts;
use super::types::{ARGUMENTS, CONTENT, MODEL_OUTPUT, RESULT, USER_INPUT, status};
use crate::flat::{bare_string, bare_string_input};
use crate::foreign::{self, FunctionTool};
use crate::google::{self, SystemText, arguments_object};
use crate::message_writer::{
    MessageWriter, array, estimated_call_size, estimated_result_size, estimated_size,
};
use crate::native;
use crate::template::{TemplateValue, restore};
use crate::{LossKind, Losses};

/// Writes contents as steps, one after the other.
struct StepEncoder<'e, 'm> {
    losses: &'e mut Losses,
    writer: MessageWriter<'m>,
    /// The message that opened the open step: a step never holds contents of two messages.
    last: Option<usize>,
    system: SystemText,
    encode_for: EncodeFor,
}

/// What the steps belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncodeFor {
    /// To a history.
    History,
    /// To a response, which has contents of the model only.
    Response,
}

/// Write messages as steps, each as JSON text.
pub(super) fn steps(messages: &[Message], losses: &mut Losses) -> Vec<String> {
    encode(messages, EncodeFor::History, SystemText::Lost, losses).0
}

/// The same; system text that stands among the messages comes back apart.
fn encode(
    messages: &[Message],
    encode_for: EncodeFor,
    system: SystemText,
    losses: &mut Losses,
) -> (Vec<String>, SystemText) {
    let mut encoder = StepEncoder {
        losses,
        writer: MessageWriter::default(),
        last: None,
        system,
        encode_for,
    };
    let root = Path::Root.key("messages");
    for (index, message) in messages.iter().enumerate() {
        let path = root.index(index);
        if message.contents.is_empty() {
            encoder
                .losses
                .note(&path, LossKind::EmptyMessage, "the message says nothing");
        }
        let path = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            encoder.content(message, index, content, &path.index(place));
        }
    }
    (encoder.writer.finish(), encoder.system)
}

impl<'m> StepEncoder<'_, 'm> {
    fn content(&mut self, message: &Message, index: usize, content: &'m Content, path: &Path<'_>) {
        let Some(vendor) = native::vendor(content, &Wire::GeminiInteractions) else {
            return self.translate(message, index, content, path);
        };
        if let Some(envelope) = &vendor.envelope {
            self.writer.open(envelope);
            self.last = Some(index);
        }
        match &vendor.form {
            Form::Item(item) => {
                let mut text = String::new();
                self.item(&mut text, &content.body, item, path);
                self.writer.item(text);
                self.last = None;
            }
            Form::Part(part) => {
                self.add_part(message, index, estimated_size(content), |out| {
                    parts::encode(out, &content.body, part);
                });
            }
            Form::Bare => match content.as_text() {
                Some(text) if vendor.envelope.is_some() => self.writer.bare_string(CONTENT, text),
                _ => self.translate(message, index, content, path),
            },
            Form::Within => self.translate(message, index, content, path),
        }
    }

    /// Add a part to the step that the message has opened, or open one for it.
    fn add_part(
        &mut self,
        message: &Message,
        index: usize,
        room: usize,
        part: impl FnOnce(&mut String),
    ) {
        if !(self.writer.is_open() && self.last == Some(index)) {
            self.writer.close();
            self.writer
                .open_for(index, || Cow::Borrowed(envelope(&message.role)));
            self.last = Some(index);
        }
        self.writer.write_element(CONTENT, room, part);
    }

    /// The step of a content that came from this format.
    fn item(&mut self, out: &mut String, body: &Body, item: &RawJson, path: &Path<'_>) {
        match body {
            Body::ToolCall(call) => match &call.arguments {
                Arguments::Json(json) => {
                    restore(
                        out,
                        item,
                        &[(&[ARGUMENTS], TemplateValue::Json(json.get()))],
                    );
                }
                Arguments::None => out.push_str(item.get()),
                Arguments::Text(text) if is_text(item, ARGUMENTS) => {
                    restore(out, item, &[(&[ARGUMENTS], TemplateValue::Text(text))]);
                }
                // A stream that was cut leaves text where an object was.
                Arguments::Text(_) | Arguments::Free(_) => {
                    let arguments = arguments_object(&call.arguments, path, self.losses);
                    restore(
                        out,
                        item,
                        &[(&[ARGUMENTS], TemplateValue::Json(&arguments))],
                    );
                }
            },
            Body::ToolResult(result) => match &result.output {
                Output::None => out.push_str(item.get()),
                Output::Text(text) if is_text(item, RESULT) => {
                    restore(out, item, &[(&[RESULT], TemplateValue::Text(text))]);
                }
                // A shortened result may have text in place of JSON.
                Output::Text(text) => {
                    let mut quoted = String::new();
                    push_string(&mut quoted, text);
                    restore(out, item, &[(&[RESULT], TemplateValue::Replace(&quoted))]);
                }
                Output::Json(json) => {
                    restore(out, item, &[(&[RESULT], TemplateValue::Json(json.get()))]);
                }
                Output::Parts(contents) => {
                    let mut elements = String::new();
                    parts::encode_all(&mut elements, contents, &path.key("output"), self.losses);
                    restore(
                        out,
                        item,
                        &[(&[RESULT], TemplateValue::Elements(&elements))],
                    );
                }
            },
            Body::Text(_) | Body::Media(_) => parts::encode(out, body, item),
            Body::Reasoning(_)
            | Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Refusal(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => out.push_str(item.get()),
        }
    }

    /// Write a content of another vendor.
    fn translate(&mut self, message: &Message, index: usize, content: &Content, path: &Path<'_>) {
        foreign::note_lone_surrogates(content, path, self.losses);
        match &message.role {
            Role::System | Role::Developer => {
                return self.system.take(content, path, self.losses);
            }
            Role::Other(word) => {
                let detail = format!("{word} speaks as the user");
                self.losses.note(path, LossKind::Role, detail);
            }
            Role::User | Role::Assistant | Role::Tool => {}
        }
        match &content.body {
            Body::Text(_) | Body::Refusal(_) | Body::Media(_) | Body::Error(_) => {
                let mut part = String::with_capacity(estimated_size(content));
                parts::translate(&mut part, content, path, self.losses);
                if !part.is_empty() {
                    self.add_part(message, index, part.len(), |out| out.push_str(&part));
                }
            }
            Body::ToolCall(call) => self.translate_call(call, path),
            Body::ToolResult(result) => self.translate_result(result, path),
            Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Reasoning(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => foreign::note_vendor_only(&content.body, path, self.losses),
        }
    }

    fn translate_call(&mut self, call: &ToolCall, path: &Path<'_>) {
        if foreign::is_hosted_call(call, path, self.losses) {
            return;
        }
        foreign::note_becomes_function(call, path, self.losses);
        let arguments = arguments_object(&call.arguments, path, self.losses);
        let mut out = String::with_capacity(estimated_call_size(call));
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("type", "function_call")
            .str("id", call.call.value())
            .str("name", foreign::tool_name(call))
            .raw(ARGUMENTS, &arguments);
        object.end();
        self.writer.item(out);
        self.last = None;
    }

    fn translate_result(&mut self, result: &ToolResult, path: &Path<'_>) {
        if foreign::is_hosted_result(result, path, self.losses) {
            return;
        }
        if self.encode_for == EncodeFor::Response {
            let detail = "results of the application come in requests only";
            self.losses.note(path, LossKind::StandaloneResult, detail);
            return;
        }
        if result.pairing() == Pairing::Standalone {
            let detail = "it is written as an answer, but no call asked for it";
            self.losses.note(path, LossKind::StandaloneResult, detail);
        }
        let mut out = String::with_capacity(estimated_result_size(result));
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("type", "function_result")
            .str("call_id", result.call().value());
        if let Some(name) = &result.name {
            object.str("name", name);
        }
        match &result.output {
            Output::None => {
                object.str(RESULT, "");
            }
            Output::Text(text) => {
                object.str(RESULT, text);
            }
            // Only objects go as they are; a list would be taken for contents.
            Output::Json(json) if json.value().as_object().is_some() => {
                object.raw(
                    RESULT,
                    &foreign::without_lone_surrogates(json, path, self.losses),
                );
            }
            Output::Json(json) => {
                object.str(RESULT, json.get());
            }
            Output::Parts(contents) => {
                let mut elements = String::new();
                parts::encode_all(&mut elements, contents, &path.key("output"), self.losses);
                object.raw(RESULT, &format!("[{elements}]"));
            }
        }
        if result.outcome != Outcome::Ok {
            object.bool("is_error", true);
        }
        object.end();
        self.writer.item(out);
        self.last = None;
    }
}

/// Whether a member is a string.
fn is_text(item: &RawJson, key: &str) -> bool {
    let found = item.locate(&[key]).map(|at| &item.get()[at]);
    found.is_some_and(|found| found.starts_with('"'))
}

/// An empty step, as a template.
fn envelope(role: &Role) -> &'static RawJson {
    static MODEL: LazyLock<RawJson> = LazyLock::new(|| empty_step(MODEL_OUTPUT));
    static USER: LazyLock<RawJson> = LazyLock::new(|| empty_step(USER_INPUT));
    match role {
        Role::Assistant => &MODEL,
        Role::System | Role::Developer | Role::User | Role::Tool | Role::Other(_) => &USER,
    }
}

fn empty_step(tag: &str) -> RawJson {
    RawJson::object(|object| {
        object.str("type", tag).raw(CONTENT, "[]");
    })
}

/// Write a request body.
pub(super) fn request(request: &Request, losses: &mut Losses) -> String {
    if let Some(body) = native::body(request.vendor.as_ref(), &Wire::GeminiInteractions) {
        return encode_native_request(request, body, losses);
    }
    foreign::note_request_keys(request, losses);
    let lifted = SystemText::Lifted(Vec::new());
    let (items, lifted) = encode(&request.messages, EncodeFor::History, lifted, losses);
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let system = system(request, &lifted, losses);
    if !system.is_empty() {
        object.str("system_instruction", &system);
    }
    object.raw("input", &array(&items));
    foreign::write_tools(&mut object, &request.tools, functions, losses);
    object.end();
    out
}

/// Functions on offer, as an array.
pub(crate) fn functions(out: &mut String, tools: &[FunctionTool<'_>], losses: &mut Losses) {
    let root = Path::Root.key("tools");
    let mut list = ArrayWriter::new(out);
    for FunctionTool { index, tool } in tools {
        let path = root.index(*index);
        let mut object = ObjectWriter::new(list.slot());
        object.str("type", "function").str("name", &tool.name);
        if let Some(description) = &tool.description {
            object.str("description", description);
        }
        if let Some(parameters) = &tool.parameters {
            let schema = foreign::without_lone_surrogates(parameters, &path, losses);
            object.raw("parameters", &schema);
        }
        object.end();
    }
    list.end();
}

/// System text, joined with what stood among the messages.
fn system(request: &Request, lifted: &SystemText, losses: &mut Losses) -> String {
    let mut texts = vec![foreign::system_text(&request.system, losses)];
    if let SystemText::Lifted(lifted) = lifted {
        texts.extend(lifted.iter().cloned());
    }
    texts.retain(|text| !text.is_empty());
    texts.join("\n\n")
}

/// Put input and system text back into a body that came from this format.
fn encode_native_request(request: &Request, body: &RawJson, losses: &mut Losses) -> String {
    let value = body.value();
    let plain = bare_string_input(request);
    let (input, lifted) = google::native_input(value.get("input"), plain, |system| {
        encode(&request.messages, EncodeFor::History, system, losses)
    });
    let untouched = match request.system.as_slice() {
        [] => lifted.is_empty(),
        [only] => {
            let place = value.get("system_instruction");
            let is_text = place.is_some_and(|place| place.as_text().is_some());
            is_text && bare_string(only).is_some() && lifted.is_empty()
        }
        _ => false,
    };
    let system = system(request, &lifted, losses);
    let mut quoted = String::new();
    push_string(&mut quoted, &system);
    let system = match untouched {
        true => TemplateValue::Text(&system),
        false => TemplateValue::Replace(&quoted),
    };
    let mut fills: Vec<(&[&str], TemplateValue<'_>)> = vec![(&["system_instruction"], system)];
    match (&input, plain) {
        (Some(text), _) => fills.push((&["input"], TemplateValue::Replace(text))),
        (None, Some(text)) => fills.push((&["input"], TemplateValue::Text(text))),
        (None, None) => {}
    }
    let mut out = String::new();
    restore(&mut out, body, &fills);
    out
}

/// Write a response body.
pub(super) fn response(response: &Response, losses: &mut Losses) -> String {
    let items = response_steps(response, losses);
    let Some(body) = native::body(response.vendor.as_ref(), &Wire::GeminiInteractions) else {
        return build_body(response, &items, response.error.as_ref());
    };
    let key = steps_key(&body.value());
    let list = array(&items);
    let steps = match items.is_empty() {
        true => TemplateValue::Elements(""),
        false => TemplateValue::Replace(&list),
    };
    let mut out = String::new();
    restore(&mut out, body, &[([key], steps)]);
    out
}

/// The body of another vendor's response up to its failure, if there is one, and the error.
pub(super) fn failed_response<'r>(
    response: &'r Response,
    losses: &mut Losses,
) -> Option<(Option<String>, &'r VendorError)> {
    let error = response.error.as_ref()?;
    if native::body(response.vendor.as_ref(), &Wire::GeminiInteractions).is_some() {
        return None;
    }
    let items = response_steps(response, losses);
    let known = response.id.is_some() || response.model.is_some() || response.usage.is_some();
    let body = (known || !items.is_empty()).then(|| build_body(response, &items, None));
    Some((body, error))
}

/// The steps of a response.
fn response_steps(response: &Response, losses: &mut Losses) -> Vec<String> {
    let messages = &response.messages;
    encode(messages, EncodeFor::Response, SystemText::Lost, losses).0
}

/// The body of a response of another vendor.
fn build_body(response: &Response, items: &[String], error: Option<&VendorError>) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", response.id.as_deref().unwrap_or("interaction_0"))
        .str("status", status(&response.stop));
    if let Some(model) = &response.model {
        object.str("model", model);
    }
    object.raw("steps", &array(items));
    if let Some(found) = &response.usage {
        usage(object.key("usage"), found);
    }
    if let Some(error) = error {
        let mut list = ArrayWriter::new(object.key("errors"));
        push_error(list.slot(), error);
        list.end();
    }
    object.end();
    out
}

/// Append the error of an interaction.
pub(super) fn push_error(out: &mut String, error: &VendorError) {
    let own = error.wire == Wire::GeminiInteractions;
    if let Some(body) = error.body.as_ref().filter(|_| own) {
        let inner = body.locate(&["error"]).unwrap_or(0..body.get().len());
        out.push_str(&body.get()[inner]);
        return;
    }
    let mut inner = ObjectWriter::new(out);
    if let Some(code) = error.code.as_ref().or(error.kind.as_ref()) {
        inner.str("code", code);
    }
    inner.str("message", &error.message);
    inner.end();
}

fn usage(out: &mut String, usage: &Usage) {
    let mut object = ObjectWriter::new(out);
    let output = usage
        .output
        .map(|output| output.saturating_sub(usage.reasoning.unwrap_or(0)));
    for (key, value) in [
        ("total_input_tokens", usage.input),
        ("total_cached_tokens", usage.cache_read),
        ("total_output_tokens", output),
        ("total_thought_tokens", usage.reasoning),
        ("total_tokens", usage.total),
    ] {
        if let Some(value) = value {
            object.number(key, value);
        }
    }
    object.end();
}
