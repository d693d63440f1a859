//! Approvals: listed, and answered once.

use serde_json::{Value, json};

use super::Native;

#[tokio::test]
async fn an_approval_is_answered_once() {
    let native = Native::start().await;
    let (id, run) = native.talk(&["use open_sluice"]).await;
    native.talk(&["use open_sluice"]).await;
    let all = native.call("GET /api/v1/approvals", 200).await;
    assert_eq!(all["approvals"].as_array().unwrap().len(), 2);
    let own = native
        .call(&format!("GET /api/v1/approvals?thread={id}"), 200)
        .await;
    let approval = &own["approvals"][0];
    assert_eq!(
        (&approval["run"], &approval["tool"]),
        (&json!(run.to_string()), &json!("open_sluice"))
    );
    let line = format!(
        "POST /api/v1/approvals/{}/answer",
        approval["id"].as_str().unwrap()
    );

    let other = json!({"decision": "approve", "digest": "0".repeat(32)});
    assert_eq!(
        native.refused(&line, &other, 409).await.0,
        "arguments_differ"
    );
    for (body, param) in [
        (json!({"decision": "perhaps"}), "decision"),
        (json!({}), "decision"),
        (json!({"decision": "deny", "by": " "}), "by"),
        (json!({"decision": "deny", "digest": "abc"}), "digest"),
        (json!({"decision": "deny", "becaus": "a"}), "becaus"),
    ] {
        assert_eq!(native.refused(&line, &body, 400).await.1, param, "{body}");
    }
    let body = json!({"decision": "approve", "by": "ada", "reason": "High water.",
        "digest": approval["digest"]});
    let answered = native.call_with(&line, &body, 200).await;
    assert_eq!(
        (&answered["approval"]["state"], &answered["repeated"]),
        (&json!("approved"), &json!(false))
    );
    assert_eq!(answered["approval"]["answered"]["by"], "ada");
    assert_eq!(answered["approval"]["reason"], "High water.");
    let again = native.call_with(&line, &body, 200).await;
    assert_eq!(again["repeated"], true);
    let no = json!({"decision": "deny", "by": "bob"});
    assert_eq!(
        native.refused(&line, &no, 409).await.0,
        "approval_not_answerable"
    );

    let waiting = native.call("GET /api/v1/approvals", 200).await;
    assert_eq!(waiting["approvals"].as_array().unwrap().len(), 1);
    let all = native.call("GET /api/v1/approvals?all=true", 200).await;
    assert_eq!(all["approvals"].as_array().unwrap().len(), 2);
    let missing = format!("POST /api/v1/approvals/appr_{}/answer", "0".repeat(32));
    native.refused(&missing, &no, 404).await;
    assert_eq!(
        native.call("GET /api/v1/runs?state=parked", 200).await["next"],
        Value::Null
    );
    native.end().await;
}
