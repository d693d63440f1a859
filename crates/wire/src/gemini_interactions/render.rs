//! What Gemini Interactions requires of a rendered history.

use throughline_model::json::RawJson;
use throughline_model::{Arguments, Content, Output, Role, ToolCall, ToolResult};

use crate::object_builder::ObjectBuilder;
use crate::render::format::{
    Adjacency, EnvelopeFormat, IdRule, PlainForms, RenderFormat, RuleNames, Rules, SystemPlace,
    UnusableForms,
};
use crate::render::plain_form::{FormMembers, NO_MEMBERS};
use crate::render::{ChainAt, RenderedInput, Switches, Target};

pub(super) static RENDER: RenderFormat = RenderFormat {
    flat: true,
    call_id_key: Some("id"),
    result_id_key: Some("call_id"),
    role_words,
    envelope: EnvelopeFormat {
        role_key: "type",
        ..EnvelopeFormat::COMMON
    },
    plain: PlainForms { text, call, result },
    unusable: UnusableForms {
        always: &["S-I1", "S-I2"],
        hosted: &["I-1"],
        known_types: &[],
    },
    ..RenderFormat::common(rules, add_input)
};

const NAMES: RuleNames = RuleNames {
    calls_answered: "I-3",
    results_asked: "I-2",
    one_result: "I-3",
    object_items: "S-I1",
    known_roles: "S-I2",
    own_seals: "O-8",
};

fn rules(target: &Target, switches: Switches) -> Rules {
    let common = Rules::common(&NAMES, target, switches);
    Rules {
        adjacency: Adjacency::BeforeModel,
        system: SystemPlace::Outside,
        id: IdRule {
            required: switches.enforces("I-1"),
            ..common.id
        },
        no_empty: true,
        ..common
    }
}

fn role_words(role: &Role) -> &'static [&'static str] {
    match role {
        Role::Assistant => &["\"model_output\""],
        Role::User | Role::System | Role::Developer | Role::Tool | Role::Other(_) => {
            &["\"user_input\""]
        }
    }
}

fn add_input<'m>(
    body: &mut ObjectBuilder<'m>,
    input: RenderedInput<'m>,
    target: &'m Target,
    _switches: Switches,
) {
    if let Some(text) = input.system {
        body.str("system_instruction", text);
    }
    body.items("input", None, input.items);
    if let Some(ChainAt::Response(id)) = target.chain.as_ref().map(|chain| &chain.at) {
        body.str("previous_interaction_id", id);
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
    let object = matches!(&call.arguments, Arguments::Json(json) if json.get().starts_with('{'));
    let members = FormMembers {
        tag: ("type", "function_call"),
        id: Some("id"),
        name: Some(&call.name),
        value: Some("arguments"),
        ..NO_MEMBERS
    };
    object && members.matches(Some(content), raw)
}

fn result(content: &Content, raw: &RawJson, result: &ToolResult) -> bool {
    let members = FormMembers {
        tag: ("type", "function_result"),
        id: Some("call_id"),
        text: Some("result"),
        strings: &["name"],
        flags: &["is_error"],
        ..NO_MEMBERS
    };
    matches!(result.output, Output::Text(_)) && members.matches(Some(content), raw)
}
