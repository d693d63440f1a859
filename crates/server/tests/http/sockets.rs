//! Responses over a WebSocket.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_testkit::upstream::{Gate, KEY, Recorded, Reply, Script, Upstream};
use tokio_tungstenite::tungstenite::Message;

use crate::http::socket_client::{Received, Socket};
use crate::http::support::{Client, config, end, get, start, start_with};

/// A message that asks for a response.
fn create(input: &str, more: &Value) -> Value {
    let mut message = json!({"type": "response.create", "model": "demo", "input": input});
    let members = more.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(members);
    message
}

fn unstored(input: &str, previous: Option<&Value>) -> Value {
    let mut message = create(input, &json!({"store": false}));
    if let Some(previous) = previous {
        message["previous_response_id"] = previous["id"].clone();
    }
    message
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// A server with an upstream that answers with the number of messages that it was sent.
async fn counting() -> (Server, Upstream) {
    let count = |asked: &Recorded| {
        let messages = asked.body["messages"].as_array().map_or(0, Vec::len);
        Reply::text(format!("{messages} messages"))
    };
    let upstream = Upstream::start(Wire::OpenAiChat, Script::respond_with(count)).await;
    let server = start_with(config(&table(&upstream), &[("UP_KEY", KEY)])).await;
    (server, upstream)
}

fn table(upstream: &Upstream) -> String {
    format!(
        "[[upstream]]\nname = \"up\"\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\
         api_key_env = \"UP_KEY\"\nmodels = [\"m\"]\n",
        upstream.base_url()
    )
}

async fn read(server: &Server, path: &str) -> (u16, Value) {
    let answer = get(server.address, path).await;
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

#[tokio::test]
async fn a_response_has_the_events_of_a_stream() {
    let server = start("").await;
    let mut socket = Socket::open(server.address).await;
    let over_socket = socket
        .ask(&create("hi there", &json!({"stream": true})))
        .await;
    let body = json!({"model": "demo", "input": "hi there", "stream": true}).to_string();
    let mut client = Client::to(server.address).await;
    let streamed = client
        .send("POST /v1/responses", &[], body.as_bytes())
        .await;
    let data = streamed
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"));
    let streamed: Vec<Value> = data
        .map(|data| serde_json::from_str(&format!("{{{data}")).unwrap())
        .collect();
    let kinds = |events: &[Value]| -> Vec<(Value, Value)> {
        let kinds = events
            .iter()
            .map(|event| (event["type"].clone(), event["sequence_number"].clone()));
        kinds.collect()
    };
    assert_eq!(kinds(&over_socket), kinds(&streamed));
    let response = &over_socket.last().unwrap()["response"];
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(read(&server, &path).await, (200, response.clone()));
    // What is stored can be continued by any connection, and the other way round.
    let mut other = Socket::open(server.address).await;
    let next = create(
        "What did I say first?",
        &json!({"previous_response_id": response["id"]}),
    );
    assert_eq!(
        text(&other.response(&next).await),
        "You first said: \"hi there\""
    );
    end(server).await;
}

#[tokio::test]
async fn what_is_not_stored_is_continued_on_its_connection_alone() {
    let (server, upstream) = counting().await;
    let mut socket = Socket::open(server.address).await;
    let on = |message: Value| {
        let mut message = message;
        message["model"] = json!("m");
        message
    };
    let first = socket.response(&on(unstored("one", None))).await;
    assert_eq!(text(&first), "1 messages");
    let second = socket.response(&on(unstored("two", Some(&first)))).await;
    assert_eq!(
        (text(&second), &second["previous_response_id"]),
        ("3 messages", &first["id"])
    );
    let third = socket.response(&on(unstored("three", Some(&second)))).await;
    assert_eq!(text(&third), "5 messages");
    // Nowhere else, and the latest alone.
    let path = format!("/v1/responses/{}", third["id"].as_str().unwrap());
    assert_eq!(read(&server, &path).await.0, 404);
    let missing = (400, "previous_response_not_found".to_owned());
    let mut other = Socket::open(server.address).await;
    assert_eq!(
        other.refused(&on(unstored("four", Some(&third)))).await,
        missing
    );
    assert_eq!(
        socket.refused(&on(unstored("again", Some(&first)))).await,
        missing
    );
    // A continuation that failed has nothing to continue any more; a failure of another leaves it.
    let mut fails = on(unstored("again", Some(&third)));
    fails["input"] =
        json!([{"type": "function_call_output", "call_id": "call_none", "output": "4"}]);
    assert_eq!(socket.refused(&fails).await.0, 400);
    assert_eq!(
        socket.refused(&on(unstored("again", Some(&third)))).await,
        missing
    );
    let clean = socket.response(&on(unstored("anew", None))).await;
    assert_eq!(text(&clean), "1 messages");
    let stored = on(create("x", &json!({"previous_response_id": clean["id"]})));
    assert_eq!(socket.refused(&stored).await, missing);
    assert_eq!(upstream.requests().len(), 4);
    end(server).await;
}

#[tokio::test]
async fn without_generate_a_response_stands_for_its_input() {
    let (server, upstream) = counting().await;
    let mut socket = Socket::open(server.address).await;
    for store in [false, true] {
        let warm = create(
            "the instructions",
            &json!({"model": "m", "store": store, "generate": false}),
        );
        let warm = socket.response(&warm).await;
        assert_eq!(
            (&warm["output"], &warm["status"]),
            (&json!([]), &json!("completed"))
        );
        let more = json!({"model": "m", "store": store, "previous_response_id": warm["id"]});
        let next = socket.response(&create("go", &more)).await;
        assert_eq!(text(&next), "2 messages");
    }
    assert_eq!(upstream.requests().len(), 2);
    end(server).await;
}

#[tokio::test]
async fn errors_are_messages_and_the_connection_goes_on() {
    let server = start("[limits]\nbody_bytes = 4096\njson_depth = 8\n").await;
    let mut socket = Socket::open(server.address).await;
    let refused = (400, "invalid_value".to_owned());
    assert_eq!(
        socket.refused(&json!({"type": "session.update"})).await,
        refused
    );
    assert_eq!(socket.refused(&json!({"model": "demo"})).await, refused);
    let background = create("hi", &json!({"background": true}));
    assert_eq!(socket.refused(&background).await.0, 400);
    let unknown = create("hi", &json!({"model": "nobody"}));
    assert_eq!(socket.refused(&unknown).await.1, "model_not_found");
    let mut deep = json!(1);
    for _ in 0..10 {
        deep = json!([deep]);
    }
    assert_eq!(
        socket
            .refused(&create("hi", &json!({"metadata": deep})))
            .await
            .0,
        400
    );
    socket.send_raw(Message::text("[1")).await;
    assert_eq!(socket.event().await["status"], 400);
    socket.send_raw(Message::binary(vec![1])).await;
    assert_eq!(socket.event().await["status"], 400);
    let named = create("hi", &json!({"model": "nobody", "stream_id": "a"}));
    assert_eq!(socket.ask(&named).await[0]["stream_id"], "a");
    assert!(
        text(&socket.response(&create("still there", &json!({}))).await).contains("still there")
    );
    // What is too large ends the connection: the rest of it cannot be skipped.
    socket.send_raw(Message::text("x".repeat(5_000))).await;
    assert!(matches!(socket.next().await, Received::Closed(_)));
    end(server).await;
}

#[tokio::test]
async fn messages_are_answered_one_after_another_and_name_their_stream() {
    let server = start("").await;
    let mut socket = Socket::open(server.address).await;
    for lane in 0..5 {
        let stream = json!({"stream_id": format!("lane {lane}")});
        socket
            .send(&create(&format!("number {lane}"), &stream))
            .await;
    }
    socket.send_raw(Message::Ping(vec![1].into())).await;
    for lane in 0..5 {
        let events = socket.events().await;
        let stream = format!("lane {lane}");
        assert!(
            events
                .iter()
                .all(|event| event["stream_id"] == stream.as_str())
        );
        let response = &events.last().unwrap()["response"];
        assert!(
            text(response).contains(&format!("number {lane}")),
            "{response}"
        );
    }
    end(server).await;
    let server = start("[server]\ndialect = \"openresponses\"\n").await;
    let mut socket = Socket::open(server.address).await;
    let refused = socket
        .refused(&create("hi", &json!({"stream_id": "a"})))
        .await;
    assert_eq!(refused, (400, "unsupported_parameter".to_owned()));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_response_is_made_although_its_client_breaks_off() {
    let gate = Gate::default();
    gate.close();
    let upstream = Upstream::start(Wire::OpenAiChat, vec![Reply::text("done").held(&gate)]).await;
    let server = start_with(config(&table(&upstream), &[("UP_KEY", KEY)])).await;
    let mut socket = Socket::open(server.address).await;
    socket.send(&create("hi", &json!({"model": "m"}))).await;
    let created = socket.event().await;
    upstream.received(1).await;
    socket.break_off();
    gate.open();
    let path = format!(
        "/v1/responses/{}",
        created["response"]["id"].as_str().unwrap()
    );
    loop {
        let (_, response) = read(&server, &path).await;
        if response["status"] == "completed" {
            assert_eq!(text(&response), "done");
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_can_be_cancelled_from_elsewhere() {
    let gate = Gate::default();
    gate.close();
    let replies = vec![Reply::text("late").held(&gate), Reply::text("next")];
    let upstream = Upstream::start(Wire::OpenAiChat, replies).await;
    let server = start_with(config(&table(&upstream), &[("UP_KEY", KEY)])).await;
    let mut socket = Socket::open(server.address).await;
    socket.send(&create("hi", &json!({"model": "m"}))).await;
    let created = socket.event().await;
    upstream.received(1).await;
    let id = created["response"]["id"].as_str().unwrap();
    let mut client = Client::to(server.address).await;
    let line = format!("POST /v1/responses/{id}/cancel");
    assert_eq!(client.send(&line, &[], b"").await.status, 200);
    let events = socket.events().await;
    let last = events.last().unwrap();
    assert_eq!(last["response"]["status"], "cancelled", "{last}");
    gate.open();
    let next = socket
        .response(&create("and?", &json!({"model": "m"})))
        .await;
    assert_eq!(text(&next), "next");
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_long_gets_pings() {
    let gate = Gate::default();
    gate.close();
    let upstream = Upstream::start(Wire::OpenAiChat, vec![Reply::text("done").held(&gate)]).await;
    let file = format!("[limits]\nkeep_alive_seconds = 1\n{}", table(&upstream));
    let server = start_with(config(&file, &[("UP_KEY", KEY)])).await;
    let mut socket = Socket::open(server.address).await;
    socket.send(&create("hi", &json!({"model": "m"}))).await;
    socket.ping().await;
    gate.open();
    let events = socket.events().await;
    assert_eq!(text(&events.last().unwrap()["response"]), "done");
    end(server).await;
}

#[tokio::test]
async fn a_connection_has_a_time_limit() {
    let server = start("[limits]\nsocket_seconds = 1\n").await;
    let mut socket = Socket::open(server.address).await;
    socket.response(&create("hi", &json!({}))).await;
    let event = socket.event().await;
    assert_eq!(event["error"]["code"], "websocket_connection_limit_reached");
    assert!(matches!(
        socket.next().await,
        Received::Closed(Some((1000, _)))
    ));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_finishes_a_response_and_closes() {
    let gate = Gate::default();
    gate.close();
    let upstream = Upstream::start(Wire::OpenAiChat, vec![Reply::text("done").held(&gate)]).await;
    let server = start_with(config(&table(&upstream), &[("UP_KEY", KEY)])).await;
    let mut idle = Socket::open(server.address).await;
    let mut socket = Socket::open(server.address).await;
    socket.send(&create("hi", &json!({"model": "m"}))).await;
    upstream.received(1).await;
    server.stop();
    assert!(matches!(
        idle.next().await,
        Received::Closed(Some((1001, _)))
    ));
    gate.open();
    let events = socket.events().await;
    assert_eq!(text(&events.last().unwrap()["response"]), "done");
    assert!(matches!(
        socket.next().await,
        Received::Closed(Some((1001, _)))
    ));
    server.join().await;
}

#[tokio::test]
async fn a_socket_has_a_place_among_the_connections() {
    let server = start("[limits]\nconnections = 2\n").await;
    let mut socket = Socket::open(server.address).await;
    // Idle connections give their place to others, a socket does not.
    for _ in 0..4 {
        let mut client = Client::to(server.address).await;
        assert_eq!(client.send("GET /healthz", &[], b"").await.status, 200);
    }
    assert!(!text(&socket.response(&create("hi", &json!({}))).await).is_empty());
    drop(socket);
    end(server).await;
}

#[tokio::test]
async fn other_requests_are_told_to_post() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let answer = client.send("GET /v1/responses", &[], b"").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    let half = [("upgrade", "websocket"), ("connection", "upgrade")];
    let answer = client.send("GET /v1/responses", &half, b"").await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    let elsewhere = [
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("origin", "https://elsewhere.example"),
    ];
    let answer = client.send("GET /v1/responses", &elsewhere, b"").await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    end(server).await;
}
