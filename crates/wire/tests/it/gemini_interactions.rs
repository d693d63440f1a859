//! Gemini Interactions through the front door: every example and stream, there and back.

use crate::gemini_support::{
    calls, catalogue, check_array, check_request, check_response, check_stream,
    damage_never_panics, decode, encode, expect_calls, fixture, frames, of, results, try_decode,
    with_unknown_members,
};
use throughline_model::json::{self, RawJson};
use throughline_model::{CallId, Origin, Role, Runner, Scope, Stop};
use throughline_wire::sse::Frame;
use throughline_wire::{Losses, Wire, assemble};

const WIRE: Wire = Wire::GeminiInteractions;
const FOLDER: &str = "gemini_interactions";

fn examples() -> Vec<String> {
    let mut list = Vec::new();
    catalogue("examples.json", "interactions", |row| {
        let example = row.get("example").expect("an example");
        list.push(format!("[{}]", RawJson::of(example).get()));
    });
    let steps = fixture(FOLDER, "steps.json");
    let value = json::parse(&steps).expect("the fixture is as it should be");
    for step in value.as_array().expect("the fixture is as it should be") {
        list.push(format!("[{}]", step.raw()));
    }
    list.push(steps);
    list
}

fn responses() -> Vec<String> {
    ["response.json", "odd_response.json", "old_response.json"]
        .map(|name| fixture(FOLDER, name))
        .to_vec()
}

