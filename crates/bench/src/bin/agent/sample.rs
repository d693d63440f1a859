//! Sample answers and histories of vendors.

use serde_json::{Value, json};
use throughline::model::{CallId, Content, Message, Outcome, Output, Role, Scope, ToolCall};
use throughline_testkit::Rng;
use throughline_wire::sse::write_frame;
use throughline_wire::{Losses, Wire, codec};

/// Words with the quotes, line breaks and accents of real text.
fn prose(seed: u64, words: usize) -> String {
    const WORDS: [&str; 12] = [
        "the",
        "tide",
        "turns",
        "at",
        "ten\n",
        "\"berth\"",
        "harbour",
        "naïve",
        "and",
        "moors",
        "C:\\charts",
        "again",
    ];
    let mut rng = Rng::new(seed);
    let chosen: Vec<&str> = (0..words).map(|_| *rng.pick::<&str>(&WORDS)).collect();
    chosen.join(" ")
}

/// Text that only its vendor can read.
fn sealed(seed: u64, bytes: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut rng = Rng::new(seed);
    let letters = (0..bytes).map(|_| char::from(*rng.pick::<u8>(LETTERS)));
    letters.collect()
}

/// Turns with one round of tools each, in the vendor's form.
pub(super) fn history(wire: &Wire, messages: usize) -> Vec<Message> {
    let mut said = Vec::new();
    let mut made = 0;
    while said.len() < messages {
        let seed = said.len() as u64;
        said.push(Message::user(prose(seed, 60)));
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            made += 1;
            let id = CallId::natural(&format!("call_{made:08}"))
                .unwrap_or_else(|| CallId::minted(Scope::Place(made), 0));
            let call = ToolCall::function(id, "get_tide", port(made));
            let output = Output::Text(prose(seed + made as u64, 150));
            results.push(Content::from(call.answer(Outcome::Ok, output)));
            calls.push(Content::from(call));
        }
        said.push(Message::new(Role::Assistant, calls));
        said.push(Message::new(Role::Tool, results));
        let text = Content::text(prose(seed, 90));
        said.push(Message::new(Role::Assistant, vec![text]));
    }
    said.truncate(messages);
    let Some(codec) = codec(wire) else {
        return said;
    };
    let array = codec.encode_messages(&said, &mut Losses::default());
    let native = throughline::model::json::parse(&array)
        .ok()
        .and_then(|items| codec.decode_messages(items.as_array()?).ok());
    native.unwrap_or(said)
}

/// Arguments of a call.
fn port(number: usize) -> String {
    json!({"port": format!("harbour {number}"), "day": "2026-03-01"}).to_string()
}

/// The body of a whole answer: reasoning, then text or calls, and usage.
pub(super) fn answer(wire: &Wire, calls: usize) -> String {
    let body = match wire {
        Wire::OpenAiResponses => responses(calls, Some(sealed(3, 1_000))),
        Wire::Foundry => responses(calls, None),
        Wire::Anthropic => anthropic(calls),
        Wire::Gemini => gemini(calls),
        Wire::OpenAiChat | Wire::GeminiInteractions | Wire::Other(_) => chat(calls),
    };
    body.to_string()
}

/// The same answer as a stream, a few words in each frame.
pub(super) fn streamed(wire: &Wire, body: &str) -> Option<String> {
    let codec = codec(wire)?;
    let tree = throughline::model::json::parse(body).ok()?;
    let response = codec.decode_response(&tree).ok()?;
    let mut out = String::new();
    for mut frame in codec.encode_stream(&response, &mut Losses::default()) {
        for piece in pieces(&frame.data) {
            frame.data = piece;
            write_frame(&mut out, &frame).ok()?;
        }
    }
    Some(out)
}

/// Splits a frame that has more than a few words.
fn pieces(data: &str) -> Vec<String> {
    const PLACES: [&str; 7] = [
        "/delta",
        "/delta/text",
        "/delta/thinking",
        "/delta/partial_json",
        "/choices/0/delta/content",
        "/choices/0/delta/tool_calls/0/function/arguments",
        "/candidates/0/content/parts/0/text",
    ];
    let whole = || vec![data.to_owned()];
    let Ok(mut frame) = serde_json::from_str::<Value>(data) else {
        return whole();
    };
    // Members that occur once stay in one frame.
    if frame.pointer("/candidates/0/finishReason").is_some()
        || data.contains("thoughtSignature")
        || data.contains("\"id\":\"call_")
    {
        return whole();
    }
    let found = PLACES.into_iter().find_map(|place| {
        let text = frame.pointer(place)?.as_str()?.to_owned();
        Some((place, text))
    });
    let Some((place, text)) = found else {
        return whole();
    };
    let letters: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    for part in letters.chunks(24) {
        if let Some(spot) = frame.pointer_mut(place) {
            *spot = Value::String(part.iter().collect());
        }
        pieces.push(frame.to_string());
    }
    pieces
}

