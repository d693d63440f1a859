//! What single vendors want beyond the common rules.

use std::borrow::Cow;

use throughline_model::json::{self, ObjectWriter, RawJson, push_string};
use throughline_model::{
    Body, Content, Family, Form, Message, Output, Pairing, Runner, ToolCall, ToolResult, Vendor,
    Wire,
};

use super::legal;
use super::target::Target;
use super::words;
use crate::foreign;

/// Foundry's own pairs come in responses only; sent back they are function calls and outputs.
/// The second value says which contents changed.
pub(super) fn response_only<'m>(
    message: &'m Message,
    target: &Target,
) -> (Cow<'m, Message>, Vec<usize>) {
    if target.wire != Wire::Foundry {
        return (Cow::Borrowed(message), Vec::new());
    }
    let concerned: Vec<usize> = message
        .contents
        .iter()
        .enumerate()
        .filter(|(_, content)| is_response_only(content))
        .map(|(place, _)| place)
        .collect();
    if concerned.is_empty() {
        return (Cow::Borrowed(message), concerned);
    }
    let mut changed = message.clone();
    for place in &concerned {
        let content = &mut changed.contents[*place];
        let plain = match &content.body {
            Body::ToolCall(call) => Content::from(legal::as_function(call)),
            Body::ToolResult(result) => match result.pairing() {
                Pairing::Answers => Content::from(as_output(result)),
                Pairing::Standalone => Content::text(words::result(result)),
            },
            Body::Opaque(opaque) => Content::text(opaque_text(content, &opaque.tag)),
            _ => continue,
        };
        *content = plain;
    }
    (Cow::Owned(changed), concerned)
}

/// The output of a function in place of one that comes in responses only.
fn as_output(result: &ToolResult) -> ToolResult {
    let id = result.call().clone();
    let mut made = ToolResult::answering(id, Family::FUNCTION, result.output.clone());
    made.outcome = result.outcome;
    made.name.clone_from(&result.name);
    made.runner = Runner::Client;
    made
}

/// An item without a word of ours, to be read: its tag, and its output if it has one.
fn opaque_text(content: &Content, tag: &str) -> String {
    let Some(Form::Item(item)) = content.vendor.as_ref().map(|vendor| &vendor.form) else {
        return format!("[{tag}]");
    };
    match item.locate(&["output"]) {
        Some(at) => format!("[{tag}] {}", &item.get()[at]),
        None => format!("[{tag}]"),
    }
}

/// Whether a content is one of the items that Foundry makes and does not take back.
fn is_response_only(content: &Content) -> bool {
    // Only these can be: the look at the tag costs more.
    let kind = match &content.body {
        Body::ToolCall(call) => call.runner == Runner::Vendor,
        Body::ToolResult(result) => result.runner == Runner::Vendor,
        Body::Opaque(_) => true,
        _ => false,
    };
    let Some(vendor) = content.vendor.as_ref().filter(|_| kind) else {
        return false;
    };
    if vendor.wire != Wire::Foundry {
        return false;
    }
    let Form::Item(item) = &vendor.form else {
        return false;
    };
    let Some(at) = item.locate(&["type"]) else {
        return false;
    };
    let tag = item.get()[at].trim_matches('"');
    crate::foundry::is_response_only(tag)
}

/// The rule by which the messages of a format are objects.
pub(super) fn object_rule(wire: &Wire) -> &'static str {
    match wire {
        Wire::OpenAiResponses | Wire::Foundry => "S-O1",
        Wire::OpenAiChat | Wire::Other(_) => "S-C1",
        Wire::Anthropic => "S-A1",
        Wire::Gemini => "S-G1",
        Wire::GeminiInteractions => "S-I1",
    }
}

/// The rule by which the messages of a format have a known role.
pub(super) fn role_rule(wire: &Wire) -> &'static str {
    match wire {
        Wire::OpenAiResponses | Wire::Foundry => "S-O3",
        Wire::OpenAiChat | Wire::Other(_) => "S-C2",
        Wire::Anthropic => "S-A2",
        Wire::Gemini => "S-G2",
        Wire::GeminiInteractions => "S-I2",
    }
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

/// A message of the system where messages are, which not every model and not every place takes.
pub(super) fn system_message(text: &str) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("role", "system").str("content", text);
    object.end();
    out
}

