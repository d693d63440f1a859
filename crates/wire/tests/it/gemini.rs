//! Gemini generateContent through the front door: every example and stream, there and back.

use crate::gemini_support::{
    calls, catalogue, check_array, check_request, check_response, check_stream,
    damage_never_panics, decode, encode, expect_calls, fixture, frames, of, results, try_decode,
    with_unknown_members,
};
use throughline_model::json::{self, RawJson};
use throughline_model::{CallId, Origin, Scope, Stop};
use throughline_wire::sse::Frame;
use throughline_wire::{Format, Losses, Wire, assemble, transcript};

const WIRE: Wire = Wire::Gemini;

/// A part in the smallest array that can hold it.
fn wrapped(part: &str) -> String {
    let role = if part.contains("\"functionResponse\"") {
        "user"
    } else {
        "model"
    };
    format!("[{{\"role\":\"{role}\",\"parts\":[{part}]}}]")
}

fn examples() -> Vec<String> {
    let mut list = Vec::new();
    catalogue("examples.json", "generateContent", |row| {
        let example = row.get("example").expect("an example");
        list.push(wrapped(RawJson::of(example).get()));
    });
    let contents = fixture("gemini", "contents.json");
    let value = json::parse(&contents).expect("the fixture is as it should be");
    for content in value.as_array().expect("the fixture is as it should be") {
        list.push(format!("[{}]", content.raw()));
    }
    list.push(contents);
    list
}

