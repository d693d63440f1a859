//! What is there, what is not built, and what is nowhere.

use throughline_testkit::Scratch;

use crate::http::support::{Client, end, get, start};

#[tokio::test]
async fn health_says_what_the_store_promises() {
    let server = start("").await;
    let health = get(server.address, "/healthz").await;
    assert_eq!(health.status, 200);
    assert_eq!(
        health.body,
        format!(
            "{{\"status\":\"ok\",\"version\":{:?},\"engine\":\"memory\",\"durability\":\"relaxed\"}}",
            env!("CARGO_PKG_VERSION")
        )
    );
    assert_eq!(health.header("x-throughline-durability"), Some("relaxed"));
    assert_eq!(health.header("cache-control"), None);
    assert_eq!(get(server.address, "/readyz").await.status, 200);
    end(server).await;
}

#[tokio::test]
async fn a_durable_store_says_so() {
    let folder = Scratch::new("durable");
    let store = format!("sqlite://{}", folder.path().join("t.db").display());
    let config = crate::http::support::config("", &[("THROUGHLINE_STORE", &store)]);
    let server = throughline_server::serve(config).await.unwrap();
    let health = get(server.address, "/healthz").await;
    assert!(
        health.body.contains("\"engine\":\"sqlite\""),
        "{}",
        health.body
    );
    assert!(
        health.body.contains("\"durability\":\"durable\""),
        "{}",
        health.body
    );
    assert_eq!(health.header("x-throughline-durability"), None);
    end(server).await;
}

#[tokio::test]
async fn models_are_listed_and_found() {
    let file = "[[agent]]\nid = \"a\"\nmodel = \"demo\"\n\
                [[upstream]]\nname = \"x\"\nkind = \"openai-chat\"\n\
                base_url = \"http://127.0.0.1:9\"\nmodels = [\"one\", \"two-*\"]\n\
                [[upstream]]\nname = \"y\"\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9\"\n";
    let server = start(file).await;
    let list = get(server.address, "/v1/models").await;
    // Nothing listens there, so that what is configured is listed.
    assert_eq!(list.header("x-throughline-unlisted"), Some("x, y"));
    let list: serde_json::Value = serde_json::from_str(&list.body).unwrap();
    let ids: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(list["object"], "list");
    assert_eq!(ids, ["agent/a", "one", "demo", "two-*"]);
    for (id, owner) in [
        ("demo", "demo"),
        ("agent/a", "agent"),
        ("x/any", "x"),
        ("two-3", "x"),
        ("x%2Fany", "x"),
    ] {
        let one = get(server.address, &format!("/v1/models/{id}")).await;
        assert_eq!(one.status, 200, "{id}: {}", one.body);
        let one: serde_json::Value = serde_json::from_str(&one.body).unwrap();
        assert_eq!(one["object"], "model");
        assert_eq!(one["owned_by"], owner);
        assert_eq!(one["id"], id.replace("%2F", "/"));
        assert!(one["created"].is_u64());
    }
    let missing = get(server.address, "/v1/models/demq").await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "model_not_found")
    );
    assert!(missing.body.contains("did you mean"), "{}", missing.body);
    let strange = get(server.address, "/v1/models/%FF").await;
    assert_eq!((strange.status, strange.code()), (404, String::new()));
    end(server).await;
}

#[tokio::test]
async fn what_is_not_built_answers_501_with_its_name() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    for (line, feature) in [
        ("POST /a2a/support", "A2A"),
        ("GET /a2a/support/.well-known/agent-card.json", "A2A"),
        ("GET /.well-known/agent-card.json", "A2A"),
        ("GET /console", "the console"),
        ("GET /console/index.html", "the console"),
    ] {
        let answer = client.send(line, &[], b"").await;
        assert_eq!(answer.status, 501, "{line}");
        assert_eq!(answer.code(), "not_implemented", "{line}");
        assert_eq!(answer.error("param").as_deref(), Some(feature), "{line}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    end(server).await;
}

#[tokio::test]
async fn unknown_routes_and_methods_answer_in_the_usual_shape() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let answer = client.send("GET /v2/things?key=secret", &[], b"").await;
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.error("type").as_deref(),
        Some("invalid_request_error")
    );
    assert!(!answer.body.contains("secret"), "{}", answer.body);
    let answer = client.send("POST /v1/models", &[], b"").await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (405, "method_not_allowed")
    );
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    let answer = client.send("PUT /v1/responses", &[], b"").await;
    assert_eq!(answer.status, 405);
    let answer = client.send("GET /v1/responses", &[], b"").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    // What the framework refuses by itself.
    let answer = client.send("GET /named/%FF", &[], b"").await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.error("message").as_deref(), Some("Bad Request."));
    end(server).await;
}

#[tokio::test]
async fn every_answer_has_the_common_headers() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let mut ids = Vec::new();
    for line in [
        "GET /v1/models",
        "GET /nowhere",
        "POST /v1/conversations",
        "GET /metrics",
    ] {
        let answer = client.send(line, &[], b"").await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{line}");
        assert_eq!(answer.header("vary"), Some("authorization"), "{line}");
        assert_eq!(answer.header("x-throughline-durability"), Some("relaxed"));
        let millis = answer.header("openai-processing-ms").unwrap();
        assert!(millis.parse::<u64>().is_ok(), "{millis}");
        ids.push(answer.header("x-request-id").unwrap().to_owned());
    }
    assert!(ids.iter().all(|id| id.starts_with("req_")), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    end(server).await;
}

#[tokio::test]
async fn requests_of_web_pages_from_elsewhere_are_refused() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    for headers in [
        [("host", "evil.example"), ("accept", "*/*")],
        [("host", "127.0.0.1"), ("origin", "https://evil.example")],
        [("host", "127.0.0.1"), ("origin", "null")],
    ] {
        let answer = client.send("GET /v1/models", &headers, b"").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "origin_not_allowed")
        );
    }
    let own = [("host", "localhost:1"), ("origin", "http://localhost:1")];
    assert_eq!(client.send("GET /v1/models", &own, b"").await.status, 200);
    end(server).await;
}

#[tokio::test]
async fn metrics_count_routes_and_nothing_that_clients_write() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    client.send("GET /v1/models/demo", &[], b"").await;
    client.send("GET /v1/models/x-canary", &[], b"").await;
    client.send("GET /canary", &[], b"").await;
    client.send("CANARY /v1/models", &[], b"").await;
    let metrics = client.send("GET /metrics", &[], b"").await;
    assert_eq!(
        metrics.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let of = |labels: &str| {
        let line = format!("http_server_request_duration_seconds_count{{{labels}}} ");
        let found = metrics
            .body
            .lines()
            .find_map(|found| found.strip_prefix(&line));
        found.map(|count| count.parse::<u64>().unwrap())
    };
    let labels = |method: &str, route: &str, status: u16| {
        format!(
            "http_request_method=\"{method}\",http_route=\"{route}\",\
             http_response_status_code=\"{status}\""
        )
    };
    assert_eq!(of(&labels("GET", "/v1/models/{*id}", 200)), Some(1));
    assert_eq!(of(&labels("GET", "/v1/models/{*id}", 404)), Some(1));
    assert_eq!(of(&labels("GET", "unmatched", 404)), Some(1));
    assert_eq!(of(&labels("other", "/v1/models", 405)), Some(1));
    assert!(!metrics.body.to_lowercase().contains("canary"));
    assert!(metrics.body.contains("\nthroughline_http_connections 1\n"));
    assert!(metrics.body.contains("\nhttp_server_active_requests 1\n"));
    end(server).await;
}
