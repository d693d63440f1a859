//! Clients for every kind, against servers that are as strict as the vendors.

use throughline::client::{ChatRequest, HistoryOwner, MemoryBudget, View};
use throughline::model::{Message, Settings, ToolChoice};
use throughline_model::Wire;
use throughline_server::{Credential, Upstreams};
use throughline_testkit::upstream::{KEY, Recorded, Reply, Upstream};

use crate::http::support::config;

/// One question to the model that a name means.
async fn ask(upstreams: &Upstreams, model: &str, keep: HistoryOwner<'_>) -> String {
    let route = upstreams.route(Some(model)).unwrap();
    let view = View::new(vec![Message::user("hello")]);
    let request = ChatRequest {
        model: route.model.as_deref(),
        instructions: None,
        view: &view,
        tools: &[],
        choice: &ToolChoice::Auto,
        settings: &Settings::default(),
        history_owner: keep,
        persist: None,
        losses: None,
    };
    let response = route.upstream.client.respond(&request).await.unwrap();
    response.messages[0].text()
}

#[tokio::test]
async fn every_kind_asks_its_vendor_for_the_model_that_was_named() {
    for (kind, wire) in [
        ("openai-responses", Wire::OpenAiResponses),
        ("openai-chat", Wire::OpenAiChat),
        ("anthropic", Wire::Anthropic),
        ("gemini", Wire::Gemini),
        ("foundry", Wire::Foundry),
    ] {
        let vendor =
            Upstream::start(wire.clone(), [Reply::text("yes"), Reply::text("again")]).await;
        let base = match wire {
            Wire::Foundry => vendor.project(),
            _ => vendor.base_url(),
        };
        let file = format!(
            "[[upstream]]\nname = \"v\"\nkind = \"{kind}\"\nbase_url = \"{base}\"\n\
             api_key_env = \"VENDOR_KEY\"\n"
        );
        let config = config(&file, &[("VENDOR_KEY", KEY)]);
        let upstreams = Upstreams::of(&config).unwrap();
        assert_eq!(
            ask(&upstreams, "v/model-1", HistoryOwner::Caller).await,
            "yes",
            "{kind}"
        );
        assert_eq!(
            ask(&upstreams, "bare", HistoryOwner::Caller).await,
            "again",
            "{kind}"
        );
        let requests = vendor.requests();
        assert_eq!(requests.len(), 2, "{kind}");
        assert!(requests.iter().all(Recorded::is_accepted), "{kind}");
        let named = |model: &str, at: usize| {
            let request = &requests[at];
            let body = request.body.to_string();
            assert!(
                body.contains(&format!("\"{model}\"")) || request.path.contains(model),
                "{kind}: {} {body}",
                request.path
            );
        };
        named("model-1", 0);
        named("bare", 1);
    }
}

#[tokio::test]
async fn a_command_gives_tokens() {
    let vendor = Upstream::start(Wire::Foundry, [Reply::text("yes")]).await;
    let file = format!(
        "[[upstream]]\nname = \"v\"\nkind = \"foundry\"\nbase_url = \"{}\"\n\
         token_command = [\"echo\", \"{KEY}\"]\n",
        vendor.project()
    );
    let config = config(&file, &[]);
    assert_eq!(
        config.upstreams[0].credential,
        Credential::Command(vec!["echo".to_owned(), KEY.to_owned()])
    );
    let upstreams = Upstreams::of(&config).unwrap();
    assert_eq!(ask(&upstreams, "v/m", HistoryOwner::Caller).await, "yes");
}

#[tokio::test]
async fn a_vendor_that_keeps_history_is_asked_to() {
    let vendor = Upstream::start(Wire::OpenAiResponses, [Reply::text("kept")]).await;
    let file = format!(
        "[[upstream]]\nname = \"v\"\nkind = \"openai-responses\"\nbase_url = \"{}\"\n\
         api_key_env = \"VENDOR_KEY\"\nhistory = \"service\"\n",
        vendor.base_url()
    );
    let upstreams = Upstreams::of(&config(&file, &[("VENDOR_KEY", KEY)])).unwrap();
    assert_eq!(
        ask(&upstreams, "v/m", HistoryOwner::Service { id: None }).await,
        "kept"
    );
}

#[tokio::test]
async fn the_built_in_model_answers_without_any_network() {
    let upstreams = Upstreams::of(&config("", &[])).unwrap();
    let said = ask(&upstreams, "demo", HistoryOwner::Caller).await;
    assert!(!said.is_empty());
}

#[tokio::test]
async fn retries_and_breakers_are_counted() {
    let vendor = Upstream::start(Wire::OpenAiChat, [Reply::text("yes")]).await;
    let file = format!(
        "[[upstream]]\nname = \"v\"\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\
         api_key_env = \"VENDOR_KEY\"\n",
        vendor.base_url()
    );
    let metrics = throughline::telemetry::Metrics::new();
    let config = config(&file, &[("VENDOR_KEY", KEY)]);
    let upstreams =
        Upstreams::with_metrics(&config, &metrics, &MemoryBudget::new(1 << 30)).unwrap();
    assert_eq!(ask(&upstreams, "m", HistoryOwner::Caller).await, "yes");
    assert!(
        metrics.to_prometheus().contains("\"v\""),
        "{}",
        metrics.to_prometheus()
    );
}
