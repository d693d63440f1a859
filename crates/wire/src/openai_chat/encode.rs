//! Writing messages.

use std::collections::HashMap;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson};
use throughline_model::{
    Arguments, Body, Content, Family, Form, IdField, IdFields, Message, Outcome, Output, Pairing,
    Path, Role, Text, ToolCall, ToolResult,
};

use super::message_builder::{self, ASSISTANT, EncodeFor, MessageBuilder, is_name};
use super::{WIRE, parts};
use crate::foreign;
use crate::message_writer::{
    MessageWriter, estimated_call_size, estimated_result_size, estimated_size,
};
use crate::native;
use crate::template::{TemplateValue, restore};
use crate::{LossKind, Losses};

/// The longest id of a call.
const ID_LENGTH: usize = 40;

/// Writes contents into messages, one after the other.
struct MessageEncoder<'e> {
    losses: &'e mut Losses,
    target: EncodeFor,
    writer: MessageWriter<'e>,
    /// The index of the neutral message whose wire message is open.
    open: Option<usize>,
    /// The message under construction for contents of other vendors.
    builder: Option<MessageBuilder>,
    messages: &'e [Message],
    /// The id fields of the calls that came from this format, by id, once they are asked for.
    id_fields_by_call: Option<HashMap<&'e str, &'e IdFields>>,
}

/// Write messages, each as JSON text.
pub(super) fn messages(messages: &[Message], losses: &mut Losses) -> Vec<String> {
    let mut encoder = MessageEncoder::new(messages, EncodeFor::Request, losses);
    for (index, message) in messages.iter().enumerate() {
        encoder.message(index, message);
    }
    encoder.finish()
}

/// Write the messages of a response, one for each.
pub(super) fn answers(messages: &[Message], target: EncodeFor, losses: &mut Losses) -> Vec<String> {
    let root = Path::Root.key("messages");
    let mut written = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let mut encoder = MessageEncoder::new(messages, target, losses);
        encoder.message(index, message);
        let mut found = encoder.finish().into_iter();
        written.push(
            found
                .next()
                .unwrap_or_else(|| MessageBuilder::nothing().to_owned()),
        );
        if found.next().is_some() {
            let detail = "a response has one message for each alternative";
            losses.note(&root.index(index), LossKind::VendorItem, detail);
        }
    }
    written
}

impl<'e> MessageEncoder<'e> {
    fn new(messages: &'e [Message], target: EncodeFor, losses: &'e mut Losses) -> Self {
        Self {
            losses,
            target,
            writer: MessageWriter::default(),
            open: None,
            builder: None,
            messages,
            id_fields_by_call: None,
        }
    }

