//! Ends of background responses that are posted to webhooks.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_server::Server;
use throughline_store::{Authority, Tenant, ThreadFilter};
use throughline_testkit::Scratch;
use throughline_testkit::upstream::{Extent, Fault, Gate, KEY, Reply, Upstream};
use tokio::net::TcpListener;

use crate::http::support::{Client, config, end, start_with};

const SECRET: &[u8] = b"a secret of receivers";

/// A request of the server.
#[derive(Clone, Debug, PartialEq)]
struct Delivery {
    id: String,
    timestamp: u64,
    raw: String,
    event: Value,
}

impl Delivery {
    fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap()
    }

    fn response(&self) -> &str {
        self.event["data"]["id"].as_str().unwrap()
    }
}

#[derive(Default)]
struct Received {
    all: Vec<Delivery>,
    /// How many more requests are refused.
    refuses: u32,
}

/// A receiver that checks signatures.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Received>>);

impl Receiver {
    async fn at(self, address: &str) -> (Self, SocketAddr) {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/hook", post(receive))
            .with_state(self.clone());
        // It ends with the runtime of the test.
        tokio::spawn(async move { axum::serve(listener, router).await });
        (self, address)
    }

    async fn start() -> (Self, SocketAddr) {
        Self::default().at("127.0.0.1:0").await
    }

    fn refuse(&self, count: u32) {
        self.0.lock().unwrap().refuses = count;
    }

    fn all(&self) -> Vec<Delivery> {
        self.0.lock().unwrap().all.clone()
    }

