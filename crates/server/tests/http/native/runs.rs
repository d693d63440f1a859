//! Runs: listed, shown, followed, and settled.

use serde_json::{Value, json};
use throughline_store::{Authority, Tenant};

use super::{Native, empty};
use crate::http::support::Client;

#[tokio::test]
async fn runs_are_listed_and_shown_with_their_journals() {
    let native = Native::start().await;
    let (id, run) = native.talk(&["hello", "use open_sluice"]).await;
    let all = native.call("GET /api/v1/runs", 200).await;
    assert_eq!(all["runs"].as_array().unwrap().len(), 2);
    let parked = native
        .call(&format!("GET /api/v1/runs?thread={id}&state=parked"), 200)
        .await;
    assert_eq!(parked["runs"].as_array().unwrap().len(), 1);
    assert_eq!(parked["runs"][0]["id"], run.to_string());
    let either = native
        .call("GET /api/v1/runs?state=parked&state=committed", 200)
        .await;
    assert_eq!(either["runs"], all["runs"]);
    let page = native.call("GET /api/v1/runs?limit=1", 200).await;
    let next = page["next"].as_str().unwrap();
    let rest = native
        .call(&format!("GET /api/v1/runs?after={next}"), 200)
        .await;
    assert_eq!(rest["runs"][0], all["runs"][1]);

    let one = native.call(&format!("GET /api/v1/runs/{run}"), 200).await;
    assert_eq!(one, parked["runs"][0]);
    let journal = native
        .call(&format!("GET /api/v1/runs/{run}/journal"), 200)
        .await;
    assert_eq!(journal["run"], one);
    assert_eq!(journal["calls"][0]["tool"], "open_sluice");
    assert_eq!(journal["calls"][0]["state"], "approval");
    native.end().await;
}

#[tokio::test]
async fn runs_of_another_tenant_are_not_there() {
    let native = Native::start().await;
    let other = Authority::assume().scope(Tenant::new("other").unwrap());
    let threads = throughline::Threads::scoped(&native.store, other);
    let agent = throughline::Agent::builder(throughline::Demo::new())
        .threads(&threads)
        .build()
        .unwrap();
    let foreign = agent
        .run_on(&agent.new_thread(), "hello")
        .await
        .unwrap()
        .run;
    let missing = native.store.ids().run();
    for request in [
        "GET /api/v1/runs/ID",
        "GET /api/v1/runs/ID/journal",
        "GET /api/v1/runs/ID/events",
        "GET /api/v1/runs/ID/events?stream=true",
        "POST /api/v1/runs/ID/resume",
        "POST /api/v1/runs/ID/publish",
        "POST /api/v1/runs/ID/discard",
        "POST /api/v1/runs/ID/cancel",
    ] {
        let mut found = Vec::new();
        for id in [foreign.to_string(), missing.to_string()] {
            let answer = native.call(&request.replace("ID", &id), 404).await;
            found.push(answer.to_string().replace(&id, "ID"));
        }
        assert_eq!(found[0], found[1], "{request}");
    }
    native.call("GET /api/v1/runs/rubbish", 404).await;
    native.end().await;
}

/// The ids and the names of the events in a stream.
fn events(stream: &str) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut name = String::new();
    for line in stream.lines() {
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_owned();
        }
        if let Some(id) = line.strip_prefix("id: ") {
            found.push((id.parse().unwrap(), name.clone()));
        }
    }
    found
}

#[tokio::test]
async fn events_are_a_list_or_a_stream_that_goes_on_after_the_last_one() {
    let native = Native::start().await;
    let (_, run) = native.talk(&["hello"]).await;
    let line = format!("GET /api/v1/runs/{run}/events");
    let all = native.call(&line, 200).await;
    let listed = all["events"].as_array().unwrap();
    let kinds: Vec<&str> = listed
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("started", "ended"));
    assert!(
        kinds.contains(&"text") && kinds.contains(&"message"),
        "{kinds:?}"
    );
    assert_eq!(all["more"], false);
    let page = native.call(&format!("{line}?limit=2"), 200).await;
    assert_eq!((&page["more"], &page["next"]), (&json!(true), &json!(1)));
    let rest = native.call(&format!("{line}?after=1"), 200).await;
    assert_eq!(rest["events"].as_array().unwrap()[..], listed[2..]);

    let stream = native.send(&format!("{line}?stream=true"), &[], "").await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let told = events(&stream.body);
    let numbers: Vec<u64> = told.iter().map(|(no, _)| *no).collect();
    assert_eq!(numbers, (0..listed.len() as u64).collect::<Vec<_>>());
    assert_eq!(told.last().unwrap().1, "ended");
    let seen = [("last-event-id", "1")];
    let rest = native.send(&format!("{line}?stream=true"), &seen, "").await;
    assert_eq!(events(&rest.body), told[2..]);
    let odd = [("last-event-id", "one")];
    let odd = native.send(&format!("{line}?stream=true"), &odd, "").await;
    assert_eq!(odd.error("param").as_deref(), Some("Last-Event-ID"));
    native.end().await;
}

