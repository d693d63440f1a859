//! Responses that are made after their request was answered, and responses that are cancelled.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{Gate, KEY, Reply, Upstream};

use crate::http::support::{Answer, Client, config, end, start, start_with};

/// A server whose model answers when the gate is open.
struct World {
    server: Server,
    upstream: Upstream,
    gate: Gate,
    file: String,
    store: String,
    _scratch: Scratch,
}

impl World {
    async fn new() -> Self {
        let gate = Gate::default();
        let replies: Vec<Reply> = (0..4).map(|_| Reply::text("done").held(&gate)).collect();
        let upstream = Upstream::start(Wire::OpenAiChat, replies).await;
        let scratch = Scratch::new("background");
        let store = scratch.sqlite("store.db");
        let file = format!(
            "[limits]\ndrain_seconds = 0\n[[upstream]]\nname = \"up\"\nkind = \"openai-chat\"\n\
             base_url = \"{}\"\napi_key_env = \"UP_KEY\"\n",
            upstream.base_url()
        );
        let server = serve(&file, &store).await;
        Self {
            server,
            upstream,
            gate,
            file,
            store,
            _scratch: scratch,
        }
    }

    async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        ask(&self.server, line, headers, body).await
    }

    async fn json(&self, line: &str, body: &Value) -> Value {
        let answer = self.ask(line, &[], body).await;
        assert_eq!(answer.status, 200, "{line}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    async fn begin(&self) -> (Value, String) {
        let body = json!({"model": "up/m", "input": "hi", "background": true});
        let response = self.json("POST /v1/responses", &body).await;
        let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
        (response, path)
    }

    /// The response once it is not being made any more.
    async fn ended(&self, path: &str) -> Value {
        loop {
            let response = self.json(&format!("GET {path}"), &Value::Null).await;
            if !matches!(response["status"].as_str(), Some("queued" | "in_progress")) {
                return response;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn serve(file: &str, store: &str) -> Server {
    start_with(config(
        file,
        &[("UP_KEY", KEY), ("THROUGHLINE_STORE", store)],
    ))
    .await
}

async fn ask(server: &Server, line: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let mut client = Client::to(server.address).await;
    client.send(line, headers, body.as_bytes()).await
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// The response in the last event of a stream.
fn last(answer: &Answer) -> (String, Value) {
    let frames = answer.body.split("\n\n");
    let events = frames.filter_map(|frame| frame.split_once("\ndata: "));
    let (event, data) = events.last().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    (event.to_owned(), data["response"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_response_is_answered_at_once_polled_and_streamed() {
    let world = World::new().await;
    world.gate.close();
    let (response, path) = world.begin().await;
    assert_eq!(
        (&response["status"], &response["background"]),
        (&json!("queued"), &json!(true))
    );
    assert_eq!(response["output"], json!([]));
    world.upstream.received(1).await;
    let now = world.json(&format!("GET {path}"), &Value::Null).await;
    assert_eq!(now["status"], "in_progress");
    world.gate.open();
    let ended = world.ended(&path).await;
    assert_eq!(
        (ended["status"].as_str(), text(&ended)),
        (Some("completed"), "done"),
        "{ended}"
    );
    assert_eq!(ended["background"], true);
    let stream = world
        .ask(&format!("GET {path}?stream=true"), &[], &Value::Null)
        .await;
    assert_eq!(
        last(&stream),
        ("event: response.completed".to_owned(), ended.clone())
    );
    // A chain goes on from it like from any other.
    let next = json!({"model": "up/m", "input": "and?", "previous_response_id": ended["id"]});
    assert_eq!(
        world.json("POST /v1/responses", &next).await["status"],
        "completed"
    );
    // With a key it is made once.
    let keyed = [("idempotency-key", "k")];
    let body = json!({"model": "up/m", "input": "once", "background": true});
    let one = world.ask("POST /v1/responses", &keyed, &body).await;
    let two = world.ask("POST /v1/responses", &keyed, &body).await;
    let id = |answer: &Answer| serde_json::from_str::<Value>(&answer.body).unwrap()["id"].clone();
    assert_eq!(
        (one.status, two.status, id(&one)),
        (200, 200, id(&two)),
        "{}",
        two.body
    );
    end(world.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_background_response_goes_on_without_its_reader() {
    let world = World::new().await;
    world.gate.close();
    let body = json!({"model": "up/m", "input": "hi", "background": true, "stream": true});
    let body = body.to_string();
    let mut client = Client::to(world.server.address).await;
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write(head.as_bytes()).await;
    let created = client.line_of("data: {\"type\":\"response.created\"").await;
    let created: Value = serde_json::from_str(&created["data: ".len()..]).unwrap();
    drop(client);
    world.upstream.received(1).await;
    world.gate.open();
    let path = format!(
        "/v1/responses/{}",
        created["response"]["id"].as_str().unwrap()
    );
    let ended = world.ended(&path).await;
    assert_eq!(ended["status"], "completed");
    let stream = world
        .ask(
            &format!("GET {path}?stream=true&starting_after=1"),
            &[],
            &Value::Null,
        )
        .await;
    assert_eq!(
        last(&stream),
        ("event: response.completed".to_owned(), ended)
    );
    end(world.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_response_outlives_its_server() {
    let world = World::new().await;
    world.gate.close();
    let (_, path) = world.begin().await;
    world.upstream.received(1).await;
    end(world.server).await;
    world.gate.open();
    let server = serve(&world.file, &world.store).await;
    let world = World { server, ..world };
    let ended = world.ended(&path).await;
    assert_eq!(
        (ended["status"].as_str(), text(&ended)),
        (Some("completed"), "done"),
        "{ended}"
    );
    end(world.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_cancelled_once_in_the_background_and_in_front() {
    let world = World::new().await;
    world.gate.close();
    let (_, path) = world.begin().await;
    world.upstream.received(1).await;
    let cancelled = world
        .json(&format!("POST {path}/cancel"), &Value::Null)
        .await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    for line in [format!("POST {path}/cancel"), format!("GET {path}")] {
        assert_eq!(world.json(&line, &Value::Null).await, cancelled, "{line}");
    }
    // One whose client waits for it.
    let body =
        json!({"model": "up/m", "conversation": conversation(&world).await, "input": "wait"});
    let waits = world.ask("POST /v1/responses", &[], &body);
    let cancels = async {
        world.upstream.received(2).await;
        let running = running(&world).await;
        world
            .json(
                &format!("POST /v1/responses/{running}/cancel"),
                &Value::Null,
            )
            .await
    };
    let (waited, cancelled) = tokio::join!(waits, cancels);
    assert_eq!(waited.status, 200, "{}", waited.body);
    let waited: Value = serde_json::from_str(&waited.body).unwrap();
    assert_eq!(
        (&waited, &waited["status"]),
        (&cancelled, &json!("cancelled"))
    );
    world.gate.open();
    // The end was committed before: it stays.
    let body = json!({"model": "up/m", "input": "hi"});
    let done = world.json("POST /v1/responses", &body).await;
    let path = format!("/v1/responses/{}", done["id"].as_str().unwrap());
    assert_eq!(
        world
            .json(&format!("POST {path}/cancel"), &Value::Null)
            .await,
        done
    );
    let missing = world
        .ask(
            "POST /v1/responses/resp_00000000000000000000000000000000/cancel",
            &[],
            &Value::Null,
        )
        .await;
    assert_eq!(missing.status, 404, "{}", missing.body);
    end(world.server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_cancelled_through_another_server() {
    let world = World::new().await;
    world.gate.close();
    let (_, path) = world.begin().await;
    world.upstream.received(1).await;
    let other = serve(&world.file, &world.store).await;
    let cancelled = ask(&other, &format!("POST {path}/cancel"), &[], &Value::Null).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.body);
    let cancelled: Value = serde_json::from_str(&cancelled.body).unwrap();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(
        world.json(&format!("GET {path}"), &Value::Null).await,
        cancelled
    );
    end(other).await;
    end(world.server).await;
}

#[tokio::test]
async fn a_background_response_must_be_kept() {
    let server = start("").await;
    let body = json!({"model": "demo", "input": "hi", "background": true, "store": false});
    let refused = ask(&server, "POST /v1/responses", &[], &body).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (400, "background_requires_store")
    );
    assert_eq!(refused.error("param").as_deref(), Some("background"));
    end(server).await;
}

async fn conversation(world: &World) -> String {
    let made = world.json("POST /v1/conversations", &json!({})).await;
    made["id"].as_str().unwrap().to_owned()
}

/// The id of the response that is being made.
async fn running(world: &World) -> String {
    use throughline_store::{Authority, RunFilter, RunState, Tenant};
    let scope = Authority::assume().scope(Tenant::new("local").unwrap());
    let filter = RunFilter {
        thread: None,
        states: vec![RunState::Running],
    };
    let store = &world.server.app().store;
    let listed = store.runs(&scope, &filter, None, 1).await.unwrap();
    format!("resp_{}", listed.found[0].id.to_hex())
}
