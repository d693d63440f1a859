use std::net::SocketAddr;

use serde_json::json;
use throughline_model::Wire;

use super::{Client, Cut, Cutter, Request};
use crate::upstream::{Gate, KEY, Upstream, talk};

async fn upstream(gate: &Gate) -> (Upstream, SocketAddr) {
    let wire = Wire::OpenAiChat;
    let upstream = Upstream::start(wire.clone(), talk(&wire, gate)).await;
    let address = upstream.origin();
    let address = address.trim_start_matches("http://").parse();
    (upstream, address.expect("an origin is an address"))
}

fn asked(text: &str, stream: bool) -> Request {
    let body = json!({"model": "gpt-5", "messages": [{"role": "user", "content": text}],
        "stream": stream});
    Request::post("/v1/chat/completions", &body).with("authorization", &format!("Bearer {KEY}"))
}

#[tokio::test]
async fn one_connection_takes_request_after_request() {
    let (upstream, address) = upstream(&Gate::default()).await;
    let mut client = Client::new(address);
    for text in ["one", "two"] {
        let answer = client.send(asked(text, false)).await.expect("it answers");
        let said = &answer.json()["choices"][0]["message"]["content"];
        assert_eq!(said, &json!(format!("You said: \"{text}\"")));
    }
    assert_eq!(upstream.counts().connections, 1);
    let (head, mut events) = client
        .stream(asked("three", true))
        .await
        .expect("it answers");
    assert_eq!(head.status, 200);
    let events = events.rest().await.expect("the stream ends");
    assert_eq!(events.last().map(|last| last.text.as_str()), Some("[DONE]"));
    let refused = client.send(Request::get("/nowhere")).await;
    assert_eq!(refused.expect("it answers").status, 404);
}

#[tokio::test]
async fn a_cut_is_a_reset_or_a_failure_that_no_server_sent() {
    let gate = Gate::default();
    let (upstream, address) = upstream(&gate).await;
    let cutter = Cutter::start(address);
    gate.close();
    for (count, how) in [(1, Cut::Reset), (2, Cut::Status500)] {
        let mut client = Client::new(cutter.address());
        let asking = client.send(asked("hold: one", false));
        let cutting = async {
            upstream.received(count).await;
            cutter.cut(how);
        };
        let (answer, ()) = tokio::join!(asking, cutting);
        match how {
            Cut::Reset => assert!(answer.is_err()),
            Cut::Status500 => assert_eq!(answer.map(|answer| answer.status).ok(), Some(500)),
        }
    }
    gate.open();
    let mut client = Client::new(cutter.address());
    let answer = client.send(asked("two", false)).await.expect("it answers");
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_stream_is_cut_after_so_many_bytes() {
    let (_upstream, address) = upstream(&Gate::default()).await;
    let cutter = Cutter::start(address);
    cutter.cut_after(600);
    let mut client = Client::new(cutter.address());
    let text = "The tide turns at ten, and the berth is free.";
    let (_, mut events) = client.stream(asked(text, true)).await.expect("it begins");
    assert!(events.rest().await.is_err());
    assert_eq!(cutter.bytes().1, 600);
    let (_, mut events) = client.stream(asked(text, true)).await.expect("it begins");
    assert!(events.rest().await.is_ok());
}
