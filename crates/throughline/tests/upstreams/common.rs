//! Clients, requests, and two ways to read an answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use throughline::client::{
    Bounds, ChatRequest, ClientBuilder, ClientError, HistoryOwner, ProxyChoice, Timeouts, View,
};
use throughline::model::json::RawJson;
use throughline::model::{Event, Family, Fold, Response, Settings, ToolChoice, ToolDef, Wire};
use throughline::{Anthropic, ChatClient, Foundry, Gemini, OpenAi};
use throughline_testkit::scripted::Reading;
use throughline_testkit::upstream::{KEY, Upstream};

/// Every format that a client speaks.
pub(crate) const WIRES: [Wire; 6] = Wire::KNOWN;

/// Both ways to read an answer.
pub(crate) const READINGS: [Reading; 2] = [Reading::Whole, Reading::Streamed];

/// A client of the server's vendor. Nothing times out unless a test says so, and size limits are
/// low.
pub(crate) fn client_of(upstream: &Upstream) -> ClientBuilder {
    let builder = match upstream.wire() {
        Wire::OpenAiResponses => OpenAi::responses("gpt-5").base_url(upstream.base_url()),
        Wire::OpenAiChat => OpenAi::chat("gpt-5").base_url(upstream.base_url()),
        Wire::Anthropic => Anthropic::new("claude-sonnet-4-5").base_url(upstream.base_url()),
        Wire::Gemini => Gemini::new("gemini-3-pro").base_url(upstream.base_url()),
        Wire::GeminiInteractions => {
            Gemini::interactions("gemini-3-pro").base_url(upstream.base_url())
        }
        Wire::Foundry => Foundry::new(upstream.project(), "gpt-5"),
        Wire::Other(name) => panic!("there is no client for {name}"),
    };
    let mut bounds = Bounds {
        body_bytes: 1024 * 1024,
        stream_bytes: 4 * 1024 * 1024,
        ..Bounds::default()
    };
    bounds.events.line_bytes = 1024 * 1024;
    bounds.events.event_bytes = 1024 * 1024;
    builder
        .api_key(KEY)
        .proxy(ProxyChoice::Direct)
        .timeouts(patient())
        .bounds(bounds)
}

/// Longer than any test takes, even on a busy machine.
pub(crate) fn patient() -> Timeouts {
    let long = Some(Duration::from_secs(60));
    Timeouts {
        connect: long,
        first_byte: long,
        idle: long,
    }
}

/// For responses that never arrive.
pub(crate) fn impatient() -> Timeouts {
    let short = Some(Duration::from_millis(250));
    Timeouts {
        first_byte: short,
        idle: short,
        ..patient()
    }
}

/// The parts of every request of a test.
pub(crate) struct Ask {
    pub(crate) tools: Vec<ToolDef>,
    pub(crate) settings: Settings,
    pub(crate) choice: ToolChoice,
}

impl Ask {
    pub(crate) fn plain() -> Self {
        Self {
            tools: Vec::new(),
            settings: Settings {
                max_output_tokens: Some(4096),
                ..Settings::default()
            },
            choice: ToolChoice::Auto,
        }
    }

    pub(crate) fn with_tools() -> Self {
        let schema = r#"{"type":"object","properties":{"port":{"type":"string"}},"required":["port"],"additionalProperties":false}"#;
        let tool = |name: &str, about: &str| ToolDef {
            family: Family::FUNCTION,
            name: name.into(),
            description: Some(about.into()),
            parameters: Some(RawJson::new(schema).expect("a schema is JSON")),
            ..ToolDef::default()
        };
        Self {
            tools: vec![
                tool("tide", "When high water is."),
                tool("berths", "Which berths are free."),
            ],
            ..Self::plain()
        }
    }

    pub(crate) fn about<'a>(&'a self, view: &'a View) -> ChatRequest<'a> {
        ChatRequest {
            model: None,
            instructions: Some("You are the harbour master."),
            view,
            tools: &self.tools,
            choice: &self.choice,
            settings: &self.settings,
            history_owner: HistoryOwner::Caller,
            persist: None,
            losses: None,
        }
    }
}

/// Calls the model, whole or streamed. Returns complete answers only.
pub(crate) async fn ask(
    client: &Arc<dyn ChatClient>,
    request: &ChatRequest<'_>,
    reading: Reading,
) -> Result<Response, ClientError> {
    match reading {
        Reading::Whole => client.respond(request).await,
        Reading::Streamed => {
            let mut events = client.stream(request).await?;
            let mut fold = Fold::new();
            let mut finished = false;
            while let Some(event) = events.next().await {
                let event = event?;
                assert!(!finished, "{event:?} came after the end");
                finished = matches!(event, Event::Finished { .. });
                fold.push(event);
            }
            assert!(
                finished,
                "a stream ended without an end and without an error"
            );
            Ok(fold.finish())
        }
    }
}

/// An error with all its sources, in every form that could be logged.
pub(crate) fn all_words(error: &ClientError) -> String {
    let mut words = format!("{error} {error:?} {:?}", error.vendor());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        words.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    words
}

/// Runs a test on a single-threaded runtime, so that connections and their users alternate.
pub(crate) fn run_in_turns<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

/// Runs a test on a runtime of its own.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}
