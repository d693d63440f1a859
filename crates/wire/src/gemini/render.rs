//! What Gemini's `generateContent` requires of a rendered history.

use std::borrow::Cow;

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson};
use throughline_model::{
    Arguments, Body, Content, Form, Output, Role, ToolCall, ToolResult, Vendor, Wire,
};

use crate::foreign;
use crate::native;
use crate::object_builder::ObjectBuilder;
use crate::render::format::{
    CallSignatures, CleanPart, EnvelopeFormat, IdRule, PartContext, PlainForms, RenderFormat,
    ResultMedia, RuleNames, Rules, SystemPlace, UnusableForms,
};
use crate::render::plain_form::{has_call_id_or_none, plain_string, value_at};
use crate::render::{RenderedInput, Switches, Target};

pub(super) static RENDER: RenderFormat = RenderFormat {
    named_results: true,
    role_words,
    envelope: EnvelopeFormat {
        content_key: "parts",
        role_defaults_to_user: true,
        keys: Some(&["role", "parts"]),
        ..EnvelopeFormat::COMMON
    },
    plain: PlainForms { text, call, result },
    unusable: UnusableForms {
        always: &["S-G1", "S-G2", "S-G3", "S-G4", "G-10"],
        hosted: &["G-8"],
        known_types: &[],
    },
    clean_part,
    keeps_empty: |part| signature(part).is_some_and(is_signature),
    ..RenderFormat::common(rules, add_input)
};

const NAMES: RuleNames = RuleNames {
    calls_answered: "G-1",
    results_asked: "G-3",
    one_result: "G-1",
    object_items: "S-G1",
    known_roles: "S-G2",
    own_seals: "O-8",
};

const CALL_SIGNATURES: CallSignatures = CallSignatures {
    sign: sign_call,
    unsign: unsign_call,
};

fn rules(target: &Target, switches: Switches) -> Rules {
    let on = |rule: &str| switches.enforces(rule);
    let common = Rules::common(&NAMES, target, switches);
    let generation = target.generation;
    let moves_media = on("S-G5") && !generation.result_media;
    let signs = generation.call_signatures && on("G-5");
    Rules {
        system: SystemPlace::Outside,
        id: IdRule {
            ours: false,
            ..common.id
        },
        first_user: on("G-2"),
        last_user: on("G-7"),
        no_empty: on("G-8"),
        calls_after_user: on("G-2"),
        result_media: match moves_media {
            true => ResultMedia::MovedAndRemoved,
            false => ResultMedia::Kept,
        },
        model_role: on("S-G4"),
        signatures: signs.then_some(CALL_SIGNATURES),
        ..common
    }
}

fn role_words(role: &Role) -> &'static [&'static str] {
    match role {
        Role::Assistant => &["\"model\""],
        Role::User | Role::System | Role::Developer | Role::Tool | Role::Other(_) => &["\"user\""],
    }
}

fn add_input<'m>(
    body: &mut ObjectBuilder<'m>,
    input: RenderedInput<'m>,
    _target: &'m Target,
    _switches: Switches,
) {
    if let Some(text) = input.system {
        body.raw("systemInstruction", instruction(text));
    }
    body.items("contents", None, input.items);
}

/// A content that holds system text.
fn instruction(text: &str) -> String {
    let mut out = String::new();
    let mut content = ObjectWriter::new(&mut out);
    let mut parts = ArrayWriter::new(content.key("parts"));
    let mut part = ObjectWriter::new(parts.slot());
    part.str("text", text);
    part.end();
    parts.end();
    content.end();
    out
}

fn text(raw: &RawJson, _by_model: bool) -> bool {
    let mut members = raw.members();
    let only = members
        .next()
        .is_some_and(|(key, at)| key == "text" && raw.get()[at].starts_with('"'));
    only && members.next().is_none()
}

fn call(content: &Content, raw: &RawJson, call: &ToolCall) -> bool {
    let fits = |(key, at): (&str, std::ops::Range<usize>)| match key {
        "functionCall" => true,
        "thoughtSignature" => is_signature(&raw.get()[at]),
        _ => false,
    };
    let object = matches!(&call.arguments, Arguments::Json(json) if json.get().starts_with('{'));
    object
        && raw.members().all(fits)
        && value_at(raw, &["functionCall", "name"]).and_then(plain_string)
            == Some(call.name.as_str())
        && value_at(raw, &["functionCall", "args"]) == Some("null")
        && has_call_id_or_none(content, value_at(raw, &["functionCall", "id"]))
}

