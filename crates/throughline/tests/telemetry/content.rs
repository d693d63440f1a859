//! Spans, events and metrics contain no content unless it is requested.

use throughline::Agent;
use throughline::agent::AgentBuilder;
use throughline::client::{ClientError, ErrorKind};
use throughline::model::{Body, CallId, Content, Fault, Message, Role, ToolCall};
use throughline::telemetry::Metrics;
use throughline_testkit::scripted::{ScriptedClient, Step};

use crate::telemetry::support::{Fake, How, both};

/// Replaces content wherever there can be some.
const CANARIES: [&str; 8] = [
    "canary-input",
    "canary-instructions",
    "canary-arguments",
    "canary-result",
    "canary-tool-error",
    "canary-answer",
    "canary-thought",
    "canary-client-error",
];

fn client() -> ScriptedClient {
    let call = |id: &str, name: &str| -> Content {
        let id = CallId::natural(id).expect("an id");
        ToolCall::function(id, name, r#"{"port":"canary-arguments"}"#).into()
    };
    ScriptedClient::new([
        Step::contents(vec![
            call("c1", "tide"),
            call("c2", "pier"),
            call("c3", "moon"),
        ]),
        Step::text("canary-answer").thinking("canary-thought"),
        Step::error(ClientError::new(
            ErrorKind::Invalid,
            "scripted",
            "canary-client-error",
        )),
    ])
}

/// A run that succeeds and one that fails.
async fn runs(how: How, build: impl FnOnce(AgentBuilder) -> AgentBuilder) {
    let agent = Agent::builder(client())
        .instructions("canary-instructions")
        .tool(Fake::saying("tide", "canary-result"))
        .tool(Fake::failing("pier", "canary-tool-error"));
    let agent = build(agent).build().expect("an agent");
    let well = how.finish(agent.run("canary-input")).await;
    let badly = how.finish(agent.run("canary-input")).await;
    assert!(well.is_ok() && badly.is_err());
}

#[test]
fn without_being_asked_no_span_event_or_metric_holds_content() {
    both(async |how, capture| {
        let metrics = Metrics::new();
        runs(how, |agent| agent.metrics(metrics.clone())).await;
        let seen = capture.everything() + &metrics.to_prometheus();
        assert!(seen.contains("execute_tool tide"), "there is something");
        for canary in CANARIES {
            assert!(!seen.contains(canary), "{canary} is in {seen}");
        }
        assert!(!seen.contains("canary"));
    });
}

#[test]
fn metrics_never_hold_content() {
    both(async |how, _| {
        let metrics = Metrics::new();
        let build = |agent: AgentBuilder| agent.metrics(metrics.clone()).record_content();
        runs(how, build).await;
        assert!(!metrics.to_prometheus().contains("canary"));
    });
}

#[test]
fn when_asked_spans_hold_what_was_said() {
    both(async |how, capture| {
        runs(how, AgentBuilder::record_content).await;
        let seen = capture.everything();
        for canary in CANARIES {
            assert!(seen.contains(canary), "{canary} is missing in {seen}");
        }
        let call = &capture.fields("chat")[1];
        assert_eq!(
            call["gen_ai.system_instructions"],
            r#"[{"type":"text","content":"canary-instructions"}]"#
        );
        assert_eq!(
            call["gen_ai.input.messages"],
            concat!(
                r#"[{"role":"user","parts":[{"type":"text","content":"canary-input"}]},"#,
                r#"{"role":"assistant","parts":["#,
                r#"{"type":"tool_call","id":"c1","name":"tide","arguments":{"port":"canary-arguments"}},"#,
                r#"{"type":"tool_call","id":"c2","name":"pier","arguments":{"port":"canary-arguments"}},"#,
                r#"{"type":"tool_call","id":"c3","name":"moon","arguments":{"port":"canary-arguments"}}]},"#,
                r#"{"role":"tool","parts":["#,
                r#"{"type":"tool_call_response","id":"c1","response":"canary-result"},"#,
                r#"{"type":"tool_call_response","id":"c2","response":"the tool pier failed"},"#,
                r#"{"type":"tool_call_response","id":"c3","response":"there is no tool called \"moon\"; available: tide, pier"}]}]"#,
            )
        );
        assert_eq!(
            call["gen_ai.output.messages"],
            concat!(
                r#"[{"role":"assistant","parts":[{"type":"reasoning","content":"canary-thought"},"#,
                r#"{"type":"text","content":"canary-answer"}],"finish_reason":"stop"}]"#,
            )
        );
        let run = &capture.fields("invoke_agent")[0];
        assert_eq!(
            run["gen_ai.input.messages"],
            r#"[{"role":"user","parts":[{"type":"text","content":"canary-input"}]}]"#
        );
        assert_eq!(
            run["gen_ai.output.messages"],
            call["gen_ai.output.messages"]
        );
        let tools = capture.fields("execute_tool");
        assert_eq!(
            tools[0]["gen_ai.tool.call.arguments"],
            r#"{"port":"canary-arguments"}"#
        );
        assert_eq!(tools[0]["gen_ai.tool.call.result"], "canary-result");
        assert_eq!(tools[1]["otel.status_description"], "canary-tool-error");
        let failed = &capture.fields("chat")[2];
        assert_eq!(
            failed["otel.status_description"],
            "scripted: canary-client-error"
        );
    });
}

#[test]
fn bytes_of_media_stay_out_even_when_content_is_asked_for() {
    use throughline::model::{Media, MediaKind, MediaSource};
    both(async |how, capture| {
        let media = |source| {
            Content::new(Body::Media(Media {
                kind: MediaKind::Image,
                media_type: Some("image/png".into()),
                source,
                name: None,
                transcript: None,
            }))
        };
        let fault = Fault {
            message: "a leak".into(),
            code: None,
        };
        let input = Message::new(
            Role::User,
            vec![
                media(MediaSource::Data("canary==".into())),
                media(MediaSource::Uri("data:image/png;base64,canary".into())),
                media(MediaSource::Uri("https://example.com/a.png".into())),
                media(MediaSource::File("file_1".into())),
                Content::new(Body::Error(fault)),
            ],
        );
        let client = ScriptedClient::new([Step::text("a boat")]);
        let agent = Agent::builder(client).record_content().build().unwrap();
        how.finish(agent.run(input)).await.unwrap();
        assert!(!capture.everything().contains("canary"));
        assert_eq!(
            capture.fields("chat")[0]["gen_ai.input.messages"],
            concat!(
                r#"[{"role":"user","parts":["#,
                r#"{"type":"blob","content":"","throughline.omitted":8,"modality":"image","mime_type":"image/png"},"#,
                r#"{"type":"blob","content":"","throughline.omitted":28,"modality":"image","mime_type":"image/png"},"#,
                r#"{"type":"uri","uri":"https://example.com/a.png","modality":"image","mime_type":"image/png"},"#,
                r#"{"type":"file","file_id":"file_1","modality":"image","mime_type":"image/png"},"#,
                r#"{"type":"error","content":"a leak"}]}]"#,
            )
        );
    });
}

/// A vendor's client with the key, the answer and the vendor's error on the wire.
#[cfg(feature = "http")]
#[test]
fn a_vendors_client_shows_neither_its_key_nor_what_goes_over_the_wire() {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use throughline::client::{
        Breaker, BreakerPolicy, ClientExt, HttpRequest, HttpResponse, Retry, Transport,
        TransportError,
    };
    use throughline::{Anthropic, ChatClient};

    /// Answers each request with the next body.
    struct Wire(Mutex<Vec<(u16, &'static str)>>);

    #[async_trait]
    impl Transport for Wire {
        async fn send(&self, _: HttpRequest) -> Result<HttpResponse, TransportError> {
            let (status, body) = self.0.lock().unwrap().remove(0);
            Ok(HttpResponse {
                status,
                headers: vec![("content-type".into(), "application/json".into())],
                body: Box::pin(futures_util::stream::iter([Ok(body.into())])),
            })
        }
    }

    crate::telemetry::support::watched(async |capture| {
        let answer = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-1",
            "content":[{"type":"text","text":"canary-answer"}],"stop_reason":"end_turn",
            "stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error",
            "message":"canary-vendor-error"}}"#;
        let refused = r#"{"type":"error","error":{"type":"invalid_request_error",
            "message":"canary-vendor-error"}}"#;
        let wire = Wire(Mutex::new(vec![
            (529, overloaded),
            (200, answer),
            (400, refused),
        ]));
        let metrics = Metrics::new();
        let client = Anthropic::new("claude-1")
            .api_key("canary-key")
            .transport(Arc::new(wire))
            .build()
            .unwrap();
        let watch = Arc::new(metrics.clone());
        let client: Arc<dyn ChatClient> = client
            .layer(Breaker::observed_by(
                BreakerPolicy::default(),
                watch.clone(),
            ))
            .layer(Retry::default().observed_by(watch));
        let agent = Agent::builder(client)
            .instructions("canary-instructions")
            .metrics(metrics.clone())
            .build()
            .unwrap();
        let outcome = agent.run("canary-input").await.unwrap();
        assert_eq!(outcome.text(), "canary-answer");
        agent.run("canary-input").await.unwrap_err();
        let seen = capture.everything() + &metrics.to_prometheus();
        assert!(seen.contains("claude-1"));
        assert_eq!(capture.where_said("retry"), [Some("chat")]);
        assert!(!seen.contains("canary"), "{seen}");
        let calls = capture.fields("chat");
        assert_eq!(calls[0]["gen_ai.provider.name"], "anthropic");
        assert_eq!(calls[1]["error.type"], "invalid");
    });
}
