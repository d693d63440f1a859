//! Writing contents, request bodies and response bodies.

use std::borrow::Cow;
use std::sync::LazyLock;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{
    Body, Content, Form, Message, Path, Request, Response, Role, Runner, VendorError, Wire,
};

use super::decode::SYSTEM;
use super::translate::{KnownCalls, translate};
use super::types::{PARTS, finish_reason};
use super::{parts, response_body};
use crate::flat::{bare_string, bare_string_input};
use crate::foreign::{self, FunctionTool};
use crate::google::{self, SystemText};
use crate::message_writer::{MessageWriter, array, estimated_size};
use crate::native;
use crate::template::{TemplateValue, restore};
use crate::{LossKind, Losses};

/// The side that a content belongs to; contents of different sides are never joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Model,
    User,
}

impl Side {
    fn of(role: &Role) -> Self {
        match role {
            Role::Assistant => Self::Model,
            Role::System | Role::Developer | Role::User | Role::Tool | Role::Other(_) => Self::User,
        }
    }

    /// An empty content, as a template.
    fn envelope(self) -> &'static RawJson {
        static MODEL: LazyLock<RawJson> = LazyLock::new(|| empty_content("model"));
        static USER: LazyLock<RawJson> = LazyLock::new(|| empty_content("user"));
        match self {
            Self::Model => &MODEL,
            Self::User => &USER,
        }
    }
}

fn empty_content(role: &str) -> RawJson {
    RawJson::object(|object| {
        object.str("role", role).raw(PARTS, "[]");
    })
}

/// What the contents belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncodeFor {
    /// To a history.
    History,
    /// To a response, which has contents of the model only.
    Response,
}

/// Writes contents one after the other.
struct ContentEncoder<'e, 'm> {
    losses: &'e mut Losses,
    encode_for: EncodeFor,
    writer: MessageWriter<'m>,
    /// The message that last put something into the open content, and its side.
    last: Option<(usize, Side)>,
    calls: KnownCalls<'m>,
    system: SystemText,
}

/// Write messages as contents, each as JSON text.
pub(super) fn contents(messages: &[Message], losses: &mut Losses) -> Vec<String> {
    encode(messages, SystemText::Lost, losses).0
}

/// The same; system text that stands among the messages comes back apart.
fn encode(
    messages: &[Message],
    system: SystemText,
    losses: &mut Losses,
) -> (Vec<String>, SystemText) {
    let mut encoder = ContentEncoder::new(EncodeFor::History, system, losses);
    for (index, message) in messages.iter().enumerate() {
        encoder.message(index, message);
    }
    (encoder.writer.finish(), encoder.system)
}

impl<'e, 'm> ContentEncoder<'e, 'm> {
    fn new(encode_for: EncodeFor, system: SystemText, losses: &'e mut Losses) -> Self {
        Self {
            losses,
            encode_for,
            writer: MessageWriter::default(),
            last: None,
            calls: KnownCalls::default(),
            system,
        }
    }

    fn message(&mut self, index: usize, message: &'m Message) {
        let root = Path::Root.key("messages");
        let path = root.index(index);
        if message.contents.is_empty() {
            self.losses
                .note(&path, LossKind::EmptyMessage, "the message says nothing");
        }
        let path = path.key("contents");
        for (place, content) in message.contents.iter().enumerate() {
            self.content(message, index, content, &path.index(place));
        }
    }

    fn content(
        &mut self,
        message: &'m Message,
        index: usize,
        content: &'m Content,
        path: &Path<'_>,
    ) {
        self.calls.record(content);
        let Some(vendor) = native::vendor(content, &Wire::Gemini) else {
            return self.translate(message, index, content, path);
        };
        match &vendor.form {
            Form::Item(item) => {
                self.writer.item(item.get().to_owned());
                self.last = None;
            }
            Form::Part(part) => {
                let side = Side::of(&message.role);
                match &vendor.envelope {
                    Some(envelope) => self.writer.open(envelope),
                    None if self.continues(index, side) => {}
                    None => self
                        .writer
                        .open_for(index, || Cow::Borrowed(side.envelope())),
                }
                self.last = Some((index, side));
                self.writer
                    .write_element(PARTS, estimated_size(content), |out| {
                        parts::encode(out, &content.body, part);
                    });
            }
            // A bare string is a member of the request, not of a content.
            Form::Bare | Form::Within => self.translate(message, index, content, path),
        }
    }

