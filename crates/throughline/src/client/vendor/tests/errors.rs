use std::time::Duration;

use super::support::{Reply, all, both};
use crate::client::vendor::{Anthropic, ClientBuilder, Foundry, Gemini, OpenAi};
use crate::client::{ErrorKind, ErrorKind as K};

fn openai(kind: &str, code: &str, message: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":{code}}}}}"#)
}

fn anthropic(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
}

fn google(code: u16, status: &str, message: &str, details: &str) -> String {
    format!(
        r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}","details":[{details}]}}}}"#
    )
}

type Row = (fn() -> ClientBuilder, u16, String, ErrorKind);

fn rows() -> Vec<Row> {
    let responses: fn() -> ClientBuilder = || OpenAi::responses("m").api_key("k");
    let chat: fn() -> ClientBuilder = || OpenAi::chat("m").api_key("k");
    let claude: fn() -> ClientBuilder = || Anthropic::new("m").api_key("k");
    let gemini: fn() -> ClientBuilder = || Gemini::new("m").api_key("k");
    let foundry: fn() -> ClientBuilder = || Foundry::new(super::support::PROJECT, "m").api_key("k");
    let invalid = "invalid_request_error";
    vec![
        (responses, 401, openai(invalid, r#""invalid_api_key""#, "wrong"), K::Auth),
        (responses, 429, openai("insufficient_quota", r#""insufficient_quota""#, "pay"), K::Quota),
        (responses, 429, openai("tokens", r#""rate_limit_exceeded""#, "slow"), K::RateLimited),
        (responses, 400, openai(invalid, r#""context_length_exceeded""#, "long"), K::TooLong),
        (responses, 400, openai(invalid, r#""content_policy_violation""#, "no"), K::Filtered),
        (responses, 400, openai(invalid, r#""conversation_locked""#, "busy"), K::Unavailable),
        (responses, 404, openai(invalid, r#""model_not_found""#, "who"), K::NotFound),
        (responses, 400, openai(invalid, "null", "bad"), K::Invalid),
        (responses, 500, openai("server_error", "null", "oops"), K::Unavailable),
        (chat, 400, openai(invalid, "null", "This model's maximum context length is 8 tokens"), K::TooLong),
        (chat, 422, openai("x", "null", "bad"), K::Invalid),
        (chat, 503, openai("x", "null", "down"), K::Unavailable),
        (chat, 409, openai("x", "null", "conflict"), K::Unavailable),
        (chat, 408, openai("x", "null", "late"), K::Unavailable),
        (claude, 401, anthropic("authentication_error", "key"), K::Auth),
        (claude, 403, anthropic("permission_error", "no"), K::Auth),
        (claude, 404, anthropic("not_found_error", "model"), K::NotFound),
        (claude, 413, anthropic("request_too_large", "big"), K::TooLong),
        (claude, 400, anthropic(invalid, "prompt is too long: 9 tokens > 8 maximum"), K::TooLong),
        (claude, 400, anthropic(invalid, "Your credit balance is too low to access"), K::Quota),
        (claude, 400, anthropic(invalid, "messages: bad"), K::Invalid),
        (claude, 429, anthropic("rate_limit_error", "slow"), K::RateLimited),
        (claude, 500, anthropic("api_error", "oops"), K::Unavailable),
        (claude, 529, anthropic("overloaded_error", "busy"), K::Unavailable),
        (claude, 402, anthropic("billing_error", "pay"), K::Quota),
        (gemini, 400, google(400, "INVALID_ARGUMENT", "bad", ""), K::Invalid),
        (
            gemini,
            400,
            google(400, "INVALID_ARGUMENT", "Bad key", r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}"#),
            K::Auth,
        ),
        (
            gemini,
            400,
            google(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
            K::TooLong,
        ),
        (gemini, 403, google(403, "PERMISSION_DENIED", "no", ""), K::Auth),
        (gemini, 404, google(404, "NOT_FOUND", "model", ""), K::NotFound),
        (gemini, 429, google(429, "RESOURCE_EXHAUSTED", "slow", ""), K::RateLimited),
        (gemini, 503, google(503, "UNAVAILABLE", "busy", ""), K::Unavailable),
        (gemini, 504, google(504, "DEADLINE_EXCEEDED", "late", ""), K::Unavailable),
        (
            foundry,
            400,
            r#"{"error":{"message":"filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#.to_owned(),
            K::Filtered,
        ),
        (foundry, 404, r#"{"error":{"code":"DeploymentNotFound","message":"no such"}}"#.to_owned(), K::NotFound),
    ]
}

#[tokio::test]
async fn every_vendor_error_has_its_kind_and_keeps_its_body() {
    for (builder, status, body, kind) in rows() {
        let reply = Reply::json(status, &body).with("x-request-id", "req_9");
        for outcome in both(builder, &reply).await {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), kind, "{status} {body}");
            assert_eq!(error.status(), Some(status));
            assert_eq!(error.request_id(), Some("req_9"));
            let kept = error.vendor().unwrap().body.as_ref().unwrap();
            assert!(body.contains(kept.get()), "{kept:?}");
        }
    }
}

#[tokio::test]
async fn a_status_alone_is_enough() {
    let statuses = [
        (302, K::Setup),
        (400, K::Invalid),
        (401, K::Auth),
        (403, K::Auth),
        (404, K::NotFound),
        (408, K::Unavailable),
        (413, K::TooLong),
        (422, K::Invalid),
        (429, K::RateLimited),
        (500, K::Unavailable),
        (502, K::Unavailable),
        (529, K::Unavailable),
    ];
    let pages: [&[u8]; 4] = [
        b"",
        b"<html>Bad gateway</html>",
        b"\xff\xfe",
        b"{\"detail\":",
    ];
    for (place, _) in all().iter().enumerate() {
        for (status, kind) in statuses {
            for page in pages {
                let reply = Reply::new(status, "text/html", page);
                for outcome in both(|| all().remove(place), &reply).await {
                    let error = outcome.unwrap_err();
                    assert_eq!((error.kind(), error.status()), (kind, Some(status)));
                    assert!(!error.to_string().contains("html"), "{error}");
                }
            }
        }
    }
}

#[tokio::test]
async fn advice_on_when_to_try_again_is_read_from_head_and_body() {
    let chat = || OpenAi::chat("m").api_key("k");
    let slow = openai("x", "null", "slow");
    let reply = Reply::json(429, &slow).with("retry-after-ms", "1500");
    for outcome in both(chat, &reply).await {
        let error = outcome.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
    }
    let reply = Reply::json(503, &slow).with("x-should-retry", "false");
    for outcome in both(chat, &reply).await {
        assert!(!outcome.unwrap_err().may_retry());
    }
    let detail = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}"#;
    let reply = Reply::json(429, google(429, "RESOURCE_EXHAUSTED", "slow", detail));
    for outcome in both(|| Gemini::new("m").api_key("k"), &reply).await {
        let error = outcome.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_millis(34_400)));
    }
}
