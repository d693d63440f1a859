//! The live tail of a thread.

use serde_json::{Value, json};

use super::Native;
use crate::http::support::Client;

/// The next event of a stream: its name, its id and its data.
async fn event(client: &mut Client) -> (String, String, Value) {
    let part = |line: String| line.split_once(": ").unwrap().1.to_owned();
    let name = part(client.line_of("event: ").await);
    let id = match name.as_str() {
        "deleted" => String::new(),
        _ => part(client.line_of("id: ").await),
    };
    let data = part(client.line_of("data: ").await);
    (name, id, serde_json::from_str(&data).unwrap())
}

fn text(data: &Value) -> &str {
    data["message"]["contents"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_tail_has_messages_as_they_come_and_goes_on_after_the_last_one() {
    let native = Native::start().await;
    let agent = native.agent();
    let thread = agent.new_thread();
    agent.run_on(&thread, "one").await.unwrap();
    let path = format!("/api/v1/threads/{}/tail", thread.id());
    let mut client = Client::to(native.server.address).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    client.write(request.as_bytes()).await;
    let (name, first, data) = event(&mut client).await;
    assert_eq!((name.as_str(), text(&data)), ("message", "one"));
    let (_, second, _) = event(&mut client).await;
    // From now on it waits.
    agent.run_on(&thread, "two").await.unwrap();
    let (_, _, data) = event(&mut client).await;
    assert_eq!(text(&data), "two");

    let rest = |id: String, query: &'static str| {
        let (native, path) = (&native, &path);
        async move {
            let headers = [("last-event-id", id.as_str())];
            let headers = match id.is_empty() {
                true => &headers[..0],
                false => &headers[..],
            };
            let line = format!("GET {path}?follow=false{query}");
            native
                .send(&line, headers, "")
                .await
                .body
                .matches("event: message")
                .count()
        }
    };
    assert_eq!(rest(String::new(), "").await, 4);
    assert_eq!(rest(String::new(), "&from=now").await, 0);
    assert_eq!(rest(first, "").await, 3);
    assert_eq!(rest(second, "").await, 2);
    let odd = native
        .send(&format!("GET {path}"), &[("last-event-id", "x")], "")
        .await;
    assert_eq!(
        (odd.status, odd.error("param").as_deref()),
        (400, Some("Last-Event-ID"))
    );

    native
        .call(&format!("DELETE /api/v1/threads/{}", thread.id()), 200)
        .await;
    loop {
        let (name, _, data) = event(&mut client).await;
        if name == "deleted" {
            assert_eq!(data, json!({"thread": thread.id().as_str()}));
            break;
        }
    }
    native.end().await;
}

#[tokio::test]
async fn a_reader_of_a_thread_that_is_another_now_hears_of_it() {
    let native = Native::start().await;
    let (id, _) = native.talk(&["one", "two"]).await;
    let messages = format!("GET /api/v1/threads/{id}/messages");
    let page = native.call(&messages, 200).await;
    let cursor = page["next"].as_str().unwrap();
    native
        .call(&format!("DELETE /api/v1/threads/{id}"), 200)
        .await;
    let body = json!({"id": id}).to_string();
    native.send("POST /api/v1/threads", &[], &body).await;

    let line = format!("{messages}?after={cursor}");
    let moved = native.call(&line, 409).await;
    assert_eq!(moved["error"]["code"], "cursor_moved");
    let start = moved["error"]["cursor"].as_str().unwrap();
    native.call(&format!("{messages}?after={start}"), 200).await;
    let line = format!("GET /api/v1/threads/{id}/tail?follow=false&after={cursor}");
    let stream = native.send(&line, &[], "").await;
    assert!(
        stream.body.starts_with("event: moved\nid: "),
        "{}",
        stream.body
    );
    assert!(
        stream.body.contains("data: {\"common\":0}"),
        "{}",
        stream.body
    );
    native.end().await;
}
