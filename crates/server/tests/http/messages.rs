//! Anthropic's Messages on every kind of upstream, through the front door.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::upstream::{Entry, Extent, Fault, Reply, Script, entries};

use crate::http::support::{Answer, Client, end, start};
use crate::http::vendors::{Vendor, World};

const PATH: &str = "/v1/messages";

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "When the tide turns.", "input_schema":
        {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}})
}

fn ask(model: &str) -> Value {
    json!({"model": model, "max_tokens": 4000,
        "messages": [{"role": "user", "content": "When is high water?"}]})
}

async fn message(world: &World, body: &Value) -> Value {
    let answer = world.post(PATH, body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("a message is JSON")
}

/// The events of a stream, each with the name of its frame.
fn events(answer: &Answer) -> Vec<Value> {
    let mut events = Vec::new();
    let mut name = None;
    for line in answer.body.lines() {
        if let Some(found) = line.strip_prefix("event: ") {
            name = Some(found.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data).expect("an event is JSON");
            assert_eq!(event["type"].as_str(), name.as_deref(), "{line}");
            events.push(event);
        }
    }
    events
}

/// The message that a stream adds up to, as the SDKs gather it; checks the grammar of the stream.
fn gathered(answer: &Answer) -> Value {
    let mut message = Value::Null;
    let mut open: Option<usize> = None;
    let mut inputs: BTreeMap<usize, String> = BTreeMap::new();
    let mut is_over = false;
    for event in events(answer) {
        assert!(!is_over, "{event} follows the end");
        match event["type"].as_str().expect("a type") {
            "ping" => {}
            "message_start" => {
                assert_eq!(message, Value::Null);
                message = event["message"].clone();
                assert_eq!(message["content"], json!([]));
            }
            "content_block_start" => {
                assert_eq!(open, None, "a block begins in another: {event}");
                let blocks = message["content"].as_array_mut().expect("blocks");
                assert_eq!(event["index"], blocks.len());
                open = Some(blocks.len());
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let index = event["index"].as_u64().expect("an index") as usize;
                assert_eq!(Some(index), open, "{event}");
                let block = &mut message["content"][index];
                let delta = &event["delta"];
                match delta["type"].as_str().expect("a type") {
                    "text_delta" => append(&mut block["text"], &delta["text"]),
                    "thinking_delta" => append(&mut block["thinking"], &delta["thinking"]),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "input_json_delta" => inputs
                        .entry(index)
                        .or_default()
                        .push_str(delta["partial_json"].as_str().expect("a text")),
                    kind => panic!("{kind}"),
                }
            }
            "content_block_stop" => {
                let index = event["index"].as_u64().expect("an index") as usize;
                assert_eq!(Some(index), open.take(), "{event}");
                if let Some(input) = inputs.get(&index).filter(|input| !input.is_empty()) {
                    let input: Value = serde_json::from_str(input).expect("input is JSON");
                    message["content"][index]["input"] = input;
                }
            }
            "message_delta" => {
                assert_eq!(open, None);
                for (key, value) in event["delta"].as_object().expect("a delta") {
                    message[key] = value.clone();
                }
                for (key, value) in event["usage"].as_object().expect("usage") {
                    message["usage"][key] = value.clone();
                }
            }
            "message_stop" => is_over = true,
            kind => panic!("{kind}: {event}"),
        }
    }
    assert!(is_over, "{}", answer.body);
    message
}

fn append(text: &mut Value, more: &Value) {
    let joined = format!(
        "{}{}",
        text.as_str().expect("a text"),
        more.as_str().expect("a text")
    );
    *text = json!(joined);
}

/// A message without what differs from answer to answer: ids and what vendors seal.
fn plain(message: &Value) -> Value {
    let mut message = message.clone();
    message["id"] = Value::Null;
    for block in message["content"].as_array_mut().expect("blocks") {
        for key in ["id", "signature", "data"] {
            if let Some(found) = block.get_mut(key) {
                assert_ne!(found.as_str(), Some(""), "{key} is missing");
                *found = json!("…");
            }
        }
    }
    message
}

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
            body["thinking"] = json!({"type": "adaptive"});
            let whole = message(&world, &body).await;
            assert_eq!(whole["model"], vendor.model.as_str());
            assert_eq!(
                (&whole["type"], &whole["role"]),
                (&json!("message"), &json!("assistant"))
            );
            let calls = whole["content"].as_array().unwrap().iter();
            let calls = calls.filter(|block| block["type"] == "tool_use").count();
            let reason = if calls == 0 { "end_turn" } else { "tool_use" };
            assert_eq!(whole["stop_reason"], reason, "{}: {whole}", vendor.kind);
            assert_eq!(
                whole["usage"]["input_tokens"], 12,
                "{}: {whole}",
                vendor.kind
            );
            body["stream"] = json!(true);
            let answer = world.post(PATH, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            let streamed = gathered(&answer);
            assert_eq!(
                plain(&streamed),
                plain(&whole),
                "{}: {}",
                vendor.kind,
                answer.body
            );
        }
        end(world.server).await;
    }
}

