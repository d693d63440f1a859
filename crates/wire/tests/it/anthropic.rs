//! Anthropic Messages: every example there and back, streams, damage.
//!
//! The fixtures beside this file are the project's own. Where the wire catalogue is checked out
//! next to the workspace, its examples and streams are read too.

use std::path::{Path, PathBuf};

use throughline_model::json::{self, Member, Node, RawJson, Value, push_string};
use throughline_model::{
    Arguments, Content, Message, Origin, Response, Status, Stop, ToolResult, pairs,
};
use throughline_testkit::{Rng, chunks, mutate, property};
use throughline_wire::anthropic::BLOCK_TYPES;
use throughline_wire::sse::{self, Frame};
use throughline_wire::{Codec, DocumentKind, ItemRole, Losses, Wire, assemble, codec};

fn anthropic() -> &'static Codec {
    codec(&Wire::Anthropic).unwrap()
}

fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn fixture(name: &str) -> String {
    let path = crate_folder().join("tests/fixtures/anthropic").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// A file of the wire catalogue; none where it is not checked out.
fn catalogue(name: &str) -> Option<String> {
    let path: &Path = &crate_folder().join("../../../shared/wire").join(name);
    std::fs::read_to_string(path).ok()
}

fn elements(text: &str) -> Vec<RawJson> {
    let value = json::parse(text).unwrap();
    value.as_array().unwrap().iter().map(RawJson::of).collect()
}

fn str_of(value: &Value<'_>, key: &str) -> String {
    value.get(key).unwrap().as_str().unwrap().into_owned()
}

/// The examples of the catalogue, each with its row.
fn examples() -> Vec<RawJson> {
    let text = catalogue("examples.json").unwrap_or_else(|| "[]".to_owned());
    let mut rows = elements(&text);
    rows.retain(|row| row.value().get("provider").unwrap().is_str("anthropic"));
    rows
}

/// All single blocks we have, each wrapped as the one message of an array.
fn wrapped_blocks() -> Vec<String> {
    let own = elements(&fixture("blocks.json")).into_iter().map(|row| {
        let row = row.value();
        let block = RawJson::of(row.get("block").unwrap());
        wrap(&str_of(&row, "role"), block.get())
    });
    let listed = examples().into_iter().map(|row| {
        let row = row.value();
        let role = match str_of(&row, "tag").as_str() {
            "tool_result" => "user",
            "tool_addition" => "system",
            _ => "assistant",
        };
        wrap(role, RawJson::of(row.get("example").unwrap()).get())
    });
    own.chain(listed).collect()
}

fn wrap(role: &str, block: &str) -> String {
    format!(r#"[{{"role":"{role}","content":[{block}]}}]"#)
}

/// All arrays of messages we have.
fn arrays() -> Vec<String> {
    let mut all = wrapped_blocks();
    all.push(RawJson::new(&fixture("history.json")).unwrap().get().into());
    all
}

fn bodies(name: &str) -> Vec<String> {
    let list = elements(&fixture(name));
    list.iter().map(|body| body.get().to_owned()).collect()
}

fn decode(array: &str) -> Vec<Message> {
    let value = json::parse(array).unwrap();
    anthropic()
        .decode_messages(value.as_array().unwrap())
        .unwrap_or_else(|error| panic!("{error}: {array}"))
}

fn encode(messages: &[Message]) -> String {
    let mut losses = Losses::default();
    let text = anthropic().encode_messages(messages, &mut losses);
    assert_eq!(losses.as_slice(), [], "{text}");
    text
}

fn decode_response(body: &str) -> Response {
    let value = json::parse(body).unwrap();
    anthropic()
        .decode_response(&value)
        .unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn stored(messages: &[Message]) -> Vec<Message> {
    messages
        .iter()
        .map(|message| Message::from_json(&message.to_json()).unwrap())
        .collect()
}

/// What came of reading and writing a document again: the text, or nothing if it was refused.
fn again(kind: DocumentKind, text: &str) -> Option<String> {
    let value = json::parse(text).ok()?;
    let mut losses = Losses::default();
    let codec = anthropic();
    let out = match kind {
        DocumentKind::Request => {
            let request = codec.decode_request(&value).ok()?;
            codec.encode_request(&request, &mut losses)
        }
        DocumentKind::Response => {
            let response = codec.decode_response(&value).ok()?;
            let through_store = Response {
                messages: stored(&response.messages),
                ..response.clone()
            };
            assert_eq!(through_store, response);
            codec.encode_response(&response, &mut losses)
        }
        _ => {
            let messages = codec.decode_messages(value.as_array()?).ok()?;
            assert_eq!(stored(&messages), messages);
            codec.encode_messages(&messages, &mut losses)
        }
    };
    assert_eq!(losses.as_slice(), [], "{text}");
    Some(out)
}

/// All documents we have.
fn documents() -> Vec<(DocumentKind, String)> {
    let of = |kind: DocumentKind| move |text: String| (kind, text);
    let mut all: Vec<_> = arrays()
        .into_iter()
        .map(of(DocumentKind::Message))
        .collect();
    all.extend(
        bodies("requests.json")
            .into_iter()
            .map(of(DocumentKind::Request)),
    );
    all.extend(
        bodies("responses.json")
            .into_iter()
            .map(of(DocumentKind::Response)),
    );
    all
}

#[test]
fn every_document_comes_back_as_it_was() {
    for (kind, text) in documents() {
        assert_eq!(again(kind, &text).as_deref(), Some(text.as_str()));
    }
    println!("table documents there and back: {}", documents().len());
}

#[test]
fn every_example_agrees_with_the_table() {
    let rows = examples();
    for row in &rows {
        let row = row.value();
        let tag = str_of(&row, "tag");
        let found = BLOCK_TYPES.iter().find(|found| found.tag == tag).unwrap();
        // Members of a toolset use the block of functions.
        let toolset = row.get("example").unwrap().get("toolset_name");
        if toolset.is_none() {
            assert_eq!(found.family.as_str(), str_of(&row, "family"), "{tag}");
        }
        assert_eq!(found.class.as_str(), str_of(&row, "call_id_class"), "{tag}");
        let role = match found.role {
            ItemRole::Call => "call",
            ItemRole::Output => "output",
            _ => "other",
        };
        assert_eq!(role, str_of(&row, "role"), "{tag}");
        for (field, path) in [(found.id, "id_path"), (found.call, "call_id_path")] {
            let path = row.get(path).unwrap().as_str();
            let path = path.as_deref().map(|path| path.trim_start_matches('/'));
            assert_eq!(field, path, "{tag}");
        }
        // The content carries the id that the catalogue points at.
        let array = wrap("user", RawJson::of(row.get("example").unwrap()).get());
        let messages = decode(&array);
        let content = &messages[0].contents[0];
        if let Some(field) = found.call {
            let id = str_of(row.get("example").unwrap(), field);
            let (call, family) = match (content.as_tool_call(), content.as_tool_result()) {
                (Some(call), _) => (&call.call, &call.family),
                (None, Some(result)) => (result.call(), &result.family),
                (None, None) => panic!("{content:?}"),
            };
            assert_eq!(family.as_str(), str_of(&row, "family"), "{tag}");
            assert_eq!(
                (call.value(), call.origin()),
                (id.as_str(), Origin::Natural)
            );
        }
    }
    println!("table examples of the catalogue: {}", rows.len());
}

#[test]
fn unknown_members_anywhere_survive() {
    let documents = documents();
    property("anthropic: unknown members survive", 1500, |rng, size| {
        let (kind, text) = rng.pick(&documents).clone();
        let mut text = text;
        for _ in 0..1 + size / 30 {
            text = mutate::insert_unknown_field(&text, rng).unwrap_or(text);
        }
        let expected = RawJson::new(&text).map_err(|error| error.to_string())?;
        match again(kind, &text) {
            Some(found) if found == expected.get() => Ok(()),
            found => Err(format!("{text} became {found:?}")),
        }
    });
}

/// Replace, remove or repeat one member or element anywhere.
fn disturb(text: &str, rng: &mut Rng) -> String {
    fn count(value: &Value<'_>) -> usize {
        match value.node() {
            Node::Array(values) => values.iter().map(count).sum(),
            Node::Object(members) => members.iter().map(|m| 1 + count(&m.value)).sum(),
            _ => 0,
        }
    }
    fn write(value: &Value<'_>, left: &mut i64, how: usize, out: &mut String) {
        match value.node() {
            Node::Array(values) => {
                out.push('[');
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    write(value, left, how, out);
                }
                out.push(']');
            }
            Node::Object(members) => {
                let mut parts = Vec::new();
                for Member { key, value } in members {
                    *left -= 1;
                    let hit = *left == -1;
                    let mut part = String::new();
                    push_string(&mut part, &key.to_str());
                    part.push(':');
                    let other = ["null", "\"\"", "[]", "{}", "0", "true", "\"\\/x\"", "[{}]"];
                    if !hit {
                        write(value, left, how, &mut part);
                        parts.push(part);
                    } else if let Some(other) = other.get(how) {
                        part.push_str(other);
                        parts.push(part);
                    } else if how == other.len() {
                        let twice = format!("{part}{}", value.raw());
                        parts.push(format!("{part}null"));
                        parts.push(twice);
                    }
                }
                out.push('{');
                out.push_str(&parts.join(","));
                out.push('}');
            }
            _ => out.push_str(value.raw()),
        }
    }
    let Ok(value) = json::parse(text) else {
        return text.to_owned();
    };
    let mut left = rng.below(count(&value).max(1)) as i64;
    let how = rng.below(10);
    let mut out = String::new();
    write(&value, &mut left, how, &mut out);
    out
}

#[test]
fn what_is_not_refused_comes_back_exactly() {
    let documents = documents();
    let mut accepted = 0;
    property("anthropic: accepted means exact", 4000, |rng, size| {
        let (kind, text) = rng.pick(&documents).clone();
        let mut text = text;
        for _ in 0..1 + size / 40 {
            text = disturb(&text, rng);
        }
        let expected = RawJson::new(&text).map_err(|error| error.to_string())?;
        match again(kind, &text) {
            Some(found) if found == expected.get() => {
                accepted += 1;
                Ok(())
            }
            None => Ok(()),
            Some(found) => Err(format!("{text} became {found}")),
        }
    });
    println!("table disturbed documents that were accepted: {accepted}");
    assert!(accepted > 0);
}

#[test]
fn both_halves_of_a_pair_share_one_id() {
    let history = decode(&RawJson::new(&fixture("history.json")).unwrap().to_string());
    let found = pairs(&history);
    assert_eq!(found.len(), 6);
    for pair in found {
        let call = &history[pair.call.message].contents[pair.call.content];
        let result = &history[pair.result.message].contents[pair.result.content];
        assert_eq!(
            Some(&call.as_tool_call().unwrap().call),
            result.as_tool_result().map(ToolResult::call)
        );
    }
    let roles: Vec<_> = history
        .iter()
        .map(|m| (m.role.as_str(), m.contents.len()))
        .collect();
    assert_eq!(
        roles,
        [
            ("user", 1),
            ("assistant", 4),
            ("tool", 2),
            ("user", 1),
            ("assistant", 1),
            ("user", 1),
            ("system", 2),
            ("assistant", 6),
            // Results of two wire messages are one message of ours.
            ("tool", 2),
            ("user", 1),
            ("assistant", 1),
            ("assistant", 1),
            ("assistant", 1),
        ]
    );
}

fn calls(response: &Response) -> Vec<(String, Origin)> {
    response
        .messages
        .iter()
        .flat_map(|message| &message.contents)
        .filter_map(Content::as_tool_call)
        .map(|call| (call.call.value().to_owned(), call.call.origin()))
        .collect()
}

#[test]
fn ids_that_were_not_there_are_minted_alike_and_never_written() {
    for body in bodies("responses.json") {
        let response = decode_response(&body);
        assert_eq!(decode_response(&body), response);
        let frames = frames_of(&response);
        let streamed = assemble(anthropic(), &frames).unwrap();
        assert_eq!(calls(&streamed), calls(&response));
        let text = anthropic().encode_response(&response, &mut Losses::default());
        for (id, origin) in calls(&response) {
            let absent = origin == Origin::Minted;
            assert_eq!(text.contains(&id), !absent, "{id} in {text}");
        }
    }
    let listed = decode_response(&bodies("responses.json")[5]);
    let found = calls(&listed);
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|(_, origin)| *origin == Origin::Minted));
    let mut distinct = found.clone();
    distinct.sort_by(|a, b| a.0.cmp(&b.0));
    distinct.dedup();
    assert_eq!(distinct.len(), 5);
    // Results without an id find the call of their kind, whatever the order.
    let results: Vec<_> = listed.messages[0]
        .contents
        .iter()
        .filter_map(Content::as_tool_result)
        .map(|result| result.call().value().to_owned())
        .collect();
    assert_eq!(results, [found[4].0.clone(), found[3].0.clone()]);
}

