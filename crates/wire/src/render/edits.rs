//! Contents that are changed before they are sent.

use throughline_model::json::push_string;
use throughline_model::{Body, Content, Output};

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text);
    out
}

/// A thought with less in it, as one might keep it to save room.
pub(super) fn shortened(content: &Content) -> Content {
    let mut short = content.clone();
    if let Body::Reasoning(reasoning) = &mut short.body {
        for text in &mut reasoning.text {
            *text = text.chars().take(1).collect();
        }
    }
    short
}

/// A result without empty texts; `None` if it has none.
pub(super) fn without_empty_parts(content: &Content) -> Option<Content> {
    let is_empty = |part: &Content| part.as_text().is_some_and(|text| text.trim().is_empty());
    match &content.as_tool_result()?.output {
        Output::Parts(parts) if parts.iter().any(is_empty) => {}
        Output::Parts(_) | Output::None | Output::Text(_) | Output::Json(_) => return None,
    }
    let mut full = content.clone();
    if let Body::ToolResult(result) = &mut full.body
        && let Output::Parts(parts) = &mut result.output
    {
        parts.retain(|part| !is_empty(part));
    }
    Some(full)
}
