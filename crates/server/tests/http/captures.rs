//! Requests that released clients were seen to send, over HTTP and over WebSockets, sent to a server. Only
//! ids are changed: those of the recorded server are replaced by those that the server under test returned.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use throughline_server::Server;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::http::published::{Published, Shape};
use crate::http::socket_client::Socket;
use crate::http::support::{Answer, Client, end, start};
use crate::schema::support::fixture;

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

async fn world() -> (tokio::task::JoinHandle<()>, Server) {
    let (url, task) = model().await;
    let file = format!(
        "[[upstream]]\nname = \"stub\"\nkind = \"openai-chat\"\n\
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

/// The response in the last event of a stream.
fn response(answer: &Answer) -> Option<Value> {
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
    /// How many items the client has in it that it added itself.
    added: usize,
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
        if body.is_null() {
            return;
        }
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

/// A server that the captured requests are sent to, and what each client knows of it.
struct Replayed {
    server: Server,
    published: Published,
    known: BTreeMap<String, Known>,
    sockets: BTreeMap<String, Socket>,
}

impl Replayed {
    fn known(&mut self, row: &Value) -> &mut Known {
        self.known.entry(row["client"].to_string()).or_default()
    }

    /// Send a row; says what became of it.
    async fn send(&mut self, place: usize, row: &Value) -> &'static str {
        let misuse = MISUSE.iter().find(|(at, ..)| *at == place);
        match (row["transport"].as_str(), row["event"].as_str(), misuse) {
            (Some("http"), _, None) => {
                let answer = self.ask(row).await;
                assert_eq!(answer.status, 200, "{place} {row}: {}", answer.body);
                self.learn(row, &answer);
                "answered"
            }
            (Some("http"), _, Some((_, status, code))) => {
                let answer = self.ask(row).await;
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (*status, *code),
                    "{place}"
                );
                let error = serde_json::from_str(&answer.body).unwrap();
                self.published.check(Shape::OpenAi("ErrorResponse"), &error);
                "refused as documented"
            }
            (Some("websocket"), Some("upgrade"), _) => {
                self.upgrade(row).await;
                "answered"
            }
            (Some("websocket"), Some("message"), _) => {
                self.message(row).await;
                "answered"
            }
            _ => panic!("{place}: {row}"),
        }
    }

    async fn ask(&mut self, row: &Value) -> Answer {
        let known = self.known(row);
        let mut body = row["body"].clone();
        known.adapt(&mut body);
        let path = known.path(row);
        let method = row["method"].as_str().unwrap();
        send(&self.server, method, &path, &body).await
    }

    /// Check the answer to a row, and keep what its client goes on with.
    fn learn(&mut self, row: &Value, answer: &Answer) {
        let path = row["path"].as_str().unwrap();
        let mut parts = path.trim_start_matches('/').split('/');
        let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
        let method = row["method"].as_str().unwrap();
        if answer.body.starts_with("event:") {
            let response = match answer.body.contains("response.created") {
                true => self.published.check_stream(&answer.body).0,
                // After an event that the client has.
                false => response(answer).unwrap(),
            };
            if method == "POST" {
                self.known(row).last = Some(response);
            }
            return;
        }
        let value: Value = serde_json::from_str(&answer.body).unwrap();
        let shape = match (method, parts) {
            ("POST", [Some("responses"), None, ..]) => {
                self.known(row).last = Some(value.clone());
                Shape::Response
            }
            ("POST", [Some("responses"), Some("compact"), ..]) => Shape::Compaction,
            ("POST", [Some("responses"), Some("input_tokens"), ..]) => {
                Shape::OpenAi("TokenCountsResource")
            }
            ("GET", [Some("responses"), _, None, _])
            | ("POST", [Some("responses"), _, Some("cancel"), _]) => Shape::Response,
            ("GET", [Some("responses"), _, Some("input_items"), _]) => {
                Shape::OpenAi("ResponseItemList")
            }
            ("DELETE", [Some("responses"), ..]) => {
                assert_eq!(
                    (&value["object"], &value["deleted"]),
                    (&json!("response"), &json!(true))
                );
                return;
            }
            (_, [Some("conversations"), .., None]) | ("DELETE", [Some("conversations"), ..])
                if value["object"] != "list" =>
            {
                self.known(row).conversation(method, parts[1], &value)
            }
            ("GET", [Some("conversations"), _, _, Some(_)]) => Shape::OpenAi("ConversationItem"),
            (_, [Some("conversations"), ..]) => {
                self.known(row).items(method, &value);
                Shape::OpenAi("ConversationItemList")
            }
            _ => panic!("{row}"),
        };
        self.published.check(shape, &value);
    }

    /// Open a WebSocket with the headers of a client, as far as they are not the connection's own.
    async fn upgrade(&mut self, row: &Value) {
        let headers = row["headers"].as_object().unwrap().iter();
        let own = |name: &str| {
            matches!(name, "connection" | "upgrade") || name.starts_with("sec-websocket-")
        };
        let headers = headers.filter(|(name, _)| !own(name));
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let socket = Socket::open_with(self.server.address, &headers).await;
        self.sockets.insert(row["client"].to_string(), socket);
    }

    async fn message(&mut self, row: &Value) {
        let mut message = row["body"].clone();
        self.known(row).adapt(&mut message);
        let client = row["client"].to_string();
        let socket = self.sockets.get_mut(&client).expect("it was opened");
        let events = socket.ask(&message).await;
        let response = self.published.check_events(&events);
        // A client that asks for no answer gets none, and goes on from there with what is new alone.
        let is_warm_up = message["generate"] == false;
        let output = response["output"].as_array().unwrap();
        assert_eq!(output.is_empty(), is_warm_up, "{response}");
        assert_eq!(
            response["previous_response_id"],
            message["previous_response_id"]
        );
        self.known(row).last = Some(response);
    }
}

impl Known {
    /// The path of a row, with the ids that ours has.
    fn path(&mut self, row: &Value) -> String {
        let path = row["path"].as_str().unwrap();
        let of_conversation = path.starts_with("/conversations");
        let parts: Vec<String> = path
            .split('/')
            .map(|part| match part.split_once('_') {
                Some(("resp", _)) => self.response(part),
                Some(("conv", _)) => self.conversation.clone().unwrap_or_default(),
                Some(("msg", _)) if of_conversation => text(&self.items.0),
                _ => part.to_owned(),
            })
            .collect();
        let mut query = row["query"].as_str().unwrap_or_default().to_owned();
        if let (true, Some((before, _))) = (of_conversation, query.split_once("after=")) {
            query = format!("{before}after={}", text(&self.items.1));
        }
        parts.join("/") + &query
    }

    /// A conversation, or that it is gone.
    fn conversation(&mut self, method: &str, id: Option<&str>, value: &Value) -> Shape {
        match (method, id, value["deleted"] == true) {
            ("POST", None, _) => {
                self.conversation = value["id"].as_str().map(str::to_owned);
                self.added = 0;
            }
            ("DELETE", _, true) => return Shape::OpenAi("DeletedConversationResource"),
            ("DELETE", _, false) => self.added = self.added.saturating_sub(1),
            _ => {}
        }
        assert_eq!(value["id"].as_str(), self.conversation.as_deref());
        Shape::OpenAi("ConversationResource")
    }

    /// Items that were added, or listed: those that the client has added are all there.
    fn items(&mut self, method: &str, list: &Value) {
        let count = list["data"].as_array().unwrap().len();
        match method {
            "POST" => self.added += count,
            _ => {
                assert!(list["has_more"] == true || count >= self.added, "{list}");
                self.items = (list["first_id"].clone(), list["last_id"].clone());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_captured_request_is_answered_as_its_client_needs() {
    let (task, server) = world().await;
    let mut replayed = Replayed {
        server,
        published: Published::of("openai"),
        known: BTreeMap::new(),
        sockets: BTreeMap::new(),
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, line) in fixture("client-wire-captures.jsonl").lines().enumerate() {
        let row: Value = serde_json::from_str(line).unwrap();
        let what = replayed.send(place, &row).await;
        *counts.entry(what).or_default() += 1;
    }
    println!("captured requests: {counts:?}");
    assert_eq!(
        counts,
        BTreeMap::from([("answered", 87), ("refused as documented", 4)])
    );
    drop(replayed.sockets);
    end(replayed.server).await;
    task.abort();
}
