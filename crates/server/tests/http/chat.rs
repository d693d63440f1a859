//! Chat Completions on every kind of upstream, through the front door.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::upstream::{Entry, Extent, Fault, Gate, Reply, Script, entries};

use crate::http::support::{Answer, Client, config, end, get, start, start_with};
use crate::http::vendors::{Vendor, World};

const PATH: &str = "/v1/chat/completions";

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "When the tide turns.",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}},
            "required": ["port"], "additionalProperties": false}}})
}

fn ask(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "When is high water?"}]})
}

async fn complete(world: &World, body: &Value) -> Value {
    let answer = world.post(PATH, body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("a completion is JSON")
}

/// What a client reads of an answer, whole or streamed. Ids differ from answer to answer.
#[derive(Debug, Default, PartialEq)]
struct Read {
    content: Option<String>,
    reasoning: String,
    calls: Vec<(String, Value)>,
    finish_reason: String,
    usage: Value,
    model: String,
    ended: bool,
}

fn whole(body: &Value) -> Read {
    let choice = &body["choices"][0];
    let message = &choice["message"];
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Read {
        content: message["content"].as_str().map(str::to_owned),
        reasoning: text(&message["reasoning_content"]),
        calls: calls
            .map(|call| {
                let function = &call["function"];
                let arguments = function["arguments"].as_str().expect("a text");
                let arguments = serde_json::from_str(arguments).expect("arguments are JSON");
                (text(&function["name"]), arguments)
            })
            .collect(),
        finish_reason: text(&choice["finish_reason"]),
        usage: body["usage"].clone(),
        model: text(&body["model"]),
        ended: true,
    }
}

/// The events of a stream, without its mark.
fn chunks(answer: &Answer) -> (Vec<Value>, bool) {
    let mut chunks = Vec::new();
    let mut ended = false;
    for line in answer.body.lines() {
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        assert!(!ended, "something follows the mark: {line}");
        match data {
            "[DONE]" => ended = true,
            data => chunks.push(serde_json::from_str(data).expect("a chunk is JSON")),
        }
    }
    (chunks, ended)
}

fn streamed(answer: &Answer) -> Read {
    let (chunks, ended) = chunks(answer);
    let mut read = Read {
        ended,
        ..Read::default()
    };
    let mut calls: BTreeMap<u64, (String, String)> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk}");
        ids.insert(chunk["id"].as_str().expect("an id").to_owned());
        read.model = chunk["model"].as_str().expect("a model").to_owned();
        if chunk["usage"].is_object() {
            assert_eq!(chunk["choices"], json!([]));
            read.usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        if let Some(more) = delta["content"].as_str() {
            read.content.get_or_insert_default().push_str(more);
        }
        read.reasoning
            .push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().expect("an index");
            let known = calls.entry(index).or_default();
            let function = &call["function"];
            known
                .0
                .push_str(function["name"].as_str().unwrap_or_default());
            known
                .1
                .push_str(function["arguments"].as_str().unwrap_or_default());
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            read.finish_reason = reason.to_owned();
        }
    }
    assert_eq!(ids.len(), 1, "a stream has one id: {ids:?}");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    read.calls = calls
        .into_values()
        .map(|(name, arguments)| {
            (
                name,
                serde_json::from_str(&arguments).expect("arguments are JSON"),
            )
        })
        .collect();
    read
}

