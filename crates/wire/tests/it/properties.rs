//! What holds for every message and every body, tried on many.

use throughline_model::json::{self, RawJson};
use throughline_model::{
    Arguments, Body, Content, Event, Fold, Message, Outcome, Output, Response, Role, pairs,
};
use throughline_testkit::generate::Json;
use throughline_testkit::{
    Compare, Numbers, Rng, Strings, chunks, json_eq_with, messages, mutate, property,
};
use throughline_wire::sse::{self, Frame};
use throughline_wire::{Codec, Format, Losses, Wire, assemble, codec, convert};

use crate::common::{Entry, decode, entries};

fn same(a: &str, b: &str) -> Result<(), String> {
    let compare = Compare {
        numbers: Numbers::Token,
        strings: Strings::Token,
    };
    json_eq_with(a, b, compare)
}

/// The formats that have a codec.
fn codecs() -> Vec<&'static Codec> {
    Wire::KNOWN.iter().filter_map(codec).collect()
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[test]
fn the_stored_form_is_the_identity_for_every_message() {
    property("stored form of any message", 20_000, |rng, size| {
        let message = messages::anything(rng, size);
        let text = message.to_json();
        let back = Message::from_json(&text).map_err(|error| format!("{error}: {text}"))?;
        if back != message {
            return Err(format!("{message:?}\nbecame {back:?}"));
        }
        // What a later version adds anywhere outside vendor items survives too.
        let Some(later) = mutate::insert_unknown_field(&text, rng) else {
            return Ok(());
        };
        match Message::from_json(&later) {
            Ok(message) => same(&later, &message.to_json()),
            Err(error) => Err(format!("{error}: {later}")),
        }
    });
}

/// Whether a key may stand twice in an object.
#[derive(Clone, Copy, PartialEq)]
enum Duplicates {
    Some,
    None,
}

/// A random array of wire messages: examples of one format in any order, grown and respelled.
fn array(entries: &[Entry], rng: &mut Rng, size: usize, duplicates: Duplicates) -> String {
    let count = rng.below(size.min(12)) + 1;
    let elements: Vec<String> = (0..count)
        .map(|_| {
            let mut element = rng.pick(entries).wrapped();
            if rng.chance(0.5) {
                element = mutate::insert_unknown_field(&element, rng).unwrap_or(element);
            }
            if duplicates == Duplicates::Some && rng.chance(0.3) {
                element = mutate::insert_duplicate_key(&element, rng).unwrap_or(element);
            }
            if rng.chance(0.3) {
                element = respell(&element, rng);
            }
            element
        })
        .collect();
    format!("[{}]", elements.join(","))
}

/// Another string in place of a random text that is long enough to be one.
fn respell(element: &str, rng: &mut Rng) -> String {
    let value = json::parse(element).expect("examples are JSON");
    let mut texts = Vec::new();
    collect(&value, &mut texts);
    if texts.is_empty() {
        return element.to_owned();
    }
    let spelling = Json {
        lone_surrogates: true,
        ..Json::default()
    };
    let text = spelling.string(rng);
    let at: &json::Value<'_> = rng.pick::<&json::Value<'_>>(&texts);
    RawJson::of_with(&value, &[(at, &text)]).get().to_owned()
}

fn collect<'v, 'a>(value: &'v json::Value<'a>, texts: &mut Vec<&'v json::Value<'a>>) {
    for member in value.members() {
        let free = [
            "text",
            "arguments",
            "output",
            "code",
            "thinking",
            "refusal",
            "result",
        ];
        if member.value.as_text().is_some() && free.iter().any(|key| member.key.is(key)) {
            texts.push(&member.value);
        }
        collect(&member.value, texts);
    }
    for element in value.as_array().unwrap_or_default() {
        collect(element, texts);
    }
}

