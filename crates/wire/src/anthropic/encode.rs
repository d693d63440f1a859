//! Writing messages, response bodies and errors.

use std::borrow::Cow;
use std::sync::LazyLock;

use throughline_model::json::{Node, ObjectWriter, RawJson, Value};
use throughline_model::{
    Arguments, Body, Content, Form, Message, Output, Path, Response, Role, Runner, Stop, ToolCall,
    ToolResult, Usage, VendorError, Wire,
};

use super::translate::{self, Speaker};
use super::types::INPUT;
use super::{CONTENT, parts as part};
use crate::message_writer::{MessageWriter, estimated_size};
use crate::native;
use crate::template::{TemplateValue, restore};
use crate::{LossKind, Losses};

/// The blocks of a content, as JSON texts with commas; empty if it has no form here.
fn blocks(content: &Content, speaker: Speaker, path: &Path<'_>, losses: &mut Losses) -> String {
    match native::vendor(content, &Wire::Anthropic).map(|vendor| &vendor.form) {
        Some(Form::Part(block)) => {
            let mut out = String::new();
            restore_block(&mut out, content, block, path, losses);
            out
        }
        _ => translate::blocks(content, speaker, path, losses),
    }
}

/// Append the blocks of a list of contents.
pub(super) fn parts(
    out: &mut String,
    contents: &[Content],
    speaker: Speaker,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    for (index, content) in contents.iter().enumerate() {
        let text = blocks(content, speaker, &path.index(index), losses);
        if !out.is_empty() && !text.is_empty() {
            out.push(',');
        }
        out.push_str(&text);
    }
}

/// Append the block of a content that came from this format.
fn restore_block(
    out: &mut String,
    content: &Content,
    block: &RawJson,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    match &content.body {
        Body::ToolCall(call) => restore_call(out, call, block),
        Body::ToolResult(result) => restore_result(out, result, block, path, losses),
        body => part::encode(out, body, block),
    }
}

fn restore_call(out: &mut String, call: &ToolCall, block: &RawJson) {
    let input = block.locate(&[INPUT]).map(|at| &block.get()[at]);
    let is_text = input.is_some_and(|input| input.starts_with('"'));
    let made;
    let what = match &call.arguments {
        Arguments::Json(json) if !is_text => TemplateValue::Json(json.get()),
        Arguments::Text(text) if is_text => TemplateValue::Text(text),
        // The arguments were changed since they were read.
        arguments => {
            made = translate::input_object(arguments).0;
            TemplateValue::Replace(made.get())
        }
    };
    restore(out, block, &[(&[INPUT], what)]);
}

fn restore_result(
    out: &mut String,
    result: &ToolResult,
    block: &RawJson,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    let mut elements = String::new();
    let what = match &result.output {
        Output::None => return out.push_str(block.get()),
        Output::Text(text) => TemplateValue::Text(text),
        Output::Json(json) => TemplateValue::Json(json.get()),
        Output::Parts(contents) => {
            let path = path.key("output");
            parts(&mut elements, contents, Speaker::Tool, &path, losses);
            TemplateValue::Elements(&elements)
        }
    };
    restore(out, block, &[(&[CONTENT], what)]);
}

/// Write messages, each as JSON text. The first `start` are left to the caller.
pub(super) fn messages(messages: &[Message], start: usize, losses: &mut Losses) -> Vec<String> {
    let mut encoder = Encoder {
        losses,
        writer: MessageWriter::default(),
        last: None,
    };
    let root = Path::Root.key("messages");
    for (index, message) in messages.iter().enumerate().skip(start) {
        encoder.message(index, message, &root.index(index));
    }
    encoder.writer.finish()
}

struct Encoder<'e, 'm> {
    losses: &'e mut Losses,
    writer: MessageWriter<'m>,
    last: Option<Last>,
}

/// The last thing that was written.
struct Last {
    /// The index of its neutral message.
    index: usize,
    role: Role,
    /// Whether its wire message is a bare string, which takes nothing more.
    bare: bool,
    /// Whether it is a result that the vendor made.
    server_result: bool,
}

