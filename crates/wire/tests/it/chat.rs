//! Chat Completions there and back: all examples of the catalogue, our own fixtures, and what
//! random growth and damage make of them.

use crate::exact::{
    catalogue, chunking_does_not_show, compact, damage_never_panics, decode, every_cut_shows,
    fixtures, frames, messages_survive, request_survives, response_survives,
    unknown_members_survive, wrong_kinds_never_vanish,
};
use throughline_model::json::{self, Value};
use throughline_model::{
    Arguments, Body, Content, Event, Fold, IdField, Message, Origin, Response, Runner, Stop,
    ToolCall, pairs,
};
use throughline_testkit::{Rng, property};
use throughline_wire::openai_chat::CODEC;
use throughline_wire::sse::Frame;
use throughline_wire::{Losses, Wire, assemble, codec};

const VENDOR: &str = "openai-chat";

fn texts(kind: &str) -> Vec<String> {
    let found = fixtures(VENDOR, kind);
    found.into_iter().map(|(_, text)| text).collect()
}

/// The examples of the catalogue, each in the smallest array that can hold it.
fn examples() -> Vec<String> {
    let Some(text) = catalogue("examples.json") else {
        return Vec::new();
    };
    let list = json::parse(&text).unwrap();
    let chat = |row: &&Value<'_>| row.get("api").is_some_and(|api| api.is_str("chat"));
    let found: Vec<_> = list.as_array().unwrap().iter().filter(chat).collect();
    assert_eq!(found.len(), 3);
    let wrap = |row: &Value<'_>| {
        let example = row.get("example").unwrap().raw();
        if row.get("role").unwrap().is_str("call") {
            format!(r#"[{{"role":"assistant","content":null,"tool_calls":[{example}]}}]"#)
        } else {
            format!("[{example}]")
        }
    };
    found.into_iter().map(wrap).collect()
}

fn all_arrays() -> Vec<String> {
    let mut arrays = examples();
    arrays.extend(texts("messages"));
    arrays
}

fn calls(messages: &[Message]) -> Vec<&ToolCall> {
    let contents = messages.iter().flat_map(|message| &message.contents);
    contents.filter_map(Content::as_tool_call).collect()
}