#[test]
fn decode_then_encode_is_the_identity_for_arrays() {
    let all = entries();
    for codec in codecs() {
        let entries: Vec<Entry> = of(&all, codec);
        let name = format!("arrays of {}", codec.wire());
        property(&name, 5_000, |rng, size| {
            let array = array(&entries, rng, size, Duplicates::Some);
            let messages = decode(codec, &array).map_err(|error| format!("{error}: {array}"))?;
            let mut losses = Losses::default();
            same(&array, &codec.encode_messages(&messages, &mut losses))
                .map_err(|error| format!("{error}\n{array}"))?;
            if !losses.is_empty() {
                return Err(format!("losses {:?} of {array}", losses.as_slice()));
            }
            let format = Format::Vendor(codec.wire());
            let there = convert(
                array.as_bytes(),
                &format,
                &Format::Neutral,
                Default::default(),
            )
            .map_err(text_of)?;
            let back = convert(
                there.output.as_bytes(),
                &Format::Neutral,
                &format,
                Default::default(),
            )
            .map_err(text_of)?;
            same(&array, &back.output).map_err(|error| format!("neutral: {error}\n{array}"))
        });
    }
}

fn of(entries: &[Entry], codec: &Codec) -> Vec<Entry> {
    entries
        .iter()
        .filter(|entry| entry.wire == codec.wire())
        .cloned()
        .collect()
}

/// A response body made by its codec from things that a model says.
fn response(codec: &Codec, entries: &[Entry], rng: &mut Rng, size: usize) -> Response {
    let mut contents: Vec<Content> = Vec::new();
    for message in messages::plain_history(rng, size.min(10)) {
        if message.role == Role::Assistant {
            contents.extend(message.contents);
        }
    }
    let said: Vec<Entry> = entries
        .iter()
        .filter(|entry| entry.direction != "request" && entry.role != "output")
        .cloned()
        .collect();
    let mut response = Response {
        id: Some(format!("resp_{}", rng.below(1_000))),
        model: Some("some-model".to_owned()),
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: None,
        stop: throughline_model::Stop::Done,
        error: None,
        vendor: None,
        service: None,
    };
    if rng.bool() && !said.is_empty() {
        // Fragments of a stream are merged by key, so a key that stands twice has no streamed form.
        let array = array(&said, rng, 4, Duplicates::None);
        if let Ok(found) = decode(codec, &array) {
            let own = found
                .into_iter()
                .filter(|found| found.role == Role::Assistant);
            response.messages[0].contents = own.flat_map(|found| found.contents).collect();
        }
    }
    response
}

#[test]
fn a_stream_and_the_whole_body_give_the_same_response() {
    let all = entries();
    for codec in codecs() {
        let entries = of(&all, codec);
        let name = format!("streams of {}", codec.wire());
        property(&name, 2_000, |rng, size| {
            let made = response(codec, &entries, rng, size);
            let body = codec.encode_response(&made, &mut Losses::default());
            let value = json::parse(&body).map_err(|error| format!("{error}: {body}"))?;
            let whole = codec
                .decode_response(&value)
                .map_err(|error| format!("{error}: {body}"))?;
            // The body comes back as it was.
            let mut losses = Losses::default();
            same(&body, &codec.encode_response(&whole, &mut losses))
                .map_err(|error| format!("{error}\n{body}"))?;
            if !losses.is_empty() {
                return Err(format!("losses {:?}", losses.as_slice()));
            }
            // Its stream gives the same response, however it is cut into chunks.
            let frames = codec.encode_stream(&whole, &mut Losses::default());
            let streamed = assemble(codec, &frames).map_err(text_of)?;
            if streamed != whole {
                return Err(format!("whole    {whole:#?}\nstreamed {streamed:#?}"));
            }
            let bytes: String = frames
                .iter()
                .map(|frame| sse::encode(frame).map_err(text_of))
                .collect::<Result<_, _>>()?;
            let mut decoder = sse::Decoder::new(sse::Limits::default());
            let mut read: Vec<Frame> = Vec::new();
            for chunk in chunks::random_split(bytes.as_bytes(), rng) {
                decoder.push(chunk);
                while let Some(frame) = decoder.next_frame().map_err(text_of)? {
                    read.push(frame);
                }
            }
            if read != frames {
                return Err(format!("{frames:?}\nread as {read:?}"));
            }
            // A whole response tells the same as its events.
            let mut fold = Fold::new();
            whole
                .events()
                .into_iter()
                .for_each(|event: Event| fold.push(event));
            if fold.finish() != whole {
                return Err("the events of a response tell another one".to_owned());
            }
            Ok(())
        });
    }
}

