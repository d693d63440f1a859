use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use throughline_model::{Event, Stop};
use throughline_wire::sse::Limits;

use super::support::{Reply, Service, all, both, respond, stream_events, streamed};
use crate::client::fake::with_request;
use crate::client::http::{
    HttpRequest, HttpResponse, Timeouts, Transport, TransportError, TransportFault,
};
use crate::client::vendor::{Bounds, ClientBuilder, EndMark, Gemini, OpenAi};
use crate::client::{ErrorKind, ErrorKind as K, TimeoutPhase};

fn responses() -> ClientBuilder {
    OpenAi::responses("m").api_key("k")
}

fn chat() -> ClientBuilder {
    OpenAi::chat("m").api_key("k")
}

const WHOLE: &str = r#"{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}"#;

const CHUNKS: &str = concat!(
    r#"data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hel"}}]}"#,
    "\n\n",
    r#"data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
    "\n\n",
);

async fn fails(builder: fn() -> ClientBuilder, reply: &Reply, kind: ErrorKind) {
    for outcome in both(builder, reply).await {
        assert_eq!(outcome.unwrap_err().kind(), kind);
    }
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_with_its_kind() {
    let page = "<html><body>Sign in</body></html>";
    for place in 0..all().len() {
        let one = || all().remove(place);
        let rows = [
            (Reply::json(200, ""), K::Cut),
            (Reply::json(200, " \n"), K::Cut),
            (Reply::json(200, "{\"id\":\"x\""), K::Cut),
            (Reply::json(200, b"{\"id\":\"\xff\"}"), K::Malformed),
            (Reply::json(200, "{}"), K::Malformed),
            (Reply::json(200, "[]"), K::Malformed),
            (Reply::json(200, "7"), K::Malformed),
            (Reply::json(200, page), K::Malformed),
            (Reply::new(200, "text/html", page), K::Malformed),
            (Reply::new(200, "text/plain", WHOLE), K::Malformed),
            (Reply::json(200, r#"{"error":"gateway"}"#), K::Unavailable),
            (
                Reply::json(200, r#"{"error":{"message":"m","type":"t","code":429}}"#),
                K::RateLimited,
            ),
            (Reply::events(""), K::Cut),
            (Reply::events(": nothing\n\n"), K::Cut),
            (Reply::events("data: {\"x\n\n"), K::Malformed),
            (Reply::events(b"data: \xff\xfe\n\n"), K::Malformed),
            (Reply::json(200, WHOLE).breaking(), K::Cut),
            (
                Reply::json(200, WHOLE).with("content-length", "9999"),
                K::Cut,
            ),
            (
                Reply::events(
                    "event: error\ndata: {\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\"}}\n\n",
                ),
                K::Unavailable,
            ),
        ];
        for (reply, kind) in rows {
            for (way, outcome) in both(one, &reply).await.into_iter().enumerate() {
                let error = outcome.unwrap_err();
                let body = &reply.body;
                assert_eq!(error.kind(), kind, "{:?} {way} {body:?}", one());
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_failed_is_an_error() {
    let failed = r#"{"id":"r","object":"response","status":"failed","output":[],"error":{"code":"server_error","message":"oops"}}"#;
    fails(responses, &Reply::json(200, failed), K::Unavailable).await;
    let frame = format!(
        "event: response.failed\ndata: {{\"type\":\"response.failed\",\"response\":{failed}}}\n\n"
    );
    fails(responses, &Reply::events(frame), K::Unavailable).await;
    let limited = failed.replace("server_error", "rate_limit_exceeded");
    fails(responses, &Reply::json(200, limited), K::RateLimited).await;
    let unfinished = r#"{"id":"r","object":"response","status":"in_progress","output":[]}"#;
    fails(responses, &Reply::json(200, unfinished), K::Malformed).await;
}

#[tokio::test]
async fn a_stream_must_close_unless_a_server_is_known_not_to() {
    let closed = Reply::events(format!("{CHUNKS}data: [DONE]\n\n"));
    for outcome in both(chat, &closed).await {
        assert_eq!(outcome.unwrap().messages[0].text(), "hello");
    }
    fails(chat, &Reply::events(CHUNKS), K::Cut).await;
    let lenient = || chat().end_mark(EndMark::Lenient);
    for outcome in both(lenient, &Reply::events(CHUNKS)).await {
        assert_eq!(outcome.unwrap().messages[0].text(), "hello");
    }
    // Without a stop reason it counts as cut in any case.
    let first = CHUNKS.split_inclusive("\n\n").next().unwrap();
    fails(
        || chat().end_mark(EndMark::Lenient),
        &Reply::events(first),
        K::Cut,
    )
    .await;
}

#[tokio::test]
async fn a_whole_body_is_taken_where_a_stream_was_asked_for() {
    let reply = Reply {
        headers: Vec::new(),
        ..Reply::json(200, WHOLE)
    };
    for reply in [Reply::json(200, WHOLE), reply] {
        for outcome in both(chat, &reply).await {
            let response = outcome.unwrap();
            assert_eq!(response.messages[0].text(), "hello");
            assert_eq!(response.stop, Stop::Done);
        }
    }
    let array = r#"[{"candidates":[{"content":{"role":"model","parts":[{"text":"hel"}]}}]},{"candidates":[{"content":{"role":"model","parts":[{"text":"lo"}]},"finishReason":"STOP"}]}]"#;
    for outcome in both(|| Gemini::new("m").api_key("k"), &Reply::json(200, array)).await {
        assert_eq!(outcome.unwrap().messages[0].text(), "hello");
    }
    let unsaid = Reply {
        headers: Vec::new(),
        ..Reply::events(format!("{CHUNKS}data: [DONE]\n\n"))
    };
    let client = chat()
        .transport(Service::always(unsaid))
        .build_bare()
        .unwrap();
    assert_eq!(streamed(&client).await.unwrap().messages[0].text(), "hello");
}

#[tokio::test]
async fn bounds_hold() {
    let small = || {
        chat().bounds(Bounds {
            body_bytes: 64,
            stream_bytes: 64,
            ..Bounds::default()
        })
    };
    for outcome in both(small, &Reply::json(200, WHOLE)).await {
        assert_eq!(outcome.unwrap_err().kind(), K::TooLarge);
    }
    let narrow = || {
        chat().bounds(Bounds {
            events: Limits {
                line_bytes: 32,
                event_bytes: 32,
            },
            ..Bounds::default()
        })
    };
    for outcome in both(narrow, &Reply::events(CHUNKS)).await {
        assert_eq!(outcome.unwrap_err().kind(), K::TooLarge);
    }
}

/// Answers with the given pieces and then hangs; without pieces it never answers.
struct Slow(Vec<&'static str>);

#[async_trait]
impl Transport for Slow {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, TransportError> {
        if self.0.is_empty() {
            std::future::pending::<()>().await;
        }
        let pieces: Vec<_> = self.0.iter().map(|it| Ok(Bytes::from(*it))).collect();
        Ok(HttpResponse {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            body: Box::pin(stream::iter(pieces).chain(stream::pending())),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_words_come_before_the_stream_ends() {
    let first = CHUNKS.split_inclusive("\n\n").next().unwrap();
    let client = chat().transport(Arc::new(Slow(vec![first])));
    let client = client.build().unwrap();
    let mut events = with_request(async |request| client.stream(request).await)
        .await
        .unwrap();
    let mut said = String::new();
    while said.is_empty() {
        if let Event::Delta { text, .. } = events.next().await.unwrap().unwrap() {
            said = text;
        }
    }
    assert_eq!(said, "hel");
    // If nothing more arrives, that is an error, not an end.
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), K::Timeout(TimeoutPhase::Idle));
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout() {
    let client = chat().transport(Arc::new(Slow(Vec::new())));
    let client = client.timeouts(Timeouts {
        first_byte: Some(Duration::from_secs(3)),
        ..Timeouts::default()
    });
    let client = client.build_bare().unwrap();
    let start = tokio::time::Instant::now();
    let error = respond(&client).await.unwrap_err();
    assert_eq!(error.kind(), K::Timeout(TimeoutPhase::FirstByte));
    assert_eq!(start.elapsed(), Duration::from_secs(3));
}

struct Down(TransportFault);

#[async_trait]
impl Transport for Down {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, TransportError> {
        Err(TransportError::new(self.0, "refused"))
    }
}

#[tokio::test]
async fn what_happens_below_http_has_its_kind() {
    for (fault, kind) in [
        (TransportFault::Connect, K::Connect),
        (
            TransportFault::ConnectTimeout,
            K::Timeout(TimeoutPhase::Connect),
        ),
        (TransportFault::Cut, K::Cut),
        (TransportFault::Request, K::Setup),
    ] {
        let client = chat()
            .transport(Arc::new(Down(fault)))
            .build_bare()
            .unwrap();
        assert_eq!(respond(&client).await.unwrap_err().kind(), kind);
        assert_eq!(stream_events(&client).await.unwrap_err().kind(), kind);
    }
}