/// An answer of each shape.
fn replies() -> [Reply; 4] {
    let calls = [
        ("get_tide", r#"{"port":"Hull"}"#),
        ("get_tide", r#"{"port":"Brest"}"#),
    ];
    [
        Reply::text("High water is at ten."),
        Reply::calls(calls),
        Reply::text("I will look.").and_calls(calls),
        Reply::text("At ten.").reasoning_first("The moon stands high."),
    ]
}

#[tokio::test]
async fn a_streamed_answer_is_the_whole_one_on_every_kind_of_upstream() {
    for reply in replies() {
        let given = reply.clone();
        let script = move |_: &Wire| {
            let reply = given.clone();
            Script::respond_with(move |_| reply.clone())
        };
        let world = World::start(script, "").await;
        for vendor in &world.vendors {
            let mut body = ask(&vendor.model);
            body["tools"] = json!([tool("get_tide")]);
            let first = complete(&world, &body).await;
            let first = whole(&first);
            assert_eq!(first.model, vendor.model);
            assert!(
                first.content.is_some() || !first.calls.is_empty(),
                "{first:?}"
            );
            let reason = match first.calls.len() {
                0 => "stop",
                2 => "tool_calls",
                calls => panic!("{}: {calls} calls", vendor.kind),
            };
            assert_eq!(first.finish_reason, reason, "{}", vendor.kind);
            assert_eq!(first.usage["prompt_tokens"], 12, "{}", vendor.kind);
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
            let answer = world.post(PATH, &body).await;
            assert_eq!(
                answer.header("content-type").map(|kind| &kind[..17]),
                Some("text/event-stream")
            );
            assert_eq!(streamed(&answer), first, "{}: {}", vendor.kind, answer.body);
            // Without the option there is no usage.
            body.as_object_mut().unwrap().remove("stream_options");
            let plain = streamed(&world.post(PATH, &body).await);
            assert_eq!((plain.usage, plain.ended), (Value::Null, true));
        }
        end(world.server).await;
    }
}

#[tokio::test]
async fn the_client_runs_tools_and_sends_everything_back() {
    let script = |wire: &Wire| {
        let wire = wire.clone();
        Script::respond_with(move |request| {
            let results: Vec<String> = entries(&wire, &request.body)
                .into_iter()
                .filter_map(|entry| match entry {
                    Entry::Result { text, .. } => Some(text),
                    _ => None,
                })
                .collect();
            match results.is_empty() {
                false => Reply::text(results.join(" and ")),
                true => Reply::calls([
                    ("get_tide", r#"{"port":"Hull"}"#),
                    ("get_tide", r#"{"port":"Brest"}"#),
                ])
                .reasoning_first("Two harbours."),
            }
        })
    };
    let world = World::start(script, "").await;
    for vendor in &world.vendors {
        for stream in [false, true] {
            let mut body = ask(&vendor.model);
            body["tools"] = json!([tool("get_tide")]);
            body["tool_choice"] = json!("required");
            body["reasoning_effort"] = json!("low");
            let first = complete(&world, &body).await;
            let message = first["choices"][0]["message"].clone();
            let calls = message["tool_calls"].as_array().unwrap().clone();
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(message);
            // In another order than the calls.
            for call in calls.iter().rev() {
                let arguments = call["function"]["arguments"].as_str().unwrap();
                let port: Value = serde_json::from_str(arguments).unwrap();
                messages.push(json!({"role": "tool", "tool_call_id": call["id"],
                    "content": format!("{} at ten", port["port"].as_str().unwrap())}));
            }
            body["tool_choice"] = json!("auto");
            body["stream"] = json!(stream);
            let answer = world.post(PATH, &body).await;
            assert_eq!(answer.status, 200, "{}: {}", vendor.kind, answer.body);
            let read = match stream {
                true => streamed(&answer),
                false => whole(&serde_json::from_str(&answer.body).unwrap()),
            };
            let content = read.content.unwrap();
            assert!(
                content.contains("Hull at ten") && content.contains("Brest at ten"),
                "{}: {content}",
                vendor.kind
            );
        }
    }
    end(world.server).await;
}

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Sent,
    Refused,
    Named,
    Here,
}

/// A few values of each member of the request.
fn samples() -> Vec<(&'static str, Value)> {
    let image = json!([{"role": "user", "content": [{"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}]);
    let file =
        json!([{"role": "user", "content": [{"type": "file", "file": {"file_id": "file_1"}}]}]);
    vec![
        ("audio", json!({"voice": "alloy", "format": "wav"})),
        ("frequency_penalty", json!(0.5)),
        ("function_call", json!("auto")),
        (
            "functions",
            json!([{"name": "f", "parameters": {"type": "object"}}]),
        ),
        ("logit_bias", json!({"50256": -100})),
        ("logprobs", json!(true)),
        ("max_completion_tokens", json!(700)),
        ("max_tokens", json!(700)),
        ("messages", image),
        ("messages", file),
        (
            "messages",
            json!([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]),
        ),
        ("metadata", json!({"berth": "7"})),
        ("modalities", json!(["text", "audio"])),
        ("model", json!("nowhere/none")),
        ("n", json!(2)),
        ("parallel_tool_calls", json!(false)),
        ("prediction", json!({"type": "content", "content": "x"})),
        ("presence_penalty", json!(0.5)),
        ("prompt_cache_key", json!("harbour")),
        ("prompt_cache_retention", json!("24h")),
        ("reasoning_effort", json!("high")),
        ("reasoning_effort", json!("none")),
        ("response_format", json!({"type": "json_object"})),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "tide",
            "strict": true, "schema": {"type": "object", "properties": {"at": {"type": "string"}},
            "required": ["at"], "additionalProperties": false}}}),
        ),
        ("safety_identifier", json!("u1")),
        ("seed", json!(7)),
        ("service_tier", json!("default")),
        ("service_tier", json!("flex")),
        ("stop", json!("END")),
        ("stop", json!(["END", "STOP"])),
        ("store", json!(true)),
        ("stream", json!(true)),
        ("stream_options", json!({"include_obfuscation": true})),
        ("temperature", json!(0.5)),
        ("throughline", json!({"persistence": "per_call"})),
        ("tool_choice", json!("required")),
        ("tool_choice", json!("none")),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "get_tide"}}),
        ),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "nobody"}}),
        ),
        ("tools", json!([tool("add")])),
        (
            "tools",
            json!([{"type": "custom", "custom": {"name": "patch"}}]),
        ),
        ("top_logprobs", json!(3)),
        ("top_p", json!(0.5)),
        ("user", json!("u1")),
        ("verbosity", json!("low")),
        ("web_search_options", json!({})),
    ]
}

