//! What OpenAI Responses requires of a rendered history, and what Foundry has in common with it.

use std::borrow::Cow;

use throughline_model::json::RawJson;
use throughline_model::{
    ApprovalResponse, Arguments, Content, Form, IdField, IdFields, Origin, Output, Reasoning,
    ToolCall, ToolResult, Vendor, Wire,
};

use crate::object_builder::ObjectBuilder;
use crate::render::format::{
    Adjacency, EnvelopeFormat, IdRule, ItemIds, PlainForms, RenderFormat, RuleNames, Rules,
    SafetyChecks, UnusableForms,
};
use crate::render::plain_form::{FormMembers, NO_MEMBERS};
use crate::render::{
    Chain, ChainAt, RenderedInput, Switches, Target, has_sealed_data, item_id, string_at,
};

/// The facts of OpenAI's API.
pub(super) static RENDER: RenderFormat = RenderFormat {
    rules: |target, switches| Rules {
        native_calls: switches.enforces("O-15"),
        ..rules(target, switches)
    },
    ..COMMON
};

/// The facts that the dialects of Responses share.
pub(crate) const COMMON: RenderFormat = RenderFormat {
    flat: true,
    custom_calls: true,
    call_id_key: Some("call_id"),
    result_id_key: Some("call_id"),
    envelope: EnvelopeFormat {
        member_fits,
        keys: Some(&["type", "role", "content", "id", "status", "phase"]),
        model_keys: &["phase"],
        ..EnvelopeFormat::COMMON
    },
    plain: PlainForms { text, call, result },
    unusable: UnusableForms {
        always: &["S-O2", "S-O3", "O-13"],
        hosted: &["O-9"],
        known_types: &["O-12"],
    },
    client_items: &[
        "configuration_update",
        "additional_tools",
        "compaction_trigger",
    ],
    refused_item,
    refused_reasoning,
    item_ids: Some(ItemIds {
        is_issued: has_prefix,
        is_required: needs_id,
    }),
    safety_checks: Some(SafetyChecks {
        of_call: safety_checks,
        is_result: |json| json.contains("_output\""),
        takes_checks: |json| json.contains("\"computer_call_output\""),
        acknowledge: acknowledged,
    }),
    ..RenderFormat::common(rules, add_input)
};

const NAMES: RuleNames = RuleNames {
    calls_answered: "O-1",
    results_asked: "O-2",
    one_result: "O-3",
    object_items: "S-O1",
    known_roles: "S-O3",
    own_seals: "O-8",
};

/// The rules that the dialects of Responses share.
pub(crate) fn rules(target: &Target, switches: Switches) -> Rules {
    let on = |rule: &str| switches.enforces(rule);
    let common = Rules::common(&NAMES, target, switches);
    Rules {
        adjacency: Adjacency::BeforeModel,
        id: IdRule {
            longest: if on("O-9") {
                common.id.longest
            } else {
                usize::MAX
            },
            ..common.id
        },
        standalone: true,
        known_keys: on("O-11"),
        ..common
    }
}

fn add_input<'m>(
    body: &mut ObjectBuilder<'m>,
    input: RenderedInput<'m>,
    target: &'m Target,
    switches: Switches,
) {
    if let Some(text) = input.system {
        body.str("instructions", text);
    }
    body.items("input", None, input.items);
    if let Some(chain) = &target.chain {
        add_chain(body, chain, switches);
    }
}

/// A response or a conversation, never both.
fn add_chain(body: &mut ObjectBuilder<'_>, chain: &Chain, switches: Switches) {
    let (response, conversation) = match &chain.at {
        ChainAt::Response(id) => (Some(id), None),
        ChainAt::Conversation(id) => (None, Some(id)),
    };
    let both = !switches.enforces("S-O4");
    if let Some(id) = response.or(conversation.filter(|_| both)) {
        body.str("previous_response_id", id);
    }
    if let Some(id) = conversation.or(response.filter(|_| both)) {
        body.str("conversation", id);
    }
}

fn text(raw: &RawJson, by_model: bool) -> bool {
    let members = match by_model {
        true => FormMembers {
            tag: ("type", "output_text"),
            text: Some("text"),
            lists: &["annotations", "logprobs"],
            ..NO_MEMBERS
        },
        false => FormMembers {
            tag: ("type", "input_text"),
            text: Some("text"),
            ..NO_MEMBERS
        },
    };
    members.matches(None, raw)
}

