//! The bodies of a vendor's responses.

use serde_json::{Map, Value, json};
use throughline_model::Wire;

use super::memory::named;
use super::reply::{Part, PlainReply, ReplyId};

/// The context of an answer.
pub(super) struct RequestContext<'a> {
    pub(super) model: &'a str,
    pub(super) body: &'a Map<String, Value>,
    /// Unique in the server.
    pub(super) number: usize,
    pub(super) stored: bool,
}

/// The whole body, in the vendor's form.
pub(super) fn body(wire: &Wire, asked: &RequestContext<'_>, said: &PlainReply) -> Value {
    match wire {
        Wire::OpenAiResponses | Wire::Foundry | Wire::Other(_) => responses(wire, asked, said),
        Wire::OpenAiChat => chat(asked, said),
        Wire::Anthropic => anthropic(asked, said),
        Wire::Gemini => gemini(asked, said),
        Wire::GeminiInteractions => interactions(asked, said),
    }
}

fn calls(said: &PlainReply) -> bool {
    said.parts
        .iter()
        .any(|part| matches!(part, Part::Call { .. }))
}

/// Arguments as a value, for vendors that have them so; invalid JSON is lost, as at the vendor.
fn object(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!({}))
}

/// A call with its id, if it has one.
fn named_as(mut call: Value, key: &str, id: &ReplyId, fresh: String) -> Value {
    if let Some(id) = id.text(fresh) {
        call[key] = json!(id);
    }
    call
}

/// A seal in the vendor's form: unique, and base 64.
fn seal(asked: &RequestContext<'_>, place: usize) -> String {
    format!(
        "gAAAAAB{:06}{:02}sealedA==",
        asked.number % 1_000_000,
        place % 100
    )
}