/// A thought with less in it, as one might keep it to save room.
pub(super) fn shortened(content: &Content) -> Content {
    let mut short = content.clone();
    if let Body::Reasoning(reasoning) = &mut short.body {
        for text in &mut reasoning.text {
            *text = text.chars().take(1).collect();
        }
    }
    short
}

/// The parts of Gemini that have an id only with models that issue them.
const IDENTIFIED: [&str; 8] = [
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
];

/// A part of Gemini without the id in it; nothing if it has none.
pub(super) fn without_part_id(part: &RawJson) -> Option<RawJson> {
    let named = |key: &&str| part.locate(&[key, "id"]).is_some();
    let key = IDENTIFIED.into_iter().find(named)?;
    let at = part.locate(&[key])?;
    let inner = RawJson::new(&part.get()[at]).ok()?;
    let inner = inner.without(|key| key == "id");
    let rest = part.without(|found| found == key);
    Some(RawJson::object(|object| {
        object.raw(key, inner.get()).members_of(rest.get());
    }))
}

/// Whether the last words of a message of Anthropic end in white space.
pub(super) fn ends_in_space(json: &str) -> bool {
    let Ok(message) = json::parse(json) else {
        return false;
    };
    let Some(content) = message.get("content") else {
        return false;
    };
    let last = content.as_array().and_then(<[_]>::last);
    let words = last.map_or(content.as_str(), |block| block.get("text")?.as_str());
    words.is_some_and(|words| words.ends_with(char::is_whitespace))
}

/// The computer call's checks, which its output must echo.
pub(super) fn safety_checks(call: &Content) -> Option<RawJson> {
    let Some(Form::Item(item)) = call.vendor.as_ref().map(|vendor| &vendor.form) else {
        return None;
    };
    let at = item.locate(&["pending_safety_checks"])?;
    let checks = RawJson::new(&item.get()[at]).ok()?;
    let some = checks
        .value()
        .as_array()
        .is_some_and(|list| !list.is_empty());
    some.then_some(checks)
}

/// An output with the checks of its call acknowledged: the service takes none without.
pub(super) fn acknowledged(output: &str, checks: &RawJson) -> Option<String> {
    const KEY: &str = "acknowledged_safety_checks";
    let output = RawJson::new(output).ok()?;
    let rest = output.without(|key| key == KEY);
    let whole = RawJson::object(|object| {
        object.members_of(rest.get()).raw(KEY, checks.get());
    });
    Some(whole.get().to_owned())
}

/// The documented value for a call that another model made.
const PLACEHOLDER: &str = "skip_thought_signature_validator";

const SIGNATURES: [&str; 2] = ["thoughtSignature", "thought_signature"];

/// What stands in the place of a part's signature, as JSON text.
pub(super) fn signature(part: &RawJson) -> Option<&str> {
    let found = SIGNATURES.iter().find_map(|key| part.locate(&[key]))?;
    Some(&part.get()[found])
}

/// Whether a JSON text is a signature: the placeholder, or something in base 64.
pub(super) fn is_signature(token: &str) -> bool {
    let Some(text) = token
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return false;
    };
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let padded = padding == 0 || (padding <= 2 && text.len().is_multiple_of(4));
    text == PLACEHOLDER
        || (!digits.is_empty() && digits.bytes().all(known) && digits.len() % 4 != 1 && padded)
}

/// The part without a signature that is none; nothing if there is no such.
pub(super) fn without_bad_signature(part: &RawJson) -> Option<RawJson> {
    let bad = signature(part).is_some_and(|found| !is_signature(found));
    bad.then(|| without_signature(part))
}

/// The part without its signature.
fn without_signature(part: &RawJson) -> RawJson {
    part.without(|key| SIGNATURES.contains(&key))
}

/// A later call of a step that has the signature of the first; without it.
pub(super) fn unsigned(content: &Content, first: &Content) -> Option<Content> {
    let own = |content: &Content| {
        let vendor = content.vendor.as_ref()?;
        match &vendor.form {
            Form::Part(part) if vendor.wire == Wire::Gemini => Some(part.clone()),
            _ => None,
        }
    };
    let (part, other) = (own(content)?, own(first)?);
    let found = signature(&part).filter(|found| signature(&other) == Some(found))?;
    if found.trim_matches('"') == PLACEHOLDER {
        return None;
    }
    let mut changed = content.clone();
    changed.vendor.as_mut()?.form = Form::Part(without_signature(&part));
    Some(changed)
}

