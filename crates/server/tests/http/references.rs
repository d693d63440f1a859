//! Items that a request names instead of saying them again.

use serde_json::{Value, json};
use throughline_server::Server;

use crate::http::support::{Client, end, start};

async fn create(server: &Server, body: &Value) -> (u16, Value) {
    let mut client = Client::to(server.address).await;
    let body = body.to_string();
    let answer = client
        .send("POST /v1/responses", &[], body.as_bytes())
        .await;
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

fn named(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "user", "content": text})
}

fn reference(id: &str) -> Value {
    json!({"type": "item_reference", "id": id})
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn a_name_that_a_client_gave_is_known_in_its_own_chain_newest_first() {
    let server = start("").await;
    let ask = |input: Value, previous: &Value| json!({"model": "demo", "input": input, "previous_response_id": previous});
    let (_, first) = create(
        &server,
        &json!({"model": "demo", "input": [named("msg_note", "Buoys are red.")]}),
    )
    .await;
    let (_, second) = create(
        &server,
        &ask(json!([named("msg_note", "Buoys are green.")]), &first["id"]),
    )
    .await;
    let (status, third) =
        create(&server, &ask(json!([reference("msg_note")]), &second["id"])).await;
    assert_eq!(status, 200, "{third}");
    let (_, fourth) = create(&server, &ask(json!("What did I say last?"), &third["id"])).await;
    let (_, count) = create(&server, &ask(json!("How many messages?"), &fourth["id"])).await;
    // Five turns, of which the third says what the second said.
    assert!(text(&count).contains("9 messages"), "{count}");
    let mut client = Client::to(server.address).await;
    let id = third["id"].as_str().unwrap();
    let line = format!("GET /v1/responses/{id}/input_items?order=desc&limit=1");
    let listed = client.send(&line, &[], b"").await;
    assert!(listed.body.contains("Buoys are green."), "{}", listed.body);
    // Another store does not know it.
    let (status, refused) = create(
        &server,
        &json!({"model": "demo", "input": [reference("msg_note")]}),
    )
    .await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("item_not_found")),
        "{refused}"
    );
    end(server).await;
}