impl<'m> Encoder<'_, 'm> {
    fn message(&mut self, index: usize, message: &'m Message, path: &Path<'_>) {
        let lost = self.losses.as_slice().len();
        let contents = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            self.content(index, message, content, &contents.index(place));
        }
        let written = self.last.as_ref().is_some_and(|last| last.index == index);
        if !written && self.losses.as_slice().len() == lost {
            let detail = "there is nothing to say, and empty text is refused";
            self.losses.note(path, LossKind::EmptyMessage, detail);
        }
        if let (true, Role::Other(role)) = (written, &message.role)
            && message
                .contents
                .iter()
                .any(|content| native::vendor(content, &Wire::Anthropic).is_none())
        {
            let detail = format!("{role} becomes user");
            self.losses.note(path, LossKind::Role, detail);
        }
    }

    fn content(&mut self, index: usize, message: &Message, content: &'m Content, path: &Path<'_>) {
        let vendor = native::vendor(content, &Wire::Anthropic);
        let envelope = vendor.and_then(|vendor| vendor.envelope.as_ref());
        match (vendor.map(|vendor| &vendor.form), envelope) {
            (Some(Form::Item(item)), _) => {
                self.writer.item(item.get().to_owned());
                self.remember(index, message, content, ContentForm::Blocks);
            }
            (Some(Form::Part(block)), Some(envelope)) => {
                self.writer.open(envelope);
                self.native_block(index, message, content, block, path);
            }
            (Some(Form::Part(block)), None) => {
                // One wire message may be several neutral ones: results, and text of the user.
                let continues = self.continues(index, |last| {
                    matches!(
                        (last, &message.role),
                        (Role::Tool, Role::User) | (Role::User, Role::Tool)
                    )
                });
                if !continues {
                    self.open_message(index, message);
                }
                self.native_block(index, message, content, block, path);
            }
            (Some(Form::Bare), Some(envelope)) if content.as_text().is_some() => {
                self.writer.open(envelope);
                let text = content.as_text().unwrap_or_default();
                self.writer.bare_string(CONTENT, text);
                self.remember(index, message, content, ContentForm::BareString);
            }
            _ => self.translate(index, message, content, path),
        }
    }

    /// Write a content of another vendor.
    fn translate(&mut self, index: usize, message: &Message, content: &Content, path: &Path<'_>) {
        let speaker = speaker(&message.role);
        let text = translate::blocks(content, speaker, path, self.losses);
        if text.is_empty() {
            return;
        }
        if speaker == Speaker::System && !self.takes_system() {
            let detail = "system text fits only after a user message, or outside the messages";
            return self.losses.note(path, LossKind::SystemText, detail);
        }
        let is_system = |role: &Role| matches!(role, Role::System | Role::Developer);
        let continues = self.continues(index, |last| is_system(last) && is_system(&message.role));
        if !continues {
            self.open_message(index, message);
        }
        self.writer.element(CONTENT, &text);
        self.remember(index, message, content, ContentForm::Blocks);
    }

    /// Whether a system message may stand here: after a user message, or after the result of a
    /// server tool. Neighbouring ones are written as one.
    fn takes_system(&self) -> bool {
        self.last.as_ref().is_some_and(|last| match last.role {
            Role::User | Role::Tool | Role::System | Role::Developer => true,
            Role::Assistant => last.server_result,
            Role::Other(_) => false,
        })
    }

    /// Whether the open wire message takes one more block of a neutral message.
    fn continues(&self, index: usize, across: impl FnOnce(&Role) -> bool) -> bool {
        self.writer.is_open()
            && self
                .last
                .as_ref()
                .is_some_and(|last| !last.bare && (last.index == index || across(&last.role)))
    }

    /// Add the block of a content that came from this format to the open wire message.
    fn native_block(
        &mut self,
        index: usize,
        message: &Message,
        content: &Content,
        block: &RawJson,
        path: &Path<'_>,
    ) {
        let losses = &mut *self.losses;
        self.writer
            .write_element(CONTENT, estimated_size(content), |out| {
                restore_block(out, content, block, path, losses);
            });
        self.remember(index, message, content, ContentForm::Blocks);
    }

    /// Open a wire message of our own.
    fn open_message(&mut self, index: usize, message: &Message) {
        self.writer.close();
        self.writer
            .open_for(index, || Cow::Borrowed(envelope(&message.role)));
    }

    fn remember(&mut self, index: usize, message: &Message, content: &Content, form: ContentForm) {
        let result = content.as_tool_result();
        self.last = Some(Last {
            index,
            role: message.role.clone(),
            bare: form == ContentForm::BareString,
            server_result: result.is_some_and(|result| result.runner == Runner::Vendor),
        });
    }
}

