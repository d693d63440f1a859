//! Idempotency keys that are honoured as they are, or refused.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::upstream::{Extent, Fault, KEY, Reply, Upstream};

use crate::http::support::{Client, config, end, start, start_with};

fn body(store: bool) -> Vec<u8> {
    json!({"model": "demo", "input": "hi", "store": store})
        .to_string()
        .into_bytes()
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_key_without_a_store_is_refused() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let headers = [JSON, ("idempotency-key", "k")];
    let answer = client
        .send("POST /v1/responses", &headers, &body(false))
        .await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "idempotency_requires_store")
    );
    let answer = client
        .send("POST /v1/responses", &[JSON], &body(false))
        .await;
    assert_eq!(answer.status, 200);
    end(server).await;
}

#[tokio::test]
async fn two_keys_are_refused_and_any_bytes_are_one() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let twice = [JSON, ("idempotency-key", "a"), ("idempotency-key", "b")];
    let answer = client.send("POST /v1/responses", &twice, &body(true)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "invalid_value")
    );
    let mut ids = Vec::new();
    for key in ["Ebbe-ä", "Ebbe-ä", "Ebbe-ö", "6b65"] {
        let headers = [JSON, ("idempotency-key", key)];
        let answer = client
            .send("POST /v1/responses", &headers, &body(true))
            .await;
        assert_eq!(answer.status, 200, "{key}");
        let value: Value = serde_json::from_str(&answer.body).unwrap();
        ids.push(value["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids[0], ids[1], "the same bytes are the same key");
    ids.dedup();
    assert_eq!(ids.len(), 3, "other bytes are another key");
    end(server).await;
}

#[tokio::test]
async fn a_stream_does_not_start_after_its_end() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let answer = client
        .send("POST /v1/responses", &[JSON], &body(true))
        .await;
    let value: Value = serde_json::from_str(&answer.body).unwrap();
    let id = value["id"].as_str().unwrap();
    let read = async |after: u64| {
        let line = format!("GET /v1/responses/{id}?stream=true&starting_after={after}");
        Client::to(server.address).await.send(&line, &[], b"").await
    };
    let whole = read(0).await.body;
    let numbers = whole.split("\"sequence_number\":").skip(1);
    let numbers = numbers.filter_map(|rest| rest.split([',', '}']).next()?.parse::<u64>().ok());
    let last = numbers.max().unwrap();
    assert_eq!(
        read(last).await.status,
        200,
        "there is nothing after the last"
    );
    let beyond = read(last + 1).await;
    assert_eq!(beyond.status, 400);
    assert_eq!(beyond.error("param").as_deref(), Some("starting_after"));
    end(server).await;
}

/// An outage of the upstream leaves a key as if it had not been used; what went through stays.
#[tokio::test]
async fn a_transient_failure_before_anything_was_done_frees_the_key() {
    let vendor = Upstream::of(Wire::OpenAiResponses)
        .script([Reply::text("at four")])
        .fault(Fault::Overloaded, Extent::Always)
        .start()
        .await;
    let file = format!(
        "[[upstream]]\nname = \"v\"\nkind = \"openai-responses\"\nbase_url = \"{}\"\n\
         api_key_env = \"VENDOR_KEY\"\n",
        vendor.base_url()
    );
    let server = start_with(config(&file, &[("VENDOR_KEY", KEY)])).await;
    let body = json!({"model": "v/a-model", "input": "When?"}).to_string();
    let send = async || {
        let headers = [JSON, ("idempotency-key", "k")];
        let mut client = Client::to(server.address).await;
        client
            .send("POST /v1/responses", &headers, body.as_bytes())
            .await
    };
    let first = send().await;
    assert_eq!(first.status, 502, "{}", first.body);
    let again = send().await;
    assert!([502, 503].contains(&again.status), "{}", again.body);
    let ids = [&first, &again].map(|one| one.header("x-throughline-response-id"));
    assert!(ids[0].is_some() && ids[0] != ids[1], "{ids:?}");
    vendor.heal().await;
    // The upstream is not asked again before some time has passed.
    let healed = loop {
        let answer = send().await;
        if answer.status != 503 {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(healed.status, 200, "{}", healed.body);
    assert_eq!(send().await.body, healed.body, "and now the key is used");
    let other = json!({"model": "v/a-model", "input": "Where?"}).to_string();
    let headers = [JSON, ("idempotency-key", "k")];
    let mut client = Client::to(server.address).await;
    let reused = client
        .send("POST /v1/responses", &headers, other.as_bytes())
        .await;
    assert_eq!(reused.status, 422);
    end(server).await;
}
