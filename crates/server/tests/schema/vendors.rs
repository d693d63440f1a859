//! Streams as vendors send them, through the library's words to ours.

use std::collections::HashSet;

use throughline::{RunEvent, StopReason};
use throughline_model::json::{self, RawJson};
use throughline_model::{Body, Content, Event, Fold, Place, Response, Source};
use throughline_server::Dialect;
use throughline_wire::sse::Frame;
use throughline_wire::{StreamDecoder, Wire, codec};

use crate::schema::grammar::check;
use crate::schema::support::{context, ending, projected};

/// The recorded streams of a format: name and events.
fn recorded(folder: &str, file: &str, api: Option<&str>) -> Vec<(String, Vec<String>)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/fixtures");
    let text = std::fs::read_to_string(format!("{root}/{folder}/{file}")).unwrap();
    // Some of them hold what other readers of JSON refuse.
    let all = json::parse(&text).unwrap();
    let rows = all.as_array().unwrap_or(std::slice::from_ref(&all));
    let wanted = rows
        .iter()
        .filter(|row| api.is_none_or(|api| row.get("api").is_some_and(|found| found.is_str(api))));
    let named = wanted.enumerate().map(|(number, row)| {
        let events = row.get("events").unwrap().as_array().unwrap();
        let events = events
            .iter()
            .map(|event| RawJson::of(event).get().to_owned());
        (format!("{folder}/{file} {number}"), events.collect())
    });
    named.collect()
}

/// What the library makes of a stream: events for readers, and the answer.
fn heard(wire: &Wire, events: &[String]) -> Option<(Vec<RunEvent>, Response)> {
    let mut decoder: Box<dyn StreamDecoder> = codec(wire)?.stream();
    let mut all = Vec::new();
    for event in events {
        let value = json::parse(event).ok()?;
        let name = value.get("type").or_else(|| value.get("event_type"));
        let frame = Frame {
            event: name.and_then(json::Value::as_str).map(Into::into),
            // The end mark is no JSON and is written as a string here.
            data: match value.as_str() {
                Some(text) => text.into_owned(),
                None => event.clone(),
            },
            ..Frame::default()
        };
        all.extend(decoder.push(&frame).ok()?);
    }
    all.extend(decoder.end().ok()?);
    let mut told = vec![RunEvent::Asked { step: 0 }];
    let mut fold = Fold::new();
    let mut open: HashSet<Place> = HashSet::new();
    let mut kinds: Vec<(Place, Content)> = Vec::new();
    for event in all {
        match &event {
            Event::Opened { at, content } => {
                open.insert(*at);
                kinds.push((*at, content.clone()));
                told.extend(brought(*at, content));
            }
            Event::Delta { at, text } => {
                open.insert(*at);
                let kind = kinds.iter().rev().find(|(known, _)| known == at);
                let (step, at, delta) = (0, *at, text.clone());
                match kind.map(|(_, content)| &content.body) {
                    None | Some(Body::Text(_)) => told.push(RunEvent::Text { step, at, delta }),
                    Some(Body::Refusal(_)) => told.push(RunEvent::Refusal { step, at, delta }),
                    Some(Body::Reasoning(_)) => told.push(RunEvent::Reasoning { step, at, delta }),
                    Some(_) => {}
                }
            }
            Event::Summary { at, part, text } => {
                open.insert(*at);
                told.push(RunEvent::Summary {
                    step: 0,
                    at: *at,
                    part: *part as u32,
                    delta: text.clone(),
                });
            }
            Event::Content { at, content } => {
                if open.insert(*at) {
                    told.extend(brought(*at, content));
                }
                told.push(RunEvent::Content {
                    step: 0,
                    at: *at,
                    content: content.clone(),
                });
            }
            _ => {}
        }
        fold.push(event);
    }
    Some((told, fold.finish()))
}

/// The text that a content brings along.
fn brought(at: Place, content: &Content) -> Vec<RunEvent> {
    let step = 0;
    match &content.body {
        Body::Text(text) if !text.text.is_empty() => {
            let delta = text.text.clone();
            vec![RunEvent::Text { step, at, delta }]
        }
        Body::Refusal(text) if !text.text.is_empty() => {
            let delta = text.text.clone();
            vec![RunEvent::Refusal { step, at, delta }]
        }
        Body::Reasoning(reasoning) => {
            let summary = (0..)
                .zip(&reasoning.summary)
                .map(|(part, text)| RunEvent::Summary {
                    step,
                    at,
                    part,
                    delta: text.clone(),
                });
            let mut events: Vec<RunEvent> = summary.collect();
            let delta = reasoning.text.concat();
            if !delta.is_empty() {
                events.push(RunEvent::Reasoning { step, at, delta });
            }
            events
        }
        _ => Vec::new(),
    }
}

