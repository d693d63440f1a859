//! The compliance suite of Open Responses as whole sequences, by the description of each entry: on the
//! built-in model and on a strict vendor of each kind, in both dialects. Every answer and every event
//! is checked against the published descriptions.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use throughline_server::Server;
use throughline_testkit::openapi::{OpenApi, Others};
use throughline_testkit::upstream::{Recorded, Reply, Script};

use crate::http::socket_client::Socket;
use crate::http::support::{Client, end};
use crate::http::vendors::World;

const OPENAI: &str = "openai-responses-conversations.openapi.json";
const OPEN: &str = "openresponses-2026-04-24.openapi.json";

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/responses/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

/// What a published description says of answers.
struct Published {
    api: OpenApi,
    response: &'static str,
    compaction: &'static str,
    /// The schema of each event.
    events: BTreeMap<String, String>,
    others: Others,
}

impl Published {
    fn of(dialect: &str) -> Self {
        let (file, key, response, compaction, others) = match dialect {
            "openai" => (
                OPENAI,
                "openai",
                "Response",
                "CompactResource",
                Others::Allowed,
            ),
            _ => (
                OPEN,
                "open_responses",
                "ResponseResource",
                "CompactResource",
                Others::Refused,
            ),
        };
        let text = fixture(file);
        let api = OpenApi::read(&text).unwrap();
        let root: Value = serde_json::from_str(&text).unwrap();
        let mut events = BTreeMap::new();
        for name in api.names().filter(|name| name.ends_with("Event")) {
            let tag = &root["components"]["schemas"][name]["properties"]["type"]["enum"][0];
            if let Some(tag) = tag.as_str() {
                events.insert(tag.to_owned(), name.to_owned());
            }
        }
        assert!(events.len() > 20, "{key}: {events:?}");
        Self {
            api,
            response,
            compaction,
            events,
            others,
        }
    }

    fn check(&self, schema: &str, value: &Value) {
        let checked = self.api.check(schema, value, self.others);
        checked.unwrap_or_else(|why| panic!("{schema}: {why:#?}\n{value}"));
    }

    /// All events of a response; the response in the last one.
    fn check_events(&self, events: &[Value]) -> Value {
        for (number, event) in events.iter().enumerate() {
            let kind = event["type"].as_str().unwrap();
            let schema = self.events.get(kind);
            let schema = schema.unwrap_or_else(|| panic!("{kind} is not in the specification"));
            self.check(schema, event);
            assert_eq!(event["sequence_number"], number, "{event}");
        }
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        self.check(self.response, &last["response"]);
        last["response"].clone()
    }
}

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
        if id == "image-input" && self.model == "demo" {
            // The built-in model cannot see, and says so.
            assert!(
                status == 400 && body.contains("unsupported_content"),
                "{body}"
            );
            return;
        }
        let expected = row["expected_statuses"].as_array().unwrap();
        assert!(
            expected.contains(&json!(status)),
            "{id} on {}: {body}",
            self.model
        );
        if status != 200 {
            return;
        }
        let response = match is_streamed {
            true => {
                let data = body.lines().filter_map(|line| line.strip_prefix("data: {"));
                let events = data.map(|data| serde_json::from_str(&format!("{{{data}")).unwrap());
                let events: Vec<Value> = events.collect();
                assert!(body.ends_with("data: [DONE]\n\n"));
                self.checked += events.len();
                self.published.check_events(&events)
            }
            false => serde_json::from_str(&body).unwrap(),
        };
        self.checked += 1;
        if endpoint == "/responses/compact" {
            self.published.check(self.published.compaction, &response);
            return;
        }
        self.published.check(self.published.response, &response);
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
            assert_eq!(socket.refused(&request).await, missing);
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
                assert_eq!(socket.refused(&message).await, missing);
                let clean = self.next("Start again.", &Value::Null);
                self.over(&mut socket, &clean).await;
            }
            "websocket-failed-continuation-evicts-cache" => {
                // An output without its call fails the turn.
                let mut fails = self.next("", &first);
                fails["input"] = json!([{"type": "function_call_output", "call_id": "call_none",
                    "output": "4"}]);
                let (status, _) = socket.refused(&fails).await;
                assert!((400..600).contains(&status));
                let message = self.next("What is the code word?", &first);
                assert_eq!(socket.refused(&message).await, missing);
            }
            "websocket-compact-new-chain" => {
                let input =
                    json!([{"type": "message", "role": "user", "content": "Remember: amber."}]);
                let body = json!({"model": self.model, "input": input});
                let (status, compacted) = self.post("/responses/compact", &body).await;
                assert_eq!(status, 200, "{compacted}");
                let compacted: Value = serde_json::from_str(&compacted).unwrap();
                self.published.check(self.published.compaction, &compacted);
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

    /// An answer with labelled phases, which no request makes: the schema takes it.
    fn phases(&self) {
        let message = |phase: &str, text: &str| {
            json!({"type": "message", "id": format!("msg_{phase}"), "role": "assistant",
                "status": "completed", "phase": phase,
                "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]})
        };
        for phase in ["commentary", "final_answer"] {
            let schema = match self.published.response {
                "Response" => "OutputMessage",
                _ => "Message",
            };
            self.published.check(schema, &message(phase, "four"));
        }
    }
}

/// A vendor that calls a tool when it is asked for the weather, and otherwise repeats what it was sent.
fn script() -> Script {
    Script::respond_with(|asked: &Recorded| {
        let text = asked.body.to_string();
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
        let world = World::start(|_| script(), &more).await;
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
                    (_, true) => suite.phases(),
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