#[tokio::test]
async fn each_member_is_sent_on_refused_or_named_on_every_kind_of_upstream() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("High water is at ten."));
    let world = World::start(script, "").await;
    let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut silent = Vec::new();
    for vendor in &world.vendors {
        let mut plain = ask(&vendor.model);
        plain["tools"] = json!([tool("get_tide")]);
        complete(&world, &plain).await;
        let without = vendor.asked();
        for (member, value) in samples() {
            let mut body = plain.clone();
            if member == "stream_options" {
                body["stream"] = json!(true);
            }
            if member == "top_logprobs" {
                body["logprobs"] = json!(true);
            }
            body[member] = value.clone();
            let before = vendor.requests().len();
            let answer = world.post(PATH, &body).await;
            let is_asked = vendor.requests().len() > before;
            let header = answer.header("x-throughline-ignored").unwrap_or_default();
            let mut named = header.split(", ").map(|path| path.split(['.', '[']).next());
            let fate = match answer.status {
                200 if named.any(|name| name == Some(member)) => {
                    assert!(
                        answer.body.contains("\"ignored\":[{\"path\""),
                        "{}",
                        answer.body
                    );
                    Some(Fate::Named)
                }
                200 if is_asked && vendor.asked() != without => Some(Fate::Sent),
                200 => (member == "stream" && answer.body.ends_with("data: [DONE]\n\n"))
                    .then_some(Fate::Here),
                400 | 404 => {
                    let param = answer.error("param").unwrap_or_default();
                    let about = param.split(['.', '[']).next() == Some(member);
                    // A strict mock vendor refuses unknown members with an error of its own.
                    (about || is_asked).then_some(Fate::Refused)
                }
                _ => None,
            };
            match fate {
                Some(fate) => *counts.entry(fate).or_default() += 1,
                None => silent.push(format!(
                    "{}: {member} = {value}: {} {}",
                    vendor.kind, answer.status, answer.body
                )),
            }
        }
    }
    assert!(
        silent.is_empty(),
        "{}:\n{}",
        silent.len(),
        silent.join("\n")
    );
    println!(
        "campaign chat members: kinds={} {counts:?}",
        world.vendors.len()
    );
    assert!(counts.len() >= 3, "{counts:?}");
    end(world.server).await;
}

