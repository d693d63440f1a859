//! The items of the Responses protocol as the rules see them.

use crate::validate::object_schema::{Field, Kind, nullable, optional, required};

/// One published item type.
pub(super) struct ItemType {
    pub(super) tag: &'static str,
    /// What an `id` begins with, where that is documented.
    pub(super) prefix: Option<&'static str>,
    pub(super) part: Part,
    pub(super) side: Side,
    pub(super) fields: &'static [Field],
}

/// What an item does in a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Asks for work; answered by an item of this tag.
    Call(&'static str, Runner),
    /// Answers a call.
    Output,
    /// Neither, or both at once.
    Alone,
}

/// Who runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// The application; it owes an output.
    Client,
    /// Items that the vendor makes.
    Service,
    /// A shell call: the client, unless it names a container of the vendor.
    ByEnvironment,
    /// A tool search: `execution` decides, else the presence of a call id.
    ByExecution,
}

/// Who wrote an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The model or its service.
    Model,
    /// Items that the application makes.
    Client,
    /// A message, by its role. A tool search output, by `execution`.
    Tells,
}

const TEXT: Kind = Kind::TEXT;
const LIST: Kind = Kind::LIST;
const OBJECT: Kind = Kind::OBJECT;
const NUMBER: Kind = Kind::NUMBER;
const RESULT: Kind = TEXT.or(LIST);

/// Item ids may be left out nearly everywhere (O-6, O-10), so they are required only where
/// something refers to them.
const ID: Field = optional("id", TEXT);
const CALL_ID: Field = required("call_id", TEXT);
const STATUS: Field = required("status", TEXT);
const CALLER: Field = optional("caller", OBJECT);

const fn row(tag: &'static str, part: Part, side: Side, fields: &'static [Field]) -> ItemType {
    ItemType {
        tag,
        prefix: None,
        part,
        side,
        fields,
    }
}

impl ItemType {
    const fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = Some(prefix);
        self
    }
}

use Part::{Alone, Call, Output};
use Runner::{ByEnvironment, ByExecution, Client, Service};