/// The same answer as the journal tells it.
fn retold(response: &Response) -> Vec<RunEvent> {
    let mut events = vec![RunEvent::Asked { step: 0 }];
    for (choice, message) in response.messages.iter().enumerate() {
        for (item, content) in message.contents.iter().enumerate() {
            let at = Place::new(choice, item, 0);
            events.extend(brought(at, content));
            events.push(RunEvent::Content {
                step: 0,
                at,
                content: content.clone(),
            });
        }
    }
    events.extend(messages(response));
    events
}

fn messages(response: &Response) -> Vec<RunEvent> {
    let said = response.messages.iter().cloned().map(|mut message| {
        message.source = Some(Source::Model);
        RunEvent::Message(message)
    });
    said.collect()
}

/// A response with its items by their ids.
fn by_id(response: &RawJson) -> serde_json::Value {
    let mut response: serde_json::Value = serde_json::from_str(response.get()).unwrap();
    let output = response["output"].as_array_mut().unwrap();
    output.sort_by_key(|item| item["id"].to_string());
    response
}

#[test]
fn recorded_streams_of_all_vendors_become_streams_of_ours() {
    let chat = [
        "choices",
        "reasoning",
        "known-id-wins",
        "no-ids-no-index",
        "custom",
        "repeated-id",
        "same-index",
        "parts",
        "late-id",
        "empty-ids",
        "legacy",
        "duplicate-ids",
        "filtered",
        "audio",
        "indexes-out-of-order",
        "no-index",
        "surrogates",
        "parallel",
    ];
    let mut streams: Vec<(Wire, (String, Vec<String>))> = Vec::new();
    let mut add = |wire: &Wire, rows: Vec<(String, Vec<String>)>| {
        streams.extend(rows.into_iter().map(|row| (wire.clone(), row)));
    };
    for name in chat {
        add(
            &Wire::OpenAiChat,
            recorded("openai-chat", &format!("stream-{name}.json"), None),
        );
    }
    for (wire, folder, api) in [
        (Wire::Anthropic, "anthropic", "messages"),
        (Wire::Gemini, "gemini", "generateContent"),
        (
            Wire::GeminiInteractions,
            "gemini_interactions",
            "interactions",
        ),
    ] {
        add(&wire, recorded(folder, "streams.json", None));
        add(&wire, recorded("catalogue", "streams.json", Some(api)));
    }
    add(
        &Wire::OpenAiResponses,
        recorded("catalogue", "streams.json", Some("responses")),
    );
    add(
        &Wire::OpenAiChat,
        recorded("catalogue", "streams.json", Some("chat")),
    );
    add(
        &Wire::Foundry,
        recorded("foundry", "stream-search.json", None),
    );

    let (mut told, mut items, mut unread) = (0, 0, 0);
    for (wire, (name, events)) in &streams {
        let Some((streamed, response)) = heard(wire, events) else {
            unread += 1;
            continue;
        };
        let streamed: Vec<RunEvent> = streamed.into_iter().chain(messages(&response)).collect();
        for dialect in [Dialect::OpenAi, Dialect::OpenResponses] {
            let context = context(r#"{"model":"m","store":false}"#, dialect);
            let end = ending(StopReason::Done, Some(response.stop.clone()));
            let (frames, one) = projected(&context, &streamed, &end);
            let checked =
                check(&frames).unwrap_or_else(|why| panic!("{wire} {name}: {why}\n{streamed:?}"));
            items += checked.response["output"].as_array().unwrap().len();
            let (frames, two) = projected(&context, &retold(&response), &end);
            check(&frames).unwrap_or_else(|why| panic!("{wire} {name} retold: {why}"));
            // Some vendors' contents are whole only at the end, so their items stand in another order.
            let (one, two) = (one.response(), two.response());
            let (one, two) = (by_id(&one), by_id(&two));
            assert!(one == two, "{wire} {name}\n{one}\n{two}");
            told += 1;
        }
    }
    println!(
        "recorded streams: {} of {} vendor formats, {told} projections, {items} items, unreadable {unread}",
        streams.len(),
        6
    );
    assert_eq!(unread, 0);
    assert!(told >= 60 && items >= 100, "{told} {items}");
}