#[tokio::test]
async fn the_client_runs_tools_and_sends_every_block_back() {
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
            body["system"] = json!("You know the harbour.");
            body["tools"] = json!([tool("get_tide")]);
            body["thinking"] = json!({"type": "adaptive"});
            body["stream"] = json!(stream);
            let answer = world.post(PATH, &body).await;
            assert_eq!(answer.status, 200, "{}: {}", vendor.kind, answer.body);
            let first = match stream {
                true => gathered(&answer),
                false => serde_json::from_str(&answer.body).unwrap(),
            };
            assert!(vendor.asked().to_string().contains("You know the harbour."));
            let blocks = first["content"].as_array().unwrap().clone();
            // All vendors but Chat Completions think.
            let thinks = blocks.iter().any(|block| block["type"] == "thinking");
            assert_eq!(
                thinks,
                vendor.kind != "openai-chat",
                "{}: {first}",
                vendor.kind
            );
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": blocks}));
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            let results: Vec<Value> = calls
                .map(|call| {
                    json!({"type": "tool_result", "tool_use_id": call["id"],
                        "content": format!("{} at ten", call["input"]["port"].as_str().unwrap())})
                })
                .rev()
                .collect();
            assert_eq!(results.len(), 2);
            messages.push(json!({"role": "user", "content": results}));
            body["stream"] = json!(false);
            let last = message(&world, &body).await;
            let text = last["content"][0]["text"].as_str().unwrap();
            assert!(
                text.contains("Hull at ten") && text.contains("Brest at ten"),
                "{}: {text}",
                vendor.kind
            );
            // What the vendor sealed or signed came back to it as it was.
            let asked = vendor.asked().to_string();
            let seal = match vendor.kind {
                "anthropic" => Some("signature"),
                "gemini" => Some("thoughtSignature"),
                "openai-responses" => Some("\"encrypted_content\":\""),
                _ => None,
            };
            if let Some(seal) = seal {
                assert!(asked.contains(seal), "{}: {asked}", vendor.kind);
                assert!(!asked.contains("skip_thought_signature"), "{asked}");
            }
            let ignored = &last["throughline"]["ignored"];
            assert!(
                !ignored.to_string().contains("reasoning goes back"),
                "{last}"
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
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]}]);
    let file = json!([{"role": "user", "content": [{"type": "document",
        "source": {"type": "file", "file_id": "file_1"}}]}]);
    let marked =
        json!([{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]);
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}},
        "required": ["at"], "additionalProperties": false});
    vec![
        ("cache_control", json!({"type": "ephemeral"})),
        ("container", json!("container_1")),
        ("context_management", json!({"edits": []})),
        ("inference_geo", json!("eu")),
        ("max_tokens", json!(700)),
        (
            "mcp_servers",
            json!([{"type": "url", "name": "x", "url": "https://x.example"}]),
        ),
        ("messages", image),
        ("messages", file),
        (
            "messages",
            json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well,"}]),
        ),
        ("metadata", json!({"user_id": "u1"})),
        ("metadata", json!({"user_id": "u".repeat(100)})),
        ("model", json!("nowhere/none")),
        ("output_config", json!({"effort": "low"})),
        (
            "output_config",
            json!({"format": {"type": "json_schema", "schema": schema}}),
        ),
        (
            "output_format",
            json!({"type": "json_schema", "schema": schema}),
        ),
        ("service_tier", json!("standard_only")),
        ("stop_sequences", json!(["END"])),
        ("stream", json!(true)),
        ("system", json!("Be brief.")),
        ("system", marked),
        ("temperature", json!(0.5)),
        (
            "thinking",
            json!({"type": "enabled", "budget_tokens": 2000}),
        ),
        ("thinking", json!({"type": "adaptive"})),
        ("thinking", json!({"type": "disabled"})),
        ("throughline", json!({"persistence": "per_call"})),
        ("tool_choice", json!({"type": "any"})),
        ("tool_choice", json!({"type": "tool", "name": "get_tide"})),
        (
            "tool_choice",
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        ("tool_choice", json!({"type": "none"})),
        ("tools", json!([tool("add")])),
        (
            "tools",
            json!([{"type": "web_search_20250305", "name": "web_search"}]),
        ),
        ("top_k", json!(5)),
        ("top_p", json!(0.5)),
    ]
}

