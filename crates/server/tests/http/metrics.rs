//! What `/metrics` shows, read as OpenMetrics text.

use std::collections::BTreeMap;

use crate::http::support::{Client, end, start};

/// The kind of each metric by the name that its samples have, without `_bucket`, `_sum` and `_count`.
/// Whatever is not OpenMetrics text is a panic.
fn kinds(text: &str) -> BTreeMap<String, String> {
    let text = text.strip_suffix("# EOF\n").unwrap();
    let (mut helped, mut kinds) = (String::new(), BTreeMap::new());
    let (mut family, mut kind) = ("", "");
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(help.ends_with('.') && !help.ends_with(".."), "{line}");
            helped = name.to_owned();
        } else if let Some(line) = line.strip_prefix("# TYPE ") {
            (family, kind) = line.split_once(' ').unwrap();
            assert_eq!(family, helped);
        } else {
            let name = &line[..line.find(['{', ' ']).unwrap()];
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
            let suffix = name.strip_prefix(family).unwrap();
            let shown = match (kind, suffix) {
                ("counter", "_total") | ("gauge", "") => name,
                ("histogram", "_bucket" | "_sum" | "_count") => family,
                _ => panic!("{line} is no sample of the {kind} {family}"),
            };
            kinds.insert(shown.to_owned(), kind.to_owned());
        }
    }
    kinds
}

#[tokio::test]
async fn every_metric_keeps_its_name_and_kind() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let body = br#"{"model": "demo", "input": "hi", "service_tier": "flex"}"#;
    let headers = [("content-type", "application/json")];
    let answer = client.send("POST /v1/responses", &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let metrics = client.send("GET /metrics", &[], b"").await.body;
    let expected = [
        ("gen_ai_client_operation_duration_seconds", "histogram"),
        (
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "histogram",
        ),
        ("gen_ai_client_token_usage", "histogram"),
        ("gen_ai_invoke_agent_duration_seconds", "histogram"),
        ("http_server_active_requests", "gauge"),
        ("http_server_request_duration_seconds", "histogram"),
        ("throughline_history_bytes", "gauge"),
        ("throughline_history_limit_bytes", "gauge"),
        ("throughline_http_connections", "gauge"),
        ("throughline_http_connections_refused_total", "counter"),
        ("throughline_http_streams", "gauge"),
        ("throughline_ignored_members_total", "counter"),
        ("throughline_memory_held_bytes", "gauge"),
        ("throughline_memory_limit_bytes", "gauge"),
        ("throughline_model_attempts_total", "counter"),
        ("throughline_runs_total", "counter"),
        ("throughline_sweep_errors_total", "counter"),
        ("throughline_swept_items_total", "counter"),
        ("throughline_swept_threads_total", "counter"),
    ];
    let expected = expected.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
    assert_eq!(kinds(&metrics), BTreeMap::from(expected), "{metrics}");
    end(server).await;
}
