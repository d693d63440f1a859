//! Azure Foundry there and back: all examples of the catalogue, our own fixtures, and what random
//! growth and damage make of them.

use crate::exact::{
    catalogue, chunking_does_not_show, compact, damage_never_panics, decode, every_cut_shows,
    fixtures, frames, messages_survive, request_survives, response_survives,
    unknown_members_survive, wrong_kinds_never_vanish,
};
use throughline_model::json::{self, Value};
use throughline_model::{Arguments, Content, Message, Origin, Pairing, Stop, pairs};
use throughline_testkit::Rng;
use throughline_wire::foundry::{CODEC, ITEM_TYPES};
use throughline_wire::{Losses, assemble, openai_responses};

const VENDOR: &str = "foundry";

/// Tag, role, class and the example itself.
struct Example {
    tag: String,
    role: String,
    class: String,
    family: String,
    text: String,
}

fn examples() -> Vec<Example> {
    let Some(text) = catalogue("examples.json") else {
        return Vec::new();
    };
    let list = json::parse(&text).unwrap();
    let of_foundry = |row: &&Value<'_>| row.get("provider").unwrap().is_str("foundry");
    let found: Vec<_> = list.as_array().unwrap().iter().filter(of_foundry).collect();
    assert_eq!(found.len(), 26);
    let word = |row: &Value<'_>, key: &str| row.get(key).unwrap().as_str().unwrap().into_owned();
    found
        .into_iter()
        .map(|row| Example {
            tag: word(row, "tag"),
            role: word(row, "role"),
            class: word(row, "call_id_class"),
            family: word(row, "family"),
            text: format!("[{}]", row.get("example").unwrap().raw()),
        })
        .collect()
}

fn all_arrays() -> Vec<String> {
    let mut arrays: Vec<_> = examples().into_iter().map(|example| example.text).collect();
    arrays.extend(fixtures(VENDOR, "items").into_iter().map(|(_, text)| text));
    arrays
}

fn contents(messages: &[Message]) -> impl Iterator<Item = &Content> {
    messages.iter().flat_map(|message| &message.contents)
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
fn every_example_is_what_the_catalogue_says() {
    for example in examples() {
        let messages = decode(&CODEC, &example.text);
        let first = contents(&messages).next().unwrap();
        let (family, origin) = match (first.as_tool_call(), first.as_tool_result()) {
            (Some(call), _) => (&call.family, call.call.origin()),
            (_, Some(result)) => {
                let standalone = result.pairing() == Pairing::Standalone;
                assert_eq!(standalone, example.class == "conflated", "{}", example.tag);
                (&result.family, result.call().origin())
            }
            _ => {
                assert_eq!(example.tag, "structured_outputs");
                continue;
            }
        };
        assert_eq!(family.as_str(), example.family);
        assert_eq!(first.as_tool_call().is_some(), example.role != "output");
        let expected = match example.class.as_str() {
            "natural" => Origin::Natural,
            "conflated" => Origin::Item,
            "absent" => Origin::Minted,
            // Set or not as the instance has it.
            "nullable" if example.text.contains("\"call_id\": null") => Origin::Minted,
            "nullable" => Origin::Natural,
            other => panic!("{other}"),
        };
        assert_eq!(origin, expected, "{}", example.tag);
    }
}

#[test]
fn both_halves_of_a_pair_share_one_id() {
    let examples = examples();
    let mut seen = 0;
    for call in examples.iter().filter(|example| example.role == "call") {
        let output = examples
            .iter()
            .find(|output| output.tag == format!("{}_output", call.tag));
        let Some(output) = output else { continue };
        let joined = format!(
            "{},{}",
            &call.text[..call.text.len() - 1],
            &output.text[1..]
        );
        let messages = messages_survive(&CODEC, &joined).unwrap();
        assert_eq!(pairs(&messages).len(), 1, "{}", call.tag);
        seen += 1;
    }
    assert!(examples.is_empty() || seen == 10, "{seen}");
}

#[test]
fn our_own_pairs_share_their_ids_under_each_spelling() {
    let (_, array) = &fixtures(VENDOR, "items-pairs")[0];
    let messages = messages_survive(&CODEC, array).unwrap();
    let ids: Vec<_> = pairs(&messages)
        .iter()
        .map(|pair| {
            let call = &messages[pair.call.message].contents[pair.call.content];
            call.as_tool_call().unwrap().call.value().to_owned()
        })
        .filter(|id| id.starts_with("call_"))
        .collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3", "call_4", "call_5"]);
}

#[test]
fn unknown_members_come_back_wherever_they_stand() {
    let arrays = all_arrays();
    unknown_members_survive("foundry items keep unknown members", 600, &arrays, |text| {
        messages_survive(&CODEC, text).map(|_| ())
    });
    for kind in ["request", "response"] {
        let bodies: Vec<_> = fixtures(VENDOR, kind).into_iter().map(|(_, t)| t).collect();
        let name = format!("foundry {kind}s keep unknown members");
        unknown_members_survive(&name, 200, &bodies, |text| match kind {
            "request" => request_survives(&CODEC, text),
            _ => response_survives(&CODEC, text).map(|_| ()),
        });
    }
}

#[test]
fn damaged_input_is_an_error_at_worst() {
    let mut texts = all_arrays();
    for kind in ["request", "response", "stream"] {
        texts.extend(fixtures(VENDOR, kind).into_iter().map(|(_, text)| text));
    }
    damage_never_panics("foundry reads damage without panic", 2000, &CODEC, &texts);
    let name = "foundry refuses or keeps values of the wrong kind";
    wrong_kinds_never_vanish(name, 3000, &CODEC, &texts);
}

#[test]
fn a_stream_gives_its_calls_and_the_whole_body() {
    let mut rng = Rng::new(7);
    for (name, text) in fixtures(VENDOR, "stream") {
        let value = json::parse(&text).unwrap();
        let events = value.get("events").unwrap().as_array().unwrap();
        let frames = frames(events);
        let streamed = assemble(&CODEC, &frames).unwrap();
        let body = events.last().unwrap().get("response").unwrap();
        assert_eq!(streamed, CODEC.decode_response(body).unwrap(), "{name}");
        let written = CODEC.encode_response(&streamed, &mut Losses::default());
        assert_eq!(written, compact(body.raw()), "{name}");
        let found: Vec<_> = contents(&streamed.messages)
            .filter_map(Content::as_tool_call)
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
        let expected: Vec<_> = value
            .get("expect")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|call| {
                let word = |key| call.get(key).unwrap().as_str().unwrap().into_owned();
                let arguments = compact(call.get("arguments").unwrap().raw());
                (word("call_id"), word("name"), arguments)
            })
            .collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(streamed.stop, Stop::ToolCalls);
        chunking_does_not_show(&CODEC, &frames, &mut rng);
        every_cut_shows(&CODEC, &frames);
    }
}

#[test]
fn no_tag_of_foundry_hides_one_of_openai() {
    for row in &ITEM_TYPES {
        let twice = openai_responses::ITEM_TYPES
            .iter()
            .any(|other| other.tag == row.tag);
        assert!(!twice, "{}", row.tag);
    }
}
