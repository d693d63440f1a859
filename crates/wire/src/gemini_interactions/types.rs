//! The step types of the Interactions API, as data.

use throughline_model::{Family, Stop};

use crate::wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};

use ItemRole::{Call, Output, Reasoning};

/// The tag of a step of the user.
pub(super) const USER_INPUT: &str = "user_input";
/// The tag of a step with output of the model.
pub(super) const MODEL_OUTPUT: &str = "model_output";
/// The tag of a step with reasoning.
pub(super) const THOUGHT: &str = "thought";
/// Where both have their parts.
pub(super) const CONTENT: &str = "content";
/// Where calls have what they are called with.
pub(super) const ARGUMENTS: &str = "arguments";
/// Where results have what they give.
pub(super) const RESULT: &str = "result";

const fn call(tag: &'static str, family: Family) -> WireType {
    WireType::new(tag, Call, family, IdClass::Natural)
        .ids(Some("id"), Some("id"))
        .arguments(ArgumentsAt::Json(&[ARGUMENTS]))
}

const fn result(tag: &'static str, family: Family) -> WireType {
    WireType::new(tag, Output, family, IdClass::Natural)
        .ids(None, Some("call_id"))
        .output(OutputAt::Any(RESULT))
}

const URL_CONTEXT: Family = Family::of("url-context");
const MAPS: Family = Family::of("maps");
const RETRIEVAL: Family = Family::of("retrieval");
const PROCESSING: Family = Family::of("media-processing");

/// Every step type but `user_input` and `model_output`.
pub static STEP_TYPES: [WireType; 19] = [
    call("function_call", Family::FUNCTION).named_by("name"),
    result("function_result", Family::FUNCTION).named_by("name"),
    call("code_execution_call", Family::CODE_EXECUTION).by_vendor(),
    result("code_execution_result", Family::CODE_EXECUTION).by_vendor(),
    call("google_search_call", Family::WEB_SEARCH).by_vendor(),
    result("google_search_result", Family::WEB_SEARCH).by_vendor(),
    call("url_context_call", URL_CONTEXT).by_vendor(),
    result("url_context_result", URL_CONTEXT).by_vendor(),
    call("file_search_call", Family::FILE_SEARCH).by_vendor(),
    result("file_search_result", Family::FILE_SEARCH).by_vendor(),
    call("mcp_server_tool_call", Family::MCP)
        .by_vendor()
        .named_by("name"),
    result("mcp_server_tool_result", Family::MCP)
        .by_vendor()
        .named_by("name"),
    call("google_maps_call", MAPS).by_vendor(),
    result("google_maps_result", MAPS).by_vendor(),
    call("retrieval_call", RETRIEVAL).by_vendor(),
    result("retrieval_result", RETRIEVAL).by_vendor(),
    call("processing_call", PROCESSING).by_vendor(),
    result("processing_result", PROCESSING).by_vendor(),
    WireType::new(THOUGHT, Reasoning, Family::of("reasoning"), IdClass::Absent).ids(None, None),
];

/// The row of a tag.
pub(super) fn step_type(tag: &str) -> Option<&'static WireType> {
    STEP_TYPES.iter().find(|row| row.tag == tag)
}

/// Whether a tag is one of a content, which may stand alone in an input.
pub(super) fn is_content(tag: &str) -> bool {
    matches!(tag, "text" | "image" | "audio" | "video" | "document")
}

/// The stop for the status of an interaction. The caller passes whether calls wait, for a status
/// that leaves it open.
pub(super) fn stop(status: Option<&str>, calls_wait: bool) -> Stop {
    match status {
        Some("completed") | None if calls_wait => Stop::ToolCalls,
        Some("completed") | None => Stop::Done,
        Some("requires_action") => Stop::ToolCalls,
        Some("requires_continuation") => Stop::Paused,
        Some("incomplete") => Stop::Length,
        Some("failed") => Stop::Failed,
        Some("cancelled") => Stop::Cancelled,
        Some("in_progress" | "queued") => Stop::InProgress,
        Some(other) => Stop::Other(other.into()),
    }
}

/// The status for a stop.
pub(super) fn status(stop: &Stop) -> &str {
    match stop {
        Stop::Done | Stop::Refusal => "completed",
        Stop::ToolCalls => "requires_action",
        Stop::Paused => "requires_continuation",
        Stop::Length | Stop::ContentFilter | Stop::Cut => "incomplete",
        Stop::Failed => "failed",
        Stop::Cancelled => "cancelled",
        Stop::InProgress => "in_progress",
        Stop::Other(word) if &**word == "budget_exceeded" => word,
        Stop::Other(_) => "completed",
    }
}