fn responses(wire: &Wire, asked: &RequestContext<'_>, said: &PlainReply) -> Value {
    let n = asked.number;
    let status = if said.cut_off {
        "incomplete"
    } else {
        "completed"
    };
    let include = asked.body.get("include").and_then(Value::as_array);
    let sealed = include.is_some_and(|list| {
        list.iter()
            .any(|entry| entry == "reasoning.encrypted_content")
    });
    let id = format!("resp_{n:08x}");
    let mut output = Vec::new();
    for (place, part) in said.parts.iter().enumerate() {
        // The limit cuts off the last content; earlier ones are complete.
        let status = match place + 1 == said.parts.len() {
            true => status,
            false => "completed",
        };
        let mut item = match part {
            Part::Thought(text) => {
                let mut item = json!({"type": "reasoning", "id": format!("rs_{n:08x}{place:02x}"),
                    "summary": [{"type": "summary_text", "text": text}]});
                if sealed {
                    item["encrypted_content"] = json!(seal(asked, place));
                }
                item
            }
            Part::Text(text) => json!({"type": "message", "id": format!("msg_{n:08x}{place:02x}"),
                "status": status, "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": [],
                    "logprobs": []}]}),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let item = json!({"type": "function_call", "id": format!("fc_{n:08x}{place:02x}"),
                    "name": name, "arguments": arguments, "status": status});
                named_as(item, "call_id", id, format!("call_{n:08x}{place:02x}"))
            }
            Part::Image(data) => json!({"type": "image_generation_call",
                "id": format!("ig_{n:08x}{place:02x}"), "status": "completed", "result": data}),
        };
        if *wire == Wire::Foundry {
            item["response_id"] = json!(id);
        }
        output.push(item);
    }
    let usage = said.usage.map(|(input, made)| {
        json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": made, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + made})
    });
    let why = said.cut_off.then(|| json!({"reason": "max_output_tokens"}));
    let previous = asked
        .body
        .get("previous_response_id")
        .unwrap_or(&Value::Null);
    let conversation = named(asked.body, "conversation").map(|id| json!({"id": id}));
    json!({"id": id, "object": "response", "created_at": 1_763_000_000 + n, "status": status,
        "background": false, "conversation": conversation, "error": null, "incomplete_details": why, "instructions": null,
        "max_output_tokens": null, "model": asked.model, "output": output,
        "parallel_tool_calls": true, "previous_response_id": previous,
        "reasoning": {"effort": null, "summary": null}, "store": asked.stored, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": usage, "user": null, "metadata": {}})
}

fn chat(asked: &RequestContext<'_>, said: &PlainReply) -> Value {
    let n = asked.number;
    let mut text = String::new();
    let mut list = Vec::new();
    for (place, part) in said.parts.iter().enumerate() {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let call = json!({"type": "function",
                    "function": {"name": name, "arguments": arguments}});
                list.push(named_as(call, "id", id, format!("call_{n:08x}{place:02x}")));
            }
            // This format has neither.
            Part::Thought(_) | Part::Image(_) => {}
        }
    }
    let content = if text.is_empty() {
        Value::Null
    } else {
        json!(text)
    };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null,
        "annotations": []});
    if !list.is_empty() {
        message["tool_calls"] = Value::Array(list);
    }
    let finish = match (said.cut_off, calls(said)) {
        (true, _) => "length",
        (false, true) => "tool_calls",
        (false, false) => "stop",
    };
    let usage = said.usage.map(|(input, made)| {
        json!({"prompt_tokens": input, "completion_tokens": made, "total_tokens": input + made,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}})
    });
    json!({"id": format!("chatcmpl-{n:08x}"), "object": "chat.completion",
        "created": 1_763_000_000 + n, "model": asked.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": usage, "service_tier": "default", "system_fingerprint": "fp_50cad350e4"})
}

fn anthropic(asked: &RequestContext<'_>, said: &PlainReply) -> Value {
    let n = asked.number;
    let mut content = Vec::new();
    for (place, part) in said.parts.iter().enumerate() {
        content.push(match part {
            Part::Thought(text) => json!({"type": "thinking", "thinking": text,
                "signature": seal(asked, place)}),
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let block = json!({"type": "tool_use", "name": name, "input": object(arguments)});
                named_as(block, "id", id, format!("toolu_{n:08x}{place:02x}"))
            }
            // Its models make no pictures.
            Part::Image(_) => continue,
        });
    }
    let stop = match (said.cut_off, calls(said)) {
        (true, _) => "max_tokens",
        (false, true) => "tool_use",
        (false, false) => "end_turn",
    };
    let mut body = json!({"id": format!("msg_{n:08x}"), "type": "message", "role": "assistant",
        "model": asked.model, "content": content, "stop_reason": stop, "stop_sequence": null});
    if let Some((input, made)) = said.usage {
        body["usage"] = json!({"input_tokens": input, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": made, "service_tier": "standard"});
    }
    body
}

fn gemini(asked: &RequestContext<'_>, said: &PlainReply) -> Value {
    let n = asked.number;
    let mut parts = Vec::new();
    let mut signed = false;
    for (place, part) in said.parts.iter().enumerate() {
        parts.push(match part {
            Part::Thought(text) => json!({"text": text, "thought": true}),
            Part::Text(text) => json!({"text": text}),
            Part::Call { .. } if said.cut_off => continue,
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let call = json!({"name": name, "args": object(arguments)});
                let call = named_as(call, "id", id, format!("fc{n:08x}{place:02x}"));
                let mut part = json!({"functionCall": call});
                // Only the first of parallel calls is signed.
                if !std::mem::replace(&mut signed, true) {
                    part["thoughtSignature"] = json!(seal(asked, place));
                }
                part
            }
            Part::Image(data) => json!({"inlineData": {"mimeType": "image/png", "data": data}}),
        });
    }
    let finish = if said.cut_off { "MAX_TOKENS" } else { "STOP" };
    let mut body = json!({"candidates": [{"content": {"parts": parts, "role": "model"},
            "finishReason": finish, "index": 0}],
        "modelVersion": asked.model, "responseId": format!("r{n:08x}")});
    if let Some((input, made)) = said.usage {
        body["usageMetadata"] = json!({"promptTokenCount": input, "candidatesTokenCount": made,
            "totalTokenCount": input + made});
    }
    body
}

fn interactions(asked: &RequestContext<'_>, said: &PlainReply) -> Value {
    let n = asked.number;
    let mut steps = Vec::new();
    for (place, part) in said.parts.iter().enumerate() {
        steps.push(match part {
            Part::Thought(text) => json!({"type": "thought", "signature": seal(asked, place),
                "summary": [{"type": "text", "text": text}]}),
            Part::Text(text) => json!({"type": "model_output",
                "content": [{"type": "text", "text": text}]}),
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let step = json!({"type": "function_call", "name": name,
                    "arguments": object(arguments)});
                named_as(step, "id", id, format!("fcs_{n:08x}{place:02x}"))
            }
            Part::Image(data) => json!({"type": "model_output",
                "content": [{"type": "image", "data": data, "mime_type": "image/png"}]}),
        });
    }
    let status = match (said.cut_off, calls(said)) {
        (true, _) => "incomplete",
        (false, true) => "requires_action",
        (false, false) => "completed",
    };
    let mut body = json!({"id": format!("int_{n:08x}"), "object": "interaction",
        "model": asked.model, "role": "model", "status": status, "steps": steps,
        "created": "2026-11-15T10:00:00Z", "updated": "2026-11-15T10:00:01Z"});
    if let Some(previous) = asked.body.get("previous_interaction_id") {
        body["previous_interaction_id"] = previous.clone();
    }
    if let Some((input, made)) = said.usage {
        body["usage"] = json!({"total_input_tokens": input, "total_output_tokens": made,
            "total_tokens": input + made});
    }
    body
}
