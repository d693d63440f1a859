//! Writes contents of other vendors as blocks.

use std::borrow::Cow;

use throughline_model::json::{ObjectWriter, RawJson, Value, parse};
use throughline_model::{
    Arguments, Body, CallId, Content, Family, Outcome, Output, Pairing, Path, Scope, ToolCall,
    ToolResult,
};

use super::{encode, media};
use crate::foreign;
use crate::message_writer::estimated_size;
use crate::{LossKind, Losses};

/// Who a block comes from, and where it stands; its possible forms depend on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The person, and the tools of the application.
    User,
    /// A tool of the application, inside its result.
    Tool,
    /// The model, in a history.
    Assistant,
    /// The model, in a response. Its readers know only what a model can say.
    Response,
    /// System text of the application.
    System,
}

impl Speaker {
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::User | Self::Tool => "user",
            Self::Assistant | Self::Response => "assistant",
            Self::System => "system",
        }
    }
}

/// The blocks of a content, as JSON texts with commas; empty if the content has no form here or is
/// empty: the vendor refuses empty text.
pub(super) fn blocks(
    content: &Content,
    speaker: Speaker,
    path: &Path<'_>,
    losses: &mut Losses,
) -> String {
    let mut out = String::with_capacity(estimated_size(content));
    foreign::note_lone_surrogates(content, path, losses);
    match &content.body {
        Body::Media(_) | Body::ToolCall(_) | Body::ToolResult(_) if speaker == Speaker::System => {
            losses.note(path, LossKind::SystemText, "only text fits here");
        }
        Body::Text(text) => {
            foreign::note_vendor_fields(content, path, losses);
            if !text.citations.is_empty() {
                let detail = "citations name places in documents that only their vendor knows";
                losses.note(path, LossKind::Citations, detail);
            }
            push_text(&mut out, &text.text);
        }
        Body::Refusal(text) => {
            losses.note(path, LossKind::Marking, "refusal becomes plain text");
            push_text(&mut out, &text.text);
        }
        Body::Error(fault) => {
            losses.note(path, LossKind::Marking, "error becomes plain text");
            push_text(&mut out, &fault.message);
        }
        Body::Media(_) if matches!(speaker, Speaker::Assistant | Speaker::Response) => losses.note(
            path,
            LossKind::Media,
            "assistant messages hold no media here",
        ),
        Body::Media(found) => {
            foreign::note_vendor_fields(content, path, losses);
            media::translate(&mut out, content, found, path, losses);
        }
        Body::ToolCall(_) if speaker == Speaker::Tool => {
            losses.note(path, LossKind::HostedTool, "a result holds no calls here");
        }
        Body::ToolCall(call) => push_call(&mut out, call, path, losses),
        Body::ToolResult(result) => push_result(&mut out, result, speaker, path, losses),
        Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Reasoning(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => foreign::note_vendor_only(&content.body, path, losses),
    }
    out
}

fn push_text(out: &mut String, text: &str) {
    if !text.is_empty() {
        let mut object = ObjectWriter::new(out);
        object.str("type", "text").str("text", text);
        object.end();
    }
}

fn push_call(out: &mut String, call: &ToolCall, path: &Path<'_>, losses: &mut Losses) {
    if foreign::is_hosted_call(call, path, losses) {
        return;
    }
    let (input, fit) = input_object(&call.arguments);
    let input = foreign::without_lone_surrogates(&input, path, losses);
    foreign::note_becomes_function(call, path, losses);
    if call.family == Family::FUNCTION && fit == InputForm::Wrapped {
        let detail = "arguments must be an object; these became its member input";
        losses.note(path, LossKind::Arguments, detail);
    }
    let mut object = ObjectWriter::new(out);
    object
        .str("type", "tool_use")
        .str("id", &tool_use_id(&call.call))
        .str("name", foreign::tool_name(call))
        .raw("input", &input);
    object.end();
}

fn push_result(
    out: &mut String,
    result: &ToolResult,
    speaker: Speaker,
    path: &Path<'_>,
    losses: &mut Losses,
) {
    if foreign::is_hosted_result(result, path, losses) {
        return;
    }
    if speaker == Speaker::Response {
        let detail = "results of the application come in requests only";
        return losses.note(path, LossKind::StandaloneResult, detail);
    }
    let path = path.key("output");
    // A result must name a call of the message before; a result without a call becomes plain
    // content, and so does a result inside another result.
    let plain = match (result.pairing(), speaker) {
        (_, Speaker::Tool) => Some("a result inside a result becomes plain content"),
        (Pairing::Standalone, _) => Some("a result without a call becomes plain content"),
        (Pairing::Answers, _) => None,
    };
    if let Some(detail) = plain {
        losses.note(&path, LossKind::StandaloneResult, detail);
        match &result.output {
            Output::None => {}
            Output::Text(text) => push_text(out, text),
            Output::Json(json) => push_text(out, json.get()),
            Output::Parts(parts) => encode::parts(out, parts, speaker, &path, losses),
        }
        return;
    }
    let mut object = ObjectWriter::new(out);
    object
        .str("type", "tool_result")
        .str("tool_use_id", &tool_use_id(result.call()));
    match &result.output {
        Output::Text(text) if !text.is_empty() => {
            object.str("content", text);
        }
        // An empty result has no content.
        Output::None | Output::Text(_) => {}
        Output::Json(json) => {
            object.str("content", json.get());
        }
        Output::Parts(parts) => {
            let mut elements = String::new();
            encode::parts(&mut elements, parts, Speaker::Tool, &path, losses);
            if !elements.is_empty() {
                object.raw("content", &format!("[{elements}]"));
            }
        }
    }
    if result.outcome != Outcome::Ok {
        object.bool("is_error", true);
    }
    object.end();
}

/// Whether arguments could be written as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputForm {
    /// They are an object, or there are none.
    Object,
    /// They stand in an object with the one member `input`.
    Wrapped,
}