/// The content of a wire message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentForm {
    BareString,
    Blocks,
}

fn speaker(role: &Role) -> Speaker {
    match role {
        Role::Assistant => Speaker::Assistant,
        Role::System | Role::Developer => Speaker::System,
        Role::User | Role::Tool | Role::Other(_) => Speaker::User,
    }
}

/// An empty message, as a template.
fn envelope(role: &Role) -> &'static RawJson {
    static USER: LazyLock<RawJson> = LazyLock::new(|| empty_message(Speaker::User));
    static ASSISTANT: LazyLock<RawJson> = LazyLock::new(|| empty_message(Speaker::Assistant));
    static SYSTEM: LazyLock<RawJson> = LazyLock::new(|| empty_message(Speaker::System));
    match speaker(role) {
        Speaker::User | Speaker::Tool => &USER,
        Speaker::Assistant | Speaker::Response => &ASSISTANT,
        Speaker::System => &SYSTEM,
    }
}

fn empty_message(speaker: Speaker) -> RawJson {
    RawJson::object(|object| {
        object.str("role", speaker.role()).raw(CONTENT, "[]");
    })
}

/// Write a response body.
pub(super) fn response(response: &Response, losses: &mut Losses) -> String {
    if response.error.is_some() {
        let detail = "an error is a body of its own here";
        losses.note(&Path::Root.key("error"), LossKind::Marking, detail);
    }
    message(response, losses)
}

/// The message that a response is; an error does not show in it.
pub(super) fn message(response: &Response, losses: &mut Losses) -> String {
    let root = Path::Root.key("messages");
    let mut elements = String::new();
    let mut contents: &[Content] = &[];
    for (index, message) in response.messages.iter().enumerate() {
        let path = root.index(index);
        if index > 0 {
            losses.note(&path, LossKind::VendorItem, "only one answer fits here");
            continue;
        }
        contents = &message.contents;
        let path = path.key("contents");
        parts(&mut elements, contents, Speaker::Response, &path, losses);
    }
    let mut out = String::new();
    if let Some(body) = native::body(response.vendor.as_ref(), &Wire::Anthropic) {
        let value = body.value();
        let place = value.get(CONTENT).map(Value::node);
        let mut array = String::new();
        match content_value(place, contents, &elements, &mut array) {
            Some(what) => restore(&mut out, body, &[(&[CONTENT], what)]),
            None => out.push_str(body.get()),
        }
        return out;
    }
    let mut object = ObjectWriter::new(&mut out);
    object
        .str("id", response.id.as_deref().unwrap_or("msg_0"))
        .str("type", "message")
        .str("role", "assistant")
        .str("model", response.model.as_deref().unwrap_or("unknown"))
        .raw(CONTENT, &format!("[{elements}]"));
    match stop_reason(&response.stop) {
        Some(reason) => object.str("stop_reason", reason),
        None => object.raw("stop_reason", "null"),
    };
    object.raw("stop_sequence", "null");
    let usage_or_none = response.usage.clone().unwrap_or_default();
    usage(object.key("usage"), &usage_or_none);
    object.end();
    out
}

/// How contents go back into the place of a kept body that held them as a string or as blocks;
/// none if that place is as it should be. `array` lends room for blocks where there was no array.
pub(super) fn content_value<'f>(
    place: Option<&Node<'_>>,
    contents: &'f [Content],
    elements: &'f str,
    array: &'f mut String,
) -> Option<TemplateValue<'f>> {
    let bare = match contents {
        [content]
            if native::vendor(content, &Wire::Anthropic)
                .is_some_and(|vendor| vendor.form == Form::Bare) =>
        {
            content.as_text()
        }
        _ => None,
    };
    match (place, bare) {
        (Some(Node::String(_)), Some(text)) => Some(TemplateValue::Text(text)),
        // The text was removed since it was read.
        (Some(Node::String(_)), None) if contents.is_empty() => {
            Some(TemplateValue::Replace("\"\""))
        }
        (Some(Node::Array(_)), _) => Some(TemplateValue::Elements(elements)),
        // A content that was absent stays absent while there are no contents.
        _ if contents.is_empty() => None,
        _ => {
            *array = format!("[{elements}]");
            Some(TemplateValue::Replace(array))
        }
    }
}

