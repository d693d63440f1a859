//! What the tests of both Gemini formats share.

use std::path::PathBuf;

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{Content, Message, Origin, Response, Status, Stop, ToolCall, ToolResult};
use throughline_testkit::{Rng, chunks, mutate, property};
use throughline_wire::sse::{Decoder, End, Frame, Limits, write_frame};
use throughline_wire::{Codec, Losses, Wire, assemble, codec};

/// The codec of a format.
pub(crate) fn of(wire: &Wire) -> &'static Codec {
    codec(wire).expect("the format has a codec")
}

/// A fixture of this crate.
pub(crate) fn fixture(folder: &str, name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(folder)
        .join(name);
    let text = std::fs::read_to_string(&path);
    compact(&text.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// A file of the shared catalogue; none where it is not at hand.
pub(crate) fn shared(name: &str) -> Option<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/wire");
    std::fs::read_to_string(PathBuf::from(folder).join(name)).ok()
}

/// A document without insignificant white space.
pub(crate) fn compact(text: &str) -> String {
    RawJson::new(text).expect("JSON").get().to_owned()
}

/// The rows of the catalogue for one surface of Gemini.
pub(crate) fn catalogue(file: &str, api: &str, mut each: impl FnMut(&Value<'_>)) -> usize {
    let Some(text) = shared(file) else { return 0 };
    let list = json::parse(&text).expect("the catalogue is JSON");
    let mut count = 0;
    for row in list.as_array().expect("a list") {
        let is = |key: &str, value: &str| row.get(key).is_some_and(|found| found.is_str(value));
        if is("provider", "gemini") && is("api", api) {
            each(row);
            count += 1;
        }
    }
    count
}

/// Read an array.
pub(crate) fn decode(wire: &Wire, array: &str) -> Vec<Message> {
    try_decode(wire, array).unwrap_or_else(|error| panic!("{error}: {array}"))
}

/// Read an array that may be wrong.
pub(crate) fn try_decode(wire: &Wire, array: &str) -> Result<Vec<Message>, String> {
    let value = json::parse(array).map_err(|error| error.to_string())?;
    let items = value.as_array().ok_or("not an array")?;
    let found = of(wire).decode_messages(items);
    found.map_err(|error| error.to_string())
}

/// Write an array, without losses.
pub(crate) fn encode(wire: &Wire, messages: &[Message]) -> String {
    let mut losses = Losses::default();
    let text = of(wire).encode_messages(messages, &mut losses);
    assert_eq!(losses.as_slice(), [], "{text}");
    text
}

/// An array goes there and back, also through the stored form, and reads the same each time.
pub(crate) fn check_array(wire: &Wire, array: &str) -> Result<Vec<Message>, String> {
    let messages = try_decode(wire, array)?;
    let again = try_decode(wire, array)?;
    if messages != again {
        return Err(format!("read twice, {messages:?} and {again:?}"));
    }
    let mut stored = Vec::new();
    for message in &messages {
        let text = message.to_json();
        let back = Message::from_json(&text).map_err(|error| format!("{error}: {text}"))?;
        if back != *message {
            return Err(format!("stored {message:?}, came back {back:?}"));
        }
        stored.push(back);
    }
    same(&compact(array), &encode(wire, &stored))?;
    Ok(messages)
}

/// A request body goes there and back.
pub(crate) fn check_request(wire: &Wire, body: &str) -> Result<(), String> {
    let value = json::parse(body).map_err(|error| error.to_string())?;
    let request = of(wire).decode_request(&value);
    let request = request.map_err(|error| format!("{error}: {body}"))?;
    let mut losses = Losses::default();
    let back = of(wire).encode_request(&request, &mut losses);
    same(&compact(body), &back)?;
    nothing_lost(&losses)
}

/// A response body goes there and back, whole and as a stream.
pub(crate) fn check_response(wire: &Wire, body: &str) -> Result<Response, String> {
    let value = json::parse(body).map_err(|error| error.to_string())?;
    let response = of(wire).decode_response(&value);
    let response = response.map_err(|error| format!("{error}: {body}"))?;
    let mut losses = Losses::default();
    let back = of(wire).encode_response(&response, &mut losses);
    same(&compact(body), &back)?;
    let frames = of(wire).encode_stream(&response, &mut losses);
    nothing_lost(&losses)?;
    let streamed = assemble(of(wire), &frames).map_err(|error| error.to_string())?;
    if streamed != response {
        return Err(format!("{streamed:#?} from {frames:?}, not {response:#?}"));
    }
    Ok(response)
}

fn nothing_lost(losses: &Losses) -> Result<(), String> {
    if losses.is_empty() {
        Ok(())
    } else {
        Err(format!("lost {losses:?}"))
    }
}

fn same(sent: &str, back: &str) -> Result<(), String> {
    if sent == back {
        Ok(())
    } else {
        Err(format!("\n{sent}\nbecame\n{back}"))
    }
}

/// The same with unknown members put anywhere.
pub(crate) fn with_unknown_members(
    name: &str,
    documents: &[String],
    check: impl Fn(&str) -> Result<(), String>,
) {
    property(name, 400, |rng, _| {
        let mut text = rng.pick(documents).clone();
        for _ in 0..rng.range(1..=3) {
            if let Some(grown) = mutate::insert_unknown_field(&text, rng) {
                text = grown;
            }
        }
        check(&text)
    });
}

/// Damaged documents are refused or read, but nothing panics.
pub(crate) fn damage_never_panics(name: &str, wire: &Wire, documents: &[String]) {
    property(name, 600, |rng, _| {
        let mut bytes = rng.pick(documents).clone().into_bytes();
        for _ in 0..rng.range(1..=4) {
            bytes = if rng.chance(0.2) {
                mutate::truncate(&bytes, rng).to_vec()
            } else {
                mutate::flip(&bytes, rng)
            };
        }
        let text = String::from_utf8_lossy(&bytes);
        let frame = Frame {
            data: text.clone().into_owned(),
            ..Frame::default()
        };
        let _ = assemble(of(wire), std::slice::from_ref(&frame));
        let Ok(value) = json::parse(&text) else {
            return Ok(());
        };
        use_everywhere(wire, &value);
        Ok(())
    });
}

fn use_everywhere(wire: &Wire, value: &Value<'_>) {
    let codec = of(wire);
    let mut losses = Losses::default();
    let _ = codec.document_kind(value);
    if let Some(items) = value.as_array()
        && let Ok(messages) = codec.decode_messages(items)
    {
        codec.encode_messages(&messages, &mut losses);
    }
    if let Ok(request) = codec.decode_request(value) {
        codec.encode_request(&request, &mut losses);
    }
    if let Ok(response) = codec.decode_response(value) {
        codec.encode_response(&response, &mut losses);
        codec.encode_stream(&response, &mut losses);
    }
    if let Some(error) = codec.decode_error(value) {
        codec.encode_error(&error);
    }
}

/// The frames of a list of events.
pub(crate) fn frames(events: &Value<'_>) -> Vec<Frame> {
    let events = events.as_array().expect("a list of events");
    let frame = |event: &Value<'_>| Frame {
        data: event.raw().to_owned(),
        ..Frame::default()
    };
    events.iter().map(frame).collect()
}

/// Everything that holds for any proper stream; gives the response.
pub(crate) fn check_stream(wire: &Wire, frames: &[Frame]) -> Response {
    let response = assemble(of(wire), frames).expect("the stream reads");
    assert_ne!(response.stop, Stop::Cut);
    for message in &response.messages {
        assert_eq!(message.status, None, "{message:#?}");
    }
    // The whole body tells the same.
    let body = of(wire).encode_response(&response, &mut Losses::default());
    let whole = check_response(wire, &body).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(whole, response, "{body}");
    chunks_do_not_show(wire, frames, &response);
    for end in 0..frames.len() {
        let cut = assemble(of(wire), &frames[..end]).expect("what came before reads");
        if cut.stop == Stop::Cut {
            for message in &cut.messages {
                assert_eq!(message.status, Some(Status::Incomplete));
            }
        }
        of(wire).encode_messages(&cut.messages, &mut Losses::default());
    }
    response
}

fn chunks_do_not_show(wire: &Wire, frames: &[Frame], response: &Response) {
    let mut text = String::new();
    for frame in frames {
        let flat = Frame {
            data: compact(&frame.data),
            ..frame.clone()
        };
        write_frame(&mut text, &flat).expect("the frame can be written");
    }
    let mut rng = Rng::new(7);
    let random = (0..20).map(|_| chunks::random_split(text.as_bytes(), &mut rng));
    let cuts: Vec<_> = random
        .chain([chunks::byte_by_byte(text.as_bytes()).collect()])
        .collect();
    for cut in cuts {
        let mut decoder = Decoder::new(Limits::default());
        let mut found = Vec::new();
        for chunk in cut {
            decoder.push(chunk);
            while let Some(frame) = decoder.next_frame().expect("a frame") {
                found.push(frame);
            }
        }
        assert_eq!(decoder.finish(), Ok(End::Complete));
        assert_eq!(&assemble(of(wire), &found).expect("it reads"), response);
    }
}

/// All calls.
pub(crate) fn calls(messages: &[Message]) -> Vec<&ToolCall> {
    let contents = messages.iter().flat_map(|message| &message.contents);
    contents.filter_map(Content::as_tool_call).collect()
}

/// All results.
pub(crate) fn results(messages: &[Message]) -> Vec<&ToolResult> {
    let contents = messages.iter().flat_map(|message| &message.contents);
    contents.filter_map(Content::as_tool_result).collect()
}

/// The calls that a catalogue row expects of a stream.
pub(crate) fn expect_calls(row: &Value<'_>, response: &Response) {
    let expected = row.get("expect").and_then(Value::as_array).expect("calls");
    let found = calls(&response.messages);
    assert_eq!(found.len(), expected.len());
    for (call, expected) in found.iter().zip(expected) {
        let text = |key: &str| expected.get(key).and_then(Value::as_str).expect("text");
        assert_eq!(call.call.value(), text("call_id"));
        assert_eq!(call.call.origin(), Origin::Natural);
        assert_eq!(call.name, text("name"));
        let throughline_model::Arguments::Json(arguments) = &call.arguments else {
            panic!("{call:?}");
        };
        let wanted = expected.get("arguments").expect("arguments");
        assert_eq!(arguments.get(), RawJson::of(wanted).get());
    }
}