fn requests() -> Vec<String> {
    let mut list = vec![fixture(FOLDER, "request.json")];
    for input in [
        r#""hi""#,
        r#""h\u0069""#,
        "[]",
        "null",
        r#"{"type":"text","text":"hi"}"#,
        r#"[{"type":"text","text":"hi"},{"type":"image","data":"AA=="}]"#,
    ] {
        list.push(format!(r#"{{"input":{input},"model":"m"}}"#));
    }
    list.push(r#"{"agent":"deep-research","system_instruction":"a\/b"}"#.to_owned());
    list
}

fn streams() -> Vec<(String, Vec<Frame>)> {
    let text = fixture(FOLDER, "streams.json");
    let value = json::parse(&text).expect("the fixture is as it should be");
    let row = |row: &json::Value<'_>| {
        let body = row
            .get("body")
            .expect("the fixture is as it should be")
            .raw()
            .to_owned();
        (
            body,
            frames(row.get("events").expect("the fixture is as it should be")),
        )
    };
    value
        .as_array()
        .expect("the fixture is as it should be")
        .iter()
        .map(row)
        .collect()
}

#[test]
fn every_example_comes_back_as_it_was() {
    let examples = examples();
    for example in &examples {
        check_array(&WIRE, example).unwrap();
    }
    println!(
        "table gemini interactions examples there and back: {}",
        examples.len()
    );
}

#[test]
fn the_catalogue_says_what_each_example_is() {
    catalogue("examples.json", "interactions", |row| {
        let text = |key: &str| row.get(key).and_then(json::Value::as_str);
        let example = row.get("example").unwrap();
        let messages = decode(&WIRE, &format!("[{}]", example.raw()));
        let (calls, results) = (calls(&messages), results(&messages));
        let (family, id, runner) = match text("role").as_deref() {
            Some("call") => (&calls[0].family, &calls[0].call, calls[0].runner),
            _ => (&results[0].family, results[0].call(), results[0].runner),
        };
        assert_eq!(family.as_str(), text("family").unwrap());
        let path = text("call_id_path").unwrap();
        let given = example.get(&path[1..]).and_then(json::Value::as_str);
        assert_eq!(Some(id), CallId::natural(&given.unwrap()).as_ref());
        let client = family.as_str() == "function";
        assert_eq!(runner == Runner::Client, client);
    });
}

#[test]
fn both_halves_of_every_pair_share_one_id() {
    let mut halves: Vec<(String, String)> = Vec::new();
    catalogue("examples.json", "interactions", |row| {
        let example = RawJson::of(row.get("example").unwrap()).get().to_owned();
        if row.get("role").unwrap().is_str("call") {
            halves.push((example, String::new()));
        } else if let Some(last) = halves.last_mut() {
            last.1 = example;
        }
    });
    for (call, result) in halves {
        let messages = check_array(&WIRE, &format!("[{call},{result}]")).unwrap();
        assert_eq!(&calls(&messages)[0].call, results(&messages)[0].call());
        // Should the required ids be missing, they pair by place.
        let bare = |text: &str, key: &str| {
            let value = json::parse(text).unwrap();
            let id = RawJson::of(value.get(key).unwrap());
            text.replace(&format!("\"{key}\":{},", id.get()), "")
                .replace(&format!(",\"{key}\":{}", id.get()), "")
        };
        let array = format!("[{},{}]", bare(&call, "id"), bare(&result, "call_id"));
        let messages = check_array(&WIRE, &array).unwrap();
        let id = &calls(&messages)[0].call;
        assert_eq!(id, results(&messages)[0].call(), "{array}");
        assert_eq!(id, &CallId::minted(Scope::Place(0), 0));
        assert!(!encode(&WIRE, &messages).contains(id.value()));
    }
}

#[test]
fn unknown_members_survive() {
    with_unknown_members(
        "interaction steps with unknown members",
        &examples(),
        |text| check_array(&WIRE, text).map(|_| ()),
    );
    with_unknown_members(
        "interaction requests with unknown members",
        &requests(),
        |text| check_request(&WIRE, text),
    );
    with_unknown_members("interactions with unknown members", &responses(), |text| {
        check_response(&WIRE, text).map(|_| ())
    });
}

#[test]
fn whole_bodies_come_back_as_they_were() {
    for body in requests() {
        check_request(&WIRE, &body).unwrap();
    }
    for body in responses() {
        check_response(&WIRE, &body).unwrap();
    }
    for (body, _) in streams() {
        check_response(&WIRE, &body).unwrap();
    }
}

#[test]
fn streams_tell_what_their_whole_body_tells() {
    for (body, frames) in streams() {
        let response = check_stream(&WIRE, &frames);
        let value = json::parse(&body).unwrap();
        assert_eq!(response, of(&WIRE).decode_response(&value).unwrap());
        let back = of(&WIRE).encode_response(&response, &mut Losses::default());
        assert_eq!(back, body);
    }
}

#[test]
fn unknown_members_in_streams_survive() {
    let streams = streams();
    throughline_testkit::property("interaction streams with unknown members", 200, |rng, _| {
        let (_, frames) = rng.pick(&streams);
        let mut frames = frames.clone();
        let at = rng.below(frames.len());
        let grown = throughline_testkit::mutate::insert_unknown_field(&frames[at].data, rng);
        frames[at].data = grown.ok_or("no place")?;
        let response = assemble(of(&WIRE), &frames).map_err(|error| error.to_string())?;
        if response
            .messages
            .iter()
            .any(|message| message.status.is_some())
        {
            return Err(format!("not whole: {response:?}"));
        }
        let body = of(&WIRE).encode_response(&response, &mut Losses::default());
        let whole = check_response(&WIRE, &body)?;
        if whole == response {
            Ok(())
        } else {
            Err(format!("{response:#?} is not {whole:#?}"))
        }
    });
}

#[test]
fn odd_json_comes_back_as_it_was() {
    for array in [
        r#"[{"type":"model_output","type":"user_input","content":[],"content":[{"type":"text","text":"a","text":"b"}]}]"#,
        r#"[{"type":"function_call","id":"a","id":"b","name":"f","arguments":{},"arguments":{"x":1E5}}]"#,
        r#"[{"type":"function_result","call_id":"a","result":{"x":1},"result":null}]"#,
        r#"[{"type":"function_result","call_id":"a","result":[{"type":"image","data":"","uri":""},{"type":"text","text":"\u0041"}]}]"#,
        r#"[{"type":"user_input","content":"\ud800"},{"type":"user_input","content":""}]"#,
        r#"[{"type":"user_input","content":null},{"type":"image"},{"type":"audio","data":""}]"#,
    ] {
        check_array(&WIRE, array).unwrap();
    }
}

#[test]
fn the_streams_of_the_catalogue_give_their_calls() {
    let count = catalogue("streams.json", "interactions", |row| {
        let response = check_stream(&WIRE, &frames(row.get("events").unwrap()));
        expect_calls(row, &response);
        assert_eq!(response.stop, Stop::ToolCalls);
        assert_eq!(response.id.as_deref(), Some("int_1"));
    });
    println!("table gemini interactions streams of the catalogue: {count}");
}

#[test]
fn minted_ids_are_absent_on_the_wire() {
    let response = check_response(&WIRE, &fixture(FOLDER, "odd_response.json")).unwrap();
    let call = &calls(&response.messages)[0].call;
    assert_eq!(call.origin(), Origin::Minted);
    assert_eq!(call, &CallId::minted(Scope::Response("int_2"), 0));
    assert_eq!(call, results(&response.messages)[0].call());
    let back = of(&WIRE).encode_response(&response, &mut Losses::default());
    assert!(!back.contains(call.value()));
}

#[test]
fn damaged_input_never_panics() {
    let mut documents = examples();
    documents.extend(responses());
    documents.extend(requests());
    for (body, frames) in streams() {
        documents.push(body);
        documents.extend(frames.into_iter().map(|frame| frame.data));
    }
    damage_never_panics("interactions damaged", &WIRE, &documents);
}

#[test]
fn steps_group_into_messages() {
    let messages = decode(&WIRE, &fixture(FOLDER, "steps.json"));
    let shape: Vec<_> = messages
        .iter()
        .map(|message| (message.role.clone(), message.contents.len()))
        .collect();
    assert_eq!(
        shape,
        [
            (Role::User, 3),
            (Role::User, 1),
            (Role::Assistant, 8),
            (Role::Tool, 3),
            (Role::Assistant, 14),
        ]
    );
}

#[test]
fn what_is_no_step_is_named() {
    let refused = |array: &str| try_decode(&WIRE, array).unwrap_err();
    assert_eq!(
        refused(r#"[{"role":"user","content":"hi"}]"#),
        "[0].type: expected the tag of a step, found nothing"
    );
    assert_eq!(
        refused(r#"[{"error":{"code":"x","message":"no"}}]"#),
        "[0]: this is an error body, not messages: no"
    );
    assert_eq!(
        refused(r#"[{"type":"function_call","id":"a","arguments":{}}]"#),
        "[0].name: expected a string, found nothing"
    );
    assert_eq!(
        refused(r#"[{"type":"function_call","id":"a","name":"f","arguments":[1]}]"#),
        "[0].arguments: expected an object, found an array"
    );
    assert_eq!(
        refused(r#"[{"type":"user_input","content":[{"type":"text"}]}]"#),
        "[0].content[0].text: expected a string, found nothing"
    );
}
