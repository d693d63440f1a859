//! The mock upstream: it reads the request, and answers with a kilobyte.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::Response;
use axum::routing::post;
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;
use tokio::net::TcpListener;

use super::kilobyte;

/// The number of events of a paced answer, and the pause between them.
pub(crate) const EVENTS: usize = 100;
const APART: Duration = Duration::from_millis(50);

/// The model with paced answers.
pub(crate) const PACED: &str = "paced";

/// The model with answers of 2 MB.
pub(crate) const LONG: &str = "long";
const KILOBYTES: usize = 2_000;

/// Models with endless answers.
pub(crate) const ENDLESS_JSON: &str = "endless-json";
pub(crate) const ENDLESS_STREAM: &str = "endless-stream";
pub(crate) const ENDLESS_ARGUMENTS: &str = "endless-arguments";

pub(crate) async fn serve() -> Result<(String, ()), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let router = Router::new()
        .route("/v1/chat/completions", post(answer))
        .layer(DefaultBodyLimit::disable());
    // The task lasts as long as the process.
    tokio::spawn(async move { axum::serve(NoDelay(listener), router).await });
    Ok((address, ()))
}

/// A listener whose connections have `TCP_NODELAY`.
pub(crate) struct NoDelay(pub(crate) TcpListener);

impl axum::serve::Listener for NoDelay {
    type Io = tokio::net::TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, address)) = self.0.accept().await {
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

async fn answer(body: Bytes) -> Response<Body> {
    let has = |text: &str| memchr(&body, text.as_bytes());
    let model = |name: &str| has(&format!("\"{name}\""));
    for (name, kind, first, again) in endless() {
        if model(name) {
            let chunks = stream::iter([first]).chain(stream::repeat(again));
            return sent(kind, Body::from_stream(chunks.map(Ok::<_, Infallible>)));
        }
    }
    let (paced, long) = (model(PACED), model(LONG));
    if !has("\"stream\":true") {
        let kilobytes = if long { KILOBYTES } else { 1 };
        return sent("application/json", Body::from(whole_of(kilobytes)));
    }
    let chunks: Vec<Bytes> = match (paced, long) {
        (true, _) => {
            let words = (0..EVENTS).map(|_| "Barges. ".to_owned());
            words.map(|word| chunk(&word, None)).collect()
        }
        (false, true) => vec![chunk(&kilobyte(), None); KILOBYTES],
        (false, false) => vec![chunk(&kilobyte(), None)],
    };
    let last = [
        chunk("", Some("stop")),
        Bytes::from_static(b"data: [DONE]\n\n"),
    ];
    let chunks = chunks.into_iter().chain(last).enumerate();
    let body = stream::unfold(chunks, move |mut chunks| async move {
        let (place, chunk) = chunks.next()?;
        if paced && (1..EVENTS).contains(&place) {
            tokio::time::sleep(APART).await;
        }
        Some((Ok::<_, Infallible>(chunk), chunks))
    });
    sent("text/event-stream", Body::from_stream(body))
}

pub(crate) fn sent(kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let kind = axum::http::HeaderValue::from_static(kind);
    response.headers_mut().insert("content-type", kind);
    response
}

/// Whether the first or last bytes contain a text.
fn memchr(body: &[u8], text: &[u8]) -> bool {
    let near = 512.min(body.len());
    let holds = |part: &[u8]| part.windows(text.len()).any(|window| window == text);
    holds(&body[..near]) || holds(&body[body.len() - near..])
}

fn chunk(text: &str, finish: Option<&str>) -> Bytes {
    let data = json!({
        "id": "c-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}],
    });
    Bytes::from(format!("data: {data}\n\n"))
}

/// Endless answers: the model, the content type, the beginning, and the part that is repeated.
fn endless() -> [(&'static str, &'static str, Bytes, Bytes); 3] {
    let kilobyte = kilobyte();
    let call = |name: Option<&str>, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        let calls = json!([{"index": 0, "id": name.map(|_| "call_1"), "type": "function", "function": function}]);
        let data = json!({
            "id": "c-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "m",
            "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": calls}, "finish_reason": null}],
        });
        Bytes::from(format!("data: {data}\n\n"))
    };
    let json = "{\"id\":\"c-1\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"";
    let events = "text/event-stream";
    [
        (
            ENDLESS_JSON,
            "application/json",
            json.into(),
            kilobyte.clone().into(),
        ),
        (
            ENDLESS_STREAM,
            events,
            chunk("", None),
            chunk(&kilobyte, None),
        ),
        (
            ENDLESS_ARGUMENTS,
            events,
            call(Some("look"), "{\"a\":\""),
            call(None, &kilobyte),
        ),
    ]
}

/// A whole answer of a number of kilobytes.
fn whole_of(kilobytes: usize) -> String {
    json!({
        "id": "c-1", "object": "chat.completion", "created": 1_790_000_000, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": kilobyte().repeat(kilobytes)}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
    .to_string()
}
