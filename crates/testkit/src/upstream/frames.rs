//! Streams as vendors send them: many small events, pings, usage on request.

use serde_json::{Map, Value, json};
use throughline_model::{Wire, json as exact};
use throughline_wire::sse::{self, Frame};
use throughline_wire::{Losses, codec};

/// The characters per event.
const FRAGMENT: usize = 5;

/// The events of an answer, from its whole body.
pub(super) fn frames(wire: &Wire, request: &Map<String, Value>, body: &str) -> Option<Vec<Frame>> {
    let codec = codec(wire)?;
    let parsed = exact::parse(body).ok()?;
    let response = codec.decode_response(&parsed).ok()?;
    let mut frames = Vec::new();
    for frame in codec.encode_stream(&response, &mut Losses::default()) {
        frames.extend(split(wire, frame));
    }
    match wire {
        Wire::Anthropic => {
            let ping = Frame {
                event: Some("ping".into()),
                data: r#"{"type": "ping"}"#.into(),
                ..Frame::default()
            };
            frames.insert(1.min(frames.len()), ping);
        }
        Wire::OpenAiChat => {
            let options = request.get("stream_options");
            let wanted = options.and_then(|options| options.get("include_usage"));
            if wanted != Some(&Value::Bool(true)) {
                without_usage(wire, &mut frames);
            }
        }
        Wire::OpenAiResponses | Wire::Foundry => number(&mut frames),
        Wire::Gemini | Wire::GeminiInteractions | Wire::Other(_) => {}
    }
    Some(frames)
}

/// The bytes of an event.
pub(super) fn written(wire: &Wire, frame: &Frame) -> Vec<u8> {
    let text = sse::encode(frame).unwrap_or_default();
    match wire {
        Wire::Gemini => text.replace('\n', "\r\n").into_bytes(),
        _ => text.into_bytes(),
    }
}

/// The data of an event, if it is JSON.
pub(super) fn data(frame: &Frame) -> Option<Value> {
    serde_json::from_str(&frame.data).ok()
}

/// The same event with other data.
pub(super) fn with_data(frame: &Frame, data: &Value) -> Frame {
    Frame {
        data: data.to_string(),
        ..frame.clone()
    }
}

/// Numbers the events of Responses.
pub(super) fn number(frames: &mut [Frame]) {
    for (place, frame) in frames.iter_mut().enumerate() {
        if let Some(mut value) = data(frame)
            && value.get("sequence_number").is_some()
        {
            value["sequence_number"] = json!(place);
            *frame = with_data(frame, &value);
        }
    }
}

/// Removes usage from all events, and events that have nothing else.
pub(super) fn without_usage(wire: &Wire, frames: &mut Vec<Frame>) {
    frames.retain_mut(|frame| {
        let Some(mut value) = data(frame) else {
            return true;
        };
        let bare = *wire == Wire::OpenAiChat
            && value
                .get("choices")
                .and_then(Value::as_array)
                .is_some_and(Vec::is_empty);
        drop_usage(&mut value);
        *frame = with_data(frame, &value);
        !bare
    });
}

/// Removes usage from a body, wherever the vendor has it.
pub(super) fn drop_usage(value: &mut Value) {
    if let Value::Object(members) = value {
        members.remove("usage");
        members.remove("usageMetadata");
        for key in ["response", "message", "interaction"] {
            if let Some(inner) = members.get_mut(key) {
                drop_usage(inner);
            }
        }
    }
}

/// The path of the growing text in an event.
fn growing(wire: &Wire, value: &Value) -> Option<&'static str> {
    let places: &[&'static str] = match wire {
        Wire::OpenAiResponses | Wire::Foundry => &["/delta"],
        Wire::OpenAiChat => &[
            "/choices/0/delta/content",
            "/choices/0/delta/tool_calls/0/function/arguments",
        ],
        Wire::Anthropic => &["/delta/text", "/delta/thinking", "/delta/partial_json"],
        Wire::Gemini => &["/candidates/0/content/parts/0/text"],
        Wire::GeminiInteractions => &["/delta/text", "/delta/arguments"],
        Wire::Other(_) => &[],
    };
    let signed = value.pointer("/candidates/0/content/parts/0/thoughtSignature");
    if signed.is_some() {
        return None;
    }
    places.iter().copied().find(|place| {
        let text = value.pointer(place).and_then(Value::as_str);
        text.is_some_and(|text| text.chars().count() > FRAGMENT)
    })
}

/// Splits an event with much text into several.
fn split(wire: &Wire, frame: Frame) -> Vec<Frame> {
    let Some(value) = data(&frame) else {
        return vec![frame];
    };
    let Some(place) = growing(wire, &value) else {
        return vec![frame];
    };
    let text = value.pointer(place).and_then(Value::as_str);
    let letters: Vec<char> = text.unwrap_or_default().chars().collect();
    let count = letters.len().div_ceil(FRAGMENT);
    let fragments = letters.chunks(FRAGMENT).enumerate();
    fragments
        .map(|(index, fragment)| {
            let mut value = value.clone();
            if let Some(text) = value.pointer_mut(place) {
                *text = Value::String(fragment.iter().collect());
            }
            if index + 1 < count {
                drop_usage(&mut value);
                let candidate = value.pointer_mut("/candidates/0");
                if let Some(candidate) = candidate.and_then(Value::as_object_mut) {
                    candidate.remove("finishReason");
                }
            }
            with_data(&frame, &value)
        })
        .collect()
}

/// Cuts off the input of the last call, as Anthropic's streams do at the token limit.
pub(super) fn break_input(frames: &mut Vec<Frame>) {
    let starts = |frame: &Frame| {
        let value = data(frame)?;
        let is_call = value.pointer("/content_block/type")? == "tool_use";
        is_call.then(|| value.get("index").cloned())?
    };
    let found = frames
        .iter()
        .enumerate()
        .rev()
        .find_map(|(place, frame)| Some((place, starts(frame)?)));
    if let Some((place, index)) = found {
        let delta = json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": "{\"port\": \"Bre"}});
        let frame = Frame {
            event: Some("content_block_delta".into()),
            data: delta.to_string(),
            ..Frame::default()
        };
        frames.insert(place + 1, frame);
    }
}
