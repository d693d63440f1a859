//! What must hold for every codec: nothing is lost on the way there and back.

use std::path::PathBuf;

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{Content, Message, Response};
use throughline_testkit::{Rng, chunks, mutate, property};
use throughline_wire::sse::{self, Frame};
use throughline_wire::{Codec, Losses, assemble};

/// A file of the wire catalogue; none where only this repository is.
pub(crate) fn catalogue(name: &str) -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/wire/");
    std::fs::read_to_string(format!("{path}{name}")).ok()
}

/// The fixtures of a vendor whose names start with `kind`: name and text.
pub(crate) fn fixtures(vendor: &str, kind: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found: Vec<_> = std::fs::read_dir(folder.join(vendor))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .filter(|(name, _)| name.starts_with(kind))
        .map(|(name, path)| (name, std::fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {kind} fixtures of {vendor}");
    found
}

pub(crate) fn compact(text: &str) -> String {
    RawJson::new(text).unwrap().get().to_owned()
}

pub(crate) fn decode(codec: &Codec, array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    codec
        .decode_messages(value.as_array().unwrap())
        .unwrap_or_else(|error| panic!("{error} in {array}"))
}

/// Read and write an array of messages, straight and by way of the stored form.
pub(crate) fn messages_survive(codec: &Codec, array: &str) -> Result<Vec<Message>, String> {
    let value = json::parse(array).map_err(|error| error.to_string())?;
    let items = value.as_array().ok_or("not an array")?;
    let messages = codec
        .decode_messages(items)
        .map_err(|error| error.to_string())?;
    let stored: Vec<Message> = messages
        .iter()
        .map(|message| Message::from_json(&message.to_json()).unwrap())
        .collect();
    if stored != messages {
        return Err(format!("the stored form of {array} differs"));
    }
    let mut losses = Losses::default();
    same(array, &codec.encode_messages(&stored, &mut losses), &losses)?;
    if codec.decode_messages(items).as_ref() != Ok(&messages) {
        return Err(format!("{array} reads differently the second time"));
    }
    Ok(messages)
}

pub(crate) fn request_survives(codec: &Codec, body: &str) -> Result<(), String> {
    let value = json::parse(body).map_err(|error| error.to_string())?;
    let request = codec
        .decode_request(&value)
        .map_err(|error| error.to_string())?;
    let mut losses = Losses::default();
    same(body, &codec.encode_request(&request, &mut losses), &losses)
}

/// Read and write a response body, whole and as a stream.
pub(crate) fn response_survives(codec: &Codec, body: &str) -> Result<Response, String> {
    let value = json::parse(body).map_err(|error| error.to_string())?;
    let response = codec
        .decode_response(&value)
        .map_err(|error| error.to_string())?;
    let mut losses = Losses::default();
    let written = codec.encode_response(&response, &mut losses);
    same(body, &written, &losses)?;
    let frames = codec.encode_stream(&response, &mut losses);
    let streamed = assemble(codec, &frames).map_err(|error| error.to_string())?;
    if streamed != response {
        return Err(format!("streamed: {streamed:#?}\nwhole: {response:#?}"));
    }
    Ok(response)
}

fn same(given: &str, written: &str, losses: &Losses) -> Result<(), String> {
    let given = compact(given);
    if written != given {
        return Err(format!("{given}\nbecame\n{written}"));
    }
    match losses.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(format!("lost {first} of {given}")),
    }
}

/// `check` holds for the text with random members added anywhere.
pub(crate) fn unknown_members_survive(
    name: &str,
    cases: u64,
    texts: &[String],
    check: impl Fn(&str) -> Result<(), String>,
) {
    property(name, cases, |rng, _| {
        let mut text = rng.pick(texts).clone();
        for _ in 0..rng.range(1..=4) {
            text = mutate::insert_unknown_field(&text, rng).unwrap_or(text);
        }
        check(&text)
    });
}

/// Whatever is done to a text, reading it gives an error at worst.
pub(crate) fn damage_never_panics(name: &str, cases: u64, codec: &Codec, texts: &[String]) {
    property(name, cases, |rng, _| {
        let text = rng.pick(texts).as_bytes().to_vec();
        let mut bytes = mutate::flip(&text, rng);
        if rng.chance(0.3) {
            bytes = mutate::truncate(&bytes, rng).to_vec();
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Ok(value) = json::parse(&text) {
            read_as_everything(codec, &value);
        }
        let frame = Frame {
            data: text,
            ..Frame::default()
        };
        let _ = assemble(codec, &[frame]);
        Ok(())
    });
}

fn read_as_everything(codec: &Codec, value: &Value<'_>) {
    let mut losses = Losses::default();
    codec.document_kind(value);
    if let Ok(messages) = codec.decode_messages(value.as_array().unwrap_or_default()) {
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

/// Any value replaced by one of another kind: an error, or everything comes back as it was.
pub(crate) fn wrong_kinds_never_vanish(name: &str, cases: u64, codec: &Codec, texts: &[String]) {
    let kinds = ["null", "7", "\"\"", "[]", "{}", "true", "[1]", "{\"a\":1}"];
    property(name, cases, |rng, _| {
        let text = rng.pick(texts);
        let value = json::parse(text).unwrap();
        let mut places = Vec::new();
        collect(&value, &mut places);
        let place = *rng.pick(&places);
        let mutated = RawJson::of_with(&value, &[(place, *rng.pick(&kinds))]);
        let value = mutated.value();
        let mut losses = Losses::default();
        if let Some(items) = value.as_array()
            && codec.decode_messages(items).is_ok()
        {
            messages_survive(codec, mutated.get())?;
        }
        if let Ok(request) = codec.decode_request(&value) {
            let written = codec.encode_request(&request, &mut losses);
            same(mutated.get(), &written, &losses)?;
        }
        if let Ok(response) = codec.decode_response(&value) {
            let written = codec.encode_response(&response, &mut losses);
            same(mutated.get(), &written, &losses)?;
            let frames = codec.encode_stream(&response, &mut losses);
            let _ = assemble(codec, &frames);
        }
        Ok(())
    });
}

fn collect<'v, 'a>(value: &'v Value<'a>, places: &mut Vec<&'v Value<'a>>) {
    places.push(value);
    for inner in value.as_array().unwrap_or_default() {
        collect(inner, places);
    }
    for member in value.members() {
        collect(&member.value, places);
    }
}

/// The frames of a recorded stream.
pub(crate) fn frames(events: &[Value<'_>]) -> Vec<Frame> {
    events
        .iter()
        .map(|event| Frame {
            data: event
                .as_str()
                .map_or_else(|| compact(event.raw()), std::borrow::Cow::into_owned),
            ..Frame::default()
        })
        .collect()
}

/// However the bytes of a stream are cut, the same response comes out.
pub(crate) fn chunking_does_not_show(codec: &Codec, list: &[Frame], rng: &mut Rng) {
    let whole = assemble(codec, list).unwrap();
    let mut text = String::new();
    for frame in list {
        sse::write_frame(&mut text, frame).unwrap();
    }
    for _ in 0..20 {
        let mut decoder = sse::Decoder::new(sse::Limits::default());
        let mut read = Vec::new();
        for chunk in chunks::random_split(text.as_bytes(), rng) {
            decoder.push(chunk);
            while let Some(frame) = decoder.next_frame().unwrap() {
                read.push(frame);
            }
        }
        assert_eq!(assemble(codec, &read).unwrap(), whole);
    }
}

/// A stream cut anywhere gives an incomplete response, never half a message as a whole one.
pub(crate) fn every_cut_shows(codec: &Codec, list: &[Frame]) {
    let whole = assemble(codec, list).unwrap();
    for cut in 0..list.len() {
        let response = assemble(codec, &list[..cut]).unwrap();
        // Only what stands after the end of the answer may be missing.
        if response.stop != throughline_model::Stop::Cut {
            assert_eq!(response.messages.len(), whole.messages.len());
            let contents = |response: &Response| -> Vec<Vec<Content>> {
                let messages = response.messages.iter();
                messages.map(|message| message.contents.clone()).collect()
            };
            let (found, whole) = (contents(&response), contents(&whole));
            for (found, whole) in found.iter().zip(&whole) {
                assert_eq!(found.len(), whole.len());
            }
        } else {
            assert!(response.vendor.is_none() && response.usage.is_none());
        }
    }
}
