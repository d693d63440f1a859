use std::sync::Arc;

use throughline_model::{Message, Role, json};
use throughline_wire::compose::TokenLimit;

use super::support::{PROJECT, Reply, Service, all, respond, streamed};
use crate::client::View;
use crate::client::fake::with_view;
use crate::client::vendor::{Anthropic, ClientBuilder, Foundry, Gemini, OpenAi};
use crate::client::{ChatClient, ErrorKind, ProxyChoice, Secret};

/// The request that a client sends: address, signing header, body.
async fn sent(builder: ClientBuilder, is_streamed: bool) -> (String, String, String) {
    let service = Service::always(Reply::json(400, "{}"));
    let client = builder.transport(service.clone()).build_bare().unwrap();
    let outcome = if is_streamed {
        streamed(&client).await
    } else {
        respond(&client).await
    };
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Invalid);
    service.seen().remove(0)
}

#[tokio::test]
async fn a_long_history_is_lent_to_a_body_and_stands_where_it_would() {
    let said: Vec<String> = (0..40)
        .map(|no| format!("{no:02} \u{0}\" {}", "x".repeat(1_500)))
        .collect();
    let messages = said.iter().enumerate().map(|(no, text)| match no % 2 {
        0 => Message::user(text.as_str()),
        _ => Message::new(Role::Assistant, Message::user(text.as_str()).contents),
    });
    let view = View::new(messages.chain([Message::user("the \0 last")]));
    for builder in all() {
        let service = Service::always(Reply::json(400, "{}"));
        let client = builder.transport(service.clone()).build_bare().unwrap();
        for _ in 0..2 {
            let asked = with_view(&view, async |request| client.respond(request).await);
            assert_eq!(asked.await.unwrap_err().kind(), ErrorKind::Invalid);
        }
        for request in service.asked.lock().unwrap().iter() {
            assert_eq!(request.body.pieces().len(), 3, "before, history, after");
            let body = request.body.to_bytes();
            assert_eq!(body.len(), request.body.len());
            let text = std::str::from_utf8(&body).unwrap();
            assert!(json::parse(text).is_ok() && !text.contains('\0'), "{text}");
            let mut rest = text;
            for said in &said {
                let said = said.replace('\0', "\\u0000").replace('"', "\\\"");
                rest = rest.split_once(&said).expect("all of it, in its order").1;
            }
            assert!(rest.contains(r"the \u0000 last"), "{rest}");
        }
    }
}

