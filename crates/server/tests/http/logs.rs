//! The log: one line for each request, without any content.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use crate::http::support::{Client, end, start};

/// Everything that was written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Kept {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines about requests, as JSON.
    fn requests(&self) -> Vec<serde_json::Value> {
        let lines = self.text();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let about = |line: &serde_json::Value| line["target"] == "throughline_server::request";
        lines.filter(about).collect()
    }
}

/// Everything goes to one place, down to the finest level; tests of one thread only.
fn keep() -> (Kept, tracing::subscriber::DefaultGuard) {
    let kept = Kept::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(kept.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    (kept, guard)
}

#[tokio::test]
async fn a_request_is_one_line_without_anything_that_was_said() {
    let (kept, _guard) = keep();
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let headers = [
        ("authorization", "Bearer canary-key"),
        ("x-api-key", "canary-header"),
        ("openai-organization", "canary-org"),
        ("cookie", "canary-cookie"),
    ];
    let line = "POST /echo?token=canary-query";
    assert_eq!(
        client.send(line, &headers, b"canary-body").await.status,
        200
    );
    let line = "GET /v1/models/canary-model?key=canary-query";
    let missing = client.send(line, &headers, b"").await;
    assert_eq!(missing.status, 404);
    let line = "GET /canary-path/x";
    assert_eq!(client.send(line, &headers, b"").await.status, 404);
    let line = "CANARY /v1/models";
    assert_eq!(client.send(line, &headers, b"").await.status, 405);
    let broken = client
        .send("POST /echo", &[("content-encoding", "gzip")], b"canary-zip")
        .await;
    assert_eq!(broken.status, 400);
    end(server).await;

    let text = kept.text();
    assert!(!text.to_lowercase().contains("canary"), "{text}");
    let lines = kept.requests();
    let seen: Vec<(&str, &str, u64)> = lines
        .iter()
        .map(|line| {
            (
                line["method"].as_str().unwrap(),
                line["route"].as_str().unwrap(),
                line["status"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("POST", "/echo", 200),
            ("GET", "/v1/models/{*id}", 404),
            ("GET", "unmatched", 404),
            ("other", "/v1/models", 405),
            ("POST", "/echo", 400),
        ]
    );
    let id = missing.header("x-request-id").unwrap();
    assert_eq!(lines[1]["request_id"], id);
    assert!(lines[1]["ms"].is_f64());
}

#[tokio::test]
async fn a_stream_is_logged_when_it_has_ended() {
    let (kept, _guard) = keep();
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let answer = client.send("GET /events", &[], b"").await;
    assert_eq!(answer.body, "event: a\ndata: 1\n\ndata: [DONE]\n\n");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    end(server).await;
    let lines = kept.requests();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["whole"], true);
    assert_eq!(
        lines[0]["response_id"],
        "resp_07070707070707070707070707070707"
    );
}

#[tokio::test]
async fn a_handler_that_panics_costs_one_request() {
    let (kept, _guard) = keep();
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let answer = client.send("GET /panic", &[], b"").await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.error("type").as_deref(), Some("server_error"));
    assert!(!answer.body.contains("canary"), "{}", answer.body);
    assert_eq!(client.send("GET /healthz", &[], b"").await.status, 200);
    end(server).await;
    assert!(!kept.text().contains("canary"));
    assert_eq!(kept.requests()[0]["status"], 500);
}

#[tokio::test]
async fn a_key_that_goes_is_warned_of_when_the_server_starts() {
    for (key, times) in [
        ("strategy = \"text\"", 0),
        ("experimental.native_tool_history = false", 1),
    ] {
        let (kept, _guard) = keep();
        let server = start(&format!("[compaction]\n{key}\n")).await;
        end(server).await;
        let text = kept.text();
        let warned = text.lines().filter(|line| {
            line.contains("\"WARN\"") && line.contains("native_tool_history is deprecated")
        });
        assert_eq!(warned.count(), times, "{text}");
    }
}