#[tokio::test]
async fn a_run_that_waits_is_published_or_discarded() {
    let native = Native::start().await;
    let (id, run) = native.talk(&["use open_sluice"]).await;
    for (line, code) in [("resume", "run_waits")] {
        let line = format!("POST /api/v1/runs/{run}/{line}");
        assert_eq!(native.refused(&line, &empty(), 409).await.0, code);
    }
    let line = format!("POST /api/v1/runs/{run}/publish");
    let published = native.call(&line, 200).await;
    assert_eq!(
        (&published["calls_closed"], &published["moved"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(
        native.refused(&line, &Value::Null, 409).await.0,
        "run_settled"
    );
    let shown = native.call(&format!("GET /api/v1/threads/{id}"), 200).await;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 3);
    let resume = format!("POST /api/v1/runs/{run}/resume");
    assert_eq!(
        native.refused(&resume, &empty(), 409).await.0,
        "run_settled"
    );
    let cancelled = native
        .call(&format!("POST /api/v1/runs/{run}/cancel"), 200)
        .await;
    assert_eq!(
        cancelled["state"], "cancelled",
        "it is answered as it ended"
    );

    let (id, run) = native.talk(&["hello", "use open_sluice"]).await;
    let line = format!("POST /api/v1/runs/{run}/discard");
    let discarded = native.call(&line, 200).await;
    assert_eq!(discarded["thread"], id);
    assert_eq!(
        native.refused(&line, &Value::Null, 409).await.0,
        "run_settled"
    );
    let shown = native.call(&format!("GET /api/v1/threads/{id}"), 200).await;
    assert_eq!(
        (
            &shown["unsettled"],
            shown["messages"].as_array().unwrap().len()
        ),
        (&Value::Null, 2)
    );
    native.end().await;
}

#[tokio::test]
async fn the_status_says_what_there_is() {
    let file = "[[upstream]]\nname = \"demo\"\nkind = \"demo\"\n\
                [[upstream]]\nname = \"a\"\nkind = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\n\
                models = [\"gone\"]\n";
    let native = Native::with(file).await;
    native.talk(&["use open_sluice"]).await;
    let breaker = |status: &Value| -> Vec<String> {
        let upstreams = status["upstreams"].as_array().unwrap().iter();
        upstreams
            .map(|one| one["breaker"].as_str().unwrap().to_owned())
            .collect()
    };
    let status = native.call("GET /api/v1/status", 200).await;
    assert_eq!(status["status"], "ok");
    assert_eq!(
        (&status["store"]["engine"], &status["store"]["durability"]),
        (&json!("sqlite"), &json!("durable"))
    );
    assert_eq!(breaker(&status), ["closed", "closed"]);
    assert_eq!(
        status["runs"],
        json!({"here": 0, "running": 0, "parked": 1, "interrupted": 0})
    );
    // Nothing listens there, so that the breaker opens.
    let body = json!({"model": "gone", "input": "hello"}).to_string();
    for _ in 0..3 {
        let mut client = Client::to(native.server.address).await;
        client
            .send("POST /v1/responses", &[], body.as_bytes())
            .await;
    }
    let status = native.call("GET /api/v1/status", 200).await;
    assert_eq!(breaker(&status), ["closed", "open"]);
    assert!(
        status["rates"]["server_errors"].as_u64().unwrap() >= 3,
        "{status}"
    );
    assert!(
        status["rates"]["requests"].as_u64().unwrap() >= 4,
        "{status}"
    );
    assert!(status["rates"]["runs"].as_u64().unwrap() >= 3, "{status}");
    native.end().await;
}