#[test]
fn every_example_comes_back_as_it_was() {
    for array in all_arrays() {
        messages_survive(&CODEC, &array).unwrap();
    }
    for (name, body) in fixtures(VENDOR, "request") {
        request_survives(&CODEC, &body).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (name, body) in fixtures(VENDOR, "response") {
        response_survives(&CODEC, &body).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_call_of_the_catalogue_and_its_result_share_one_id() {
    let examples = examples();
    let [function, custom, result] = examples.as_slice() else {
        return;
    };
    let joined = format!("{},{}", &function[..function.len() - 1], &result[1..]);
    let messages = messages_survive(&CODEC, &joined).unwrap();
    assert_eq!(pairs(&messages).len(), 1);
    assert_eq!(calls(&messages)[0].call.origin(), Origin::Natural);
    let custom = decode(&CODEC, custom);
    assert_eq!(calls(&custom)[0].family.as_str(), "custom");
}

#[test]
fn unknown_members_come_back_wherever_they_stand() {
    let arrays = all_arrays();
    unknown_members_survive("chat messages keep unknown members", 600, &arrays, |text| {
        messages_survive(&CODEC, text).map(|_| ())
    });
    let requests = texts("request");
    unknown_members_survive(
        "chat requests keep unknown members",
        200,
        &requests,
        |text| request_survives(&CODEC, text),
    );
    let responses = texts("response");
    unknown_members_survive(
        "chat responses keep unknown members, streamed too",
        600,
        &responses,
        |text| response_survives(&CODEC, text).map(|_| ()),
    );
}

#[test]
fn damaged_input_is_an_error_at_worst() {
    let mut texts = all_arrays();
    for kind in ["request", "response", "stream"] {
        texts.extend(fixtures(VENDOR, kind).into_iter().map(|(_, text)| text));
    }
    damage_never_panics("chat reads damage without panic", 3000, &CODEC, &texts);
    let name = "chat refuses or keeps values of the wrong kind";
    wrong_kinds_never_vanish(name, 3000, &CODEC, &texts);
}

#[test]
fn calls_without_ids_are_answered_in_their_order() {
    let (_, array) = &fixtures(VENDOR, "messages-without-ids")[0];
    let messages = messages_survive(&CODEC, array).unwrap();
    let found: Vec<_> = pairs(&messages)
        .iter()
        .map(|pair| (pair.call.content, pair.result.content))
        .collect();
    assert_eq!(found, [(0, 0), (1, 1), (2, 2)]);
    let id_fields: Vec<_> = messages[0]
        .contents
        .iter()
        .map(Content::id_fields)
        .collect();
    let kinds: Vec<_> = id_fields
        .iter()
        .map(|id_fields| id_fields.call.clone())
        .collect();
    assert_eq!(
        kinds,
        [IdField::Missing, IdField::Null, IdField::Set("".into())]
    );
    for call in calls(&messages) {
        assert_eq!(call.call.origin(), Origin::Minted);
        assert!(!array.contains(call.call.value()));
    }
    let last = messages[1].contents[3].as_tool_result().unwrap();
    assert_eq!(last.pairing(), throughline_model::Pairing::Standalone);
}

#[test]
fn old_functions_are_answered_by_name() {
    let (_, array) = &fixtures(VENDOR, "messages-legacy")[0];
    let messages = messages_survive(&CODEC, array).unwrap();
    let found: Vec<_> = pairs(&messages)
        .iter()
        .map(|pair| (pair.call.message, pair.result.message))
        .collect();
    assert_eq!(found, [(1, 2), (4, 5)]);
}

/// A recorded stream and the body that it adds up to.
fn streams() -> Vec<(String, Vec<Frame>, String)> {
    let mut streams = Vec::new();
    for (name, text) in fixtures(VENDOR, "stream") {
        let value = json::parse(&text).unwrap();
        let events = frames(value.get("events").unwrap().as_array().unwrap());
        streams.push((name, events, compact(value.get("body").unwrap().raw())));
    }
    streams
}

#[test]
fn a_stream_adds_up_to_the_body() {
    for (name, frames, body) in streams() {
        let whole = CODEC
            .decode_response(&json::parse(&body).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let streamed = assemble(&CODEC, &frames).unwrap();
        let written = CODEC.encode_response(&streamed, &mut Losses::default());
        assert_eq!(written, body, "{name}");
        assert_eq!(streamed, whole, "{name}");
        response_survives(&CODEC, &body).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_stream_of_the_catalogue_gives_its_calls() {
    let Some(text) = catalogue("streams.json") else {
        return;
    };
    let list = json::parse(&text).unwrap();
    let mut seen = 0;
    for stream in list.as_array().unwrap() {
        if !stream.get("api").unwrap().is_str("chat") {
            continue;
        }
        seen += 1;
        let frames = frames(stream.get("events").unwrap().as_array().unwrap());
        let response = assemble(&CODEC, &frames).unwrap();
        let expected: Vec<_> = stream
            .get("expect")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|call| {
                (
                    call.get("call_id").unwrap().as_str().unwrap().into_owned(),
                    call.get("name").unwrap().as_str().unwrap().into_owned(),
                    compact(call.get("arguments").unwrap().raw()),
                )
            })
            .collect();
        let found: Vec<_> = calls(&response.messages)
            .into_iter()
            .map(|call| {
                let Arguments::Text(text) = &call.arguments else {
                    panic!("arguments are text");
                };
                (
                    call.call.value().to_owned(),
                    call.name.clone(),
                    text.clone(),
                )
            })
            .collect();
        assert_eq!(found, expected);
        assert_eq!(response.stop, Stop::ToolCalls);
        assert_eq!(response.usage.unwrap().total, Some(119));
        every_cut_shows(&CODEC, &frames);
    }
    assert_eq!(seen, 1);
}

#[test]
fn neither_chunks_nor_cuts_show_in_a_stream() {
    let mut rng = Rng::new(7);
    for (_, frames, _) in streams() {
        chunking_does_not_show(&CODEC, &frames, &mut rng);
        every_cut_shows(&CODEC, &frames);
    }
}

#[test]
fn what_is_shown_live_is_what_comes_out() {
    for (name, frames, _) in streams() {
        let whole = assemble(&CODEC, &frames).unwrap();
        let mut decoder = CODEC.stream();
        let mut live = Fold::new();
        for frame in &frames {
            for event in decoder.push(frame).unwrap() {
                if matches!(event, Event::Opened { .. } | Event::Delta { .. }) {
                    live.push(event);
                }
            }
        }
        let said = |response: &Response| -> Vec<String> {
            let contents = response
                .messages
                .iter()
                .flat_map(|message| &message.contents);
            contents.filter_map(words).collect()
        };
        let live = live.finish();
        // A pair of surrogates that was cut in two is whole only in the end; parts come whole.
        if !name.contains("surrogates") && !name.contains("parts") {
            assert_eq!(said(&live), said(&whole), "{name}");
        }
    }
}

fn words(content: &Content) -> Option<String> {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => Some(text.text.clone()),
        Body::Reasoning(reasoning) => Some(reasoning.text.concat()),
        Body::Media(media) => media.transcript.clone(),
        Body::ToolCall(call) => match &call.arguments {
            Arguments::Text(text) | Arguments::Free(text) => Some(text.clone()),
            Arguments::None | Arguments::Json(_) => Some(String::new()),
        },
        _ => None,
    }
}

#[test]
fn minted_ids_are_the_same_streamed_and_whole() {
    let (_, frames, body) = streams()
        .into_iter()
        .find(|(name, ..)| name.contains("no-ids-no-index"))
        .unwrap();
    let streamed = assemble(&CODEC, &frames).unwrap();
    let ids: Vec<_> = calls(&streamed.messages)
        .iter()
        .map(|call| call.call.clone())
        .collect();
    assert_eq!(ids.len(), 3);
    let mut live = Fold::new();
    let mut decoder = CODEC.stream();
    for frame in &frames[..frames.len() - 2] {
        decoder
            .push(frame)
            .unwrap()
            .into_iter()
            .for_each(|event| live.push(event));
    }
    let cut = live.finish();
    assert_eq!(cut.stop, Stop::Cut);
    let cut_ids: Vec<_> = calls(&cut.messages)
        .iter()
        .map(|call| call.call.clone())
        .collect();
    assert_eq!(cut_ids, ids);
    assert!(ids.iter().all(|id| !body.contains(id.value())));
    let written = CODEC.encode_response(&streamed, &mut Losses::default());
    assert!(ids.iter().all(|id| !written.contains(id.value())));
}

#[test]
fn streams_with_lost_doubled_and_swapped_frames_never_panic() {
    let streams = streams();
    property("chat reads disorder without panic", 1500, |rng, _| {
        let (_, frames, _) = rng.pick(&streams);
        let mut frames = frames.clone();
        for _ in 0..rng.range(1..=4) {
            let at = rng.below(frames.len());
            match rng.below(3) {
                0 if frames.len() > 1 => {
                    frames.remove(at);
                }
                1 => {
                    let doubled = frames[at].clone();
                    frames.insert(at, doubled);
                }
                _ => {
                    let other = rng.below(frames.len());
                    frames.swap(at, other);
                }
            }
        }
        let _ = assemble(&CODEC, &frames);
        Ok(())
    });
}

#[test]
fn whatever_comes_from_elsewhere_can_be_read_again() {
    let mut seen = 0;
    for (vendor, kind) in [("foundry", "items"), ("openai-chat", "messages")] {
        for (name, array) in fixtures(vendor, kind) {
            for (from, to) in [
                (Wire::Foundry, Wire::OpenAiChat),
                (Wire::OpenAiChat, Wire::Foundry),
                (Wire::OpenAiChat, Wire::OpenAiResponses),
            ] {
                if from.as_str() != vendor {
                    continue;
                }
                let (from, to) = (codec(&from).unwrap(), codec(&to).unwrap());
                let messages = decode(from, &array);
                let mut losses = Losses::default();
                let text = to.encode_messages(&messages, &mut losses);
                let read = decode(to, &text);
                // What the client ran goes over with its result; what a vendor ran is a loss.
                let by_client = |messages: &[Message]| {
                    let calls = calls(messages);
                    let ours = calls.iter().filter(|call| call.runner == Runner::Client);
                    ours.count()
                };
                assert_eq!(by_client(&read), by_client(&messages), "{name}");
                let again = to.encode_messages(&read, &mut Losses::default());
                assert_eq!(again, text, "{name}");
                for message in messages {
                    let response = Response {
                        id: None,
                        model: None,
                        messages: vec![message],
                        usage: None,
                        stop: Stop::Done,
                        error: None,
                        vendor: None,
                        service: None,
                    };
                    let body = to.encode_response(&response, &mut Losses::default());
                    to.decode_response(&json::parse(&body).unwrap()).unwrap();
                    let frames = to.encode_stream(&response, &mut Losses::default());
                    assemble(to, &frames).unwrap();
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 50, "{seen}");
}
