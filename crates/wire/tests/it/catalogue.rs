//! Every example of the wire catalogue, there and back.

use std::collections::BTreeSet;

use crate::common::{Entry, decode, entries, streams};
use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    Body, CallId, Content, Message, Origin, Output, Pairing, Stop, ToolCall, ToolResult, pairs,
};
use throughline_testkit::{Compare, Numbers, Rng, Strings, json_eq_with, mutate, property};
use throughline_wire::sse::Frame;
use throughline_wire::{Format, Losses, assemble, codec, convert};

/// Equal but for the order of keys: tokens as they were written.
fn same(a: &str, b: &str) -> Result<(), String> {
    let compare = Compare {
        numbers: Numbers::Token,
        strings: Strings::Token,
    };
    json_eq_with(a, b, compare)
}

/// Decode and encode an array; its stored form and the way through `neutral` must hold too.
fn round_trip(entry: &Entry, array: &str) -> Result<Vec<Message>, String> {
    let codec = entry.codec();
    let messages = decode(codec, array)?;
    let mut losses = Losses::default();
    same(array, &codec.encode_messages(&messages, &mut losses))?;
    if !losses.is_empty() {
        return Err(format!("losses: {:?}", losses.as_slice()));
    }
    for message in &messages {
        let stored = message.to_json();
        let back = Message::from_json(&stored).map_err(|error| format!("{stored}: {error}"))?;
        if back != *message {
            return Err(format!("stored form: {message:?} became {back:?}"));
        }
    }
    let format = Format::Vendor(entry.wire.clone());
    let through = |file: &str, from: &Format, to: &Format| {
        convert(file.as_bytes(), from, to, Default::default())
            .map(|converted| converted.output)
            .map_err(|error| error.to_string())
    };
    let neutral = through(array, &format, &Format::Neutral)?;
    same(array, &through(&neutral, &Format::Neutral, &format)?)?;
    Ok(messages)
}

fn ids(messages: &[Message]) -> Vec<CallId> {
    messages
        .iter()
        .flat_map(|message| &message.contents)
        .filter_map(|content| match &content.body {
            Body::ToolCall(call) => Some(call.call.clone()),
            Body::ToolResult(result) => Some(result.call().clone()),
            Body::ApprovalRequest(request) => Some(request.request.clone()),
            Body::ApprovalResponse(response) => Some(response.request.clone()),
            _ => None,
        })
        .collect()
}

/// The origin that an example must have: the class of its type, and whether the field is set.
fn expected_origin(entry: &Entry) -> Option<Origin> {
    if entry.role == "other" {
        return None;
    }
    let value = entry.example.value();
    let set = |path: &Option<String>| {
        let path = path.as_ref()?;
        let keys: Vec<&str> = path.split('/').skip(1).collect();
        value.at(&keys)?.as_str().filter(|id| !id.is_empty())
    };
    Some(match entry.class.as_str() {
        "natural" | "nullable" | "schema-gap" if set(&entry.call_id_path).is_some() => {
            Origin::Natural
        }
        "conflated" if set(&entry.id_path).is_some() => Origin::Item,
        _ => Origin::Minted,
    })
}

