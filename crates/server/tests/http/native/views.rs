//! What models are shown: views, compaction on request, and pins.

use serde_json::{Value, json};
use throughline::{Agent, Demo, Threads, tool};
use throughline_store::{RunId, ThreadId};

use super::{Native, empty};

/// A thread with some calls whose results are long.
async fn with_calls(native: &Native) -> ThreadId {
    let tide = tool("tide", "When it is high.", || async {
        "At Sines it is high at four.\n".repeat(60)
    });
    let agent = Agent::builder(Demo::new())
        .threads(&Threads::of(&native.store))
        .tool(tide)
        .build()
        .unwrap();
    let thread = agent.new_thread();
    for _ in 0..9 {
        agent.run_on(&thread, "use tide").await.unwrap();
    }
    thread.id().clone()
}

#[tokio::test]
async fn a_view_is_what_the_vendor_would_be_sent() {
    let file = "[[upstream]]\nname = \"demo\"\nkind = \"demo\"\n\
                [[upstream]]\nname = \"a\"\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9\"\n";
    let native = Native::with(file).await;
    let id = with_calls(&native).await;
    let line = format!("GET /api/v1/threads/{id}/view");
    let own = native.call(&line, 200).await;
    assert_eq!(
        (&own["format"], &own["model"]),
        (&json!("neutral"), &Value::Null)
    );
    assert_eq!(own["messages"].as_array().unwrap().len(), 36);
    assert_eq!(own["report"]["epoch"], 0);
    let sent = native.call(&format!("{line}?model=a/claude-x"), 200).await;
    assert_eq!(
        (&sent["format"], &sent["model"]),
        (&json!("anthropic"), &json!("claude-x"))
    );
    assert!(sent["request"]["messages"].as_array().unwrap().len() > 20);
    let small = native.call(&format!("{line}?budget=2500"), 200).await;
    assert_eq!(small["report"]["epoch"], 1);
    assert!(small["messages"].as_array().unwrap().len() < 36);
    let full = native
        .call(&format!("{line}?budget=2500&full=true"), 200)
        .await;
    assert_eq!(
        (&full["messages"], &full["report"]),
        (&own["messages"], &Value::Null)
    );
    let missing = format!("{line}?model=agent/nobody");
    assert_eq!(
        native.refused(&missing, &Value::Null, 404).await.0,
        "model_not_found"
    );
    native.end().await;
}

#[tokio::test]
async fn a_thread_is_compacted_now_and_shown_whole_again() {
    let native = Native::start().await;
    let id = with_calls(&native).await;
    let view = format!("GET /api/v1/threads/{id}/view");
    let before = native.call(&view, 200).await;
    let line = format!("POST /api/v1/threads/{id}/compact");
    let body = json!({"recent_calls": 2});
    let compacted = native.call_with(&line, &body, 200).await;
    assert_eq!(compacted["report"]["trigger"], "asked");
    assert_eq!(compacted["report"]["epoch"], 1);
    let after = native.call(&view, 200).await;
    let count = |view: &Value| view["messages"].as_array().unwrap().len();
    assert!(count(&after) < count(&before), "{after}");
    // The record is as it was.
    let full = native.call(&format!("{view}?full=true"), 200).await;
    assert_eq!(full["messages"], before["messages"]);

    // A chain gets it by going on from the run that holds it.
    let previous = compacted["previous_response_id"].as_str().unwrap();
    let run: RunId = previous.parse().unwrap();
    let shown = native
        .call(&format!("GET /api/v1/threads/{id}?limit=0"), 200)
        .await;
    assert!(
        shown["tip"]["node"]
            .as_str()
            .unwrap()
            .contains(&run.to_hex())
    );

    let line = format!("POST /api/v1/threads/{id}/uncompact");
    let undone = native.call_with(&line, &empty(), 200).await;
    assert_eq!(undone, json!({"thread": id.as_str(), "uncompacted": true}));
    let again = native.call_with(&line, &empty(), 200).await;
    assert_eq!(again["uncompacted"], false);
    let whole = native.call(&view, 200).await;
    assert_eq!(whole["messages"], before["messages"]);
    native.end().await;
}

#[tokio::test]
async fn a_pinned_message_stays_whole() {
    let native = Native::start().await;
    let id = with_calls(&native).await;
    let pin = |method: &str, number: u64| format!("{method} /api/v1/threads/{id}/pins/{number}");
    let changed = |value: bool| json!({"thread": id.as_str(), "changed": value});
    assert_eq!(native.call(&pin("PUT", 3), 200).await, changed(true));
    assert_eq!(native.call(&pin("PUT", 3), 200).await, changed(false));
    native.call(&pin("PUT", 99), 404).await;
    let small = format!("GET /api/v1/threads/{id}/view?budget=2500");
    let pinned = native.call(&small, 200).await;
    assert_eq!(native.call(&pin("DELETE", 3), 200).await, changed(true));
    assert_eq!(native.call(&pin("DELETE", 3), 200).await, changed(false));
    let unpinned = native.call(&small, 200).await;
    let results = |view: &Value| {
        let messages = view["messages"].as_array().unwrap().iter();
        messages.filter(|one| one["role"] == "tool").count()
    };
    assert!(results(&pinned) > results(&unpinned), "{pinned}");
    let wrong = format!("PUT /api/v1/threads/{id}/pins/one");
    assert_eq!(native.refused(&wrong, &Value::Null, 400).await.1, "number");
    native.end().await;
}

#[tokio::test]
async fn a_thread_whose_run_waits_is_not_compacted() {
    let native = Native::start().await;
    let (id, _) = native.talk(&["hello", "use open_sluice"]).await;
    let line = format!("POST /api/v1/threads/{id}/compact");
    assert_eq!(
        native.refused(&line, &empty(), 409).await.0,
        "thread_unsettled"
    );
    let empty_thread = native
        .call_with("POST /api/v1/threads", &empty(), 201)
        .await;
    let id = empty_thread["id"].as_str().unwrap();
    let line = format!("POST /api/v1/threads/{id}/compact");
    let nothing = native.call_with(&line, &empty(), 200).await;
    assert_eq!(nothing["previous_response_id"], Value::Null);
    native.end().await;
}
