//! The part types of generateContent, as data.

use throughline_model::json::Value;
use throughline_model::{Family, Stop};

use crate::google::either_member;
use crate::wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};

use IdClass::{Absent, Nullable};
use ItemRole::{Call, Output, Reasoning};

/// Where a content has its parts.
pub(super) const PARTS: &str = "parts";
/// The text of a part.
pub(super) const TEXT: &str = "text";
/// A call of the application's function.
pub(super) const FUNCTION_CALL: &str = "functionCall";
/// The member of a part that holds the result of a function.
pub(super) const FUNCTION_RESPONSE: &str = "functionResponse";
/// Code that the service runs.
pub(super) const EXECUTABLE_CODE: &str = "executableCode";
/// What the code gave.
pub(super) const CODE_RESULT: &str = "codeExecutionResult";
/// A call of one of the service's tools.
pub(super) const TOOL_CALL: &str = "toolCall";
/// The member of a part that holds the result of a vendor's own tool.
pub(super) const TOOL_RESPONSE: &str = "toolResponse";
/// Bytes of media.
pub(super) const INLINE_DATA: &str = "inlineData";
/// The address of media.
pub(super) const FILE_DATA: &str = "fileData";

/// The two spellings of the keys that are read in more than one place.
pub(super) const SIGNATURE: (&str, &str) = ("thoughtSignature", "thought_signature");
/// The media type of media.
pub(super) const MIME_TYPE: (&str, &str) = ("mimeType", "mime_type");
/// The address of a file.
pub(super) const FILE_URI: (&str, &str) = ("fileUri", "file_uri");
/// Values of arguments at paths.
pub(super) const PARTIAL_ARGS: (&str, &str) = ("partialArgs", "partial_args");
/// Whether more fragments follow.
pub(super) const WILL_CONTINUE: (&str, &str) = ("willContinue", "will_continue");
/// Why a candidate ended.
pub(super) const FINISH_REASON: (&str, &str) = ("finishReason", "finish_reason");

/// The family of the service's own tools in a `toolCall`; the tool's type is the name.
const SERVER_TOOL: Family = Family::of("generic-server-tool");

const fn row(tag: &'static str, role: ItemRole, family: Family, class: IdClass) -> WireType {
    let row = WireType::new(tag, role, family, class);
    match role {
        Call => row.ids(Some("id"), Some("id")),
        Output => row.ids(None, Some("id")),
        _ => row.ids(None, None),
    }
}

/// Every part type that is a tool call, a tool result or a thought. The tag is the data key.
pub static PART_TYPES: [WireType; 7] = [
    row(FUNCTION_CALL, Call, Family::FUNCTION, Nullable)
        .named_by("name")
        .arguments(ArgumentsAt::Json(&["args"])),
    row(FUNCTION_RESPONSE, Output, Family::FUNCTION, Nullable)
        .named_by("name")
        .output(OutputAt::Json("response")),
    row(EXECUTABLE_CODE, Call, Family::CODE_EXECUTION, Nullable)
        .by_vendor()
        .arguments(ArgumentsAt::Free("code")),
    row(CODE_RESULT, Output, Family::CODE_EXECUTION, Nullable)
        .by_vendor()
        .output(OutputAt::Any("output")),
    row(TOOL_CALL, Call, SERVER_TOOL, Nullable)
        .by_vendor()
        .named_by("toolType")
        .arguments(ArgumentsAt::Json(&["args"])),
    row(TOOL_RESPONSE, Output, SERVER_TOOL, Nullable)
        .by_vendor()
        .named_by("toolType")
        .output(OutputAt::Json("response")),
    row(TEXT, Reasoning, Family::of("reasoning"), Absent),
];

/// The data keys of a part in both spellings. Calls come first: should a part set two keys against
/// the rules, a call must not be missed.
pub(super) const DATA_KEYS: [(&str, &str); 9] = [
    (FUNCTION_CALL, "function_call"),
    (FUNCTION_RESPONSE, "function_response"),
    (EXECUTABLE_CODE, "executable_code"),
    (CODE_RESULT, "code_execution_result"),
    (TOOL_CALL, "tool_call"),
    (TOOL_RESPONSE, "tool_response"),
    (INLINE_DATA, "inline_data"),
    (FILE_DATA, "file_data"),
    (TEXT, TEXT),
];

/// The data of a part.
#[derive(Clone, Copy)]
pub(super) struct PartData<'v, 'a> {
    /// The camelCase key: what kind of part it is.
    pub(super) tag: &'static str,
    /// The key as it stands there.
    pub(super) key: &'static str,
    /// What it holds.
    pub(super) value: &'v Value<'a>,
}

/// Find the data key of a part; none if it has none that we know.
pub(super) fn part_data<'v, 'a>(part: &'v Value<'a>) -> Option<PartData<'v, 'a>> {
    DATA_KEYS.iter().find_map(|names| {
        let (key, value) = either_member(part, *names)?;
        Some(PartData {
            tag: names.0,
            key,
            value,
        })
    })
}

/// The row of a tag.
pub(super) fn part_type(tag: &str) -> Option<&'static WireType> {
    PART_TYPES.iter().find(|row| row.tag == tag)
}

/// The stop for a finish reason. `STOP` is sent with calls too, so the caller passes whether any
/// wait.
pub(super) fn stop(reason: &str, calls_wait: bool) -> Stop {
    match reason {
        "STOP" if calls_wait => Stop::ToolCalls,
        "STOP" => Stop::Done,
        "MAX_TOKENS" => Stop::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Stop::ContentFilter,
        "CONTINUATION" => Stop::Paused,
        other => Stop::Other(other.into()),
    }
}

/// The finish reason of a stop; none while nothing has ended.
pub(super) fn finish_reason(stop: &Stop) -> Option<&'static str> {
    match stop {
        Stop::Done | Stop::ToolCalls => Some("STOP"),
        Stop::Length => Some("MAX_TOKENS"),
        Stop::ContentFilter | Stop::Refusal => Some("SAFETY"),
        Stop::Paused => Some("CONTINUATION"),
        Stop::Cancelled | Stop::Failed | Stop::Other(_) => Some("OTHER"),
        Stop::InProgress | Stop::Cut => None,
    }
}