/// What Chat Completions takes as one message: calls that are all in the list of the vendor's own
/// message or none, nothing from elsewhere beside them, and that list only where there are calls.
pub(super) fn one_chat_message(message: &mut Cow<'_, Message>) {
    let opens = |content: &Content| {
        let envelope = content
            .vendor
            .as_ref()
            .and_then(|vendor| vendor.envelope.as_ref());
        envelope.map(|envelope| envelope.locate(&["tool_calls"]).is_some())
    };
    let is_call = |content: &Content| content.as_tool_call().is_some();
    let own = |content: &Content| {
        let vendor = content.vendor.as_ref();
        let vendor = vendor.filter(|vendor| vendor.wire == Wire::OpenAiChat);
        vendor.is_some_and(|vendor| !is_call(content) || matches!(vendor.form, Form::Part(_)))
    };
    let calls = message.contents.iter().any(is_call);
    let fits = match message.contents.first().and_then(opens) {
        None => true,
        Some(listed) => calls == listed && (!calls || message.contents.iter().all(own)),
    };
    if fits {
        return;
    }
    for content in &mut message.to_mut().contents {
        if let Some(vendor) = &mut content.vendor {
            vendor.envelope = None;
        }
    }
}

/// Gemini wants a signature on the first call of a step; for a call from elsewhere the documented
/// placeholder. `None` if the call has a signature.
pub(super) fn signed(content: &Content) -> Option<Content> {
    let Body::ToolCall(call) = &content.body else {
        return None;
    };
    let native = content
        .vendor
        .as_ref()
        .filter(|vendor| vendor.wire == Wire::Gemini);
    let part = match native.map(|vendor| &vendor.form) {
        Some(Form::Part(part)) => {
            if signature(part).is_some_and(is_signature) {
                return None;
            }
            let part = without_signature(part);
            RawJson::object(|object| {
                object
                    .members_of(part.get())
                    .str("thoughtSignature", PLACEHOLDER);
            })
        }
        _ => RawJson::object(|object| {
            let mut inner = ObjectWriter::new(object.key("functionCall"));
            inner
                .str("name", foreign::name(call))
                .raw("args", arguments(call).get());
            inner.end();
            object.str("thoughtSignature", PLACEHOLDER);
        }),
    };
    let mut signed = content.clone();
    let mut vendor = match native {
        Some(vendor) => (**vendor).clone(),
        None => Vendor::form(Wire::Gemini, Form::Bare),
    };
    vendor.form = Form::Part(part);
    signed.vendor = Some(Box::new(vendor));
    Some(signed)
}

/// Arguments as an object.
fn arguments(call: &ToolCall) -> RawJson {
    let text = foreign::arguments_text(&call.arguments);
    let object = RawJson::new(&text).ok();
    let object = object.filter(|raw| raw.get().starts_with('{'));
    object.unwrap_or_else(|| {
        RawJson::object(|object| {
            object.str("input", &text);
        })
    })
}

/// A result without the texts in it that say nothing; nothing if there are none.
pub(super) fn without_empty_parts(content: &Content) -> Option<Content> {
    let is_empty = |part: &Content| part.as_text().is_some_and(|text| text.trim().is_empty());
    match &content.as_tool_result()?.output {
        Output::Parts(parts) if parts.iter().any(is_empty) => {}
        Output::Parts(_) | Output::None | Output::Text(_) | Output::Json(_) => return None,
    }
    let mut full = content.clone();
    if let Body::ToolResult(result) = &mut full.body
        && let Output::Parts(parts) = &mut result.output
    {
        parts.retain(|part| !is_empty(part));
    }
    Some(full)
}

/// A part that says nothing but carries a signature must stay.
pub(super) fn is_signed(content: &Content, native: bool) -> bool {
    let Some(vendor) = content.vendor.as_ref().filter(|_| native) else {
        return false;
    };
    match &vendor.form {
        Form::Part(part) => signature(part).is_some_and(is_signature),
        Form::Item(_) | Form::Bare | Form::Within => false,
    }
}