    /// The id fields of the call that came from this format under an id.
    fn native_id_fields(&mut self, id: &str) -> Option<&'e IdFields> {
        let own = self.id_fields_by_call.get_or_insert_with(|| {
            let contents = self.messages.iter().flat_map(|message| &message.contents);
            let calls = contents.filter_map(|content| {
                let call = content.as_tool_call()?;
                Some((
                    call.call.value(),
                    &native::vendor(content, &WIRE)?.id_fields,
                ))
            });
            calls.collect()
        });
        own.get(id).copied()
    }

    fn finish(mut self) -> Vec<String> {
        self.flush();
        self.writer.finish()
    }

    fn message(&mut self, index: usize, message: &'e Message) {
        let root = Path::Root.key("messages");
        let path = root.index(index);
        if message.contents.is_empty() {
            let detail = "a message without contents";
            self.losses.note(&path, LossKind::EmptyMessage, detail);
        }
        let path = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            self.content(message, index, content, &path.index(place));
        }
    }

    /// Close the message that was made, if any.
    fn flush(&mut self) {
        if let Some(text) = self
            .builder
            .take()
            .and_then(|builder| builder.write(self.target))
        {
            self.writer.item(text);
        }
    }

    fn item(&mut self, text: String) {
        self.flush();
        self.open = None;
        self.writer.item(text);
    }

    fn content(&mut self, message: &Message, index: usize, content: &'e Content, path: &Path<'_>) {
        if self.target.is_response() && content.as_tool_result().is_some() {
            let detail = "results of the application are no part of a response";
            return self.note(path, LossKind::StandaloneResult, detail);
        }
        let Some(vendor) = native::vendor(content, &WIRE) else {
            return self.translate(message, index, content, path);
        };
        if let Some(envelope) = &vendor.envelope {
            self.flush();
            self.writer.open(envelope);
            self.open = Some(index);
        }
        let is_open = self.open == Some(index);
        match &vendor.form {
            Form::Item(item) => {
                let text = self.native_item(content, item, path);
                self.item(text);
            }
            Form::Part(part) if is_open => {
                let place = match content.body {
                    Body::ToolCall(_) => "tool_calls",
                    _ => "content",
                };
                self.writer
                    .write_element(place, estimated_size(content), |out| {
                        restore_part(out, content, part);
                    });
            }
            Form::Part(part) => {
                let mut text = String::with_capacity(part.get().len());
                restore_part(&mut text, content, part);
                match &content.body {
                    // The message that held it is gone, its text is not.
                    Body::Text(_) | Body::Refusal(_) => {
                        self.translate(message, index, content, path);
                    }
                    Body::ToolCall(_) => self.push_call(message, index, text, path),
                    _ => self.builder(message, index).part(text),
                }
            }
            Form::Bare => match content.as_text() {
                Some(text) if is_open => self.writer.bare_string("content", text),
                _ => self.translate(message, index, content, path),
            },
            Form::Within if is_open => {}
            Form::Within => self.translate(message, index, content, path),
        }
    }

    /// A message of its own that came from this format.
    fn native_item(&mut self, content: &Content, item: &RawJson, path: &Path<'_>) -> String {
        let Some(result) = content.as_tool_result() else {
            return item.get().to_owned();
        };
        let mut elements = String::new();
        let output = match &result.output {
            Output::None => return item.get().to_owned(),
            Output::Text(text) => TemplateValue::Text(text),
            Output::Json(json) => TemplateValue::Json(json.get()),
            Output::Parts(contents) => {
                for part in self.text_parts(contents, path) {
                    if !elements.is_empty() {
                        elements.push(',');
                    }
                    elements.push_str(&part);
                }
                TemplateValue::Elements(&elements)
            }
        };
        let mut out = String::new();
        restore(&mut out, item, &[(&["content"], output)]);
        out
    }

    /// The message under construction for contents of other vendors.
    fn builder(&mut self, message: &Message, index: usize) -> &mut MessageBuilder {
        let role = if self.target.is_response() {
            ASSISTANT
        } else {
            message_builder::role(&message.role)
        };
        self.builder_as(message, index, role)
    }

    fn builder_as(
        &mut self,
        message: &Message,
        index: usize,
        role: &'static str,
    ) -> &mut MessageBuilder {
        let begun = self.builder.as_ref();
        if begun.is_none_or(|builder| builder.index != index || builder.role != role) {
            let again = begun.is_some_and(|builder| builder.index == index);
            self.flush();
            self.writer.close();
            self.open = None;
            if !again {
                self.note_speaker(message, index);
            }
        }
        self.builder
            .get_or_insert_with(|| MessageBuilder::new(message, index, role))
    }

    /// Note what of the role and the name cannot be written.
    fn note_speaker(&mut self, message: &Message, index: usize) {
        let root = Path::Root.key("messages");
        let path = root.index(index);
        if let (Role::Other(word), false) = (&message.role, self.target.is_response()) {
            let detail = format!("{word} becomes user");
            self.losses.note(&path, LossKind::Role, detail);
        }
        if let Some(name) = message.author.as_deref().filter(|name| !is_name(name)) {
            let detail = format!("the name {name:?} cannot be written here");
            self.losses.note(&path, LossKind::VendorFields, detail);
        }
    }

    /// Write a content of another vendor.
    fn translate(&mut self, message: &Message, index: usize, content: &Content, path: &Path<'_>) {
        foreign::note_lone_surrogates(content, path, self.losses);
        let by_model = message.role == Role::Assistant || self.target.is_response();
        if matches!(
            content.body,
            Body::Text(_) | Body::Refusal(_) | Body::Media(_) | Body::Error(_)
        ) {
            foreign::note_vendor_fields(content, path, self.losses);
            foreign::note_transcript(content, path, self.losses);
        }
        match &content.body {
            Body::Text(text) => self.translate_text(message, index, text, path),
            Body::Refusal(text) if by_model => self.builder(message, index).refusal(&text.text),
            Body::Refusal(text) => {
                self.note(path, LossKind::Marking, "refusal becomes plain text");
                self.translate_text(message, index, text, path);
            }
            Body::Error(fault) => {
                self.note(path, LossKind::Marking, "error becomes plain text");
                self.builder(message, index).text(&fault.message);
            }
            Body::Media(media) => {
                let asked = matches!(message.role, Role::User | Role::Tool | Role::Other(_));
                if !asked || self.target.is_response() {
                    return self.note(path, LossKind::Media, "only users send media here");
                }
                if let Some(part) = parts::translate_media(content, media, path, self.losses) {
                    self.builder(message, index).part(part);
                }
            }
            Body::ToolCall(call) => self.translate_call(message, index, call, path),
            Body::ToolResult(result) => self.translate_result(result, path),
            Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Reasoning(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => foreign::note_vendor_only(&content.body, path, self.losses),
        }
    }

    fn note(&mut self, path: &Path<'_>, kind: LossKind, detail: &'static str) {
        self.losses.note(path, kind, detail);
    }

    fn translate_text(&mut self, message: &Message, index: usize, text: &Text, path: &Path<'_>) {
        if !text.citations.is_empty() {
            if self.target != EncodeFor::Response {
                self.note(path, LossKind::Citations, "only whole answers cite here");
            } else if text.citations.iter().any(|citation| citation.url.is_none()) {
                self.note(path, LossKind::Citations, "only addresses can be cited");
            }
        }
        let builder = self.builder(message, index);
        builder.cite(&text.citations);
        builder.text(&text.text);
    }

    fn translate_call(
        &mut self,
        message: &Message,
        index: usize,
        call: &ToolCall,
        path: &Path<'_>,
    ) {
        if foreign::is_hosted_call(call, path, self.losses) {
            return;
        }
        let mut out = String::with_capacity(estimated_call_size(call));
        let mut object = ObjectWriter::new(&mut out);
        object.str("id", &foreign::fit_id(call.call.value(), ID_LENGTH));
        if let (true, Arguments::Free(text)) = (call.family == Family::CUSTOM, &call.arguments) {
            object.str("type", "custom");
            let mut inner = ObjectWriter::new(object.key("custom"));
            inner
                .str("name", foreign::tool_name(call))
                .str("input", text);
            inner.end();
        } else {
            object.str("type", "function");
            let mut inner = ObjectWriter::new(object.key("function"));
            inner
                .str("name", foreign::tool_name(call))
                .str("arguments", &foreign::arguments_text(&call.arguments));
            inner.end();
            foreign::note_becomes_function(call, path, self.losses);
        }
        object.end();
        self.push_call(message, index, out, path);
    }

    /// Calls stand in messages of the model only; one from another message gets its own.
    fn push_call(&mut self, message: &Message, index: usize, call: String, path: &Path<'_>) {
        if message.role != Role::Assistant && !self.target.is_response() {
            self.note(path, LossKind::Role, "only the model calls tools here");
        }
        self.builder_as(message, index, ASSISTANT).calls.push(call);
    }

    fn translate_result(&mut self, result: &ToolResult, path: &Path<'_>) {
        if foreign::is_hosted_result(result, path, self.losses) {
            return;
        }
        if result.pairing() == Pairing::Standalone {
            let detail = "every result answers a call here";
            return self.note(path, LossKind::StandaloneResult, detail);
        }
        if result.outcome != Outcome::Ok {
            let detail = format!("{} has no mark here", result.outcome.as_str());
            self.losses.note(path, LossKind::Outcome, detail);
        }
        let id = result.call().value();
        let mut out = String::with_capacity(estimated_result_size(result));
        let mut object = ObjectWriter::new(&mut out);
        match self.native_id_fields(id).map(|id_fields| &id_fields.call) {
            // The call was made the old way.
            Some(IdField::NoField) => {
                object
                    .str("role", "function")
                    .str("name", result.name.as_deref().unwrap_or_default());
            }
            // The call stands there with the id it came with, or without one.
            Some(IdField::Missing) => {
                object.str("role", "tool");
            }
            Some(IdField::Null) => {
                object.str("role", "tool").raw("tool_call_id", "null");
            }
            Some(IdField::Set(id)) => {
                object.str("role", "tool").str("tool_call_id", id);
            }
            None => {
                let id = foreign::fit_id(id, ID_LENGTH);
                object.str("role", "tool").str("tool_call_id", &id);
            }
        }
        match &result.output {
            Output::None => {
                object.str("content", "");
            }
            Output::Text(text) => {
                object.str("content", text);
            }
            Output::Json(json) => {
                object.str("content", json.get());
            }
            Output::Parts(contents) => match contents.as_slice() {
                [part] if part.as_text().is_some() && native::part(part, &WIRE).is_none() => {
                    object.str("content", part.as_text().unwrap_or_default());
                }
                contents => {
                    let texts = self.text_parts(contents, path);
                    if texts.is_empty() {
                        object.str("content", "");
                    } else {
                        let mut array = ArrayWriter::new(object.key("content"));
                        for text in texts {
                            array.raw(&text);
                        }
                        array.end();
                    }
                }
            },
        }
        object.end();
        self.item(out);
    }

    /// The parts of a tool's output. Its own come back as they were; of the others only text can be
    /// written.
    fn text_parts(&mut self, contents: &[Content], path: &Path<'_>) -> Vec<String> {
        let path = path.key("output");
        let mut texts = Vec::with_capacity(contents.len());
        for (index, part) in contents.iter().enumerate() {
            let mut out = String::new();
            let path = path.index(index);
            match (native::part(part, &WIRE), &part.body) {
                (Some(own), body) => parts::encode(&mut out, body, own),
                (None, Body::Text(text)) => {
                    foreign::note_vendor_fields(part, &path, self.losses);
                    foreign::note_transcript(part, &path, self.losses);
                    foreign::note_lone_surrogates(part, &path, self.losses);
                    parts::write_text(&mut out, &text.text);
                }
                (None, Body::Media(_)) => {
                    self.note(&path, LossKind::Media, "results are text only here");
                    continue;
                }
                (None, _) => {
                    self.note(&path, LossKind::VendorItem, "results are text only here");
                    continue;
                }
            }
            texts.push(out);
        }
        texts
    }
}

/// Append an element of a message that came from this format.
fn restore_part(out: &mut String, content: &Content, part: &RawJson) {
    let Some(call) = content.as_tool_call() else {
        return parts::encode(out, &content.body, part);
    };
    match &call.arguments {
        Arguments::Text(text) => restore(
            out,
            part,
            &[(&["function", "arguments"], TemplateValue::Text(text))],
        ),
        Arguments::Free(text) => restore(
            out,
            part,
            &[(&["custom", "input"], TemplateValue::Text(text))],
        ),
        Arguments::None | Arguments::Json(_) => out.push_str(part.get()),
    }
}

/// A system message with text that stood outside the messages.
pub(crate) fn system(text: &str) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("role", "system").str("content", text);
    object.end();
    out
}
