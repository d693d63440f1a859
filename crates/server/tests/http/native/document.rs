//! The OpenAPI document: it is the committed one, and it has what the router serves.

use std::path::Path;

use serde_json::Value;
use throughline_server::api::native::openapi_document;
use throughline_testkit::openapi::OpenApi;

use super::{Native, empty};
use crate::http::support::{Client, get};

#[test]
fn the_committed_document_is_the_generated_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("docs/openapi.json");
    let generated = openapi_document();
    if std::env::var_os("THROUGHLINE_WRITE_OPENAPI").is_some() {
        std::fs::write(&file, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/openapi.json is not what the code says; \
         THROUGHLINE_WRITE_OPENAPI=1 with this test writes it"
    );
    // Its schemas use only what the checker of these tests knows.
    OpenApi::read(&generated).unwrap();
}

#[tokio::test]
async fn the_document_is_served() {
    let native = Native::start().await;
    let answer = get(native.server.address, "/api/openapi.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.body, openapi_document());
    native.end().await;
}

#[tokio::test]
async fn every_route_is_in_the_document_and_nothing_else_is_served() {
    let native = Native::start().await;
    let mut client = Client::to(native.server.address).await;
    let paths = native.document["paths"].as_object().unwrap();
    let mut ids = Vec::new();
    for (template, methods) in paths {
        let path = template
            .replace("{thread}", "nowhere")
            .replace("{run}", "run_0")
            .replace("{approval}", "appr_0")
            .replace("{number}", "1");
        for method in ["get", "put", "post", "patch", "delete"] {
            let line = format!("{} {path}", method.to_uppercase());
            let answer = client.send(&line, &[], b"").await;
            let Some(operation) = methods.get(method) else {
                let known = methods.as_object().unwrap().keys();
                let known: Vec<String> = known.map(|method| method.to_uppercase()).collect();
                assert_eq!(
                    answer.status, 405,
                    "{line}: not in the document, and served"
                );
                let allowed = answer.header("allow").unwrap();
                assert!(known.iter().all(|one| allowed.contains(one)), "{allowed}");
                continue;
            };
            assert!(
                ![404, 405, 501].contains(&answer.status)
                    || answer.body.contains("nowhere")
                    || answer.body.contains("run_0")
                    || answer.body.contains("appr_0"),
                "{line}: in the document, and not served: {}",
                answer.body
            );
            native.check(&line, &answer);
            ids.push(operation["operationId"].as_str().unwrap().to_owned());
        }
    }
    assert!(ids.len() > 25, "{ids:?}");
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "operations have names of their own");
    for line in [
        "GET /api/v1",
        "GET /api/v1/nothing",
        "POST /api/v1/threads/t/nothing",
    ] {
        let answer = client.send(line, &[], b"").await;
        assert_eq!(answer.status, 404, "{line}: {}", answer.body);
    }
    native.end().await;
}

#[tokio::test]
async fn parameters_and_members_that_are_not_known_are_refused_by_name() {
    let native = Native::start().await;
    let (thread, _) = native.talk(&["hello"]).await;
    for (line, body, code, param) in [
        (
            "GET /api/v1/threads?colour=red",
            "",
            "unknown_parameter",
            "colour",
        ),
        ("GET /api/v1/threads?limit=0", "", "invalid_value", "limit"),
        (
            "GET /api/v1/threads?limit=1001",
            "",
            "invalid_value",
            "limit",
        ),
        ("GET /api/v1/threads?limit=+5", "", "invalid_value", "limit"),
        (
            "GET /api/v1/threads?limit=1&limit=2",
            "",
            "invalid_value",
            "limit",
        ),
        ("GET /api/v1/threads?after=zz", "", "invalid_value", "after"),
        (
            "GET /api/v1/threads?meta=colour",
            "",
            "invalid_value",
            "meta",
        ),
        (
            "GET /api/v1/runs?state=asleep",
            "",
            "invalid_value",
            "state",
        ),
        ("GET /api/v1/approvals?all=yes", "", "invalid_value", "all"),
        (
            "POST /api/v1/threads",
            r#"{"titel":"a"}"#,
            "unknown_parameter",
            "titel",
        ),
        (
            "POST /api/v1/threads",
            r#"{"title":7}"#,
            "invalid_type",
            "title",
        ),
        (
            "POST /api/v1/threads",
            r#"{"meta":[]}"#,
            "invalid_type",
            "meta",
        ),
        (
            "POST /api/v1/threads",
            r#"{"id":"a/b"}"#,
            "invalid_value",
            "id",
        ),
        (
            "POST /api/v1/threads",
            r#"{"keep":-1}"#,
            "integer_out_of_range",
            "keep",
        ),
        (
            "POST /api/v1/threads",
            r#"{"aliases":[{"kind":"a"}]}"#,
            "missing_required_parameter",
            "aliases[0].name",
        ),
        (
            "POST /api/v1/threads",
            r#"{"aliases":[{"kind":"a","name":"b","nam":"c"}]}"#,
            "unknown_parameter",
            "aliases[0].nam",
        ),
        (
            "POST /api/v1/threads",
            r#"{"title":"a","title":"b"}"#,
            "invalid_value",
            "",
        ),
        (
            "POST /api/v1/threads",
            r#"{"aliases":[{"kind":"conversation","name":"conv_1"}]}"#,
            "alias_kind_reserved",
            "aliases",
        ),
        (
            "POST /api/v1/threads/T/queue",
            "{}",
            "missing_required_parameter",
            "text",
        ),
        (
            "POST /api/v1/threads/T/queue",
            r#"{"text":""}"#,
            "string_below_min_length",
            "text",
        ),
        ("PATCH /api/v1/threads/T", "", "", ""),
        ("PATCH /api/v1/threads/T", "[]", "", ""),
    ] {
        let answer = native
            .send(&line.replace("/T", &format!("/{thread}")), &[], body)
            .await;
        assert_eq!(answer.status, 400, "{line} {body}: {}", answer.body);
        let found = (answer.code(), answer.error("param").unwrap_or_default());
        assert_eq!(found, (code.to_owned(), param.to_owned()), "{line} {body}");
    }
    let known: Value = native
        .call_with("POST /api/v1/threads", &empty(), 201)
        .await;
    assert!(known["id"].as_str().unwrap().starts_with("thr_"));
    native.end().await;
}