fn call(content: &Content, raw: &RawJson, call: &ToolCall) -> bool {
    let members = FormMembers {
        tag: ("type", "function_call"),
        id: Some("call_id"),
        name: Some(&call.name),
        text: Some("arguments"),
        strings: &["id", "status"],
        ..NO_MEMBERS
    };
    matches!(call.arguments, Arguments::Text(_)) && members.matches(Some(content), raw)
}

fn result(content: &Content, raw: &RawJson, result: &ToolResult) -> bool {
    let members = FormMembers {
        tag: ("type", "function_call_output"),
        id: Some("call_id"),
        text: Some("output"),
        strings: &["id", "status"],
        ..NO_MEMBERS
    };
    matches!(result.output, Output::Text(_)) && members.matches(Some(content), raw)
}

/// Whether a member of a message beside role and content is of its type.
fn member_fits(key: &str, token: &str) -> bool {
    match key {
        "type" => token == "\"message\"",
        "id" | "status" | "phase" => token.starts_with('"') || token == "null",
        _ => true,
    }
}

fn refused_item(tag: &str, target: &Target, switches: Switches) -> Option<&'static str> {
    match tag {
        "compaction_trigger" if switches.enforces("O-16") => Some("a command, not history"),
        "item_reference" if !target.stored && switches.enforces("O-7") => {
            Some("nothing is stored to refer to")
        }
        _ => None,
    }
}

fn refused_reasoning(
    content: &Content,
    reasoning: &Reasoning,
    target: &Target,
    switches: Switches,
) -> Option<&'static str> {
    let readable = (reasoning.sealed && has_sealed_data(content)) || target.stored;
    if !readable && switches.enforces("O-7") {
        return Some("nothing is stored");
    }
    let foreign = item_id(content).is_some_and(|id| !has_prefix(content, &id));
    foreign.then_some("its id is not one that the service issued")
}

/// The computer call's checks, which its output must echo.
fn safety_checks(call: &Content) -> Option<RawJson> {
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
fn acknowledged(output: &str, checks: &RawJson) -> Option<String> {
    const KEY: &str = "acknowledged_safety_checks";
    let output = RawJson::new(output).ok()?;
    let rest = output.without(|key| key == KEY);
    let whole = RawJson::object(|object| {
        object.members_of(rest.get()).raw(KEY, checks.get());
    });
    Some(whole.get().to_owned())
}

/// The item for a decision on an approval request, in the dialect of `wire`.
pub(crate) fn approval_item(wire: Wire, answer: &ApprovalResponse) -> Option<Vendor> {
    // An id that we made up means nothing to the vendor.
    if answer.request.origin() != Origin::Natural {
        return None;
    }
    let item = RawJson::object(|object| {
        object.str("type", "mcp_approval_response");
        object.str("approval_request_id", answer.request.value());
        object.bool("approve", answer.approved);
        if let Some(reason) = &answer.reason {
            object.str("reason", reason);
        }
    });
    let id_fields = IdFields {
        id: IdField::Missing,
        call: IdField::Set(answer.request.value().into()),
    };
    Some(Vendor::item(wire, item).with_id_fields(id_fields))
}

/// Whether an item id has the prefix of its kind, where the kind has a known one.
fn has_prefix(content: &Content, id: &str) -> bool {
    let Some(vendor) = content.vendor.as_ref() else {
        return true;
    };
    let tag = match (&vendor.envelope, &vendor.form) {
        (Some(_), _) => Cow::Borrowed("message"),
        (None, Form::Item(item)) => string_at(item, "type").unwrap_or_default(),
        (None, _) => return true,
    };
    let prefix = match &*tag {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" | "function_call_output" => "fc",
        "custom_tool_call" | "custom_tool_call_output" => "ctc",
        "web_search_call" => "ws",
        "tool_search_call" => "tsc",
        "code_interpreter_call" => "ci",
        "file_search_call" => "fs",
        "image_generation_call" => "ig",
        "mcp_call" => "mcp",
        "mcp_approval_request" => "mcpr",
        "mcp_list_tools" => "mcpl",
        "compaction" => "cmp",
        _ => return !id.is_empty(),
    };
    id.starts_with(prefix)
}

/// Whether an item is none without its id: others name it, or it is all that there is.
fn needs_id(item: &RawJson) -> bool {
    let tag = string_at(item, "type");
    matches!(
        tag.as_deref(),
        None | Some("mcp_approval_request" | "program" | "program_output" | "item_reference")
    )
}