/// What a conversation says, without how any vendor wrote it.
fn essence(messages: &[Message]) -> Vec<String> {
    let mut lines = Vec::new();
    for message in messages {
        for content in &message.contents {
            let line = match &content.body {
                Body::Text(text) => format!("text {:?}", text.text),
                Body::ToolCall(call) => {
                    let arguments = match &call.arguments {
                        Arguments::Text(text) => RawJson::new(text).map(|raw| raw.to_string()),
                        Arguments::Json(raw) => Ok(raw.to_string()),
                        other => Ok(format!("{other:?}")),
                    };
                    format!("call {} {arguments:?}", call.name)
                }
                Body::ToolResult(result) => {
                    let output = match &result.output {
                        Output::Text(text) => text.clone(),
                        Output::Parts(parts) => parts.iter().filter_map(Content::as_text).collect(),
                        Output::Json(raw) => {
                            let value = raw.value();
                            let output = value.get("output").and_then(json::Value::as_str);
                            output.map_or_else(|| raw.to_string(), std::borrow::Cow::into_owned)
                        }
                        Output::None => String::new(),
                    };
                    let failed = result.outcome != Outcome::Ok;
                    format!("result {output:?} failed={failed}")
                }
                other => format!("{other:?}"),
            };
            lines.push(format!("{} {line}", message.role.as_str()));
        }
    }
    for pair in pairs(messages) {
        lines.push(format!("{pair:?}"));
    }
    lines
}

#[test]
fn encode_then_decode_keeps_what_a_plain_conversation_says() {
    for codec in codecs() {
        let name = format!("plain conversations through {}", codec.wire());
        property(&name, 3_000, |rng, size| {
            let said = messages::plain_history(rng, size.min(20));
            let mut losses = Losses::default();
            let array = codec.encode_messages(&said, &mut losses);
            if !losses.is_empty() {
                return Err(format!("losses {:?}", losses.as_slice()));
            }
            let heard = decode(codec, &array).map_err(|error| format!("{error}: {array}"))?;
            if essence(&said) != essence(&heard) {
                return Err(format!("{:#?}\n{:#?}", essence(&said), essence(&heard)));
            }
            Ok(())
        });
    }
}

#[test]
fn anything_encodes_to_something_that_decodes() {
    for codec in codecs() {
        let name = format!("anything through {}", codec.wire());
        property(&name, 3_000, |rng, size| {
            let said: Vec<Message> = if rng.bool() {
                messages::history(rng, size.min(20))
            } else {
                (0..5).map(|_| messages::anything(rng, size)).collect()
            };
            let array = codec.encode_messages(&said, &mut Losses::default());
            decode(codec, &array).map_err(|error| format!("{error}: {array}"))?;
            Ok(())
        });
    }
}

#[test]
fn request_bodies_come_back_as_they_were() {
    let all = entries();
    for codec in codecs() {
        let entries = of(&all, codec);
        let name = format!("request bodies of {}", codec.wire());
        property(&name, 2_000, |rng, size| {
            // A foreign request becomes a body of this format; grown and respelled, that body is
            // what a client of the format might have sent.
            let request = throughline_model::Request {
                system: vec![Content::text("Be brief.")],
                messages: messages::plain_history(rng, size.min(10)),
                ..Default::default()
            };
            let mut body = codec.encode_request(&request, &mut Losses::default());
            for _ in 0..rng.below(4) {
                body = mutate::insert_unknown_field(&body, rng).unwrap_or(body);
            }
            if rng.chance(0.3) {
                body = respell(&body, rng);
            }
            let _ = &entries;
            let value = json::parse(&body).map_err(text_of)?;
            let read = codec
                .decode_request(&value)
                .map_err(|error| format!("{error}: {body}"))?;
            same(&body, &codec.encode_request(&read, &mut Losses::default()))
                .map_err(|error| format!("{error}\n{body}"))?;
            let format = Format::Vendor(codec.wire());
            let limits = Default::default();
            let there =
                convert(body.as_bytes(), &format, &Format::Neutral, limits).map_err(text_of)?;
            let back = convert(there.output.as_bytes(), &Format::Neutral, &format, limits)
                .map_err(text_of)?;
            same(&body, &back.output).map_err(|error| format!("neutral: {error}\n{body}"))
        });
    }
}