#[tokio::test]
async fn an_upstream_of_the_same_api_gets_and_gives_everything_as_it_was_written() {
    let raw = json!({"id": "chatcmpl-7", "object": "chat.completion", "created": 7,
        "model": "gpt-5-2026", "system_fingerprint": "fp_1", "service_tier": "default",
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": {"content": [
            {"token": "Hi", "logprob": -0.5, "bytes": null, "top_logprobs": []}], "refusal": null},
            "message": {"role": "assistant", "content": "Hi", "refusal": null, "annotations": []}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0}}});
    let given = raw.to_string();
    let script = move |_: &Wire| {
        let raw = given.clone();
        Script::respond_with(move |_| Reply::raw(200, "application/json", raw.clone()))
    };
    let world = World::start(script, "").await;
    let vendor = native(&world);
    let members = json!({"seed": 7, "logprobs": true, "top_logprobs": 2, "logit_bias": {"1": 2},
        "metadata": {"berth": "7"}, "temperature": 0.50, "stop": ["END"],
        "tools": [tool("get_tide"), {"type": "custom", "custom": {"name": "patch"}}],
        "tool_choice": "auto", "parallel_tool_calls": false,
        "prediction": {"type": "content", "content": "x"}});
    let mut body = ask(&vendor.model);
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    body["messages"] = json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "name": "ada", "content": [{"type": "text", "text": "hi"}]},
    ]);
    let answer = complete(&world, &body).await;
    let asked = vendor.asked();
    for (key, value) in members.as_object().unwrap() {
        assert_eq!(asked[key], *value, "{key}");
    }
    assert_eq!(asked["messages"], body["messages"]);
    let mut expected = raw;
    expected["model"] = body["model"].clone();
    assert_eq!(answer, expected);
    // Streamed, the same is in the last chunks.
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let (chunks, ended) = chunks(&world.post(PATH, &body).await);
    assert!(ended);
    let last = &chunks[chunks.len() - 2];
    assert_eq!(
        last["choices"][0]["logprobs"],
        expected["choices"][0]["logprobs"]
    );
    assert_eq!(last["system_fingerprint"], "fp_1");
    assert_eq!(chunks[chunks.len() - 1]["usage"], expected["usage"]);
    assert!(chunks.iter().all(|chunk| chunk["id"] == "chatcmpl-7"));
    end(world.server).await;
}

