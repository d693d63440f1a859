//! The calls and results of Chat Completions, as data.

use throughline_model::Family;

use crate::wire_type::{ArgumentsAt, IdClass, ItemRole, OutputAt, WireType};

/// The tag of a message without contents, which is kept whole.
pub(super) const MESSAGE: &str = "message";

/// Everything of this format that asks for work or answers it.
///
/// Elements of `tool_calls` are distinguished by `type`, results by the role of their message, and
/// the old `function_call` by its key. Name and arguments of an element stand in the member that is
/// named like its type.
pub static ITEM_TYPES: [WireType; 5] = [
    WireType::new(
        "function",
        ItemRole::Call,
        Family::FUNCTION,
        IdClass::Natural,
    )
    .ids(Some("id"), Some("id"))
    .named_by("name")
    .arguments(ArgumentsAt::Text("arguments")),
    WireType::new("custom", ItemRole::Call, Family::CUSTOM, IdClass::Natural)
        .ids(Some("id"), Some("id"))
        .named_by("name")
        .arguments(ArgumentsAt::Free("input")),
    WireType::new("tool", ItemRole::Output, Family::FUNCTION, IdClass::Natural)
        .ids(None, Some("tool_call_id"))
        .named_by("name")
        .output(OutputAt::Any("content")),
    // Before there were tools there were functions, one call at a time and without ids.
    WireType::new(
        "function_call",
        ItemRole::Call,
        Family::FUNCTION,
        IdClass::Absent,
    )
    .ids(None, None)
    .named_by("name")
    .arguments(ArgumentsAt::Text("arguments")),
    WireType::new(
        "function",
        ItemRole::Output,
        Family::FUNCTION,
        IdClass::Absent,
    )
    .ids(None, None)
    .named_by("name")
    .output(OutputAt::Any("content")),
];

/// The ids of an element of `tool_calls` whose type this version does not know.
pub(super) static UNKNOWN_CALL: WireType = WireType::new(
    "unknown",
    ItemRole::Call,
    Family::of("unknown"),
    IdClass::Natural,
)
.ids(Some("id"), Some("id"));

/// The row of a tag; calls and results share the word `function`.
pub(super) fn row(role: ItemRole, tag: &str) -> Option<&'static WireType> {
    ITEM_TYPES
        .iter()
        .find(|row| row.role == role && row.tag == tag)
}
