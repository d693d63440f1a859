//! The blocks of Anthropic Messages as the rules see them.

use crate::validate::object_schema::{Field, Kind, ObjectSchema, optional, required};

const TEXT: Kind = Kind::TEXT;
const LIST: Kind = Kind::LIST;
const OBJECT: Kind = Kind::OBJECT;
const FLAG: Kind = Kind::FLAG;
const BODY: Kind = TEXT.or(LIST);

const ID: Field = required("id", TEXT);
const NAME: Field = required("name", TEXT);
const INPUT: Field = required("input", OBJECT);
const OF: Field = required("tool_use_id", TEXT);
const CALLER: Field = optional("caller", OBJECT);
const TOOLSET: Field = optional("toolset_name", TEXT);
const CACHE: Field = optional("cache_control", OBJECT);

/// Every published block with all of its members, those of the response form included.
pub(super) static BLOCKS: &[ObjectSchema] = &[
    (
        "text",
        &[required("text", TEXT), optional("citations", LIST), CACHE],
    ),
    ("image", &[required("source", OBJECT), CACHE]),
    (
        "document",
        &[
            required("source", OBJECT),
            optional("title", TEXT),
            optional("context", TEXT),
            optional("citations", OBJECT),
            CACHE,
        ],
    ),
    (
        "search_result",
        &[
            required("content", LIST),
            required("source", TEXT),
            required("title", TEXT),
            optional("citations", OBJECT),
            CACHE,
        ],
    ),
    // That it is signed is a rule of its own.
    (
        "thinking",
        &[required("thinking", TEXT), optional("signature", TEXT)],
    ),
    ("redacted_thinking", &[required("data", TEXT)]),
    ("tool_use", &[ID, NAME, INPUT, CALLER, TOOLSET, CACHE]),
    (
        "tool_result",
        &[
            OF,
            optional("content", BODY),
            optional("is_error", FLAG),
            TOOLSET,
            CACHE,
        ],
    ),
    ("server_tool_use", &[ID, NAME, INPUT, CALLER, CACHE]),
    (
        "mcp_tool_use",
        &[ID, NAME, INPUT, required("server_name", TEXT), CACHE],
    ),
    (
        "mcp_tool_result",
        &[
            OF,
            optional("content", BODY),
            optional("is_error", FLAG),
            CACHE,
        ],
    ),
    (
        "web_search_tool_result",
        &[OF, required("content", LIST.or(OBJECT)), CALLER, CACHE],
    ),
    (
        "web_fetch_tool_result",
        &[OF, required("content", OBJECT), CALLER, CACHE],
    ),
    ("code_execution_tool_result", SERVER_RESULT),
    ("bash_code_execution_tool_result", SERVER_RESULT),
    ("text_editor_code_execution_tool_result", SERVER_RESULT),
    ("tool_search_tool_result", SERVER_RESULT),
    ("advisor_tool_result", SERVER_RESULT),
    ("container_upload", &[required("file_id", TEXT), CACHE]),
    (
        "compaction",
        &[
            optional("content", TEXT),
            optional("encrypted_content", TEXT),
            optional("signature", TEXT),
            optional("tool_changes", LIST),
            CACHE,
        ],
    ),
    (
        "mcp_tool_listing",
        &[required("mcp_server_name", TEXT), required("tools", LIST)],
    ),
    ("tool_addition", &[required("tool", OBJECT), CACHE]),
    ("tool_removal", &[required("tool", OBJECT), CACHE]),
    (
        "fallback",
        &[
            required("from", OBJECT),
            required("to", OBJECT),
            required("trigger", OBJECT),
        ],
    ),
];

const SERVER_RESULT: &[Field] = &[OF, required("content", OBJECT), CACHE];

/// Whether a block may have a member; those that are not known may have any.
pub(crate) fn takes_member(tag: &str, key: &str) -> bool {
    let fields = BLOCKS.iter().find(|(name, _)| *name == tag);
    key == "type" || fields.is_none_or(|(_, fields)| fields.iter().any(|field| field.key == key))
}

/// Server tools by name, each with the tag of its result.
const SERVER_TOOLS: [(&str, &str); 8] = [
    ("web_search", "web_search_tool_result"),
    ("web_fetch", "web_fetch_tool_result"),
    ("code_execution", "code_execution_tool_result"),
    ("bash_code_execution", "bash_code_execution_tool_result"),
    (
        "text_editor_code_execution",
        "text_editor_code_execution_tool_result",
    ),
    ("tool_search_tool_regex", "tool_search_tool_result"),
    ("tool_search_tool_bm25", "tool_search_tool_result"),
    ("advisor", "advisor_tool_result"),
];

/// The tag of the result of a server tool; nothing for a name that is not on the list.
pub(super) fn server_result(name: &str) -> Option<&'static str> {
    SERVER_TOOLS
        .iter()
        .find(|(tool, _)| *tool == name)
        .map(|(_, tag)| *tag)
}

/// Whether a block is a result that the service itself made.
pub(super) fn is_service_result(tag: &str) -> bool {
    tag == "mcp_tool_result" || SERVER_TOOLS.iter().any(|(_, result)| *result == tag)
}

/// Keys of a request body.
pub(super) const BODY_KEYS: [&str; 31] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "metadata",
    "stop_sequences",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "thinking",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "output_config",
    "output_format",
    "cache_control",
    "inference_geo",
    "speed",
    "thread",
    "prefix_mismatch_behavior",
    "input_transformations",
    "compaction",
    "anthropic_beta",
    "anthropic_version",
    "diagnostics",
    "fallbacks",
    "user_profile_id",
];

/// Keys of a message; the last two are beta.
pub(super) const MESSAGE_KEYS: [&str; 4] = ["role", "content", "clear_at", "output_config"];

/// Tags that other vendors use where Anthropic has blocks.
pub(super) const FOREIGN: [&str; 22] = [
    "input_text",
    "input_image",
    "input_file",
    "input_audio",
    "output_text",
    "refusal",
    "image_url",
    "file",
    "function",
    "custom",
    "message",
    "reasoning",
    "summary_text",
    "reasoning_text",
    "item_reference",
    "function_call",
    "function_call_output",
    "function_result",
    "custom_tool_call",
    "custom_tool_call_output",
    "mcp_call",
    "web_search_call",
];