fn native(world: &World) -> &Vendor {
    let mut vendors = world.vendors.iter();
    vendors.find(|vendor| vendor.kind == "openai-chat").unwrap()
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error_and_without_its_mark() {
    for fault in [
        Fault::CutBetweenEvents,
        Fault::NoEndMark,
        Fault::ErrorInAnswer,
    ] {
        let text = "High water is at ten, and again at half past ten in the evening. ".repeat(20);
        let script = move |_: &Wire| {
            let text = text.clone();
            Script::respond_with(move |_| Reply::text(text.clone()))
        };
        let world = World::start(script, "").await;
        for vendor in &world.vendors {
            vendor.upstream.inflict(fault, Extent::Always).await;
            let mut body = ask(&vendor.model);
            for stream in [true, false] {
                // A whole answer is asked for again first, which takes time.
                if !stream && (fault != Fault::CutBetweenEvents || vendor.kind != "gemini") {
                    continue;
                }
                body["stream"] = json!(stream);
                let answer = world.post(PATH, &body).await;
                if answer.status != 200 {
                    // It failed before anything was sent, and retries did not help.
                    assert!(answer.status >= 500, "{}: {}", vendor.kind, answer.body);
                    assert!(answer.error("message").is_some());
                    continue;
                }
                assert!(
                    stream,
                    "{}: a broken answer is none: {}",
                    vendor.kind, answer.body
                );
                let (chunks, ended) = chunks(&answer);
                assert!(!ended, "{} {fault:?}: {}", vendor.kind, answer.body);
                let last = chunks.last().unwrap();
                assert!(last["error"]["message"].is_string(), "{last}");
                assert!(
                    chunks
                        .iter()
                        .all(|chunk| chunk["choices"][0]["finish_reason"].is_null())
                );
            }
        }
        end(world.server).await;
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused_by_name() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let deep = format!(
        r#"{{"model":"demo","messages":{}{}}}"#,
        "[".repeat(80),
        "]".repeat(80)
    );
    let long = format!(
        r#"{{"model":"{}","messages":[{{"role":"user","content":"x"}}]}}"#,
        "m".repeat(100_000)
    );
    for body in [
        "",
        "[]",
        "{",
        "null",
        r#"{"model":"demo"}"#,
        r#"{"model":"demo","messages":[]}"#,
        r#"{"model":"demo","messages":"hi"}"#,
        r#"{"model":"demo","messages":[1]}"#,
        r#"{"model":"demo","messages":[{"content":"x"}]}"#,
        r#"{"model":"demo","messages":[{"role":"pirate","content":"x"}]}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":7}]}"#,
        r#"{"model":"demo","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}"#,
        r#"{"model":"demo","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}"#,
        r#"{"model":1,"messages":[{"role":"user","content":"x"}]}"#,
        r#"{"messages":[{"role":"user","content":"x"}]}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"n":0}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"n":1e9}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"stream":"yes"}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"stream_options":{}}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"temperature":99}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"max_tokens":-1}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"stop":[1]}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"tools":{}}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function"}]}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"tool_choice":"required"}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"function"}}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"response_format":{"type":"xml"}}"#,
        r#"{"model":"demo","messages":[{"role":"user","content":"x"}],"reasoning_effort":"utmost"}"#,
        deep.as_str(),
        long.as_str(),
    ] {
        let answer = client
            .send(&format!("POST {PATH}"), &[], body.as_bytes())
            .await;
        let shown: String = body.chars().take(200).collect();
        assert!(
            (400..500).contains(&answer.status),
            "{shown}: {}",
            answer.status
        );
        assert!(
            answer.error("message").is_some(),
            "{shown}: {}",
            answer.body
        );
        assert!(answer.body.len() < 2_000, "{shown}");
    }
    // The connection, and the server, are fine.
    let answer = client
        .send(
            &format!("POST {PATH}"),
            &[],
            ask("demo").to_string().as_bytes(),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = client.send(&format!("GET {PATH}"), &[], b"").await;
    assert_eq!(answer.status, 405);
    let answer = client
        .send(&format!("GET {PATH}/chatcmpl-1"), &[], b"")
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (404, "route_not_served")
    );
    end(server).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_call_and_frees_its_place() {
    let gate = Gate::default();
    gate.close();
    let held = gate.clone();
    let script = move |_: &Wire| {
        let held = held.clone();
        Script::respond_with(move |_| Reply::text("High water is at ten.").held(&held))
    };
    let world = World::start(script, "[limits]\nstreams = 1\n").await;
    let vendor = native(&world);
    let mut body = ask(&vendor.model);
    body["stream"] = json!(true);
    let body = body.to_string();
    let line = format!(
        "POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut first = Client::to(world.server.address).await;
    first.write(line.as_bytes()).await;
    first.line_of("data: ").await;
    // There is room for one stream.
    let mut second = Client::to(world.server.address).await;
    let refused = second
        .send(&format!("POST {PATH}"), &[], body.as_bytes())
        .await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "too_many_streams")
    );
    drop(first);
    loop {
        let metrics = get(world.server.address, "/metrics").await.body;
        let open = metrics
            .lines()
            .find(|line| line.starts_with("throughline_http_streams"));
        if open.is_some_and(|line| line.ends_with(" 0")) {
            break;
        }
        tokio::task::yield_now().await;
    }
    gate.open();
    let answer = second
        .send(&format!("POST {PATH}"), &[], body.as_bytes())
        .await;
    assert!(answer.body.ends_with("data: [DONE]\n\n"), "{}", answer.body);
    // Calls are measured although no agent makes them.
    let metrics = get(world.server.address, "/metrics").await.body;
    assert!(metrics.contains("gen_ai_client_token_usage"), "{metrics}");
    end(world.server).await;
}

#[tokio::test]
async fn agents_of_the_configuration_answer_if_their_tools_are_the_clients() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("At ten."));
    let agents = "[[agent]]\nid = \"pilot\"\nmodel = \"anthropic/claude-opus-4-8\"\n\
                  instructions = \"You know the harbour.\"\n\
                  [mcp.orders]\nurl = \"http://127.0.0.1:9/mcp\"\n\
                  [[agent]]\nid = \"buyer\"\nmodel = \"anthropic/claude-opus-4-8\"\ntools = [\"mcp:orders\"]\n";
    let world = World::start(script, agents).await;
    let answer = complete(&world, &ask("agent/pilot")).await;
    assert_eq!(answer["model"], "agent/pilot");
    let vendor = world
        .vendors
        .iter()
        .find(|vendor| vendor.kind == "anthropic")
        .unwrap();
    assert_eq!(vendor.asked()["system"], "You know the harbour.");
    let answer = world.post(PATH, &ask("agent/buyer")).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "agent_needs_responses")
    );
    end(world.server).await;
}

#[tokio::test]
async fn a_server_that_reports_nothing_refuses_what_it_cannot_carry_out() {
    let server = start_with(config("[server]\nunsupported = \"refuse\"\n", &[])).await;
    let mut client = Client::to(server.address).await;
    let mut body = ask("demo");
    body["seed"] = json!(7);
    let answer = client
        .send(&format!("POST {PATH}"), &[], body.to_string().as_bytes())
        .await;
    assert_eq!(
        (answer.status, answer.error("param").as_deref()),
        (400, Some("seed"))
    );
    end(server).await;
}
