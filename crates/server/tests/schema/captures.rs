//! The bodies that released clients send, read and kept.

use serde_json::Value;
use throughline_server::api::openai::responses::wire::CreateRequest;

use crate::schema::support::fixture;

/// The paths whose bodies are those of a create.
const CREATES: [&str; 3] = [
    "/responses",
    "/responses/input_tokens",
    "/responses/compact",
];

/// Read a body; what is kept of it reads the same again.
fn read(path: &str, body: &Value) {
    let read = CreateRequest::parse(body.to_string().as_bytes());
    let request = read.unwrap_or_else(|error| panic!("{path}: {error:?}\n{body}"));
    let kept = request.stored_body();
    let again = CreateRequest::from_stored(&kept).unwrap();
    assert_eq!(again.stored_body(), kept);
    assert!(again.input().is_empty());
}

#[test]
fn every_captured_body_of_a_create_is_read() {
    let text = fixture("client-wire-captures.jsonl");
    let mut count = 0;
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let path = row["path"].as_str().unwrap_or("/responses");
        if CREATES.contains(&path) && !row["body"].is_null() {
            read(path, &row["body"]);
            count += 1;
        }
    }
    assert_eq!(count, 50);
}

#[test]
fn every_request_of_the_compliance_suite_is_read() {
    let rows: Value =
        serde_json::from_str(&fixture("openresponses-compliance-requests.json")).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 17);
    for row in rows {
        read(row["endpoint"].as_str().unwrap(), &row["first_request"]);
    }
}
