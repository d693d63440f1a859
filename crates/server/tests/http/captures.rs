//! Requests that released clients were seen to send, and those of the compliance suite, sent to a
//! server. Only ids are changed: they are those of the stub that the clients spoke to.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use throughline_server::Server;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::http::support::{Answer, Client, end, start};

/// A model that calls the first tool that it is offered when it is asked about the weather.
async fn model() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream));
        }
    });
    (url, task)
}

async fn answer(stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let last = asked["messages"].as_array().and_then(|all| all.last());
    let wanted = last.is_some_and(|message| {
        message["role"] == "user" && message["content"].to_string().contains("weather")
    });
    let tool = asked["tools"].get(0).filter(|_| wanted);
    let (delta, finish) = match tool {
        Some(tool) => {
            let function = json!({"name": tool["function"]["name"], "arguments": "{}"});
            let call =
                json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            (
                json!({"role": "assistant", "tool_calls": [call]}),
                "tool_calls",
            )
        }
        None => (
            json!({"role": "assistant", "content": "{\"a\":\"b\"}"}),
            "stop",
        ),
    };
    let chunk = |delta: &Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1,
            "model": "stub", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let said = chunk(&delta, Value::Null) + &chunk(&json!({}), json!(finish));
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         {said}data: [DONE]\n\n"
    );
    // A client that has gone does not mind.
    let _ = stream.get_mut().write_all(reply.as_bytes()).await;
}

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/responses/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

async fn world(dialect: &str) -> (tokio::task::JoinHandle<()>, Server) {
    let (url, task) = model().await;
    let file = format!(
        "[server]\ndialect = \"{dialect}\"\n[[upstream]]\nname = \"stub\"\nkind = \"openai-chat\"\n\
         base_url = \"{url}\"\nmodels = [\"*\"]\n"
    );
    (task, start(&file).await)
}

async fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let line = format!("{method} /v1{path}");
    let mut client = Client::to(server.address).await;
    client.send(&line, &[], body.as_bytes()).await
}

/// The response of an answer, streamed or not.
fn response(answer: &Answer) -> Option<Value> {
    if !answer.body.starts_with("event:") {
        return serde_json::from_str(&answer.body).ok();
    }
    let mut data = answer.body.lines().rev();
    let last = data.find_map(|line| line.strip_prefix("data: {"))?;
    let event: Value = serde_json::from_str(&format!("{{{last}")).ok()?;
    Some(event["response"].clone())
}

/// What a client knows of a server: the ids that the stub gave, and the ones that ours has for them.
#[derive(Default)]
struct Known {
    ids: HashMap<String, String>,
    last: Option<Value>,
    /// The conversation that the client made last.
    conversation: Option<String>,
    /// The first and the last item that the client was shown of it.
    items: (Value, Value),
}

impl Known {
    /// The id that ours has for one of the stub's: of the response that the client got last.
    fn response(&mut self, id: &str) -> String {
        let last = self.last.as_ref().and_then(|last| last["id"].as_str());
        let ours = last.unwrap_or(id).to_owned();
        match id.trim_start_matches("resp_").starts_with("000000") {
            true => self.ids.entry(id.to_owned()).or_insert(ours).clone(),
            false => id.to_owned(),
        }
    }

