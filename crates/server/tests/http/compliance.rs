//! The compliance suite of Open Responses as whole sequences, by the description of each entry: on the
//! built-in model and on a strict vendor of each kind, in both dialects. Every answer and every event
//! is checked against both published descriptions.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_testkit::upstream::{Recorded, Reply, Script};

use crate::http::published::{Published, Shape};
use crate::http::socket_client::Socket;
use crate::http::support::{Client, end};
use crate::http::vendors::World;
use crate::schema::support::fixture;

/// One model of one server.
struct Suite<'a> {
    server: &'a Server,
    published: &'a Published,
    model: &'a str,
    /// Answers and events that were checked.
    checked: usize,
}

impl Suite<'_> {
    fn request(&self, row: &Value) -> Value {
        let mut request = row["first_request"].clone();
        if request.get("model").is_some() {
            request["model"] = json!(self.model);
        }
        request
    }

    async fn post(&self, endpoint: &str, body: &Value) -> (u16, String) {
        let mut client = Client::to(self.server.address).await;
        let line = format!("POST /v1{endpoint}");
        let answer = client.send(&line, &[], body.to_string().as_bytes()).await;
        (answer.status, answer.body)
    }

    /// Ask over HTTP, whole or streamed.
    async fn http(&mut self, row: &Value) {
        let id = row["id"].as_str().unwrap();
        let endpoint = row["endpoint"].as_str().unwrap();
        let mut request = self.request(row);
        let is_streamed = row["streaming"] == true;
        if is_streamed {
            request["stream"] = json!(true);
        }
        let (status, body) = self.post(endpoint, &request).await;
        let expected = row["expected_statuses"].as_array().unwrap();
        assert!(
            expected.contains(&json!(status)),
            "{id} on {}: {body}",
            self.model
        );
        if status != 200 {
            let error: Value = serde_json::from_str(&body).unwrap();
            self.check(Shape::OpenAi("ErrorResponse"), &error);
            return;
        }
        let response = match is_streamed {
            true => {
                let (response, events) = self.published.check_stream(&body);
                self.checked += events;
                response
            }
            false => serde_json::from_str(&body).unwrap(),
        };
        self.checked += 1;
        if endpoint == "/responses/compact" {
            self.published.check(Shape::Compaction, &response);
            return;
        }
        self.published.check(Shape::Response, &response);
        assert_eq!(response["status"], "completed", "{id}: {response}");
        let output = response["output"].as_array().unwrap();
        assert!(!output.is_empty(), "{id}: {response}");
        if id == "tool-calling" {
            let calls =
                |item: &Value| item["type"] == "function_call" && item["name"] == "get_weather";
            assert!(
                output.iter().any(calls),
                "{id} on {}: {response}",
                self.model
            );
        }
    }

    fn check(&mut self, shape: Shape, value: &Value) {
        self.checked += 1;
        self.published.check(shape, value);
    }

    /// The error message that answers a message: its status and its code.
    async fn refused(&mut self, socket: &mut Socket, message: &Value) -> (u64, String) {
        let events = socket.ask(message).await;
        let [error] = &events[..] else {
            panic!("{events:?}");
        };
        self.check(Shape::SocketError, error);
        let code = error["error"]["code"].as_str().unwrap();
        (error["status"].as_u64().unwrap(), code.to_owned())
    }

    async fn over(&mut self, socket: &mut Socket, message: &Value) -> Value {
        let events = socket.ask(message).await;
        self.checked += events.len() + 1;
        self.published.check_events(&events)
    }

    fn next(&self, input: &str, previous: &Value) -> Value {
        let mut message = json!({"type": "response.create", "model": self.model, "store": false,
            "input": input});
        if !previous.is_null() {
            message["previous_response_id"] = previous["id"].clone();
        }
        message
    }

    /// Ask over a WebSocket, as the description of the entry says.
    async fn socket(&mut self, row: &Value) {
        let missing = (400, "previous_response_not_found".to_owned());
        let address = self.server.address;
        let mut socket = Socket::open(address).await;
        let id = row["id"].as_str().unwrap();
        let request = self.request(row);
        if id == "websocket-previous-response-not-found" {
            assert_eq!(self.refused(&mut socket, &request).await, missing);
            return;
        }
        let first = self.over(&mut socket, &request).await;
        match id {
            "websocket-response" => {}
            "websocket-sequential-responses" => {
                for word in ["second", "third"] {
                    let message = self.next(&format!("Reply with exactly: {word}"), &Value::Null);
                    let response = self.over(&mut socket, &message).await;
                    assert_ne!(response["id"], first["id"]);
                }
            }
            "websocket-continuation" => {
                let message = self.next("What is the code word?", &first);
                let response = self.over(&mut socket, &message).await;
                assert_eq!(response["previous_response_id"], first["id"]);
                let next = self.next("What did I say first?", &response);
                let response = self.over(&mut socket, &next).await;
                assert!(response.to_string().contains("cobalt"), "{response}");
            }
            "websocket-reconnect-store-false-recovery" => {
                drop(socket);
                let mut socket = Socket::open(address).await;
                let message = self.next("What is the code word?", &first);
                assert_eq!(self.refused(&mut socket, &message).await, missing);
                let clean = self.next("Start again.", &Value::Null);
                self.over(&mut socket, &clean).await;
            }
            "websocket-failed-continuation-evicts-cache" => {
                // An output without its call fails the turn.
                let mut fails = self.next("", &first);
                fails["input"] = json!([{"type": "function_call_output", "call_id": "call_none",
                    "output": "4"}]);
                let (status, _) = self.refused(&mut socket, &fails).await;
                assert!((400..600).contains(&status));
                let message = self.next("What is the code word?", &first);
                assert_eq!(self.refused(&mut socket, &message).await, missing);
            }
            "websocket-compact-new-chain" => {
                let input =
                    json!([{"type": "message", "role": "user", "content": "Remember: amber."}]);
                let body = json!({"model": self.model, "input": input});
                let (status, compacted) = self.post("/responses/compact", &body).await;
                assert_eq!(status, 200, "{compacted}");
                let compacted: Value = serde_json::from_str(&compacted).unwrap();
                self.check(Shape::Compaction, &compacted);
                let mut message = self.next("", &Value::Null);
                let mut input = compacted["output"].as_array().unwrap().clone();
                input.push(json!({"type": "message", "role": "user", "content": "Go on."}));
                message["input"] = json!(input);
                let response = self.over(&mut socket, &message).await;
                assert_ne!(response["id"], first["id"]);
            }
            other => panic!("{other} is not known"),
        }
    }

    /// Phases of messages of the assistant: a vendor's are in the response, a client's are kept, and both
    /// descriptions have them. The request of the entry is not meant to be sent.
    async fn phases(&mut self, rows: &[Value]) {
        let phases = |items: &[Value]| -> Vec<String> {
            let phases = items.iter().filter_map(|item| item["phase"].as_str());
            phases.map(str::to_owned).collect()
        };
        let named = ["commentary", "final_answer"];
        if self.model.starts_with("openai-responses/") {
            let body = json!({"model": self.model, "input": LABELLED});
            let (status, answer) = self.post("/responses", &body).await;
            assert_eq!(status, 200, "{answer}");
            let response: Value = serde_json::from_str(&answer).unwrap();
            self.check(Shape::Response, &response);
            assert_eq!(phases(response["output"].as_array().unwrap()), named);
        }
        let sent = rows.iter().find(|row| row["id"] == "assistant-phase");
        let request = self.request(sent.unwrap());
        let (_, answer) = self.post("/responses", &request).await;
        let mut response: Value = serde_json::from_str(&answer).unwrap();
        let line = format!(
            "GET /v1/responses/{}/input_items?order=asc",
            response["id"].as_str().unwrap()
        );
        let mut client = Client::to(self.server.address).await;
        let kept = client.send(&line, &[], b"").await;
        let kept: Value = serde_json::from_str(&kept.body).unwrap();
        self.check(Shape::OpenAi("ResponseItemList"), &kept);
        assert_eq!(phases(kept["data"].as_array().unwrap()), named);
        for phase in named {
            let message = message(phase);
            self.check(Shape::Message, &message);
            response["output"].as_array_mut().unwrap().push(message);
        }
        self.check(Shape::Response, &response);
    }
}