fn result(content: &Content, raw: &RawJson, result: &ToolResult) -> bool {
    let object = matches!(&result.output, Output::Json(json) if json.get().starts_with('{'));
    let named = result.name.as_deref();
    object
        && named.is_some()
        && raw.members().all(|(key, _)| key == "functionResponse")
        && value_at(raw, &["functionResponse", "name"]).and_then(plain_string) == named
        && value_at(raw, &["functionResponse", "response"]) == Some("null")
        && value_at(raw, &["functionResponse", "parts"]).is_none()
        && has_call_id_or_none(content, value_at(raw, &["functionResponse", "id"]))
}

/// The part without a signature that is none, and without its id for models that issue no ids.
fn clean_part(
    part: &RawJson,
    context: &PartContext<'_>,
    dropped: &mut Vec<String>,
) -> Option<CleanPart> {
    let on = |rule: &str| context.switches.enforces(rule);
    let no_ids = !context.target.generation.call_ids && on("G-4");
    if context.plain && !no_ids {
        return None;
    }
    let mut part = Cow::Borrowed(part);
    if on("G-6")
        && let Some(cleaned) = without_bad_signature(&part)
    {
        dropped.push("thoughtSignature".to_owned());
        part = Cow::Owned(cleaned);
    }
    let without_id = no_ids.then(|| without_part_id(&part)).flatten();
    let id_removed = without_id.is_some();
    if let Some(cleaned) = without_id {
        dropped.push("id".to_owned());
        part = Cow::Owned(cleaned);
    }
    match part {
        Cow::Owned(part) => Some(CleanPart { part, id_removed }),
        Cow::Borrowed(_) => None,
    }
}

/// The parts of Gemini that have an id only with models that issue them.
const PARTS_WITH_IDS: [&str; 8] = [
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
fn without_part_id(part: &RawJson) -> Option<RawJson> {
    let named = |key: &&str| part.locate(&[key, "id"]).is_some();
    let key = PARTS_WITH_IDS.into_iter().find(named)?;
    let at = part.locate(&[key])?;
    let inner = RawJson::new(&part.get()[at]).ok()?;
    let inner = inner.without(|key| key == "id");
    let rest = part.without(|found| found == key);
    Some(RawJson::object(|object| {
        object.raw(key, inner.get()).members_of(rest.get());
    }))
}

/// The documented value for a call that another model made.
const PLACEHOLDER: &str = "skip_thought_signature_validator";

const SIGNATURES: [&str; 2] = ["thoughtSignature", "thought_signature"];

/// What stands in the place of a part's signature, as JSON text.
fn signature(part: &RawJson) -> Option<&str> {
    let found = SIGNATURES.iter().find_map(|key| part.locate(&[key]))?;
    Some(&part.get()[found])
}

/// Whether a JSON text is a signature: the placeholder, or something in base 64.
fn is_signature(token: &str) -> bool {
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
fn without_bad_signature(part: &RawJson) -> Option<RawJson> {
    let bad = signature(part).is_some_and(|found| !is_signature(found));
    bad.then(|| without_signature(part))
}

/// The part without its signature.
fn without_signature(part: &RawJson) -> RawJson {
    part.without(|key| SIGNATURES.contains(&key))
}

/// A later call of a step that has the signature of the first; without it.
fn unsign_call(content: &Content, first: &Content) -> Option<Content> {
    let part = native::part(content, &Wire::Gemini)?;
    let other = native::part(first, &Wire::Gemini)?;
    let found = signature(part).filter(|found| signature(other) == Some(found))?;
    if found.trim_matches('"') == PLACEHOLDER {
        return None;
    }
    let mut changed = content.clone();
    changed.vendor.as_mut()?.form = Form::Part(without_signature(part));
    Some(changed)
}

/// Gemini wants a signature on the first call of a step; for a call of another vendor the
/// documented placeholder. `None` if the call has a signature.
fn sign_call(content: &Content) -> Option<Content> {
    let Body::ToolCall(call) = &content.body else {
        return None;
    };
    let native = native::vendor(content, &Wire::Gemini);
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
                .str("name", foreign::tool_name(call))
                .raw("args", arguments(call).get());
            inner.end();
            object.str("thoughtSignature", PLACEHOLDER);
        }),
    };
    let mut sign_call = content.clone();
    let mut vendor = match native {
        Some(vendor) => vendor.clone(),
        None => Vendor::form(Wire::Gemini, Form::Bare),
    };
    vendor.form = Form::Part(part);
    sign_call.vendor = Some(Box::new(vendor));
    Some(sign_call)
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