    /// Whether a part without an envelope belongs to the open content: one that came from the wire
    /// goes on through several messages of the same side, one that was made here only through its
    /// own.
    fn continues(&self, index: usize, side: Side) -> bool {
        let made_for_other = self
            .writer
            .made_for()
            .is_some_and(|made_for| made_for != index);
        self.writer.is_open() && !made_for_other && self.last.is_some_and(|(_, last)| last == side)
    }

    /// Write a content of another vendor. It joins the content that its message has opened.
    fn translate(&mut self, message: &Message, index: usize, content: &Content, path: &Path<'_>) {
        foreign::note_lone_surrogates(content, path, self.losses);
        if self.encode_for == EncodeFor::Response
            && let Body::ToolResult(result) = &content.body
            && result.runner == Runner::Client
        {
            let detail = "results of the application come in requests only";
            return self.losses.note(path, LossKind::StandaloneResult, detail);
        }
        let mut part = String::with_capacity(estimated_size(content));
        translate(
            &mut part,
            &message.role,
            content,
            (&self.calls, &mut self.system),
            path,
            self.losses,
        );
        if part.is_empty() {
            return;
        }
        let side = match &content.body {
            Body::ToolResult(_) => Side::User,
            _ => Side::of(&message.role),
        };
        if !(self.writer.is_open() && self.last == Some((index, side))) {
            self.writer.close();
            self.writer
                .open_for(index, || Cow::Borrowed(side.envelope()));
        }
        self.last = Some((index, side));
        self.writer.element(PARTS, &part);
    }
}

/// Write a request body.
pub(super) fn request(request: &Request, losses: &mut Losses) -> String {
    if let Some(body) = native::body(request.vendor.as_ref(), &Wire::Gemini) {
        return encode_native_request(request, body, losses);
    }
    foreign::note_request_keys(request, losses);
    let lifted = SystemText::Lifted(Vec::new());
    let (items, lifted) = encode(&request.messages, lifted, losses);
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    if let Some(system) = system(request, lifted, losses) {
        object.raw(SYSTEM.0, &system);
    }
    object.raw("contents", &array(&items));
    foreign::write_tools(&mut object, &request.tools, functions, losses);
    object.end();
    out
}

