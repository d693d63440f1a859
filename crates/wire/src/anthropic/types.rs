//! The block types of the Messages API, as data.

use throughline_model::Family;

use crate::wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};

use IdClass::{Absent, Natural};
use ItemRole::{Call, Other, Output, Reasoning};

/// The member of a call that holds its arguments.
pub(super) const INPUT: &str = "input";

/// Tools that Anthropic runs are all called by one type of block.
const SERVER_TOOL: Family = Family::of("server-tool");
const WEB_FETCH: Family = Family::of("web-fetch");
const BASH: Family = Family::of("bash-code-execution");
const TEXT_EDITOR: Family = Family::of("text-editor");
const ADVISOR: Family = Family::of("advisor");
/// The family of blocks that are content, not tools.
const SPEECH: Family = Family::of("content");

/// A call: one field is its name and what results refer to.
const fn call(tag: &'static str, family: Family) -> WireType {
    WireType::new(tag, Call, family, Natural)
        .ids(Some("id"), Some("id"))
        .named_by("name")
        .arguments(ArgumentsAt::Json(&[INPUT]))
}

/// A result: it has no name of its own.
const fn result(tag: &'static str, family: Family, output: OutputAt) -> WireType {
    WireType::new(tag, Output, family, Natural)
        .ids(None, Some("tool_use_id"))
        .output(output)
}

/// The result of a tool that Anthropic runs; its content is the tool's own.
const fn server_result(tag: &'static str, family: Family) -> WireType {
    result(tag, family, OutputAt::Json("content")).by_vendor()
}

const fn other(tag: &'static str, role: ItemRole, family: Family) -> WireType {
    WireType::new(tag, role, family, Absent).ids(None, None)
}

/// Every block type of messages and of tool results.
pub static BLOCK_TYPES: [WireType; 26] = [
    // Run by the client.
    call("tool_use", Family::FUNCTION),
    result("tool_result", Family::FUNCTION, OutputAt::Any("content")),
    // Run by the vendor.
    call("server_tool_use", SERVER_TOOL).by_vendor(),
    server_result("web_search_tool_result", Family::WEB_SEARCH),
    server_result("web_fetch_tool_result", WEB_FETCH),
    server_result("code_execution_tool_result", Family::CODE_EXECUTION),
    server_result("bash_code_execution_tool_result", BASH),
    server_result("text_editor_code_execution_tool_result", TEXT_EDITOR),
    server_result("tool_search_tool_result", Family::TOOL_SEARCH),
    server_result("advisor_tool_result", ADVISOR),
    call("mcp_tool_use", Family::MCP).by_vendor(),
    result("mcp_tool_result", Family::MCP, OutputAt::Any("content")).by_vendor(),
    // Thoughts.
    other("thinking", Reasoning, Family::of("reasoning")),
    other("redacted_thinking", Reasoning, Family::of("reasoning")),
    // Not tools, but part of a history.
    other("compaction", Other, Family::of("compaction")),
    other("mcp_tool_listing", Other, Family::MCP),
    other("tool_addition", Other, Family::of("tool-availability")),
    other("tool_removal", Other, Family::of("tool-availability")),
    other("fallback", Other, Family::of("fallback")),
    other("container_upload", Other, Family::of("container")),
    // Text and media.
    other("text", Other, SPEECH),
    other("image", Other, SPEECH),
    other("document", Other, SPEECH),
    other("search_result", Other, SPEECH),
    other("tool_reference", Other, Family::TOOL_SEARCH),
    other("browser_state", Other, Family::of("browser")),
];

/// The block type of a tag.
pub(super) fn block_type(tag: &str) -> Option<&'static WireType> {
    BLOCK_TYPES.iter().find(|row| row.tag == tag)
}

/// The family of the result that answers a call, by which results without an id find it.
///
/// One type of block calls all server tools; the name decides which result comes back.
pub(super) fn answered_by(row: &WireType, name: &str) -> Family {
    if row.family != SERVER_TOOL {
        return row.family.clone();
    }
    match name {
        "web_search" => Family::WEB_SEARCH,
        "web_fetch" => WEB_FETCH,
        "code_execution" => Family::CODE_EXECUTION,
        "bash_code_execution" => BASH,
        "text_editor_code_execution" => TEXT_EDITOR,
        "tool_search_tool_regex" | "tool_search_tool_bm25" => Family::TOOL_SEARCH,
        "advisor" => ADVISOR,
        _ => SERVER_TOOL,
    }
}
