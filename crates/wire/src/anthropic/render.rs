//! What Anthropic requires of a rendered history.

use throughline_model::json::{self, ObjectWriter, RawJson};
use throughline_model::{Arguments, Content, Output, Reasoning, ToolCall, ToolResult};

use super::validate::takes_member;
use crate::object_builder::ObjectBuilder;
use crate::render::format::{
    CleanPart, EnvelopeFormat, IdRule, PartContext, PlainForms, RenderFormat, RuleNames, Rules,
    SystemPlace, UnusableForms,
};
use crate::render::plain_form::{FormMembers, NO_MEMBERS};
use crate::render::{RenderedInput, Switches, Target, string_at};

pub(super) static RENDER: RenderFormat = RenderFormat {
    thinking_budgets: true,
    call_id_key: Some("id"),
    result_id_key: Some("tool_use_id"),
    envelope: EnvelopeFormat {
        keys: Some(&["role", "content"]),
        ..EnvelopeFormat::COMMON
    },
    plain: PlainForms { text, call, result },
    unusable: UnusableForms {
        always: &["S-A2", "S-A3", "S-A4", "S-A5"],
        hosted: &["A-7"],
        known_types: &[],
    },
    refused_reasoning,
    clean_part,
    ..RenderFormat::common(rules, add_input)
};

const NAMES: RuleNames = RuleNames {
    calls_answered: "A-1",
    results_asked: "A-2",
    one_result: "A-3",
    object_items: "S-A1",
    known_roles: "S-A2",
    own_seals: "A-10",
};

fn rules(target: &Target, switches: Switches) -> Rules {
    let on = |rule: &str| switches.enforces(rule);
    let common = Rules::common(&NAMES, target, switches);
    let prefill = target.generation.prefill;
    let trims = prefill && on("A-12");
    let moves_system = on("A-15");
    Rules {
        system: SystemPlace::Outside,
        id: IdRule {
            plain: on("A-7"),
            unique: on("A-4"),
            ..common.id
        },
        first_user: on("A-18"),
        last_user: on("A-13") && !prefill,
        no_empty: on("A-12"),
        results_first: on("A-8"),
        model_role: on("S-A5"),
        object_arguments: true,
        hosted_calls_answered: on("A-6"),
        hosted_results_asked: on("A-5"),
        compaction_first: on("A-14"),
        known_keys: on("A-19"),
        may_end_with: trims.then_some(|json| !ends_in_space(json)),
        later_system: (!moves_system).then_some(system_message),
        ..common
    }
}

fn add_input<'m>(
    body: &mut ObjectBuilder<'m>,
    input: RenderedInput<'m>,
    target: &'m Target,
    _switches: Switches,
) {
    if let Some(text) = input.system {
        body.str("system", text);
    }
    body.items("messages", None, input.items);
    if let Some(container) = &target.container {
        body.str("container", container);
    }
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
    let members = FormMembers {
        tag: ("type", "tool_use"),
        id: Some("id"),
        name: Some(&call.name),
        value: Some("input"),
        ..NO_MEMBERS
    };
    has_object(call) && members.matches(Some(content), raw)
}

/// Whether the arguments of a call are a JSON object.
fn has_object(call: &ToolCall) -> bool {
    matches!(&call.arguments, Arguments::Json(json) if json.get().starts_with('{'))
}

fn result(content: &Content, raw: &RawJson, result: &ToolResult) -> bool {
    let members = FormMembers {
        tag: ("type", "tool_result"),
        id: Some("tool_use_id"),
        text: Some("content"),
        flags: &["is_error"],
        ..NO_MEMBERS
    };
    matches!(result.output, Output::Text(_)) && members.matches(Some(content), raw)
}

fn refused_reasoning(
    _content: &Content,
    reasoning: &Reasoning,
    _target: &Target,
    switches: Switches,
) -> Option<&'static str> {
    let unsigned = !reasoning.sealed && switches.enforces("A-10");
    unsigned.then_some("it is not signed")
}

/// The block without members that its type does not have, and without the program that made it
/// where its container is not named.
fn clean_part(
    block: &RawJson,
    context: &PartContext<'_>,
    dropped: &mut Vec<String>,
) -> Option<CleanPart> {
    if context.plain {
        return None;
    }
    let on = |rule: &str| context.switches.enforces(rule);
    let tag = string_at(block, "type").unwrap_or_default();
    let made = context.target.container.is_none() && on("A-16");
    let unknown = |key: &str| {
        (!takes_member(&tag, key) && on("A-19")) || (made && tag == "tool_use" && key == "caller")
    };
    let before = dropped.len();
    let keys = block.members().map(|(key, _)| key);
    dropped.extend(keys.filter(|key| unknown(key)).map(str::to_owned));
    (dropped.len() > before).then(|| CleanPart {
        part: block.without(unknown),
        id_removed: false,
    })
}

/// A system message among the others, which not every model and not every place takes.
fn system_message(text: &str) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.str("role", "system").str("content", text);
    object.end();
    out
}

/// Whether the last text of a message ends in white space. Where the model continues its own text,
/// the vendor refuses that.
fn ends_in_space(json: &str) -> bool {
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
