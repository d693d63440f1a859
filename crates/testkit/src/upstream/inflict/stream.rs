//! Faults inside of streams.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_wire::sse::{self, Frame};

use super::super::fault::Fault;
use super::super::frames::{self, written};
use super::super::http::{Act, Head};
use super::status::late_error;
use super::{To, begun, events, inside_character, not_utf8, streamed};

pub(super) fn in_stream(to: &To<'_>, fault: Fault, head: &Head, frames: &[Frame]) -> Vec<Act> {
    let wire = to.wire;
    let all = events(to, frames);
    // After some of the text and before the end.
    let half = frames.len() / 2;
    let with = |acts: Vec<Act>, act: Act| acts.into_iter().chain([act]).collect();
    match fault {
        Fault::Stalls => with(begun(head, &all[..half]), Act::Stall),
        Fault::CutBetweenEvents => with(begun(head, &all[..half]), Act::Close),
        Fault::CutInCharacter => {
            let place = all
                .iter()
                .position(|event| !event.is_ascii())
                .unwrap_or(half);
            let event = &all[place];
            let mut bytes = format!("{:x}\r\n", event.len()).into_bytes();
            bytes.extend_from_slice(&event[..inside_character(event)]);
            let mut acts = begun(head, &all[..place]);
            acts.extend([Act::Send(bytes), Act::Close]);
            acts
        }
        Fault::NoEndMark => streamed(head, &events(to, &endless(wire, frames))),
        Fault::ErrorInAnswer => {
            let mut sent = all[..half].to_vec();
            sent.push(written(wire, &error_frame(to)));
            streamed(head, &sent)
        }
        Fault::NotJson => {
            let mut sent = all.clone();
            let frame = &frames[half];
            let broken = Frame {
                data: frame.data[..frame.data.len() / 2]
                    .chars()
                    .filter(char::is_ascii)
                    .collect(),
                ..frame.clone()
            };
            sent[half] = written(wire, &broken);
            streamed(head, &sent)
        }
        Fault::NotUtf8 => {
            let place = all
                .iter()
                .position(|event| !event.is_ascii())
                .unwrap_or(half);
            let mut sent = all.clone();
            sent[place] = not_utf8(&sent[place]);
            streamed(head, &sent)
        }
        Fault::AfterTheEnd => {
            let mut sent = all.clone();
            sent.extend(all.last().cloned());
            sent.push(b"event: garbage\ndata: {\"gar\n\n".to_vec());
            streamed(head, &sent)
        }
        Fault::NoUsage => {
            let mut frames = frames.to_vec();
            frames::without_usage(wire, &mut frames);
            streamed(head, &events(to, &frames))
        }
        _ => streamed(head, &strangers(wire, &all)),
    }
}

/// A stream that ends without its end mark.
fn endless(wire: &Wire, frames: &[Frame]) -> Vec<Frame> {
    let mut frames = frames.to_vec();
    let last = frames.pop();
    if let (Wire::Gemini, Some(last)) = (wire, last)
        && let Some(mut value) = frames::data(&last)
    {
        if let Some(candidate) = value
            .pointer_mut("/candidates/0")
            .and_then(Value::as_object_mut)
        {
            candidate.remove("finishReason");
        }
        frames.push(frames::with_data(&last, &value));
    }
    frames
}

fn error_frame(to: &To<'_>) -> Frame {
    let body = late_error(to);
    let (event, data) = match to.wire {
        Wire::OpenAiResponses | Wire::Foundry => (
            Some("error"),
            json!({"type": "error", "code": "server_error", "message": "Overloaded",
                "param": null, "sequence_number": 99}),
        ),
        Wire::Anthropic => (Some("error"), body),
        Wire::GeminiInteractions => (
            Some("error"),
            json!({"event_type": "error",
                "error": {"code": "unavailable", "message": "Overloaded"}}),
        ),
        Wire::OpenAiChat | Wire::Gemini | Wire::Other(_) => (None, body),
    };
    Frame {
        event: event.map(str::to_owned),
        data: data.to_string(),
        ..Frame::default()
    }
}

/// Unknown events and members between the known ones.
fn strangers(wire: &Wire, all: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut comment = String::new();
    sse::write_comment(&mut comment, "PROCESSING");
    let stranger: &[u8] = match wire {
        Wire::OpenAiChat => {
            b"id: 7\nretry: 100\ndata: {\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\
              \"choices\":[],\"brand_new\":{\"x\":1}}\n\n"
        }
        Wire::Gemini => b"id: 7\nretry: 100\r\ndata: {\"brandNew\":{\"x\":1}}\r\n\r\n",
        Wire::GeminiInteractions => {
            b"event: brand.new\ndata: {\"event_type\":\"brand.new\",\"x\":1}\n\n"
        }
        _ => {
            b"id: 7\nretry: 100\nevent: response.brand_new\n\
              data: {\"type\":\"response.brand_new\",\"sequence_number\":1,\"x\":1}\n\n"
        }
    };
    let mut sent = vec![b": \xff not even text\n\n".to_vec()];
    for (place, event) in all.iter().enumerate() {
        sent.push(event.clone());
        // Chat Completions ends with its end mark; the others may continue after theirs.
        if place + 1 < all.len() {
            sent.push(comment.clone().into_bytes());
            sent.push(stranger.to_vec());
        }
    }
    sent
}