/// What is named in an error: its parameter.
fn param(answer: &Answer) -> String {
    let body: Value = serde_json::from_str(&answer.body).expect("an error is JSON");
    assert_eq!(body["type"], "error", "{body}");
    assert!(body["error"]["type"].is_string(), "{body}");
    assert!(body["error"]["message"].is_string(), "{body}");
    assert_eq!(body["request_id"].as_str(), answer.header("request-id"));
    let param = body["error"]["details"]["param"].as_str();
    param.unwrap_or_default().to_owned()
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
        message(&world, &plain).await;
        let without = vendor.asked();
        for (member, value) in samples() {
            let mut body = plain.clone();
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
                200 => (member == "stream" && answer.body.contains("event: message_stop"))
                    .then_some(Fate::Here),
                400 | 404 => {
                    let param = param(&answer);
                    let about = param.split(['.', '[']).next() == Some(member);
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
        "campaign messages members: kinds={} {counts:?}",
        world.vendors.len()
    );
    assert!(counts.len() >= 3, "{counts:?}");
    end(world.server).await;
}

fn native(world: &World) -> &Vendor {
    let mut vendors = world.vendors.iter();
    vendors.find(|vendor| vendor.kind == "anthropic").unwrap()
}

#[tokio::test]
async fn an_upstream_of_the_same_api_gets_and_gives_everything_as_it_was_written() {
    let raw = json!({"id": "msg_7", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmF0dXJl"},
            {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "text", "text": "At ten.", "citations": null},
            {"type": "tool_use", "id": "toolu_1", "name": "get_tide", "input": {"port": "Hull", "n": 1.50}}],
        "stop_reason": "stop_sequence", "stop_sequence": "END", "container": null,
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 3, "service_tier": "standard"}});
    let given = raw.to_string();
    let script = move |_: &Wire| {
        let raw = given.clone();
        Script::respond_with(move |_| Reply::raw(200, "application/json", raw.clone()))
    };
    let world = World::start(script, "").await;
    let vendor = native(&world);
    let members = json!({
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_0", "name": "get_tide", "input": {"port": "Hull"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0", "content": "ten"}]}],
        "tools": [tool("get_tide"), {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive", "display": "summarized"},
        "top_k": 5, "stop_sequences": ["END"], "metadata": {"user_id": "u".repeat(100)},
        "context_management": {"edits": []}, "max_tokens": 4000});
    let mut body = ask(&vendor.model);
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let mut client = Client::to(world.server.address).await;
    let headers = [
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "sk-anything"),
        ("anthropic-beta", "context-management-2025-06-27, other-1"),
    ];
    let line = format!("POST {PATH}?beta=true");
    let answer = client
        .send(&line, &headers, body.to_string().as_bytes())
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("x-throughline-ignored"), None);
    let asked = vendor.asked();
    for (key, value) in members.as_object().unwrap() {
        assert_eq!(asked[key], *value, "{key}");
    }
    assert_eq!(asked["model"], "claude-opus-4-8");
    let requests = vendor.requests();
    let betas = requests
        .last()
        .unwrap()
        .header("anthropic-beta")
        .map(str::to_owned);
    assert_eq!(
        betas.as_deref(),
        Some("context-management-2025-06-27,other-1")
    );
    let mut expected = raw;
    expected["model"] = body["model"].clone();
    let whole: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(whole, expected);
    // An upstream that answers with a whole body is streamed all the same.
    body["stream"] = json!(true);
    let streamed = gathered(&world.post(PATH, &body).await);
    assert_eq!(streamed, expected);
    end(world.server).await;
}