/// What the vendor answers with messages of both phases.
const LABELLED: &str = "Comment first.";

fn message(phase: &str) -> Value {
    json!({"type": "message", "id": format!("msg_{phase}"), "role": "assistant",
        "status": "completed", "phase": phase,
        "content": [{"type": "output_text", "text": "four", "annotations": [], "logprobs": []}]})
}

/// An event stream of OpenAI's with messages of both phases.
fn labelled() -> String {
    let output = ["commentary", "final_answer"].map(message);
    let response = |status: &str, output: &[Value]| {
        json!({"id": "resp_labelled", "object": "response", "created_at": 1_790_000_000,
            "status": status, "model": "gpt-5", "output": output,
            "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0}}})
    };
    let mut events =
        vec![json!({"type": "response.created", "response": response("in_progress", &[])})];
    for (index, whole) in output.iter().enumerate() {
        let mut begun = whole.clone();
        begun["status"] = json!("in_progress");
        begun["content"] = json!([]);
        let (id, part) = (&whole["id"], &whole["content"][0]);
        let of = |kind: &str| json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0});
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        let mut opened = of("response.content_part.added");
        opened["part"] =
            json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
        let mut delta = of("response.output_text.delta");
        delta["delta"] = part["text"].clone();
        let mut done = of("response.output_text.done");
        done["text"] = part["text"].clone();
        let mut closed = of("response.content_part.done");
        closed["part"] = part.clone();
        events.extend([opened, delta, done, closed]);
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": whole}),
        );
    }
    events.push(json!({"type": "response.completed", "response": response("completed", &output)}));
    let mut body = String::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        let kind = event["type"].as_str().unwrap();
        body.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    body
}

