//! Names and values of the conventions.

use throughline_model::json::{ArrayWriter, push_string};
use throughline_model::{Response, Stop, Wire};

use crate::client::Abilities;

/// The name of a span: an operation and its object.
pub(super) fn name(operation: &str, of: Option<&str>) -> String {
    match of {
        Some(of) => format!("{operation} {of}"),
        None => operation.to_owned(),
    }
}

/// The name of a provider. A service that only speaks OpenAI's format is not OpenAI, so there the
/// service's own name is used.
pub(super) fn provider(abilities: &Abilities) -> &str {
    let upstream = abilities.upstream.as_str();
    match (upstream, &abilities.wire) {
        ("openai", _) => "openai",
        (_, Some(Wire::Anthropic)) => "anthropic",
        (_, Some(Wire::Gemini | Wire::GeminiInteractions)) => "gcp.gemini",
        (_, Some(Wire::Foundry)) => "azure.ai.inference",
        (_, Some(Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Other(_)) | None) => upstream,
    }
}

/// Why the model stopped, once per alternative: a JSON list, because spans have no list values.
pub(super) fn finish_reasons(response: &Response) -> String {
    let mut out = String::new();
    let mut reasons = ArrayWriter::new(&mut out);
    for _ in 0..response.messages.len().max(1) {
        push_string(reasons.slot(), finish_reason(&response.stop));
    }
    reasons.end();
    out
}

/// Why the model stopped, in the words of the conventions or else in ours.
pub(super) fn finish_reason(stop: &Stop) -> &str {
    match stop {
        Stop::Done => "stop",
        Stop::ToolCalls => "tool_call",
        Stop::Length => "length",
        Stop::ContentFilter => "content_filter",
        Stop::Refusal => "refusal",
        Stop::Paused => "paused",
        Stop::Cancelled => "cancelled",
        Stop::Failed | Stop::Cut => "error",
        Stop::InProgress => "in_progress",
        Stop::Other(word) => word,
    }
}
