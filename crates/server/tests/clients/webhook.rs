//! What the server posts to its webhook, kept so that programs can check it with their SDKs.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The variable that holds the secret.
pub(crate) const SECRET_VARIABLE: &str = "WEBHOOK_SECRET";

/// What the server signs with.
pub(crate) const SECRET: &str = "whsec_dGhlIHNlY3JldCBvZiByZWNlaXZlcnM=";

/// No event takes so long to come.
const LONGEST: Duration = Duration::from_secs(60);

/// A receiver that takes everything.
pub(crate) struct Webhook {
    address: SocketAddr,
    received: watch::Sender<Vec<Value>>,
}

impl Webhook {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("loopback has a port");
        let address = listener.local_addr().expect("a listener has an address");
        let received = watch::Sender::default();
        let router = Router::new()
            .route("/", post(receive))
            .with_state(received.clone());
        // It ends with the runtime of the test.
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, received }
    }

    /// Its table in the configuration.
    pub(crate) fn table(&self) -> String {
        let address = self.address;
        format!("[[webhook]]\nurl = \"http://{address}/\"\nsecret_env = \"{SECRET_VARIABLE}\"\n")
    }

    /// Waits for the event about a response; gives the request as it came, and the secret.
    pub(crate) async fn about(&self, response: &str) -> Value {
        let mut received = self.received.subscribe();
        let is_about = |delivery: &&Value| {
            let body = delivery["body"].as_str().unwrap_or_default();
            let event: Value = serde_json::from_str(body).unwrap_or_default();
            event["data"]["id"] == response
        };
        let came = received.wait_for(|all| all.iter().any(|one| is_about(&one)));
        let came = tokio::time::timeout(LONGEST, came).await;
        let came = came.unwrap_or_else(|_| panic!("no event about {response} has come"));
        let came = came.expect("the sender is here");
        let mut found = came.iter().find(is_about).cloned().unwrap_or_default();
        found["secret"] = json!(SECRET);
        found
    }
}

async fn receive(
    State(received): State<watch::Sender<Vec<Value>>>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().into();
    let headers = headers.iter();
    let headers: Map<String, Value> = headers
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    received.send_modify(|all| all.push(json!({"headers": headers, "body": body})));
    StatusCode::NO_CONTENT
}