#[tokio::test]
async fn each_vendor_is_asked_in_its_own_way() {
    let bearer = "authorization: Bearer sk-canary-1";
    let foundry = "https://x.services.ai.azure.com/api/projects/p/openai/v1/responses";
    let own = "https://x.services.ai.azure.com/api/projects/p/agents/led%20ger/endpoint/protocols/openai/responses?api-version=v1";
    let rows: Vec<(ClientBuilder, bool, &str, &str, &str)> = vec![
        (
            OpenAi::responses("gpt-5"),
            false,
            "https://api.openai.com/v1/responses",
            bearer,
            r#""model":"gpt-5""#,
        ),
        (
            OpenAi::responses("gpt-5"),
            true,
            "https://api.openai.com/v1/responses",
            bearer,
            r#""stream":true"#,
        ),
        (
            OpenAi::chat("gpt-5"),
            true,
            "https://api.openai.com/v1/chat/completions",
            bearer,
            r#""include_usage":true"#,
        ),
        (
            OpenAi::chat("q").base_url("http://127.0.0.1:1/v1/"),
            false,
            "http://127.0.0.1:1/v1/chat/completions",
            bearer,
            r#""role":"system","content":"Be brief.""#,
        ),
        (
            Anthropic::new("claude"),
            false,
            "https://api.anthropic.com/v1/messages",
            "x-api-key: sk-canary-1",
            r#""max_tokens":"#,
        ),
        (
            Gemini::new("gemini-3-pro"),
            false,
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent",
            "x-goog-api-key: sk-canary-1",
            r#""contents":"#,
        ),
        (
            Gemini::new("tunedModels/mine"),
            true,
            "https://generativelanguage.googleapis.com/v1beta/tunedModels/mine:streamGenerateContent?alt=sse",
            "x-goog-api-key: sk-canary-1",
            r#""contents":"#,
        ),
        (
            Gemini::interactions("g"),
            true,
            "https://generativelanguage.googleapis.com/v1beta/interactions",
            "x-goog-api-key: sk-canary-1",
            r#""stream":true"#,
        ),
        (
            Foundry::new(PROJECT, "gpt-5"),
            false,
            foundry,
            bearer,
            r#""model":"gpt-5""#,
        ),
        (
            Foundry::agent(PROJECT, "ledger", Some("4")),
            false,
            foundry,
            bearer,
            r#""agent_reference":{"type":"agent_reference","name":"ledger","version":"4"}"#,
        ),
        (
            Foundry::agent_endpoint(PROJECT, "led ger"),
            false,
            own,
            bearer,
            r#""input":"#,
        ),
    ];
    for (builder, is_streamed, url, signed, part) in rows {
        let found = sent(builder.api_key("sk-canary-1"), is_streamed).await;
        assert_eq!((found.0.as_str(), found.1.as_str()), (url, signed));
        assert!(found.2.contains(part), "{part} in {}", found.2);
        assert!(json::parse(&found.2).is_ok());
        // An agent has its own model, and Gemini's model is part of the address.
        let unnamed = part.contains("agent_reference") || url == own || url.contains("Content");
        assert_eq!(found.2.contains(r#""model""#), !unnamed, "{url}");
    }
}

#[tokio::test]
async fn a_model_name_cannot_lead_elsewhere() {
    for name in ["../../v1/files", "a/../b", "models/", "/x", "."] {
        let service = Service::always(Reply::json(200, "{}"));
        let client = Gemini::new(name).api_key("k").transport(service.clone());
        let client = client.build_bare().unwrap();
        let error = respond(&client).await.unwrap_err();
        assert_eq!(
            (error.kind(), service.count()),
            (ErrorKind::Setup, 0),
            "{name}"
        );
    }
    let (url, ..) = sent(Gemini::new("a?b#c d").api_key("k"), false).await;
    assert!(
        url.ends_with("/models/a%3Fb%23c%20d:generateContent"),
        "{url}"
    );
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let service = Service::always(Reply::default());
    let cases: Vec<(ClientBuilder, &str)> = vec![
        (OpenAi::responses("m"), "OPENAI_API_KEY"),
        (Anthropic::new("m"), "ANTHROPIC_API_KEY"),
        (Gemini::new("m"), "GEMINI_API_KEY or GOOGLE_API_KEY"),
        (Foundry::new(PROJECT, "m"), "token_provider"),
        (Gemini::new(" ").api_key("k"), "no model"),
        (Gemini::new("m").api_key(""), "empty"),
        (Gemini::new("m").api_key("a\nb"), "white space"),
        (
            Gemini::new("m").api_key("k").base_url("ftp://x"),
            "https://",
        ),
        (
            Gemini::new("m").api_key("k").base_url("https://u:p@x"),
            "password",
        ),
        (
            Gemini::new("m")
                .api_key("k")
                .transport(service)
                .proxy(ProxyChoice::Url(Secret::new("http://p"))),
            "transport",
        ),
    ];
    for (builder, part) in cases {
        let error = builder.build().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Setup);
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
    // A custom server needs no key.
    assert!(
        OpenAi::chat("m")
            .base_url("http://127.0.0.1:1/v1")
            .build()
            .is_ok()
    );
}

#[tokio::test]
async fn other_servers_get_the_older_name_of_the_limit() {
    let chat = || OpenAi::chat("m").api_key("k");
    let client = chat().build_bare().unwrap();
    assert_eq!(client.token_limit, TokenLimit::MaxCompletionTokens);
    let client = chat().base_url("http://127.0.0.1:1").build_bare().unwrap();
    assert_eq!(client.token_limit, TokenLimit::MaxTokens);
    let own = chat().base_url("http://127.0.0.1:1");
    let own = own.token_limit(TokenLimit::MaxCompletionTokens);
    assert_eq!(
        own.build_bare().unwrap().token_limit,
        TokenLimit::MaxCompletionTokens
    );
}

#[tokio::test(start_paused = true)]
async fn a_built_client_retries_and_breaks() {
    let service = Service::new(|count| match count {
        1 => Reply::json(
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ),
        _ => Reply::json(
            200,
            r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#,
        ),
    });
    let client = Anthropic::new("m").api_key("k").transport(service.clone());
    let client: Arc<dyn ChatClient> = client.build().unwrap();
    assert_eq!(respond(&client).await.unwrap().messages[0].text(), "hello");
    assert_eq!(service.count(), 2);
}
