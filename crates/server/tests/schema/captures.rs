//! What released clients send.

use std::collections::BTreeMap;

use serde_json::Value;
use throughline_server::api::openai::responses::wire::CreateRequest;

use crate::schema::support::fixture;

/// What becomes of one request: answered, or the feature that is not built.
fn outcome(path: &str, body: &Value) -> Result<(), String> {
    let create = [
        "/responses",
        "/responses/input_tokens",
        "/responses/compact",
    ];
    let create = create.iter().any(|end| path.ends_with(end));
    if !create {
        return Err(endpoint(path).to_owned());
    }
    match CreateRequest::parse(body.to_string().as_bytes()) {
        Ok(request) => {
            let kept = request.stored_body();
            let again = CreateRequest::from_stored(&kept).unwrap();
            assert_eq!(again.stored_body(), kept);
            assert!(again.input().is_empty());
            Ok(())
        }
        Err(error) if error.status == 501 => Err(error.param.unwrap_or_default()),
        Err(error) => panic!("{path}: {error:?}\n{body}"),
    }
}

/// Which feature a path belongs to, where it has no create body.
fn endpoint(path: &str) -> &'static str {
    match path {
        path if path.contains("/conversations") => "/v1/conversations",
        path if path.ends_with("/cancel") => "/v1/responses/{id}/cancel",
        _ => "answered without a body",
    }
}

fn print(what: &str, counts: &BTreeMap<String, usize>) {
    let all: usize = counts.values().sum();
    println!("{what}: {all} requests, {counts:?}");
}

#[test]
fn every_captured_request_is_read() {
    let text = fixture("client-wire-captures.jsonl");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let path = row["path"].as_str().unwrap_or("/responses");
        let socket = row["transport"] == "websocket";
        let without = row["body"].is_null() && endpoint(path).starts_with("answered");
        let what = match (without, socket) {
            (true, true) => Ok(()),
            (true, false) => Err("answered without a body".to_owned()),
            (false, _) => outcome(path, &row["body"]),
        };
        let what = match what {
            Ok(()) => "answered".to_owned(),
            Err(feature) if feature == "answered without a body" => feature,
            Err(feature) => format!("501 {feature}"),
        };
        *counts.entry(what).or_default() += 1;
    }
    print("captured", &counts);
    assert_eq!(counts.values().sum::<usize>(), 91);
    assert!(counts["answered"] >= 30, "{counts:?}");
}

#[test]
fn every_request_of_the_compliance_suite_is_read() {
    let rows: Value =
        serde_json::from_str(&fixture("openresponses-compliance-requests.json")).unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows.as_array().unwrap() {
        let endpoint = row["endpoint"].as_str().unwrap();
        let what = match outcome(endpoint, &row["first_request"]) {
            Ok(()) => "answered".to_owned(),
            Err(feature) => format!("501 {feature}"),
        };
        *counts.entry(what).or_default() += 1;
    }
    print("compliance", &counts);
    assert_eq!(counts["answered"], 17);
}