    /// Wait until so many requests have come.
    async fn received(&self, count: usize) -> Vec<Delivery> {
        let all = async {
            loop {
                match self.all() {
                    all if all.len() >= count => return all,
                    _ => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let all = tokio::time::timeout(Duration::from_secs(60), all).await;
        all.unwrap_or_else(|_| panic!("only {:?} came", self.all()))
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, raw: String) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let signed = format!("{id}.{timestamp}.{raw}");
    let signature = header("webhook-signature");
    let tag = STANDARD.decode(signature.strip_prefix("v1,").unwrap());
    let key = Key::new(HMAC_SHA256, SECRET);
    verify(&key, signed.as_bytes(), &tag.unwrap()).expect("the signature is right");
    assert_eq!(header("content-type"), "application/json");
    let mut received = receiver.0.lock().unwrap();
    received.all.push(Delivery {
        id,
        timestamp: timestamp.parse().unwrap(),
        event: serde_json::from_str(&raw).unwrap(),
        raw,
    });
    if received.refuses > 0 {
        received.refuses -= 1;
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    StatusCode::NO_CONTENT
}

/// `[[webhook]]` with this address and more keys.
fn webhook(name: &str, address: SocketAddr, more: &str) -> String {
    format!(
        "[[webhook]]\nname = \"{name}\"\nurl = \"http://{address}/hook\"\n\
         secret_env = \"HOOK_SECRET\"\n{more}\n"
    )
}

fn upstream_table(upstream: &Upstream) -> String {
    format!(
        "[limits]\ndrain_seconds = 0\nrounds = 1\n[[upstream]]\nname = \"up\"\n\
         kind = \"openai-chat\"\nbase_url = \"{}\"\napi_key_env = \"UP_KEY\"\n",
        upstream.base_url()
    )
}

async fn serve(file: &str, store: &str) -> Server {
    let secret = format!("whsec_{}", STANDARD.encode(SECRET));
    let variables = [
        ("UP_KEY", KEY),
        ("HOOK_SECRET", secret.as_str()),
        ("THROUGHLINE_STORE", store),
    ];
    start_with(config(file, &variables)).await
}

async fn ask(server: &Server, line: &str, body: &Value) -> Value {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let mut client = Client::to(server.address).await;
    let answer = client.send(line, &[], body.as_bytes()).await;
    assert_eq!(answer.status, 200, "{line}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// The id of a background response that was begun.
async fn begin(server: &Server, more: &Value) -> String {
    let mut body = json!({"model": "up/m", "input": "hi", "background": true});
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    let begun = ask(server, "POST /v1/responses", &body).await;
    begun["id"].as_str().unwrap().to_owned()
}

async fn status(server: &Server, response: &str) -> String {
    let read = ask(
        server,
        &format!("GET /v1/responses/{response}"),
        &Value::Null,
    )
    .await;
    read["status"].as_str().unwrap().to_owned()
}

/// How many events are still to be posted.
async fn waiting(server: &Server) -> usize {
    let scope = Authority::assume().scope(Tenant::new("throughline.webhooks").unwrap());
    let filter = ThreadFilter::default();
    let page = server.app().store.threads(&scope, &filter, None, 100).await;
    page.unwrap().found.len()
}

/// Wait until nothing is to be posted.
async fn nothing_waits(server: &Server) {
    while waiting(server).await > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_end_of_a_background_response_is_posted_and_signed() {
    let gate = Gate::default();
    let replies = vec![Reply::text("done"), Reply::text("late").held(&gate)];
    let upstream = Upstream::start(Wire::OpenAiChat, replies).await;
    let (receiver, address) = Receiver::start().await;
    let (some, other) = Receiver::start().await;
    let events = "events = [\"response.cancelled\"]";
    let file =
        upstream_table(&upstream) + &webhook("all", address, "") + &webhook("some", other, events);
    let server = serve(&file, "memory:").await;
    // One that is waited for is not posted.
    let plain = json!({"model": "demo", "input": "hi"});
    ask(&server, "POST /v1/responses", &plain).await;
    let done = begin(&server, &json!({})).await;
    let all = receiver.received(1).await;
    assert_eq!(
        (all[0].kind(), all[0].response()),
        ("response.completed", done.as_str())
    );
    assert_eq!(all[0].event["object"], "event");
    assert!(all[0].event["id"].as_str().unwrap().starts_with("evt_"));
    let created = all[0].event["created_at"].as_u64().unwrap();
    assert!(created.abs_diff(all[0].timestamp) <= 60, "{:?}", all[0]);
    gate.close();
    let cancelled = begin(&server, &json!({})).await;
    upstream.received(2).await;
    let path = format!("POST /v1/responses/{cancelled}/cancel");
    ask(&server, &path, &Value::Null).await;
    receiver.received(2).await;
    gate.open();
    upstream
        .inflict(Fault::InvalidRequest, Extent::Always)
        .await;
    let failed = begin(&server, &json!({})).await;
    let all = receiver.received(3).await;
    for (delivery, response) in all.iter().zip([&done, &cancelled, &failed]) {
        let expected = format!("response.{}", status(&server, response).await);
        assert_eq!(
            (delivery.kind(), delivery.response()),
            (&*expected, &**response)
        );
    }
    let kinds: Vec<&str> = all.iter().map(Delivery::kind).collect();
    let [completed, cancelled] = ["response.completed", "response.cancelled"];
    assert_eq!(kinds, [completed, cancelled, "response.failed"]);
    let ids: BTreeSet<&str> = all.iter().map(|delivery| delivery.id.as_str()).collect();
    assert_eq!(ids.len(), 3);
    nothing_waits(&server).await;
    assert_eq!(receiver.all().len(), 3);
    let some = some.all();
    assert_eq!(some.len(), 1, "{some:?}");
    assert_eq!(some[0].event, all[1].event);
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_refused_comes_again_and_only_there() {
    let (receiver, address) = Receiver::start().await;
    let (steady, other) = Receiver::start().await;
    receiver.refuse(2);
    let file = webhook("shaky", address, "") + &webhook("steady", other, "");
    let server = serve(&file, "memory:").await;
    begin(&server, &json!({"model": "demo"})).await;
    let all = receiver.received(3).await;
    for delivery in &all {
        assert_eq!((&delivery.id, &delivery.raw), (&all[0].id, &all[0].raw));
    }
    nothing_waits(&server).await;
    assert_eq!((receiver.all().len(), steady.all().len()), (3, 1));
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_outlives_its_server() {
    let gate = Gate::default();
    let replies = vec![
        Reply::text("late").held(&gate),
        Reply::text("later").held(&gate),
    ];
    let upstream = Upstream::start(Wire::OpenAiChat, replies).await;
    // Nothing listens there.
    let (gone, nowhere) = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    };
    drop(gone);
    let scratch = Scratch::new("webhooks");
    let store = scratch.sqlite("store.db");
    let file = |address| upstream_table(&upstream) + &webhook("hook", address, "");
    let server = serve(&file(nowhere), &store).await;
    // One ends while no receiver listens, the other one with the next server.
    let ended = begin(&server, &json!({"model": "demo"})).await;
    gate.close();
    let left = begin(&server, &json!({})).await;
    upstream.received(1).await;
    while status(&server, &ended).await != "completed" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(waiting(&server).await, 2);
    end(server).await;
    gate.open();
    // The name is the same, so that the address may be another.
    let (receiver, address) = Receiver::start().await;
    let server = serve(&file(address), &store).await;
    let all = receiver.received(2).await;
    let posted: BTreeSet<&str> = all.iter().map(Delivery::response).collect();
    assert_eq!(posted, BTreeSet::from([ended.as_str(), left.as_str()]));
    assert!(all.iter().all(|one| one.kind() == "response.completed"));
    nothing_waits(&server).await;
    end(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_did_not_begin_is_not_posted() {
    let (receiver, address) = Receiver::start().await;
    let server = serve(&webhook("hook", address, ""), "memory:").await;
    let mut client = Client::to(server.address).await;
    let body = json!({"model": "demo", "input": "hi", "background": true}).to_string();
    let key = [("idempotency-key", "k")];
    for _ in 0..2 {
        let answer = client
            .send("POST /v1/responses", &key, body.as_bytes())
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let missing = json!({"model": "demo", "input": "hi", "background": true,
        "previous_response_id": "resp_00000000000000000000000000000000"})
    .to_string();
    let refused = client
        .send("POST /v1/responses", &[], missing.as_bytes())
        .await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    receiver.received(1).await;
    nothing_waits(&server).await;
    assert_eq!(receiver.all().len(), 1);
    end(server).await;
}