fn stop_reason(stop: &Stop) -> Option<&'static str> {
    match stop {
        Stop::Done | Stop::Other(_) => Some("end_turn"),
        Stop::ToolCalls => Some("tool_use"),
        Stop::Length => Some("max_tokens"),
        Stop::ContentFilter | Stop::Refusal => Some("refusal"),
        Stop::Paused => Some("pause_turn"),
        Stop::Cancelled | Stop::Failed | Stop::InProgress | Stop::Cut => None,
    }
}

/// The vendor counts cached tokens apart from the input.
fn usage(out: &mut String, usage: &Usage) {
    let (read, write) = (usage.cache_read, usage.cache_write);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let mut object = ObjectWriter::new(out);
    object.number(
        "input_tokens",
        usage.input.unwrap_or(0).saturating_sub(cached),
    );
    if let Some(write) = write {
        object.number("cache_creation_input_tokens", write);
    }
    if let Some(read) = read {
        object.number("cache_read_input_tokens", read);
    }
    object.number("output_tokens", usage.output.unwrap_or(0));
    if let Some(reasoning) = usage.reasoning {
        let mut details = ObjectWriter::new(object.key("output_tokens_details"));
        details.number("thinking_tokens", reasoning);
        details.end();
    }
    object.end();
}

/// Write `{"type":"error","error":{…}}`.
pub(super) fn error(error: &VendorError) -> String {
    if error.wire == Wire::Anthropic
        && let Some(body) = &error.body
        && body.value().get("error").is_some()
    {
        return body.get().to_owned();
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("type", "error");
    let mut inner = ObjectWriter::new(object.key("error"));
    inner
        .str("type", error_type(error))
        .str("message", &error.message);
    if let Some(code) = error
        .code
        .as_ref()
        .filter(|_| error.wire == Wire::Anthropic)
    {
        let mut details = ObjectWriter::new(inner.key("details"));
        details.str("error_code", code);
        details.end();
    }
    inner.end();
    object.raw("request_id", "null");
    object.end();
    out
}

/// The vendor's codes are a closed list to its readers, so those of others stay behind.
pub(super) fn note_error_code(error: &VendorError, losses: &mut Losses) {
    if let Some(code) = error
        .code
        .as_ref()
        .filter(|_| error.wire != Wire::Anthropic)
    {
        let path = Path::Root.key("error");
        let detail = format!("code {code} of {}", error.wire);
        losses.note(&path.key("code"), LossKind::VendorFields, detail);
    }
}

/// The vendor's types are a closed list to its readers, so those of others are mapped. Some vendors
/// have in the code what others have in the type.
fn error_type(error: &VendorError) -> &'static str {
    let words = [error.kind.as_deref(), error.code.as_deref()];
    let mut known = words.into_iter().flatten().filter_map(known_error);
    known.next().unwrap_or("api_error")
}

fn known_error(word: &str) -> Option<&'static str> {
    const TYPES: [&str; 9] = [
        "invalid_request_error",
        "authentication_error",
        "billing_error",
        "permission_error",
        "not_found_error",
        "rate_limit_error",
        "timeout_error",
        "overloaded_error",
        "api_error",
    ];
    if let Some(found) = TYPES.into_iter().find(|found| *found == word) {
        return Some(found);
    }
    Some(match word {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => "invalid_request_error",
        "UNAUTHENTICATED" => "authentication_error",
        "PERMISSION_DENIED" => "permission_error",
        "NOT_FOUND" => "not_found_error",
        "RESOURCE_EXHAUSTED" | "rate_limit_exceeded" | "requests" | "tokens" => "rate_limit_error",
        "insufficient_quota" => "billing_error",
        "DEADLINE_EXCEEDED" => "timeout_error",
        "UNAVAILABLE" => "overloaded_error",
        _ => return None,
    })
}