/// A vendor that calls a tool when it is asked for the weather, and otherwise repeats what it was sent.
fn script(wire: &Wire) -> Script {
    let has_phases = *wire == Wire::OpenAiResponses;
    Script::respond_with(move |asked: &Recorded| {
        let text = asked.body.to_string();
        if has_phases && text.contains(LABELLED) {
            return Reply::raw(200, "text/event-stream", labelled());
        }
        match text.contains("weather") && text.contains("get_weather") {
            true => Reply::calls([("get_weather", r#"{"location":"San Francisco, CA"}"#)]),
            false if text.contains("cobalt") => Reply::text("The word is cobalt."),
            false => Reply::text("fine"),
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_compliance_suite_passes_on_every_vendor_in_both_dialects() {
    let rows: Value =
        serde_json::from_str(&fixture("openresponses-compliance-requests.json")).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 17);
    let (mut passed, mut checked) = (0, 0);
    for dialect in ["openai", "openresponses"] {
        let published = Published::of(dialect);
        let more = format!("[server]\ndialect = \"{dialect}\"\n");
        let world = World::start(script, &more).await;
        let vendors = world.vendors.iter().map(|vendor| vendor.model.as_str());
        for model in vendors.chain(["demo"]) {
            let mut suite = Suite {
                server: &world.server,
                published: &published,
                model,
                checked: 0,
            };
            for row in rows {
                match (row["transport"].as_str(), row["local_fixture_only"] == true) {
                    (_, true) => suite.phases(rows).await,
                    (Some("websocket"), _) => suite.socket(row).await,
                    _ => suite.http(row).await,
                }
                passed += 1;
            }
            checked += suite.checked;
        }
        end(world.server).await;
    }
    println!("compliance: {passed} sequences passed, {checked} answers and events checked");
    assert_eq!(passed, 17 * 6 * 2);
}
