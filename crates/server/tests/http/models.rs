//! Models that upstreams list themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::get as get_route;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::http::support::{config, end, get, start_with};

/// How often each vendor was asked.
#[derive(Clone, Default)]
struct Asked {
    openai: Arc<AtomicUsize>,
    anthropic: Arc<AtomicUsize>,
    gemini: Arc<AtomicUsize>,
}

type Listed = Result<String, StatusCode>;

/// A parameter of a query.
fn parameter<'q>(query: Option<&'q str>, name: &str) -> Option<&'q str> {
    let pairs = query.unwrap_or_default().split('&');
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

async fn openai(State(asked): State<Asked>, headers: HeaderMap) -> Listed {
    asked.openai.fetch_add(1, Ordering::Relaxed);
    match headers.get("authorization").map(HeaderValue::as_bytes) {
        Some(b"Bearer k") => {}
        _ => return Err(StatusCode::UNAUTHORIZED),
    }
    let models =
        ["gpt-5", "gpt-5-mini", "whisper-1"].map(|id| json!({"id": id, "object": "model"}));
    Ok(json!({"object": "list", "data": models}).to_string())
}

async fn anthropic(State(asked): State<Asked>, RawQuery(query): RawQuery) -> Listed {
    asked.anthropic.fetch_add(1, Ordering::Relaxed);
    let page = |id: &str, more: bool| {
        let model = json!({"id": id, "type": "model"});
        json!({"data": [model], "has_more": more, "last_id": id}).to_string()
    };
    Ok(match parameter(query.as_deref(), "after_id") {
        None => page("claude-opus", true),
        Some("claude-opus") => page("claude-haiku", false),
        Some(_) => return Err(StatusCode::BAD_REQUEST),
    })
}

async fn gemini(State(asked): State<Asked>, RawQuery(query): RawQuery) -> Listed {
    asked.gemini.fetch_add(1, Ordering::Relaxed);
    let name = match parameter(query.as_deref(), "pageToken") {
        None => "models/gemini-pro",
        Some("2") => "models/gemini-flash",
        Some(_) => return Err(StatusCode::BAD_REQUEST),
    };
    let mut page = json!({"models": [{"name": name, "displayName": "a model"}]});
    if name == "models/gemini-pro" {
        page["nextPageToken"] = json!("2");
    }
    Ok(page.to_string())
}

/// The address of all three vendors.
async fn vendors(asked: &Asked) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/openai/v1/models", get_route(openai))
        .route("/anthropic/v1/models", get_route(anthropic))
        .route("/gemini/v1beta/models", get_route(gemini))
        .with_state(asked.clone());
    // It ends with the runtime of the test.
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test]
async fn upstreams_are_asked_for_their_models_once_and_patterns_choose() {
    let asked = Asked::default();
    let url = vendors(&asked).await;
    let upstream = |name: &str, kind: &str, path: &str, models: &str| {
        format!(
            "[[upstream]]\nname = \"{name}\"\nkind = \"{kind}\"\nbase_url = \"{url}{path}\"\n\
             api_key_env = \"UP_KEY\"\n{models}\n"
        )
    };
    let file = upstream(
        "openai",
        "openai-chat",
        "/openai/v1",
        "models = [\"gpt-*\", \"o9\"]",
    ) + &upstream("anthropic", "anthropic", "/anthropic", "")
        + &upstream("google", "gemini", "/gemini", "models = [\"gemini-*\"]")
        + &upstream("project", "foundry", "/none", "models = [\"deployed-*\"]")
        + &upstream("gone", "openai-chat", "/none", "models = [\"local-*\"]");
    let server = start_with(config(&file, &[("UP_KEY", "k")])).await;
    for _ in 0..3 {
        let answer = get(server.address, "/v1/models").await;
        assert_eq!(answer.header("x-throughline-unlisted"), Some("gone"));
        let list: Value = serde_json::from_str(&answer.body).unwrap();
        let models = list["data"].as_array().unwrap().iter();
        let models: Vec<(&str, &str)> = models
            .map(|one| {
                (
                    one["id"].as_str().unwrap(),
                    one["owned_by"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            models,
            [
                ("o9", "openai"),
                ("demo", "demo"),
                ("gpt-5", "openai"),
                ("gpt-5-mini", "openai"),
                ("anthropic/claude-opus", "anthropic"),
                ("anthropic/claude-haiku", "anthropic"),
                ("gemini-pro", "google"),
                ("gemini-flash", "google"),
                ("deployed-*", "project"),
                ("local-*", "gone"),
            ]
        );
        for (model, _) in models.iter().filter(|(model, _)| !model.contains('*')) {
            let one = get(server.address, &format!("/v1/models/{model}")).await;
            assert_eq!(one.status, 200, "{model}");
        }
    }
    let counts = [&asked.openai, &asked.anthropic, &asked.gemini];
    let counts = counts.map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 2, 2], "one request for each page");
    end(server).await;
}