/// Functions on offer, as an array with one element that declares them all.
pub(crate) fn functions(out: &mut String, tools: &[FunctionTool<'_>], losses: &mut Losses) {
    let root = Path::Root.key("tools");
    let mut list = ArrayWriter::new(out);
    let mut all = ObjectWriter::new(list.slot());
    let mut declared = ArrayWriter::new(all.key("functionDeclarations"));
    for FunctionTool { index, tool } in tools {
        let path = root.index(*index);
        let mut object = ObjectWriter::new(declared.slot());
        object.str("name", &tool.name);
        if let Some(description) = &tool.description {
            object.str("description", description);
        }
        if let Some(parameters) = &tool.parameters {
            let schema = foreign::without_lone_surrogates(parameters, &path, losses);
            object.raw("parametersJsonSchema", &schema);
        }
        object.end();
    }
    declared.end();
    all.end();
    list.end();
}

/// Put contents and system text back into a body that came from this format.
fn encode_native_request(request: &Request, body: &RawJson, losses: &mut Losses) -> String {
    let value = body.value();
    let bare = bare_string_input(request);
    let (contents, lifted) = google::native_input(value.get("contents"), bare, |system| {
        encode(&request.messages, system, losses)
    });
    let key = match value.get(SYSTEM.1).is_some_and(|at| !at.is_null())
        && value.get(SYSTEM.0).is_none_or(Value::is_null)
    {
        true => SYSTEM.1,
        false => SYSTEM.0,
    };
    let is_text = value.get(key).is_some_and(|at| at.as_text().is_some());
    let plain = bare_system(request).filter(|_| is_text && lifted.is_empty());
    let extractor = value.get(key).is_none_or(|at| {
        at.is_null() || at.as_object().is_some_and(<[_]>::is_empty) || at.raw() == "\"\""
    });
    let system = match plain {
        Some(_) => None,
        None if extractor || !lifted.is_empty() => system(request, lifted, losses),
        None => None,
    };
    let keys: [&[&str]; 2] = [&["contents"], &[key]];
    let mut fills = Vec::new();
    match (&contents, bare) {
        (Some(text), _) => fills.push((keys[0], TemplateValue::Replace(text))),
        (None, Some(text)) => fills.push((keys[0], TemplateValue::Text(text))),
        (None, None) => {}
    }
    match (&system, plain) {
        (Some(text), _) => fills.push((keys[1], TemplateValue::Replace(text))),
        (None, Some(text)) => fills.push((keys[1], TemplateValue::Text(text))),
        (None, None) => {}
    }
    let mut out = String::new();
    restore(&mut out, body, &fills);
    out
}

/// The text of a system instruction that was a bare string.
fn bare_system(request: &Request) -> Option<&str> {
    let [content] = request.system.as_slice() else {
        return None;
    };
    bare_string(content)
}

/// System text as a content; none if there is none.
fn system(request: &Request, lifted: SystemText, losses: &mut Losses) -> Option<String> {
    let ours = RawJson::object(|object| {
        object.raw(PARTS, "[]");
    });
    let mut writer = MessageWriter::default();
    let root = Path::Root.key("system");
    for (index, content) in request.system.iter().enumerate() {
        let native = native::vendor(content, &Wire::Gemini);
        let mut json = String::new();
        match native.map(|vendor| (&vendor.form, vendor.envelope.as_ref())) {
            Some((Form::Part(part), envelope)) => {
                match envelope.filter(|_| index == 0) {
                    Some(envelope) => writer.open(envelope),
                    // Only the first content may open: one system instruction is one content.
                    None if writer.is_open() => {}
                    None => writer.open(&ours),
                }
                parts::encode(&mut json, &content.body, part);
            }
            _ => match content.as_text() {
                Some("") => continue,
                Some(text) => {
                    if !writer.is_open() {
                        writer.open(&ours);
                    }
                    super::translate::text_part(&mut json, text);
                }
                None => {
                    let path = root.index(index);
                    losses.note(&path, LossKind::SystemText, "only text fits here");
                    continue;
                }
            },
        }
        writer.element(PARTS, &json);
    }
    if let SystemText::Lifted(texts) = lifted {
        for text in texts {
            let mut json = String::new();
            super::translate::text_part(&mut json, &text);
            if !writer.is_open() {
                writer.open(&ours);
            }
            writer.element(PARTS, &json);
        }
    }
    writer.finish().into_iter().next()
}

/// Write a response body.
pub(super) fn response(response: &Response, losses: &mut Losses) -> String {
    let contents = response_contents(response, losses);
    if let Some(body) = native::body(response.vendor.as_ref(), &Wire::Gemini) {
        return response_body::restore_body(body, &contents);
    }
    if response.error.is_some() {
        let detail = "an error is a body of its own here";
        losses.note(&Path::Root.key("error"), LossKind::Marking, detail);
    }
    response_body::build_body(response, &contents, finish_reason(&response.stop))
}

/// The body of another vendor's response up to its failure, if there is one, and the error.
pub(super) fn failed_response<'r>(
    response: &'r Response,
    losses: &mut Losses,
) -> Option<(Option<String>, &'r VendorError)> {
    let error = response.error.as_ref()?;
    if native::body(response.vendor.as_ref(), &Wire::Gemini).is_some() {
        return None;
    }
    let contents = response_contents(response, losses);
    let known = response.id.is_some() || response.model.is_some() || response.usage.is_some();
    // No reason to finish: the error that follows is the end.
    let body = (known || !contents.is_empty())
        .then(|| response_body::build_body(response, &contents, None));
    Some((body, error))
}

/// The contents of a response, one for each alternative.
fn response_contents(response: &Response, losses: &mut Losses) -> Vec<String> {
    let mut encoder = ContentEncoder::new(EncodeFor::Response, SystemText::Lost, losses);
    let messages = response.messages.iter().enumerate();
    messages
        .map(|(index, message)| {
            encoder.message(index, message);
            response_body::merge_contents(std::mem::take(&mut encoder.writer).finish())
        })
        .collect()
}