fn requests() -> Vec<String> {
    let mut list = vec![fixture("gemini", "request.json")];
    for contents in [
        r#""hi""#,
        r#""h\u0069""#,
        "[]",
        "null",
        r#"{"parts":[{"text":"hi"}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"f"}},{"text":"hi"}]}"#,
    ] {
        list.push(format!(r#"{{"contents":{contents},"cachedContent":"c"}}"#));
    }
    for system in [
        r#""Be brief.""#,
        r#""Be\/brief.""#,
        "null",
        "{}",
        r#"{"role":"x"}"#,
        r#"{"parts":[]}"#,
        r#"{"parts":[{"text":"a\u0062"},{"inlineData":{"data":"AA=="}}]}"#,
    ] {
        list.push(format!(
            r#"{{"contents":[],"system_instruction":{system}}}"#
        ));
        list.push(format!(r#"{{"systemInstruction":{system}}}"#));
    }
    list
}

fn responses() -> Vec<String> {
    ["response.json", "alternatives.json", "blocked.json"]
        .map(|name| fixture("gemini", name))
        .to_vec()
}

fn streams() -> Vec<(String, Vec<Frame>)> {
    let text = fixture("gemini", "streams.json");
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
    println!("table gemini examples there and back: {}", examples.len());
}

#[test]
fn the_catalogue_says_what_each_example_is() {
    catalogue("examples.json", "generateContent", |row| {
        let text = |key: &str| row.get(key).and_then(json::Value::as_str);
        let example = wrapped(RawJson::of(row.get("example").unwrap()).get());
        let messages = decode(&WIRE, &example);
        let (calls, results) = (calls(&messages), results(&messages));
        let (family, id) = match text("role").as_deref() {
            Some("call") => (&calls[0].family, Some(&calls[0].call)),
            Some("output") => (&results[0].family, Some(results[0].call())),
            _ => return assert!(calls.is_empty() && results.is_empty()),
        };
        assert_eq!(family.as_str(), text("family").unwrap());
        let path = text("call_id_path").unwrap();
        let path: Vec<&str> = path.split('/').skip(1).collect();
        let given = row.get("example").unwrap().at(&path);
        match given.and_then(json::Value::as_str) {
            Some(given) => assert_eq!(id, CallId::natural(&given).as_ref()),
            None => assert_eq!(id.unwrap().origin(), Origin::Minted),
        }
    });
}

#[test]
fn unknown_members_survive() {
    with_unknown_members(
        "gemini contents with unknown members",
        &examples(),
        |text| check_array(&WIRE, text).map(|_| ()),
    );
    with_unknown_members(
        "gemini requests with unknown members",
        &requests(),
        |text| check_request(&WIRE, text),
    );
    with_unknown_members(
        "gemini responses with unknown members",
        &responses(),
        |text| check_response(&WIRE, text).map(|_| ()),
    );
}

#[test]
fn ids_may_be_null_missing_or_empty() {
    let pairs = [
        ("functionCall", "functionResponse", r#""name":"f""#, "user"),
        ("executableCode", "codeExecutionResult", r#""x":1"#, "model"),
        (
            "toolCall",
            "toolResponse",
            r#""toolType":"URL_CONTEXT""#,
            "model",
        ),
    ];
    for (call, result, member, answering) in pairs {
        for id in ["", r#""id":null,"#, r#""id":"","#, r#""id":"i1","#] {
            let asked = format!("{{\"{call}\":{{{id}{member}}}}}");
            let answered = format!("{{\"{result}\":{{{id}{member}}}}}");
            let array = if answering == "model" {
                format!(r#"[{{"role":"model","parts":[{asked},{answered}]}}]"#)
            } else {
                format!(
                    r#"[{{"role":"model","parts":[{asked}]}},{{"role":"user","parts":[{answered}]}}]"#
                )
            };
            let messages = check_array(&WIRE, &array).unwrap();
            let (calls, results) = (calls(&messages), results(&messages));
            assert_eq!(&calls[0].call, results[0].call(), "{array}");
            if id.contains("i1") {
                assert_eq!(Some(&calls[0].call), CallId::natural("i1").as_ref());
            } else {
                assert_eq!(calls[0].call, CallId::minted(Scope::Place(0), 0));
                assert!(!encode(&WIRE, &messages).contains(calls[0].call.value()));
            }
        }
    }
}

#[test]
fn odd_json_comes_back_as_it_was() {
    for array in [
        r#"[{"role":"user","role":"model","parts":[{"text":"a"}],"parts":[{"text":"b","text":"c"}]}]"#,
        r#"[{"parts":[{"functionCall":{"name":"f","args":{"a":1},"args":{"a":1.0,"a":2}},"functionCall":{"name":"g"}}]}]"#,
        r#"[{"parts":[{"text":"a","functionCall":{"name":"f"},"function_call":{"name":"g","args":{}}}]}]"#,
        r#"[{"parts":[{"functionCall":null,"function_call":{"name":"g","args":{"x":-0.0}}}]}]"#,
        r#"[{"parts":[{"functionCall":{"name":"f","args":null,"partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}]}]"#,
        r#"[{"parts":[{"functionResponse":{"name":"f","response":{"output":1},"parts":[]}}]}]"#,
        r#"[{"parts":[{"functionResponse":{"name":"f","response":null,"parts":[{"inlineData":{"data":""}}]}}]}]"#,
        r#"[{"parts":[{"inlineData":{"data":"\u0041A=="}},{"fileData":{}},{"fileData":{"fileUri":"","file_uri":"x"}}]}]"#,
        r#"[{"role":null,"parts":[{"executableCode":{"code":""}},{"codeExecutionResult":{"output":""}}]}]"#,
        r#"[{"role":"","parts":null}]"#,
    ] {
        check_array(&WIRE, array).unwrap();
    }
}

#[test]
fn unknown_members_in_streams_survive() {
    let streams = streams();
    throughline_testkit::property("gemini streams with unknown members", 200, |rng, _| {
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
        let whole = of(&WIRE).decode_response(&value).unwrap();
        assert_eq!(response, whole);
        let back = of(&WIRE).encode_response(&response, &mut Losses::default());
        assert_eq!(back, body);
        // One array of responses is the same stream.
        let list: Vec<&str> = frames.iter().map(|frame| frame.data.as_str()).collect();
        let capture = format!("[{}]", list.join(","));
        let value = json::parse(&capture).unwrap();
        assert_eq!(of(&WIRE).decode_response(&value).unwrap(), whole);
        let frame = Frame {
            data: capture.clone(),
            ..Frame::default()
        };
        assert_eq!(assemble(of(&WIRE), &[frame]).unwrap(), whole);
        let file = capture.as_bytes();
        let format = Format::Vendor(WIRE);
        let read = transcript::read(file, &format, transcript::Limits::default()).unwrap();
        assert_eq!(read.request.messages, whole.messages);
    }
}

#[test]
fn the_streams_of_the_catalogue_give_their_calls() {
    let count = catalogue("streams.json", "generateContent", |row| {
        let response = check_stream(&WIRE, &frames(row.get("events").unwrap()));
        expect_calls(row, &response);
        assert_eq!(response.stop, Stop::ToolCalls);
    });
    println!("table gemini streams of the catalogue: {count}");
}

#[test]
fn minted_ids_do_not_depend_on_the_stream() {
    let (body, frames) = streams().remove(1);
    let streamed = assemble(of(&WIRE), &frames).unwrap();
    let ids: Vec<_> = calls(&streamed.messages)
        .iter()
        .map(|call| call.call.clone())
        .collect();
    let minted = |ordinal| CallId::minted(Scope::Response("r8"), ordinal);
    assert_eq!(ids, [minted(0), minted(1)]);
    let back = of(&WIRE).encode_response(&streamed, &mut Losses::default());
    assert_eq!(back, body);
}

#[test]
fn a_stream_cut_into_any_frames_tells_the_same() {
    throughline_testkit::property("gemini text cut anywhere", 300, |rng, size| {
        let text = throughline_testkit::generate::text(rng, size);
        let mut whole = String::new();
        json::push_string(&mut whole, &text);
        let mut frames = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() || frames.is_empty() {
            let mut at = rng.range(0..=5).min(rest.len());
            while !rest.is_char_boundary(at) {
                at += 1;
            }
            let (piece, tail) = rest.split_at(at);
            let mut token = String::new();
            json::push_string(&mut token, piece);
            frames.push(format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":{token}}}]}}}}],"responseId":"r"}}"#
            ));
            rest = tail;
        }
        let end = r#"{"candidates":[{"finishReason":"STOP"}],"responseId":"r"}"#;
        frames.push(end.to_owned());
        let frames: Vec<_> = frames
            .into_iter()
            .map(|data| Frame {
                data,
                ..Frame::default()
            })
            .collect();
        let response = assemble(of(&WIRE), &frames).map_err(|error| error.to_string())?;
        let body = of(&WIRE).encode_response(&response, &mut Losses::default());
        let wanted = format!(
            r#"{{"candidates":[{{"finishReason":"STOP","content":{{"parts":[{{"text":{whole}}}]}}}}],"responseId":"r"}}"#
        );
        if body == wanted {
            Ok(())
        } else {
            Err(format!("{body}, not {wanted}"))
        }
    });
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
    damage_never_panics("gemini damaged", &WIRE, &documents);
}

#[test]
fn what_is_no_content_is_named() {
    let refused = |array: &str| try_decode(&WIRE, array).unwrap_err();
    assert_eq!(
        refused(r#"[{"functionCall":{"name":"f"}}]"#),
        r#"[0]: the part functionCall is only a part of a message; wrap it as {"role":…,"parts":[…]}"#
    );
    assert_eq!(
        refused(r#"[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]"#),
        "[0]: this is an error body, not messages: no"
    );
    assert_eq!(
        refused(r#"[{"role":"user","parts":[{"text":1}]}]"#),
        "[0].parts[0].text: expected a string, found a number"
    );
    assert_eq!(
        refused(r#"[{"role":"user","parts":[{"functionCall":{"name":"f","args":[]}}]}]"#),
        "[0].parts[0].functionCall.args: expected an object, found an array"
    );
    assert_eq!(
        refused(r#"[{"role":"user","parts":[{"functionCall":{"name":"f","id":7}}]}]"#),
        "[0].parts[0].functionCall.id: expected a string or null, found a number"
    );
    assert_eq!(
        refused(r#"[{"role":"user","parts":{"text":"a"}}]"#),
        "[0].parts: expected an array of parts, found an object"
    );
    assert_eq!(
        refused(r#"[{"x":1}]"#),
        "[0].parts: expected the parts of a content, found nothing"
    );
}