#[test]
fn every_example_round_trips_with_the_origin_of_its_class() {
    let entries = entries();
    assert!(!entries.is_empty());
    let mut failures = Vec::new();
    for entry in &entries {
        let array = format!("[{}]", entry.wrapped());
        let (origin, verdict) = match round_trip(entry, &array) {
            Err(error) => (None, error),
            Ok(messages) => {
                let found = ids(&messages).first().map(CallId::origin);
                let expected = expected_origin(entry);
                if found == expected {
                    (found, "equal".to_owned())
                } else {
                    (found, format!("origin should be {expected:?}"))
                }
            }
        };
        let shown = origin.map_or("-", Origin::as_str);
        println!(
            "table {:<52} class={:<10} origin={shown:<8} round trip: {verdict}",
            entry.name(),
            entry.class
        );
        if verdict != "equal" {
            failures.push(format!("{}: {verdict}", entry.name()));
        }
    }
    println!(
        "table {} examples, {} failures",
        entries.len(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_unknown_field_anywhere_survives() {
    let entries = entries();
    property(
        "catalogue examples with unknown fields",
        20_000,
        |rng, _| {
            let entry = rng.pick(&entries);
            let mut array = format!("[{}]", entry.wrapped());
            for _ in 0..rng.range(1..=3) {
                array = mutate::insert_unknown_field(&array, rng).unwrap_or(array);
            }
            round_trip(entry, &array)
                .map(|_| ())
                .map_err(|error| format!("{}: {error}\n{array}", entry.name()))
        },
    );
}

/// The example with the member at `path` set to null, to the empty string, or taken away.
fn with_id(example: &RawJson, path: &str, change: &str) -> Option<String> {
    let value = example.value();
    let keys: Vec<&str> = path.split('/').skip(1).collect();
    let at = value.at(&keys)?;
    if change != "missing" {
        return Some(RawJson::of_with(&value, &[(at, change)]).get().to_owned());
    }
    let (last, parents) = keys.split_last()?;
    let parent = value.at(parents)?;
    let without = RawJson::object(|object| {
        for member in parent.members() {
            if !member.key.is(last) {
                json::push_compact(object.key_token(&member.key), &member.value);
            }
        }
    });
    Some(
        RawJson::of_with(&value, &[(parent, without.get())])
            .get()
            .to_owned(),
    )
}

#[test]
fn null_missing_and_empty_ids_come_back_as_they_were() {
    let mut cases = 0;
    for entry in entries() {
        for path in [&entry.id_path, &entry.call_id_path].into_iter().flatten() {
            for change in ["null", "\"\"", "missing"] {
                let Some(example) = with_id(&entry.example, path, change) else {
                    continue;
                };
                let array = format!("[{}]", entry.wrap(&example));
                let messages = round_trip(&entry, &array)
                    .unwrap_or_else(|error| panic!("{} {path} {change}: {error}", entry.name()));
                assert!(
                    ids(&messages).iter().all(|id| !id.value().is_empty()),
                    "{}: an id is empty",
                    entry.name()
                );
                cases += 1;
            }
        }
    }
    println!("table {cases} examples with null, empty or missing ids come back as they were");
}

#[test]
fn both_halves_of_each_pair_share_one_id() {
    let entries = entries();
    let mut seen = BTreeSet::new();
    let mut unpaired = Vec::new();
    for call in entries.iter().filter(|entry| entry.role == "call") {
        for output in entries.iter().filter(|output| {
            output.role == "output"
                && output.wire == call.wire
                && (output.wire_type == call.pairs_with || output.pairs_with == call.wire_type)
        }) {
            // The examples of a pair may have been written with different ids.
            let (Some(call_path), Some(output_path)) = (&call.call_id_path, &output.call_id_path)
            else {
                continue;
            };
            for change in ["\"call_Shared1\"", "null", "missing"] {
                let change = match (call.wire.as_str(), call.tag.as_str()) {
                    ("anthropic", "server_tool_use") if change.starts_with('"') => {
                        "\"srvtoolu_Shared1\""
                    }
                    _ => change,
                };
                let nullable = call.class == "nullable" && output.class == "nullable";
                if !change.starts_with('"') && !nullable {
                    continue;
                }
                let (Some(one), Some(two)) = (
                    with_id(&call.example, call_path, change),
                    with_id(&output.example, output_path, change),
                ) else {
                    continue;
                };
                let array = format!("[{},{}]", call.wrap(&one), output.wrap(&two));
                let messages = round_trip(call, &array)
                    .unwrap_or_else(|error| panic!("{}: {error}", call.name()));
                let found = ids(&messages);
                let approval = call.family.ends_with("approval");
                let paired = found.len() == 2
                    && found[0] == found[1]
                    && (approval || pairs(&messages).len() == 1);
                if !paired {
                    unpaired.push(format!(
                        "{} + {} {change}: {found:?}",
                        call.name(),
                        output.name()
                    ));
                }
                seen.insert((call.name(), output.name(), change));
            }
        }
    }
    println!(
        "table {} pairs of calls and outputs share one id",
        seen.len()
    );
    assert!(seen.len() >= 20, "only {} pairs were tried", seen.len());
    assert!(unpaired.is_empty(), "{}", unpaired.join("\n"));
}

#[test]
fn a_fragment_alone_is_refused_with_the_name_of_its_wrapper() {
    for entry in entries() {
        if entry.wrapped() == entry.example.get() {
            continue;
        }
        let array = format!("[{}]", entry.example.get());
        let error = decode(entry.codec(), &array).expect_err(&entry.name());
        assert!(error.contains("wrap it as"), "{}: {error}", entry.name());
    }
}

/// The calls of a response as the catalogue lists them.
fn calls(contents: &[Content]) -> Vec<&ToolCall> {
    contents.iter().filter_map(Content::as_tool_call).collect()
}

#[test]
fn streams_assemble_to_the_calls_that_they_list() {
    let streams = streams();
    assert!(!streams.is_empty());
    for stream in &streams {
        let codec = codec(&stream.wire).unwrap();
        let frames: Vec<Frame> = stream.events.iter().map(frame).collect();
        let response = assemble(codec, &frames)
            .unwrap_or_else(|error| panic!("{} {}: {error}", stream.wire, stream.name));
        let found = calls(&response.messages[0].contents);
        let expect = stream.expect.value();
        let expect = expect.as_array().unwrap();
        assert_eq!(found.len(), expect.len(), "{} {}", stream.wire, stream.name);
        for (call, expected) in found.iter().zip(expect) {
            assert!(
                expected.get("call_id").unwrap().is_str(call.call.value()),
                "{call:?}"
            );
            let name = expected.get("name").filter(|name| !name.is_null());
            assert_eq!(name.and_then(Value::as_str).unwrap_or_default(), call.name);
            let arguments = match &call.arguments {
                throughline_model::Arguments::Json(json) => json.get().to_owned(),
                throughline_model::Arguments::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            };
            let arguments = json::parse(&arguments).unwrap();
            // The catalogue lists the commands of a shell call, not the action around them.
            let shown = arguments.get("commands").unwrap_or(&arguments);
            same(
                &RawJson::of(shown).to_string(),
                expected.get("arguments").unwrap().raw(),
            )
            .unwrap();
        }
        println!(
            "table stream {} {:<60} calls={}",
            stream.wire,
            stream.name,
            found.len()
        );
    }
}

fn frame(event: &RawJson) -> Frame {
    Frame {
        event: None,
        data: event.get().to_owned(),
        id: None,
        retry: None,
    }
}

#[test]
fn a_stream_cut_anywhere_gives_no_half_call_as_a_whole_one() {
    let mut cuts = 0;
    for stream in streams() {
        let codec = codec(&stream.wire).unwrap();
        let frames: Vec<Frame> = stream.events.iter().map(frame).collect();
        let whole = assemble(codec, &frames).unwrap();
        for cut in 0..frames.len() {
            let response = assemble(codec, &frames[..cut]).unwrap();
            cuts += 1;
            if response.stop != Stop::Cut {
                continue;
            }
            for message in &response.messages {
                if message.status.is_some() {
                    continue;
                }
                // A message that claims to be whole has only contents that are.
                for content in &message.contents {
                    assert!(
                        whole.messages[0].contents.contains(content),
                        "{} cut at {cut}: {content:?}",
                        stream.name
                    );
                }
            }
        }
    }
    println!("table {cuts} cuts of streams");
}

#[test]
fn minted_ids_are_the_same_each_time_and_never_on_the_wire() {
    let mut minted = 0;
    for entry in entries() {
        let array = format!("[{}]", entry.wrapped());
        let first = decode(entry.codec(), &array).unwrap();
        let second = decode(entry.codec(), &array).unwrap();
        assert_eq!(first, second, "{}", entry.name());
        let encoded = entry
            .codec()
            .encode_messages(&first, &mut Losses::default());
        for id in ids(&first) {
            if id.origin() == Origin::Minted {
                assert!(!encoded.contains(id.value()), "{}", entry.name());
                assert!(id.value().len() <= 32);
                minted += 1;
            }
        }
    }
    println!("table {minted} minted ids");
    assert!(minted > 0);
}

#[test]
fn standalone_results_stay_standalone() {
    let array = r#"[{"type":"function_call_output","call_id":null,"name":"notices","output":"x"}]"#;
    let codec = codec(&throughline_wire::Wire::OpenAiResponses).unwrap();
    let messages = decode(codec, array).unwrap();
    let result: &ToolResult = messages[0].contents[0].as_tool_result().unwrap();
    assert_eq!(result.pairing(), Pairing::Standalone);
    assert_eq!(result.output, Output::Text("x".into()));
}

#[test]
fn damaged_input_never_panics() {
    let entries = entries();
    property("damaged examples", 20_000, |rng: &mut Rng, _| {
        let entry = rng.pick(&entries);
        let array = format!("[{}]", entry.wrapped());
        let damaged = if rng.bool() {
            mutate::flip(array.as_bytes(), rng)
        } else {
            mutate::truncate(array.as_bytes(), rng).to_vec()
        };
        let format = Format::Vendor(entry.wire.clone());
        // Whatever comes out, something comes out.
        let _ = convert(&damaged, &format, &Format::Neutral, Default::default());
        Ok(())
    });
}