fn responses(calls: usize, sealed: Option<String>) -> Value {
    let mut thought = json!({
        "id": "rs_68a1", "type": "reasoning",
        "summary": [{"type": "summary_text", "text": prose(1, 60)}],
    });
    if let Some(sealed) = sealed {
        thought["encrypted_content"] = sealed.into();
    }
    let mut output = vec![thought];
    for number in 0..calls {
        output.push(json!({
            "id": format!("fc_{number:08}"), "type": "function_call", "status": "completed",
            "call_id": format!("call_new{number:08}"), "name": "get_tide", "arguments": port(number),
        }));
    }
    if calls == 0 {
        output.push(json!({
            "id": "msg_68a1", "type": "message", "status": "completed", "role": "assistant",
            "content": [{
                "type": "output_text", "annotations": [], "logprobs": [], "text": prose(2, 300),
            }],
        }));
    }
    json!({
        "id": "resp_68a1b2c3", "object": "response", "created_at": 1_755_000_000,
        "status": "completed", "background": false, "error": null, "incomplete_details": null,
        "instructions": null, "max_output_tokens": null, "max_tool_calls": null,
        "model": "some-model", "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": "medium", "summary": "detailed"}, "safety_identifier": null,
        "service_tier": "default", "store": false, "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
        "usage": {
            "input_tokens": 1_200, "input_tokens_details": {"cached_tokens": 1_024},
            "output_tokens": 480, "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 1_680,
        },
        "user": null, "metadata": {},
    })
}

fn chat(calls: usize) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    message["annotations"] = json!([]);
    if calls == 0 {
        message["content"] = prose(2, 360).into();
    } else {
        let called = |number: usize| {
            json!({
                "id": format!("call_new{number:08}"), "type": "function",
                "function": {"name": "get_tide", "arguments": port(number)},
            })
        };
        message["content"] = prose(1, 60).into();
        message["tool_calls"] = (0..calls).map(called).collect();
    }
    let reason = if calls == 0 { "stop" } else { "tool_calls" };
    json!({
        "id": "chatcmpl-68a1b2c3", "object": "chat.completion", "created": 1_755_000_000,
        "model": "some-model",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": 1_200, "completion_tokens": 480, "total_tokens": 1_680,
            "prompt_tokens_details": {"cached_tokens": 1_024, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 64, "audio_tokens": 0},
        },
        "service_tier": "default", "system_fingerprint": "fp_560af6e559",
    })
}

fn anthropic(calls: usize) -> Value {
    let mut content = vec![json!({
        "type": "thinking", "thinking": prose(1, 60), "signature": sealed(3, 1_000),
    })];
    for number in 0..calls {
        content.push(json!({
            "type": "tool_use", "id": format!("toolu_new{number:08}"), "name": "get_tide",
            "input": {"port": format!("harbour {number}"), "day": "2026-03-01"},
        }));
    }
    if calls == 0 {
        content.push(json!({"type": "text", "text": prose(2, 300)}));
    }
    let reason = if calls == 0 { "end_turn" } else { "tool_use" };
    json!({
        "id": "msg_01A2b3", "type": "message", "role": "assistant", "model": "some-model",
        "content": content, "stop_reason": reason, "stop_sequence": null,
        "usage": {
            "input_tokens": 176, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 1_024, "output_tokens": 480, "service_tier": "standard",
        },
    })
}

fn gemini(calls: usize) -> Value {
    let mut parts = vec![json!({"text": prose(1, 60), "thought": true})];
    for number in 0..calls {
        let mut part = json!({"functionCall": {
            "name": "get_tide",
            "args": {"port": format!("harbour {number}"), "day": "2026-03-01"},
        }});
        if number == 0 {
            part["thoughtSignature"] = sealed(3, 1_000).into();
        }
        parts.push(part);
    }
    if calls == 0 {
        parts.push(json!({"text": prose(2, 300), "thoughtSignature": sealed(3, 1_000)}));
    }
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 1_200, "candidatesTokenCount": 480, "totalTokenCount": 1_744,
            "thoughtsTokenCount": 64, "cachedContentTokenCount": 1_024,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1_200}],
        },
        "modelVersion": "some-model", "responseId": "68a1b2c3",
    })
}
