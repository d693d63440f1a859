//! What Chat Completions requires of a rendered history.

use std::borrow::Cow;

use throughline_model::json::RawJson;
use throughline_model::{
    Arguments, Body, Content, Form, Message, Output, Role, ToolCall, ToolResult, Wire,
};

use super::encode;
use crate::object_builder::ObjectBuilder;
use crate::render::format::{
    EnvelopeFormat, IdRule, PlainForms, RenderFormat, ResultMedia, RuleNames, Rules, UnusableForms,
};
use crate::render::plain_form::{FormMembers, NO_MEMBERS, plain_string, value_at};
use crate::render::{RenderedInput, Switches, Target, has_call_id};

pub(super) static RENDER: RenderFormat = RenderFormat {
    custom_calls: true,
    call_id_key: Some("id"),
    result_id_key: Some("tool_call_id"),
    envelope: EnvelopeFormat {
        content_optional: true,
        calls_beside_content: true,
        member_fits,
        holds_contents,
        keys: Some(&[
            "role",
            "content",
            "name",
            "tool_calls",
            "refusal",
            "audio",
            "function_call",
            "tool_call_id",
        ]),
        for_part,
        ..EnvelopeFormat::COMMON
    },
    plain: PlainForms { text, call, result },
    unusable: UnusableForms {
        always: &["S-C2", "S-C3", "C-5", "S-C5"],
        hosted: &[],
        known_types: &[],
    },
    ..RenderFormat::common(rules, add_input)
};

/// What is assumed of a format that this version does not know: servers with a format of their own
/// mostly copied this one.
pub(crate) static UNKNOWN: RenderFormat = RenderFormat::common(
    |target, switches| Rules::common(&NAMES, target, switches),
    add_input,
);

const NAMES: RuleNames = RuleNames {
    calls_answered: "C-1",
    results_asked: "C-2",
    one_result: "S-C4",
    object_items: "S-C1",
    known_roles: "S-C2",
    own_seals: "O-8",
};

fn rules(target: &Target, switches: Switches) -> Rules {
    let common = Rules::common(&NAMES, target, switches);
    Rules {
        id: IdRule {
            longest: if switches.enforces("C-4") {
                40
            } else {
                usize::MAX
            },
            ..common.id
        },
        result_media: ResultMedia::Moved,
        merge_message: switches.enforces("C-3").then_some(one_message),
        ..common
    }
}

fn add_input<'m>(
    body: &mut ObjectBuilder<'m>,
    input: RenderedInput<'m>,
    _target: &'m Target,
    _switches: Switches,
) {
    body.items("messages", input.system.map(encode::system), input.items);
}

fn text(raw: &RawJson, _by_model: bool) -> bool {
    let members = FormMembers {
        tag: ("type", "text"),
        text: Some("text"),
        ..NO_MEMBERS
    };
    members.matches(None, raw)
}

fn call(content: &Content, raw: &RawJson, call: &ToolCall) -> bool {
    if !matches!(call.arguments, Arguments::Text(_)) {
        return false;
    }
    let mut seen = 0;
    for (key, at) in raw.members() {
        seen += 1;
        let token = &raw.get()[at];
        let fits = match key {
            "type" => plain_string(token) == Some("function"),
            "id" => {
                plain_string(token).is_some_and(|id| !id.is_empty() && has_call_id(content, id))
            }
            "function" => true,
            _ => false,
        };
        if !fits {
            return false;
        }
    }
    let arguments = value_at(raw, &["function", "arguments"]);
    seen == 3
        && value_at(raw, &["function", "name"]).and_then(plain_string) == Some(call.name.as_str())
        && arguments.is_some_and(|token| token.starts_with('"'))
}

fn result(content: &Content, raw: &RawJson, result: &ToolResult) -> bool {
    let members = FormMembers {
        tag: ("role", "tool"),
        id: Some("tool_call_id"),
        text: Some("content"),
        ..NO_MEMBERS
    };
    matches!(result.output, Output::Text(_)) && members.matches(Some(content), raw)
}

/// Whether a member beside role and content is of its type. ObjectBuilder that messages do not have are
/// removed later.
fn member_fits(key: &str, token: &str) -> bool {
    let text = token.starts_with('"');
    let null = token == "null";
    match key {
        "name" | "refusal" | "tool_call_id" => text || null,
        "audio" | "function_call" => token.starts_with('{') || null,
        "tool_calls" => token == "[]" || null,
        _ => true,
    }
}

/// Whether a message has the members that hold what stands beside its content.
fn holds_contents(envelope: &RawJson, held: &[Content]) -> bool {
    let starts = |key: &str, with: char| {
        let at = envelope.locate(&[key]);
        at.is_some_and(|at| envelope.get()[at].starts_with(with))
    };
    held.iter().all(|content| {
        let form = content.vendor.as_ref().map(|vendor| &vendor.form);
        match (&content.body, form) {
            (Body::ToolCall(_), Some(Form::Part(_))) => starts("tool_calls", '['),
            (Body::ToolCall(_), Some(Form::Within)) => starts("function_call", '{'),
            (Body::Refusal(_), Some(Form::Within)) => starts("refusal", '"'),
            (Body::Media(_), Some(Form::Within)) => starts("audio", '{'),
            _ => true,
        }
    })
}

/// A message for a part that is written alone.
fn for_part(content: &Content, role: &Role) -> Option<RawJson> {
    let word = match role {
        Role::Assistant => "assistant",
        Role::System | Role::Developer => "system",
        Role::User | Role::Tool | Role::Other(_) => "user",
    };
    let is_call = content.as_tool_call().is_some();
    Some(RawJson::object(|object| {
        object.str("role", word);
        if is_call {
            object.raw("content", "null").raw("tool_calls", "[]");
        } else {
            object.raw("content", "[]");
        }
    }))
}

/// What Chat Completions takes as one message: calls that are all in the list of the vendor's own
/// message or none, no content of another vendor beside them, and that list only where there are
/// calls.
fn one_message(message: &mut Cow<'_, Message>) {
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
