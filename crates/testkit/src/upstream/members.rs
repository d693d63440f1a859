//! The members that a request may have, by vendor. Others are refused, as vendors do.

use serde_json::{Map, Value};
use throughline_model::Wire;

use super::vendor::{Refusal, Vendor, family};

const RESPONSES: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// In addition to those of Responses.
const FOUNDRY: &[&str] = &["agent_reference", "agent_session_id", "structured_inputs"];

const CHAT: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

const ANTHROPIC: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

const GEMINI: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "model",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

const GENERATION: &[&str] = &[
    "candidateCount",
    "enableEnhancedCivicAnswers",
    "frequencyPenalty",
    "imageConfig",
    "logprobs",
    "maxOutputTokens",
    "mediaResolution",
    "presencePenalty",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "seed",
    "speechConfig",
    "stopSequences",
    "temperature",
    "thinkingConfig",
    "topK",
    "topP",
];

const INTERACTIONS: &[&str] = &[
    "agent",
    "agent_config",
    "background",
    "environment",
    "generation_config",
    "input",
    "labels",
    "model",
    "previous_interaction_id",
    "response_format",
    "response_mime_type",
    "response_modalities",
    "service_tier",
    "store",
    "stream",
    "system_instruction",
    "tools",
    "webhook_config",
];

/// Checks that the vendor knows every member.
pub(super) fn check(wire: &Wire, body: &Map<String, Value>) -> Result<(), Refusal> {
    let (known, more): (&[&str], &[&str]) = match wire {
        Wire::OpenAiResponses | Wire::Other(_) => (RESPONSES, &[]),
        Wire::Foundry => (RESPONSES, FOUNDRY),
        Wire::OpenAiChat => (CHAT, &[]),
        Wire::Anthropic => (ANTHROPIC, &[]),
        Wire::Gemini => (GEMINI, &[]),
        Wire::GeminiInteractions => (INTERACTIONS, &[]),
    };
    for key in body.keys() {
        if !known.contains(&key.as_str()) && !more.contains(&key.as_str()) {
            return Err(unknown(wire, key, ""));
        }
    }
    if *wire == Wire::Gemini
        && let Some(config) = body.get("generationConfig").and_then(Value::as_object)
    {
        for key in config.keys() {
            if !GENERATION.contains(&key.as_str()) {
                return Err(unknown(wire, key, " at 'generation_config'"));
            }
        }
    }
    Ok(())
}

fn unknown(wire: &Wire, key: &str, place: &str) -> Refusal {
    let message = match family(wire) {
        Vendor::OpenAi => format!("Unknown parameter: '{key}'."),
        Vendor::Anthropic => format!("{key}: Extra inputs are not permitted"),
        Vendor::Google => format!(
            "Invalid JSON payload received. Unknown name \"{key}\"{place}: Cannot find field."
        ),
    };
    Refusal::new(wire, 400, message)
        .code("unknown_parameter")
        .param(key)
}
