use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use super::support::{PROJECT, Reply, Service, all, both, respond, streamed};
use crate::client::http::{ProxyChoice, Token, TokenError, TokenProvider};
use crate::client::vendor::{Foundry, OpenAi};
use crate::client::{ClientError, ErrorKind, Secret};

const CANARY: &str = "sk-canary-1";

/// Everything that an error prints, its sources included.
fn shown(error: &ClientError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(" {source} {source:?}"));
        next = source.source();
    }
    text
}

#[tokio::test]
async fn a_key_is_never_seen_again() {
    let echo = format!(
        r#"{{"error":{{"message":"bad key {CANARY}","type":"{CANARY}","code":"{CANARY}","param":"{CANARY}","status":"{CANARY}"}},"x":"{CANARY}"}}"#
    );
    let page = format!("<html>{CANARY}</html>");
    let frames = format!("event: error\ndata: {echo}\n\n");
    let replies = [
        Reply::json(401, &echo),
        Reply::json(200, &echo),
        Reply::json(
            500,
            format!(r#"{{"type":"error","error":{{"type":"x","message":"{CANARY}"}}}}"#),
        ),
        Reply::new(502, "text/html", &page),
        Reply::new(200, "text/html", &page),
        Reply::new(302, "text/html", "").with("location", &format!("https://x/?key={CANARY}")),
        Reply::events(&frames),
        Reply::json(200, "{"),
        Reply::json(200, "{}").breaking(),
    ];
    for place in 0..all().len() {
        let one = || all().remove(place);
        assert!(!format!("{:?} {:#?}", one(), one()).contains(CANARY));
        let client = one().build_bare().unwrap();
        assert!(!format!("{client:?} {client:#?}").contains(CANARY));
        for reply in &replies {
            for outcome in both(one, reply).await {
                let text = shown(&outcome.unwrap_err());
                assert!(!text.contains(CANARY), "{text}");
            }
        }
        // It is sent nevertheless, and only in its header.
        let service = Service::always(Reply::json(401, "{}"));
        let client = one().transport(service.clone()).build_bare().unwrap();
        let _ = respond(&client).await;
        let (url, signed, body) = service.seen().remove(0);
        assert!(signed.contains(CANARY));
        assert!(!url.contains(CANARY) && !body.contains(CANARY));
        let request = format!("{:?}", service.asked.lock().unwrap()[0]);
        assert!(!request.contains(CANARY), "{request}");
    }
}

#[tokio::test]
async fn addresses_with_secrets_are_not_repeated() {
    let url = format!("http://127.0.0.1:1/v1?key={CANARY}");
    let client = OpenAi::chat("m").base_url(url);
    let client = client.proxy(ProxyChoice::Direct).build_bare().unwrap();
    assert!(!format!("{client:?}").contains(CANARY));
    let error = respond(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(!shown(&error).contains(CANARY), "{error:?}");

    let proxy = ProxyChoice::Url(Secret::new(format!("http://u:{CANARY}@127.0.0.1:1")));
    let client = OpenAi::chat("m")
        .base_url("http://127.0.0.1:2")
        .proxy(proxy);
    assert!(!format!("{client:?}").contains(CANARY));
    let error = respond(&client.build_bare().unwrap()).await.unwrap_err();
    assert!(!shown(&error).contains(CANARY), "{error:?}");

    let proxy = ProxyChoice::Url(Secret::new(format!("http://[{CANARY}")));
    let error = OpenAi::chat("m")
        .base_url("http://127.0.0.1:2")
        .proxy(proxy);
    let error = error.build().err().unwrap();
    assert!(!shown(&error).contains(CANARY), "{error:?}");
}

/// Provides the tokens `t-1`, `t-2`, …
#[derive(Default)]
struct Counted(AtomicU32);

#[async_trait]
impl TokenProvider for Counted {
    async fn token(&self) -> Result<Token, TokenError> {
        let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(Token {
            secret: Secret::new(format!("t-{count}")),
            valid_for: None,
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_once() {
    let ok = r#"{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[]}]}]}"#;
    let service = Service::new(move |count| match count {
        1 => Reply::json(401, "{}"),
        _ => Reply::json(200, ok),
    });
    let tokens = Arc::new(Counted::default());
    let client = Foundry::new(PROJECT, "m").token_provider(tokens.clone());
    let client = client.transport(service.clone()).build_bare().unwrap();
    for _ in 0..3 {
        assert_eq!(streamed(&client).await.unwrap().messages[0].text(), "hello");
    }
    let signed: Vec<String> = service.seen().into_iter().map(|seen| seen.1).collect();
    let bearer = |token: &str| format!("authorization: Bearer {token}");
    assert_eq!(signed, ["t-1", "t-2", "t-2", "t-2"].map(bearer));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_refuses_every_token_is_not_asked_twice_each_time() {
    let service = Service::always(Reply::json(401, "{}"));
    let client = Foundry::new(PROJECT, "m").token_provider(Arc::new(Counted::default()));
    let client = client.transport(service.clone()).build_bare().unwrap();
    for _ in 0..20 {
        assert_eq!(respond(&client).await.unwrap_err().kind(), ErrorKind::Auth);
    }
    assert_eq!(service.count(), 21);
}