/// Every published item type of OpenAI.
pub(super) static ITEM_TYPES: &[ItemType] = &[
    row("message", Alone, Side::Tells, &[ID]).prefix("msg"),
    row(
        "function_call",
        Call("function_call_output", Client),
        Side::Model,
        &[
            required("arguments", TEXT),
            CALL_ID,
            required("name", TEXT),
            ID,
            CALLER,
            optional("namespace", TEXT),
            optional("async", Kind::FLAG),
        ],
    )
    .prefix("fc"),
    row(
        "function_call_output",
        Output,
        Side::Client,
        &[
            required("output", RESULT),
            optional("call_id", TEXT),
            ID,
            CALLER,
            optional("name", TEXT),
            optional("namespace", TEXT),
        ],
    )
    .prefix("fc"),
    row(
        "custom_tool_call",
        Call("custom_tool_call_output", Client),
        Side::Model,
        &[
            CALL_ID,
            required("input", TEXT),
            required("name", TEXT),
            ID,
            CALLER,
            optional("namespace", TEXT),
            optional("async", Kind::FLAG),
        ],
    )
    .prefix("ctc"),
    row(
        "custom_tool_call_output",
        Output,
        Side::Client,
        &[CALL_ID, required("output", RESULT), ID, CALLER],
    )
    .prefix("ctc"),
    row(
        "computer_call",
        Call("computer_call_output", Client),
        Side::Model,
        &[
            CALL_ID,
            required("pending_safety_checks", LIST),
            STATUS,
            ID,
            optional("action", OBJECT),
            optional("actions", LIST),
        ],
    ),
    row(
        "computer_call_output",
        Output,
        Side::Client,
        &[
            CALL_ID,
            required("output", OBJECT),
            ID,
            optional("acknowledged_safety_checks", LIST),
        ],
    ),
    row(
        "apply_patch_call",
        Call("apply_patch_call_output", Client),
        Side::Model,
        &[CALL_ID, required("operation", OBJECT), STATUS, ID, CALLER],
    ),
    row(
        "apply_patch_call_output",
        Output,
        Side::Client,
        &[CALL_ID, STATUS, ID, CALLER, optional("output", TEXT)],
    ),
    row(
        "shell_call",
        Call("shell_call_output", ByEnvironment),
        Side::Model,
        &[
            required("action", OBJECT),
            CALL_ID,
            ID,
            CALLER,
            optional("environment", OBJECT),
        ],
    ),
    row(
        "shell_call_output",
        Output,
        Side::Client,
        &[
            CALL_ID,
            required("output", LIST),
            ID,
            CALLER,
            optional("max_output_length", NUMBER),
        ],
    ),
    row(
        "local_shell_call",
        Call("local_shell_call_output", Client),
        Side::Model,
        &[required("action", OBJECT), CALL_ID, STATUS, ID],
    ),
    row(
        "local_shell_call_output",
        Output,
        Side::Client,
        &[required("output", TEXT), ID, optional("call_id", TEXT)],
    ),
    row(
        "tool_search_call",
        Call("tool_search_output", ByExecution),
        Side::Model,
        &[
            required("arguments", Kind::ANY),
            ID,
            optional("call_id", TEXT),
            optional("execution", TEXT),
        ],
    )
    .prefix("tsc"),
    row(
        "tool_search_output",
        Output,
        Side::Tells,
        &[
            required("tools", LIST),
            ID,
            optional("call_id", TEXT),
            optional("execution", TEXT),
        ],
    ),
    row(
        "code_interpreter_call",
        Alone,
        Side::Model,
        &[
            nullable("code", TEXT),
            required("container_id", TEXT),
            nullable("outputs", LIST),
            STATUS,
            ID,
        ],
    )
    .prefix("ci"),
    row(
        "file_search_call",
        Alone,
        Side::Model,
        &[
            required("queries", LIST),
            STATUS,
            ID,
            optional("results", LIST),
        ],
    )
    .prefix("fs"),
    row(
        "image_generation_call",
        Alone,
        Side::Model,
        &[nullable("result", TEXT), STATUS, ID],
    )
    .prefix("ig"),
    row(
        "mcp_call",
        Alone,
        Side::Model,
        &[
            required("arguments", TEXT),
            required("name", TEXT),
            required("server_label", TEXT),
            ID,
            optional("approval_request_id", TEXT),
            optional("output", TEXT),
            // It was a string once.
            optional("error", OBJECT.or(TEXT)),
        ],
    )
    .prefix("mcp"),
    row(
        "web_search_call",
        Alone,
        Side::Model,
        &[required("action", OBJECT), STATUS, ID],
    )
    .prefix("ws"),
    row(
        "program",
        Call("program_output", Service),
        Side::Model,
        &[
            required("id", TEXT),
            CALL_ID,
            required("code", TEXT),
            required("fingerprint", TEXT),
        ],
    ),
    row(
        "program_output",
        Output,
        Side::Model,
        &[
            required("id", TEXT),
            CALL_ID,
            required("result", TEXT),
            STATUS,
        ],
    ),
    row(
        "multi_agent_call",
        Call("multi_agent_call_output", Service),
        Side::Model,
        &[
            required("action", TEXT),
            required("arguments", TEXT),
            CALL_ID,
            ID,
            optional("agent", OBJECT),
        ],
    ),
    row(
        "multi_agent_call_output",
        Output,
        Side::Model,
        &[
            required("action", TEXT),
            CALL_ID,
            required("output", LIST),
            ID,
            optional("agent", OBJECT),
        ],
    ),
    row(
        "mcp_approval_request",
        Alone,
        Side::Model,
        &[
            required("id", TEXT),
            required("arguments", TEXT),
            required("name", TEXT),
            required("server_label", TEXT),
        ],
    )
    .prefix("mcpr"),
    row(
        "mcp_approval_response",
        Alone,
        Side::Client,
        &[
            required("approval_request_id", TEXT),
            required("approve", Kind::FLAG),
            ID,
            optional("reason", TEXT),
        ],
    ),
    row(
        "mcp_list_tools",
        Alone,
        Side::Model,
        &[
            required("server_label", TEXT),
            required("tools", LIST),
            ID,
            optional("error", TEXT),
        ],
    )
    .prefix("mcpl"),
    row(
        "reasoning",
        Alone,
        Side::Model,
        &[
            required("summary", LIST),
            ID,
            optional("content", LIST),
            optional("encrypted_content", TEXT),
        ],
    )
    .prefix("rs"),
    row(
        "compaction",
        Alone,
        Side::Model,
        &[required("encrypted_content", TEXT), ID],
    )
    .prefix("cmp"),
    row(
        "additional_tools",
        Alone,
        Side::Client,
        &[required("role", TEXT), required("tools", LIST), ID],
    ),
    row("compaction_trigger", Alone, Side::Client, &[ID]),
    row(
        "configuration_update",
        Alone,
        Side::Client,
        &[ID, optional("reasoning", OBJECT), optional("text", OBJECT)],
    ),
    row(
        "item_reference",
        Alone,
        Side::Model,
        &[required("id", TEXT)],
    ),
    row(
        "agent_message",
        Alone,
        Side::Model,
        &[
            required("author", TEXT),
            required("content", LIST),
            required("recipient", TEXT),
            ID,
            optional("agent", OBJECT),
        ],
    ),
];

/// The one Foundry item that is input too.
pub(super) static MEMORY_SEARCH: ItemType = row(
    "memory_search_call",
    Alone,
    Side::Model,
    &[optional("results", LIST), ID],
);

/// The tools that only Foundry runs, without `preview`; they may have it or not.
const FOUNDRY_TOOLS: [&str; 9] = [
    "a2a",
    "azure_ai_search",
    "azure_function",
    "bing_custom_search",
    "bing_grounding",
    "browser_automation",
    "fabric_dataagent",
    "openapi",
    "sharepoint_grounding",
];

/// Whether an item type exists in Foundry's answers only.
pub(super) fn is_foundry_only(tag: &str) -> bool {
    if [
        "workflow_action",
        "oauth_consent_request",
        "structured_outputs",
    ]
    .contains(&tag)
    {
        return true;
    }
    let stem = tag.strip_suffix("_output").unwrap_or(tag);
    let Some(stem) = stem.strip_suffix("_call") else {
        return false;
    };
    let stem = stem.strip_suffix("_preview").unwrap_or(stem);
    FOUNDRY_TOOLS.contains(&stem)
}

/// The published type of a tag.
pub(super) fn item_type(tag: &str) -> Option<&'static ItemType> {
    ITEM_TYPES.iter().find(|row| row.tag == tag)
}
