//! The item types of the Responses API, as data.

use throughline_model::Family;

use crate::wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};

use ArgumentsAt::{Free, Json, Text};
use IdClass::{Absent, Conflated, Natural, Nullable, SchemaGap};
use ItemRole::{ApprovalRequest, ApprovalResponse, Call, CallAndOutput, Other, Output, Reasoning};
use OutputAt::{Any, Image};

/// The tag of messages; the one type that may go without its tag.
pub(crate) const MESSAGE: &str = "message";
/// The tag of references; it too may be left out.
pub(crate) const ITEM_REFERENCE: &str = "item_reference";

/// The codes of the error in a response, with every vendor.
pub(crate) static ERROR_CODES: [&str; 20] = [
    "server_error",
    "rate_limit_exceeded",
    "invalid_prompt",
    "data_residency_mismatch",
    "bio_policy",
    "vector_store_timeout",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
];

/// The codes that only OpenAI has.
pub(super) static OPENAI_ERROR_CODES: [&str; 1] = ["misalignment_policy_violation"];

const fn row(tag: &'static str, role: ItemRole, family: Family, class: IdClass) -> WireType {
    WireType::new(tag, role, family, class)
}

/// Every item type of OpenAI but `message`.
pub static ITEM_TYPES: [WireType; 33] = [
    // Run by the client: a call and an output with `call_id`.
    row("function_call", Call, Family::FUNCTION, Natural)
        .named_by("name")
        .arguments(Text("arguments")),
    row("function_call_output", Output, Family::FUNCTION, Nullable)
        .named_by("name")
        .output(Any("output")),
    row("computer_call", Call, Family::COMPUTER, Natural).arguments(Json(&["actions", "action"])),
    row("computer_call_output", Output, Family::COMPUTER, Natural).output(Any("output")),
    row("custom_tool_call", Call, Family::CUSTOM, Natural)
        .named_by("name")
        .arguments(Free("input")),
    row("custom_tool_call_output", Output, Family::CUSTOM, Natural).output(Any("output")),
    row("apply_patch_call", Call, Family::APPLY_PATCH, Natural).arguments(Json(&["operation"])),
    row(
        "apply_patch_call_output",
        Output,
        Family::APPLY_PATCH,
        Natural,
    )
    .output(Any("output")),
    row("shell_call", Call, Family::SHELL, Natural).arguments(Json(&["action"])),
    row("shell_call_output", Output, Family::SHELL, Natural).output(OutputAt::Json("output")),
    row("local_shell_call", Call, Family::LOCAL_SHELL, Natural).arguments(Json(&["action"])),
    row(
        "local_shell_call_output",
        Output,
        Family::LOCAL_SHELL,
        SchemaGap,
    )
    .output(Any("output")),
    row("tool_search_call", Call, Family::TOOL_SEARCH, Nullable).arguments(Json(&["arguments"])),
    row("tool_search_output", Output, Family::TOOL_SEARCH, Nullable)
        .output(OutputAt::Json("tools")),
    // Run by the vendor: one item, no `call_id`.
    row(
        "code_interpreter_call",
        CallAndOutput,
        Family::CODE_INTERPRETER,
        Conflated,
    )
    .by_vendor()
    .arguments(Free("code"))
    .output(OutputAt::Json("outputs")),
    row(
        "file_search_call",
        CallAndOutput,
        Family::FILE_SEARCH,
        Conflated,
    )
    .by_vendor()
    .arguments(Json(&["queries"]))
    .output(OutputAt::Json("results")),
    row(
        "image_generation_call",
        CallAndOutput,
        Family::IMAGE_GENERATION,
        Conflated,
    )
    .by_vendor()
    .output(Image("result")),
    row("mcp_call", CallAndOutput, Family::MCP, Conflated)
        .by_vendor()
        .named_by("name")
        .arguments(Text("arguments"))
        .output(Any("output")),
    row("web_search_call", Call, Family::WEB_SEARCH, Conflated)
        .by_vendor()
        .arguments(Json(&["action"])),
    // Newer.
    row("program", Call, Family::PROGRAM, Natural)
        .by_vendor()
        .arguments(Free("code")),
    row("program_output", Output, Family::PROGRAM, Natural)
        .by_vendor()
        .output(Any("result")),
    row("multi_agent_call", Call, Family::MULTI_AGENT, Natural)
        .by_vendor()
        .named_by("action")
        .arguments(Text("arguments")),
    row(
        "multi_agent_call_output",
        Output,
        Family::MULTI_AGENT,
        Natural,
    )
    .by_vendor()
    .named_by("action")
    .output(Any("output")),
    row(
        "mcp_approval_request",
        ApprovalRequest,
        Family::MCP_APPROVAL,
        Natural,
    )
    .ids(Some("id"), Some("id"))
    .named_by("name")
    .arguments(Text("arguments")),
    row(
        "mcp_approval_response",
        ApprovalResponse,
        Family::MCP_APPROVAL,
        Natural,
    )
    .ids(Some("id"), Some("approval_request_id")),
    // Not tools, but part of a history.
    row("reasoning", Reasoning, Family::of("reasoning"), Conflated),
    row("mcp_list_tools", Other, Family::MCP, Conflated),
    row(
        "additional_tools",
        Other,
        Family::of("tool-availability"),
        Conflated,
    ),
    row("compaction", Other, Family::of("compaction"), Conflated),
    row(
        "compaction_trigger",
        Other,
        Family::of("compaction"),
        Absent,
    ),
    row(
        "configuration_update",
        Other,
        Family::of("configuration"),
        Absent,
    ),
    row(ITEM_REFERENCE, Other, Family::of("reference"), Conflated),
    row("agent_message", Other, Family::MULTI_AGENT, Conflated),
];
