//! The vendor formats: whatever is read comes back, and nothing panics.

use throughline_model::json::{self, RawJson};
use throughline_model::{Fold, Message};
use throughline_wire::sse::{Decoder, Frame, Limits};
use throughline_wire::{Codec, Losses, Wire, codec};

fn known(wire: &Wire) -> &'static Codec {
    codec(wire).expect("the targets are the known formats")
}

/// An array that decodes is written back as it was, token by token, also through the stored form.
pub fn decode(wire: &Wire, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(value) = json::parse(text) else { return };
    let codec = known(wire);
    // None of these may panic, whatever the value is.
    let kind = codec.document_kind(&value);
    let _ = codec.decode_error(&value);
    if let Ok(request) = codec.decode_request(&value) {
        if value.as_object().is_some() {
            let back = codec.encode_request(&request, &mut Losses::default());
            assert_eq!(RawJson::of(&value).get(), back, "a request body, {kind:?}");
        }
    }
    if let Ok(response) = codec.decode_response(&value) {
        // A captured stream becomes the one body that it tells.
        if value.as_object().is_some() {
            let back = codec.encode_response(&response, &mut Losses::default());
            let body = RawJson::of(&value);
            assert_eq!(body.get(), back, "a response body, {kind:?}");
        }
        let frames = codec.encode_stream(&response, &mut Losses::default());
        fold(codec, &frames);
    }
    let Some(items) = value.as_array() else {
        return;
    };
    let Ok(messages) = codec.decode_messages(items) else {
        return;
    };
    let stored: Vec<Message> = messages
        .iter()
        .map(|message| Message::from_json(&message.to_json()).expect("we wrote it"))
        .collect();
    assert_eq!(messages, stored);
    let mut losses = Losses::default();
    let back = codec.encode_messages(&stored, &mut losses);
    assert_eq!(RawJson::of(&value).get(), back);
    assert!(losses.is_empty(), "{losses:?}");
    // Another vendor gets something, with losses.
    for other in Wire::KNOWN.iter().filter_map(throughline_wire::codec) {
        let text = other.encode_messages(&messages, &mut Losses::default());
        assert!(
            json::parse_with(
                &text,
                json::Limits {
                    depth: 1_024,
                    ..json::Limits::default()
                }
            )
            .is_ok()
        );
    }
}

fn fold(codec: &Codec, frames: &[Frame]) {
    let mut decoder = codec.stream();
    let mut fold = Fold::new();
    for frame in frames {
        match decoder.push(frame) {
            Ok(events) => events.into_iter().for_each(|event| fold.push(event)),
            Err(_) => return,
        }
    }
    if let Ok(events) = decoder.end() {
        events.into_iter().for_each(|event| fold.push(event));
        let response = fold.finish();
        let body = codec.encode_response(&response, &mut Losses::default());
        assert!(
            json::parse_with(
                &body,
                json::Limits {
                    depth: 1_024,
                    ..json::Limits::default()
                }
            )
            .is_ok()
        );
    }
}

/// A captured stream, whole and in two halves.
pub fn stream(wire: &Wire, data: &[u8]) {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(data);
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = decoder.next_frame() {
        frames.push(frame);
    }
    let codec = known(wire);
    fold(codec, &frames);
    fold(codec, &frames[..frames.len() / 2]);
}

/// The first byte says how the rest is cut into chunks; the events must not show it.
pub fn sse(data: &[u8]) {
    let Some((first, data)) = data.split_first() else {
        return;
    };
    let read = |chunk: usize| {
        let mut decoder = Decoder::new(Limits {
            line_bytes: 4_096,
            event_bytes: 8_192,
        });
        let mut frames = Vec::new();
        for piece in data.chunks(chunk.max(1)) {
            decoder.push(piece);
            while let Ok(Some(frame)) = decoder.next_frame() {
                frames.push(frame);
            }
        }
        let end = decoder.finish();
        (frames, end)
    };
    assert_eq!(read(usize::from(*first)), read(data.len()));
}

/// A stored message that reads is written back as it was.
pub fn stored(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(message) = Message::from_json(text) else {
        return;
    };
    let again = Message::from_json(&message.to_json()).expect("we wrote it");
    assert_eq!(message, again);
}