/// Arguments as an object.
pub(super) fn input_object(arguments: &Arguments) -> (RawJson, InputForm) {
    let nothing = || (RawJson::object(|_| {}), InputForm::Object);
    let wrapped = |write: &dyn Fn(&mut ObjectWriter<'_>)| {
        (RawJson::object(|object| write(object)), InputForm::Wrapped)
    };
    let of = |value: &Value<'_>| (RawJson::of(value), InputForm::Object);
    match arguments {
        Arguments::None => nothing(),
        // Models often leave the text empty for a call without arguments.
        Arguments::Text(text) if text.trim().is_empty() => nothing(),
        Arguments::Text(text) => match parse(text) {
            Ok(value) if value.as_object().is_some() => of(&value),
            Ok(value) if value.is_null() => nothing(),
            Ok(_) | Err(_) => wrapped(&|object| {
                object.str("input", text);
            }),
        },
        Arguments::Json(json) => {
            let value = json.value();
            if value.as_object().is_some() {
                of(&value)
            } else if value.is_null() {
                nothing()
            } else {
                wrapped(&|object| {
                    object.raw("input", json.get());
                })
            }
        }
        Arguments::Free(text) => wrapped(&|object| {
            object.str("input", text);
        }),
    }
}

/// The ordinal under which ids of other vendors are hashed, far from those of calls.
const FOREIGN_ORDINAL: usize = usize::MAX;

/// An id that fits the id field, `^[a-zA-Z0-9_-]+$`. What does not fit is hashed, so that both ends
/// of a pair and every rendering of a history agree.
fn tool_use_id(call: &CallId) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if call.value().bytes().all(fits) {
        Cow::Borrowed(call.value())
    } else {
        let minted = CallId::minted(Scope::Response(call.value()), FOREIGN_ORDINAL);
        Cow::Owned(minted.value().to_owned())
    }
}