#[test]
fn a_response_in_a_history_keeps_its_ids() {
    let body = &bodies("responses.json")[5];
    let whole = decode_response(body);
    let history = decode(&format!(r#"[{{"role":"user","content":"hi"}},{body}]"#));
    let ids = |message: &Message| -> Vec<String> {
        let calls = message.contents.iter().filter_map(Content::as_tool_call);
        calls.map(|call| call.call.value().to_owned()).collect()
    };
    assert_eq!(ids(&history[1]), ids(&whole.messages[0]));
}

#[test]
fn null_missing_and_empty_ids_come_back_and_pair_by_order() {
    for (call, result) in [
        ("", ""),
        (r#","id":null"#, r#","tool_use_id":null"#),
        (r#","id":"""#, r#","tool_use_id":"""#),
        ("", r#","tool_use_id":null"#),
    ] {
        let array = format!(
            r#"[{{"role":"assistant","content":[{{"type":"tool_use"{call},"name":"a","input":{{}}}},{{"type":"tool_use"{call},"name":"b","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result"{result},"content":"1"}},{{"type":"tool_result"{result}}},{{"type":"tool_result"{result}}}]}}]"#
        );
        let messages = decode(&array);
        assert_eq!(encode(&messages), array);
        assert_eq!(encode(&stored(&messages)), array);
        let found = pairs(&messages);
        let places: Vec<_> = found
            .iter()
            .map(|p| (p.call.content, p.result.content))
            .collect();
        assert_eq!(places, [(0, 0), (1, 1)], "{array}");
    }
}

fn frame(event: &Value<'_>) -> Frame {
    Frame {
        event: Some(str_of(event, "type")),
        data: event.raw().to_owned(),
        id: None,
        retry: None,
    }
}

fn frames_of(response: &Response) -> Vec<Frame> {
    let mut losses = Losses::default();
    let frames = anthropic().encode_stream(response, &mut losses);
    assert_eq!(losses.as_slice(), []);
    frames
}

/// The streams we have: name, frames, and the whole body where it is written down.
fn streams() -> Vec<(String, Vec<Frame>, Option<String>)> {
    let listed = catalogue("streams.json").unwrap_or_else(|| "[]".to_owned());
    let mut rows = elements(&listed);
    rows.retain(|row| row.value().get("provider").unwrap().is_str("anthropic"));
    rows.extend(elements(&fixture("streams.json")));
    rows.iter()
        .map(|row| {
            let row = row.value();
            let events = row.get("events").unwrap().as_array().unwrap();
            let whole = row.get("whole").map(|whole| RawJson::of(whole).to_string());
            (
                str_of(&row, "name"),
                events.iter().map(frame).collect(),
                whole,
            )
        })
        .collect()
}

#[test]
fn listed_streams_give_the_listed_calls() {
    let Some(text) = catalogue("streams.json") else {
        return;
    };
    let mut seen = 0;
    for row in elements(&text) {
        let row = row.value();
        if !row.get("provider").unwrap().is_str("anthropic") {
            continue;
        }
        let events = row.get("events").unwrap().as_array().unwrap();
        let frames: Vec<_> = events.iter().map(frame).collect();
        let response = assemble(anthropic(), &frames).unwrap();
        let found: Vec<_> = response.messages[0]
            .contents
            .iter()
            .filter_map(Content::as_tool_call)
            .map(|call| {
                let Arguments::Json(arguments) = &call.arguments else {
                    panic!("{call:?}");
                };
                (
                    call.call.value().to_owned(),
                    call.name.clone(),
                    arguments.clone(),
                )
            })
            .collect();
        let expected: Vec<_> = row
            .get("expect")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|call| {
                let arguments = RawJson::of(call.get("arguments").unwrap());
                (str_of(call, "call_id"), str_of(call, "name"), arguments)
            })
            .collect();
        assert_eq!(found, expected);
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn a_stream_gives_what_the_whole_body_gives() {
    for (name, frames, whole) in streams() {
        let streamed = assemble(anthropic(), &frames).unwrap();
        let text = anthropic().encode_response(&streamed, &mut Losses::default());
        assert_eq!(decode_response(&text), streamed, "{name}");
        if let Some(whole) = whole {
            assert_eq!(text, whole, "{name}");
            assert_eq!(streamed, decode_response(&whole), "{name}");
        }
    }
}

#[test]
fn a_response_goes_through_a_stream_unchanged() {
    for body in bodies("responses.json") {
        let response = decode_response(&body);
        let frames = frames_of(&response);
        for frame in &frames {
            let data = json::parse(&frame.data).unwrap();
            assert_eq!(frame.event, Some(str_of(&data, "type")));
        }
        assert_eq!(assemble(anthropic(), &frames).unwrap(), response, "{body}");
    }
    for (name, frames, _) in streams() {
        let response = assemble(anthropic(), &frames).unwrap();
        let again = assemble(anthropic(), &frames_of(&response)).unwrap();
        assert_eq!(again, response, "{name}");
    }
}

#[test]
fn disturbed_responses_go_through_a_stream_unchanged() {
    let bodies = bodies("responses.json");
    property("anthropic: streamed equals whole", 2000, |rng, size| {
        let mut text = rng.pick(&bodies).clone();
        for _ in 0..1 + size / 40 {
            text = if rng.bool() {
                disturb(&text, rng)
            } else {
                mutate::insert_unknown_field(&text, rng).unwrap_or(text)
            };
        }
        let value = json::parse(&text).map_err(|error| error.to_string())?;
        let Ok(response) = anthropic().decode_response(&value) else {
            return Ok(());
        };
        let frames = frames_of(&response);
        match assemble(anthropic(), &frames) {
            Ok(found) if found == response => Ok(()),
            found => Err(format!("{text} became {found:#?}\n{response:#?}")),
        }
    });
}

#[test]
fn a_member_that_two_kinds_of_delta_say_is_what_the_last_kind_said() {
    let text = include_str!("../../../../fuzz/corpus/stream-anthropic/member-said-twice.sse");
    let mut decoder = sse::Decoder::new(sse::Limits::default());
    decoder.push(text.as_bytes());
    let frames: Vec<Frame> = std::iter::from_fn(|| decoder.next_frame().unwrap()).collect();
    let response = assemble(anthropic(), &frames).unwrap();
    let said = &response.messages[0].contents[0];
    assert_eq!(said.as_text(), Some("two"));
}

#[test]
fn chunk_boundaries_do_not_show() {
    let mut rng = Rng::new(7);
    for (name, frames, _) in streams() {
        let whole = assemble(anthropic(), &frames).unwrap();
        let text: String = frames
            .iter()
            .map(|frame| sse::encode(frame).unwrap())
            .collect();
        for _ in 0..20 {
            let mut decoder = sse::Decoder::new(sse::Limits::default());
            let mut read = Vec::new();
            for chunk in chunks::random_split(text.as_bytes(), &mut rng) {
                decoder.push(chunk);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    read.push(frame);
                }
            }
            assert_eq!(assemble(anthropic(), &read).unwrap(), whole, "{name}");
        }
    }
}

#[test]
fn a_cut_stream_is_never_taken_for_a_whole_one() {
    let mut all = streams();
    for body in bodies("responses.json") {
        all.push((body.clone(), frames_of(&decode_response(&body)), None));
    }
    let mut cuts = 0;
    for (name, frames, _) in all {
        for at in 0..frames.len() {
            let response = assemble(anthropic(), &frames[..at]).unwrap();
            assert_eq!(response.stop, Stop::Cut, "{name} at {at}");
            assert_eq!(stored(&response.messages), response.messages);
            let last = frames[..at].last().and_then(|frame| frame.event.as_deref());
            if let Some("content_block_start" | "content_block_delta") = last {
                let status = &response.messages[0].status;
                assert_eq!(*status, Some(Status::Incomplete), "{name} at {at}");
            }
            // What was gathered can be written, as a body and as the stream that it was.
            let text = anthropic().encode_messages(&response.messages, &mut Losses::default());
            json::parse(&text).unwrap();
            if at > 0 {
                let again = assemble(anthropic(), &frames_of(&response)).unwrap();
                assert_eq!(again.stop, Stop::Cut, "{name} at {at}");
                assert_eq!(again.messages.len(), response.messages.len());
            }
            cuts += 1;
        }
    }
    println!("table cuts of streams: {cuts}");
}

/// Read damaged bytes in every way there is.
fn read_anything(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let codec = anthropic();
    if let Ok(value) = json::parse(text) {
        codec.document_kind(&value);
        let _ = codec.decode_error(&value);
        let mut losses = Losses::default();
        if let Ok(request) = codec.decode_request(&value) {
            codec.encode_request(&request, &mut losses);
        }
        if let Ok(response) = codec.decode_response(&value) {
            codec.encode_stream(&response, &mut losses);
        }
        if let Ok(messages) = codec.decode_messages(value.as_array().unwrap_or_default()) {
            codec.encode_messages(&messages, &mut losses);
        }
    }
    let frame = Frame {
        data: text.to_owned(),
        ..Frame::default()
    };
    let _ = codec.stream().push(&frame);
}

#[test]
fn damage_never_panics() {
    let documents = documents();
    property("anthropic: damage never panics", 3000, |rng, _| {
        let (_, text) = rng.pick(&documents);
        let damaged = if rng.bool() {
            mutate::flip(text.as_bytes(), rng)
        } else {
            mutate::truncate(text.as_bytes(), rng).to_vec()
        };
        read_anything(&damaged);
        Ok(())
    });
    let streams = streams();
    property("anthropic: damaged streams never panic", 2000, |rng, _| {
        let (_, frames, _) = rng.pick(&streams);
        let mut frames = frames.clone();
        for _ in 0..rng.range(1..=3) {
            let at = rng.below(frames.len());
            match rng.below(4) {
                0 => {
                    frames.remove(at);
                }
                1 => {
                    let other = rng.below(frames.len());
                    frames.swap(at, other);
                }
                2 => frames[at].data = disturb(&frames[at].data, rng),
                _ => {
                    let flipped = mutate::flip(frames[at].data.as_bytes(), rng);
                    if let Ok(text) = String::from_utf8(flipped) {
                        frames[at].data = text;
                    }
                }
            }
        }
        if let Ok(response) = assemble(anthropic(), &frames) {
            anthropic().encode_stream(&response, &mut Losses::default());
        }
        Ok(())
    });
}