#[tokio::test]
async fn an_answer_that_the_client_begins_goes_on_only_where_that_is_known() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("at ten."));
    let world = World::start(script, "").await;
    for vendor in &world.vendors {
        let mut body = ask(&vendor.model);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": "High water is"}));
        let answer = world.post(PATH, &body).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        // The newest models refuse it themselves.
        let is_asked = !vendor.requests().is_empty();
        assert_eq!(is_asked, vendor.kind == "anthropic");
    }
    end(world.server).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error_event() {
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
                    assert!(answer.status >= 500, "{}: {}", vendor.kind, answer.body);
                    param(&answer);
                    continue;
                }
                assert!(
                    stream,
                    "{}: a broken answer is none: {}",
                    vendor.kind, answer.body
                );
                let events = events(&answer);
                let last = events.last().unwrap();
                assert_eq!(last["type"], "error", "{}: {}", vendor.kind, answer.body);
                assert!(last["error"]["type"].is_string());
                assert!(
                    last["request_id"]
                        .as_str()
                        .is_some_and(|id| id.starts_with("req_"))
                );
                let ends = ["message_delta", "message_stop"];
                assert!(
                    !events
                        .iter()
                        .any(|event| ends.contains(&event["type"].as_str().unwrap()))
                );
            }
        }
        end(world.server).await;
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused_in_the_shape_of_the_api() {
    let server = start("[limits]\nbody_bytes = 200000\n").await;
    let mut client = Client::to(server.address).await;
    let line = format!("POST {PATH}");
    let user = r#""messages":[{"role":"user","content":"x"}]"#;
    let deep = format!(
        r#"{{"model":"demo","max_tokens":9,"messages":{}{}}}"#,
        "[".repeat(80),
        "]".repeat(80)
    );
    let with = |more: &str| format!(r#"{{"model":"demo","max_tokens":9,{user},{more}}}"#);
    let sealed = |token: &str| {
        format!(
            r#"{{"model":"demo","max_tokens":9,"messages":[{{"role":"user","content":"x"}},{{"role":"assistant","content":[{{"type":"thinking","thinking":"a","signature":"{token}"}},{{"type":"text","text":"b"}}]}},{{"role":"user","content":"x"}}]}}"#
        )
    };
    for body in [
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
        r#"{"model":"demo","max_tokens":9}"#.to_owned(),
        r#"{"model":"demo","max_tokens":9,"messages":[]}"#.to_owned(),
        r#"{"model":"demo","max_tokens":9,"messages":{}}"#.to_owned(),
        r#"{"model":"demo","max_tokens":9,"messages":[{"role":"user"}]}"#.to_owned(),
        r#"{"model":"demo","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text"}]}]}"#.to_owned(),
        r#"{"model":"demo","max_tokens":9,"messages":[{"role":"assistant","content":"x"},{"role":"user","content":"x"}]}"#.to_owned(),
        r#"{"model":"demo","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}"#.to_owned(),
        format!(r#"{{"model":"demo",{user}}}"#),
        format!(r#"{{"model":"demo","max_tokens":0,{user}}}"#),
        format!(r#"{{"max_tokens":9,{user}}}"#),
        with(r#""temperature":2"#),
        with(r#""stream":1"#),
        with(r#""system":7"#),
        with(r#""system":[{"type":"image"}]"#),
        with(r#""thinking":{}"#),
        with(r#""thinking":{"type":"enabled"}"#),
        with(r#""tools":[{"name":"f"}]"#),
        with(r#""tools":[7]"#),
        with(r#""tool_choice":"any""#),
        with(r#""tool_choice":{"type":"any"}"#),
        with(r#""tool_choice":{"type":"tool","name":"f"}"#),
        with(r#""output_format":{"type":"xml"}"#),
        with(r#""metadata":{"user_id":7}"#),
        with(r#""stop_sequences":"x""#),
        sealed("eyJ0aHJvdWdobGluZSI6broken"),
        sealed("eyJ0aHJvdWdobGluZSI6eyJ2Ijo5OX19"),
        deep,
        format!("{}{}", " ".repeat(300_000), "{}"),
    ] {
        let answer = Client::to(server.address).await.send(&line, &[], body.as_bytes()).await;
        let shown: String = body.trim().chars().take(200).collect();
        assert!((400..500).contains(&answer.status), "{shown}: {} {}", answer.status, answer.body);
        param(&answer);
        assert!(answer.body.len() < 2_000, "{shown}");
    }
    // What another API signed is not read, and is no reason to refuse.
    for token in ["", "c2ln", "eyJhbGciOiJIUzI1NiJ9"] {
        let answer = client.send(&line, &[], sealed(token).as_bytes()).await;
        assert_eq!(answer.status, 200, "{token}: {}", answer.body);
    }
    for (line, status) in [
        (format!("GET {PATH}"), 405),
        (format!("POST {PATH}/batches"), 404),
    ] {
        let answer = client.send(&line, &[], b"").await;
        assert_eq!(answer.status, status, "{}", answer.body);
        param(&answer);
    }
    let origin = [("origin", "http://evil.example")];
    let mut client = Client::to(server.address).await;
    let answer = client.send(&line, &origin, b"{}").await;
    assert_eq!(answer.status, 403);
    param(&answer);
    // Other paths keep OpenAI's shape.
    let answer = client.send("POST /v1/messagesandmore", &[], b"").await;
    assert_eq!((answer.status, answer.code()), (404, String::new()));
    end(server).await;
}

#[tokio::test]
async fn tokens_are_counted_by_the_upstream_or_estimated_and_the_answer_says_which() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("At ten."));
    let world = World::start(script, "").await;
    let path = format!("{PATH}/count_tokens");
    for vendor in &world.vendors {
        let mut body = ask(&vendor.model);
        body.as_object_mut().unwrap().remove("max_tokens");
        body["system"] = json!("You know the harbour.");
        body["tools"] = json!([tool("get_tide")]);
        let answer = world.post(&path, &body).await;
        assert_eq!(answer.status, 200, "{}: {}", vendor.kind, answer.body);
        let by = match vendor.kind {
            "anthropic" | "openai-responses" => "upstream",
            _ => "estimate",
        };
        assert_eq!(
            answer.header("x-throughline-counted-by"),
            Some(by),
            "{}",
            vendor.kind
        );
        let counted: Value = serde_json::from_str(&answer.body).unwrap();
        let short = counted["input_tokens"].as_u64().unwrap();
        assert!(short > 10, "{counted}");
        body["messages"][0]["content"] = json!("When is high water? ".repeat(100));
        let answer = world.post(&path, &body).await;
        let counted: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(
            counted["input_tokens"].as_u64().unwrap() > 4 * short,
            "{}: {counted}",
            vendor.kind
        );
        // No model was asked.
        assert_eq!(vendor.upstream.counts().model_calls, 0);
    }
    end(world.server).await;
}
