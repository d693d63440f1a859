//! The form of tool history is on the span of the call, and fallbacks are counted.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use throughline::client::{HttpRequest, HttpResponse, Transport, TransportError};
use throughline::telemetry::{Instrument, Metrics};
use throughline::{Agent, OpenAi, Thread};

use crate::telemetry::support::{Fake, both};

/// A server that calls a tool, refuses results of tools, and always answers as a whole.
struct TextOnly;

#[async_trait]
impl Transport for TextOnly {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let body = String::from_utf8_lossy(&request.body.to_bytes()).into_owned();
        let (status, answer) = if body.contains(r#""role":"tool""#) {
            (
                400,
                r#"{"error":{"message":"tool_calls not supported","type":"invalid_request_error","param":null,"code":null}}"#,
            )
        } else if body.contains("[Result of tide]") {
            (
                200,
                r#"{"id":"2","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"At four."},"finish_reason":"stop"}]}"#,
            )
        } else {
            (
                200,
                r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"tide","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
            )
        };
        let piece = Ok(Bytes::from_static(answer.as_bytes()));
        Ok(HttpResponse {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: Box::pin(futures_util::stream::iter([piece])),
        })
    }
}

#[test]
fn b177_the_form_is_on_the_span_and_fallbacks_are_counted() {
    both(async |how, capture| {
        let metrics = Metrics::new();
        let client = OpenAi::chat("m")
            .base_url("http://127.0.0.1:9/v1")
            .transport(Arc::new(TextOnly))
            .observer(Arc::new(metrics.clone()))
            .build()
            .unwrap();
        let agent = Agent::builder(client).name("harbour");
        let agent = agent.tool(Fake::saying("tide", "at four")).build().unwrap();
        let thread = Thread::new();
        let run = agent.run_on(&thread, "When is high water?");
        let outcome = how.finish(run).await.unwrap();
        assert_eq!(outcome.text(), "At four.");
        let run = agent.run_on(&thread, "Thank you.");
        how.finish(run).await.unwrap();
        let calls = capture.fields("chat");
        let forms = calls.iter();
        let forms = forms.map(|call| call.get("throughline.tool_history").map(String::as_str));
        let forms: Vec<Option<&str>> = forms.collect();
        // The first call had no tool history.
        assert_eq!(forms, [None, Some("text"), Some("text")]);
        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.sum(Instrument::Fallbacks, &[]) as u64, 1);
        assert_eq!(
            capture.where_said("tool history goes as text"),
            [Some("chat")]
        );
    });
}