    fn adapt(&mut self, body: &mut Value) {
        let calls: Vec<Value> = self.last.iter().flat_map(calls).collect();
        let last = self.last.clone().unwrap_or_default();
        if body["conversation"].is_string() {
            body["conversation"] = json!(self.conversation);
            let items = body["input"].as_array_mut().into_iter().flatten();
            let outputs = items.filter(|item| item["type"] == "function_call_output");
            for (item, call) in outputs.zip(calls) {
                item["call_id"] = call;
            }
            return;
        }
        let Some(previous) = body["previous_response_id"].as_str().map(str::to_owned) else {
            if let Some(items) = body["input"].as_array_mut() {
                for item in items
                    .iter_mut()
                    .filter(|item| item["type"] == "item_reference")
                {
                    item["id"] = last["output"][0]["id"].clone();
                }
            }
            return;
        };
        body["previous_response_id"] = json!(self.response(&previous));
        let items = body["input"].as_array_mut().into_iter().flatten();
        let outputs = items.filter(|item| item["type"] == "function_call_output");
        for (item, call) in outputs.zip(calls) {
            item["call_id"] = call;
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn calls(response: &Value) -> Vec<Value> {
    let output = response["output"].as_array().into_iter().flatten();
    let calls = output.filter(|item| item["type"] == "function_call");
    calls.map(|item| item["call_id"].clone()).collect()
}

/// Requests that were meant to be refused: the place in the file, the status and the code.
const MISUSE: [(usize, u16, &str); 4] = [
    (64, 404, ""),
    (86, 404, ""),
    (87, 400, "previous_response_not_found"),
    (88, 400, ""),
];

#[tokio::test]
async fn every_captured_request_is_answered_or_names_what_is_not_built() {
    let (task, server) = world("openai").await;
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (place, line) in fixture("client-wire-captures.jsonl").lines().enumerate() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        if row["transport"] != "http" {
            *counts.entry("not HTTP".to_owned()).or_default() += 1;
            continue;
        }
        let known = known.entry(row["client"].to_string()).or_default();
        let path = row["path"].as_str().unwrap().to_owned();
        let mut query = row["query"].as_str().unwrap_or_default().to_owned();
        let of_conversation = path.starts_with("/conversations");
        known.adapt(&mut row["body"]);
        let parts: Vec<String> = path
            .split('/')
            .map(|part| match part.split_once('_') {
                Some(("resp", _)) => known.response(part),
                Some(("conv", _)) => known.conversation.clone().unwrap_or_default(),
                Some(("msg", _)) if of_conversation => text(&known.items.0),
                _ => part.to_owned(),
            })
            .collect();
        if let (true, Some((before, _))) = (of_conversation, query.split_once("after=")) {
            query = format!("{before}after={}", text(&known.items.1));
        }
        let method = row["method"].as_str().unwrap();
        let answer = send(&server, method, &(parts.join("/") + &query), &row["body"]).await;
        let what = match MISUSE.iter().find(|(at, ..)| *at == place) {
            Some((_, status, code)) => {
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (*status, *code),
                    "{place}"
                );
                "refused as documented".to_owned()
            }
            None if answer.status == 501 => {
                assert_eq!(answer.code(), "not_implemented");
                format!("501 {}", answer.error("param").unwrap())
            }
            None => {
                assert_eq!(answer.status, 200, "{place} {path}: {}", answer.body);
                "answered".to_owned()
            }
        };
        *counts.entry(what).or_default() += 1;
        if method == "POST" && path == "/responses" && answer.status == 200 {
            known.last = response(&answer);
        }
        if method == "POST" && path == "/conversations" && answer.status == 200 {
            let made: Value = serde_json::from_str(&answer.body).unwrap();
            known.conversation = made["id"].as_str().map(str::to_owned);
        }
        if method == "GET" && path.ends_with("/items") && answer.status == 200 {
            let list: Value = serde_json::from_str(&answer.body).unwrap();
            known.items = (list["first_id"].clone(), list["last_id"].clone());
        }
    }
    println!("captured requests: {counts:?}");
    assert_eq!(counts.values().sum::<usize>(), 91);
    assert!(counts["answered"] >= 42, "{counts:?}");
    assert!(!counts.contains_key("501 compact"), "{counts:?}");
    end(server).await;
    task.abort();
}

#[tokio::test]
async fn the_requests_of_the_compliance_suite_pass() {
    let (task, server) = world("openresponses").await;
    let rows: Value =
        serde_json::from_str(&fixture("openresponses-compliance-requests.json")).unwrap();
    let mut passed = 0;
    for row in rows.as_array().unwrap() {
        // One of them is about a schema, and its request is never sent.
        if row["transport"] != "http" || row["local_fixture_only"] == true {
            continue;
        }
        let endpoint = row["endpoint"].as_str().unwrap();
        let answer = send(&server, "POST", endpoint, &row["first_request"]).await;
        if endpoint == "/responses/compact" {
            let expected = row["expected_statuses"].as_array().unwrap();
            assert!(expected.contains(&json!(answer.status)), "{}", answer.body);
            passed += 1;
            continue;
        }
        assert_eq!(answer.status, 200, "{}: {}", row["id"], answer.body);
        let response = response(&answer).unwrap();
        assert_eq!(response["status"], "completed", "{}: {response}", row["id"]);
        assert!(
            !response["output"].as_array().unwrap().is_empty(),
            "{}",
            row["id"]
        );
        if row["id"] == "tool-calling" {
            assert_eq!(response["output"][0]["type"], "function_call");
        }
        assert!(
            response.get("throughline").is_none(),
            "nothing outside the specification"
        );
        passed += 1;
    }
    println!("compliance requests over HTTP: {passed} passed");
    assert_eq!(passed, 9);
    end(server).await;
    task.abort();
}
