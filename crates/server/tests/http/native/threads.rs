//! Threads: made, listed, changed, forked, exported, imported, read by cursor, and deleted.

use serde_json::{Value, json};
use throughline_store::{Authority, NewThread, Tenant, ThreadId};

use super::Native;

fn ids(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_thread_is_made_once_changed_and_listed_by_what_it_has() {
    let native = Native::start().await;
    let body = json!({"id": "ticket-1", "title": "Tides", "meta": {"case": "4711"},
        "aliases": [{"kind": "ticket", "name": "4711"}], "keep": 1_000_000});
    let made = native.call_with("POST /api/v1/threads", &body, 201).await;
    assert_eq!(made["title"], "Tides");
    assert_eq!(made["version"], 0);
    let again = native.call_with("POST /api/v1/threads", &body, 200).await;
    assert_eq!(again, made, "the request may be sent again");
    let other = json!({"id": "ticket-1", "title": "Ebb"});
    let refused = native.refused("POST /api/v1/threads", &other, 409).await;
    assert_eq!(refused, ("thread_exists".into(), "id".into()));
    let stolen = json!({"aliases": [{"kind": "ticket", "name": "4711"}]});
    native.refused("POST /api/v1/threads", &stolen, 409).await;
    native
        .call_with("POST /api/v1/threads", &json!({"id": "ticket-2"}), 201)
        .await;

    let listed = native.call("GET /api/v1/threads", 200).await;
    assert_eq!(ids(&listed["threads"]).len(), 2);
    assert_eq!(listed["next"], Value::Null);
    let first = native.call("GET /api/v1/threads?limit=1", 200).await;
    let next = first["next"].as_str().unwrap();
    let second = native
        .call(&format!("GET /api/v1/threads?limit=1&after={next}"), 200)
        .await;
    assert_ne!(ids(&first["threads"]), ids(&second["threads"]));
    for (query, expected) in [
        ("meta=case%3D4711", vec!["ticket-1"]),
        ("meta=case=4712", vec![]),
        ("alias_kind=ticket", vec!["ticket-1"]),
        ("touched_before=1", vec![]),
    ] {
        let found = native
            .call(&format!("GET /api/v1/threads?{query}"), 200)
            .await;
        assert_eq!(ids(&found["threads"]), expected, "{query}");
    }

    let patch = json!({"title": null, "meta": {"case": "4712"},
        "remove_aliases": [{"kind": "ticket", "name": "4711"}],
        "add_aliases": [{"kind": "ticket", "name": "4712"}]});
    let patched = native
        .call_with("PATCH /api/v1/threads/ticket:4711", &patch, 200)
        .await;
    assert_eq!(patched["title"], Value::Null);
    assert_eq!(patched["keep"], 1_000_000, "what is left out stays");
    let shown = native.call("GET /api/v1/threads/ticket:4712", 200).await;
    assert_eq!(shown["thread"], patched);
    native.call("GET /api/v1/threads/ticket:4711", 404).await;
    native.end().await;
}

#[tokio::test]
async fn threads_of_another_tenant_are_not_there() {
    let native = Native::start().await;
    let other = Authority::assume().scope(Tenant::new("other").unwrap());
    let foreign = NewThread::new(ThreadId::new("foreign").unwrap());
    native
        .store
        .open_or_create(&other, &foreign, 0)
        .await
        .unwrap();
    for request in [
        "GET /api/v1/threads/ID",
        "PATCH /api/v1/threads/ID",
        "DELETE /api/v1/threads/ID",
        "POST /api/v1/threads/ID/fork",
        "GET /api/v1/threads/ID/tree",
        "GET /api/v1/threads/ID/export",
        "GET /api/v1/threads/ID/messages",
        "GET /api/v1/threads/ID/view",
        "POST /api/v1/threads/ID/compact",
        "POST /api/v1/threads/ID/uncompact",
        "PUT /api/v1/threads/ID/pins/1",
        "POST /api/v1/threads/ID/queue",
    ] {
        let mut found = Vec::new();
        for id in ["foreign", "missing"] {
            let body = match request {
                line if line.ends_with("queue") => json!({"text": "a"}),
                line if line.starts_with("GET") || line.starts_with("PUT") => Value::Null,
                _ => json!({}),
            };
            let answer = native
                .call_with(&request.replace("ID", id), &body, 404)
                .await;
            found.push(answer.to_string().replace(id, "ID"));
        }
        assert_eq!(found[0], found[1], "{request}");
    }
    let listed = native.call("GET /api/v1/threads", 200).await;
    assert_eq!(ids(&listed["threads"]), Vec::<&str>::new());
    native.end().await;
}

#[tokio::test]
async fn a_thread_is_shown_with_its_messages_and_by_any_of_its_names() {
    let native = Native::start().await;
    let (id, run) = native
        .talk(&["The tide is at four.", "How many messages?"])
        .await;
    let path = format!("GET /api/v1/threads/{id}");
    let shown = native.call(&path, 200).await;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 4);
    assert_eq!(
        (&shown["more"], &shown["owner"]["kind"]),
        (&json!(false), &json!("local"))
    );
    let tail = native.call(&format!("{path}?limit=1"), 200).await;
    assert_eq!(tail["messages"][0], shown["messages"][3]);
    assert_eq!(tail["more"], true);
    let none = native.call(&format!("{path}?limit=0"), 200).await;
    assert_eq!(
        (&none["messages"], &none["more"]),
        (&json!([]), &json!(true))
    );
    let after = native.call(&format!("{path}?after=1&limit=2"), 200).await;
    assert_eq!(after["messages"][0], shown["messages"][1]);
    assert_eq!(after["more"], true);
    for name in [run.to_string(), format!("resp_{}", run.to_hex())] {
        let at = native
            .call(&format!("GET /api/v1/threads/{name}"), 200)
            .await;
        assert_eq!(at["messages"], shown["messages"], "{name}");
    }
    native.end().await;
}

#[tokio::test]
async fn a_fork_shares_what_was_said_before_it() {
    let native = Native::start().await;
    let (id, _) = native.talk(&["one", "two"]).await;
    let tree = native
        .call(&format!("GET /api/v1/threads/{id}/tree"), 200)
        .await;
    let nodes = tree["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2);
    assert_eq!(
        (&nodes[1]["parent"], &nodes[1]["head"]),
        (&nodes[0]["node"], &json!(true))
    );
    let first = native
        .call(&format!("GET /api/v1/threads/{id}/tree?limit=1"), 200)
        .await;
    assert_eq!(first["next"], nodes[0]["node"]);

    let node = nodes[0]["node"].as_str().unwrap();
    let line = format!("POST /api/v1/threads/{node}/fork");
    let body = json!({"id": "what-if", "title": "What if"});
    let forked = native.call_with(&line, &body, 201).await;
    assert_eq!(
        (&forked["from"], &forked["thread"]["title"]),
        (&json!(id), &json!("What if"))
    );
    let again = native.call_with(&line, &body, 201).await;
    assert_eq!(again, forked);
    let shown = native.call("GET /api/v1/threads/what-if", 200).await;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    native.refused(&line, &json!({"id": id}), 409).await;
    native.end().await;
}

#[tokio::test]
async fn an_export_is_imported_as_it_was_and_a_broken_one_not_at_all() {
    let native = Native::start().await;
    let (id, _) = native.talk(&["The tide is at four.", "two"]).await;
    let export = native
        .send(&format!("GET /api/v1/threads/{id}/export"), &[], "")
        .await;
    assert_eq!(export.header("content-type"), Some("application/x-ndjson"));
    let lines = export.body;
    assert_eq!(lines.lines().count(), 1 + 1 + 2 + 4 + 1);

    let answer = native
        .send("POST /api/v1/threads/import?as=copy", &[], &lines)
        .await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let [copy, origin] = ["copy", id.as_str()].map(|id| format!("GET /api/v1/threads/{id}"));
    let (copy, origin) = (
        native.call(&copy, 200).await,
        native.call(&origin, 200).await,
    );
    let said = |shown: &Value| -> Vec<Value> {
        let messages = shown["messages"].as_array().unwrap().iter();
        messages
            .map(|one| one["message"]["contents"].clone())
            .collect()
    };
    assert_eq!(said(&copy), said(&origin));

    let exists = native
        .send("POST /api/v1/threads/import", &[], &lines)
        .await;
    assert_eq!(
        (exists.status, exists.code().as_str()),
        (409, "thread_exists")
    );
    let cut = &lines[..lines.len() * 2 / 3];
    let broken = native
        .send("POST /api/v1/threads/import?as=cut", &[], cut)
        .await;
    assert_eq!(
        (broken.status, broken.code().as_str()),
        (400, "invalid_export")
    );
    native.call("GET /api/v1/threads/cut", 404).await;
    let packed = [("content-encoding", "gzip")];
    let packed = native
        .send("POST /api/v1/threads/import", &packed, "x")
        .await;
    assert_eq!(packed.status, 415);

    let chat = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#;
    let line = "POST /api/v1/threads/import?from=openai-chat&as=chat";
    let answer = native.send(line, &[], chat).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let shown = native.call("GET /api/v1/threads/chat", 200).await;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    for (line, code) in [
        (
            "POST /api/v1/threads/import?from=openai-chat",
            "invalid_transcript",
        ),
        ("POST /api/v1/threads/import?from=word", "invalid_value"),
    ] {
        let answer = native.send(line, &[], "{\"messages\":3}").await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code));
    }
    native.end().await;
}

#[tokio::test]
async fn messages_are_read_by_cursor() {
    let native = Native::start().await;
    let agent = native.agent();
    let thread = agent.new_thread();
    let first = agent.run_on(&thread, "one").await.unwrap();
    let line = format!("GET /api/v1/threads/{}/messages", thread.id());
    let page = native.call(&format!("{line}?limit=1"), 200).await;
    assert_eq!(page["messages"][0]["message"]["contents"][0]["text"], "one");
    assert_eq!(page["more"], true);
    let next = page["next"].as_str().unwrap().to_owned();
    let rest = native.call(&format!("{line}?after={next}"), 200).await;
    assert_eq!(rest["messages"].as_array().unwrap().len(), 1);
    let end = rest["next"].as_str().unwrap().to_owned();
    let nothing = native.call(&format!("{line}?after={end}"), 200).await;
    assert_eq!(
        (&nothing["messages"], &nothing["next"]),
        (&json!([]), &json!(end))
    );
    agent.run_on(&thread, "two").await.unwrap();
    let more = native.call(&format!("{line}?after={end}"), 200).await;
    assert_eq!(more["messages"].as_array().unwrap().len(), 2);

    let (other, _) = native.talk(&["three"]).await;
    let foreign = format!("GET /api/v1/threads/{other}/messages?after={end}");
    assert_eq!(
        native.refused(&foreign, &Value::Null, 400).await,
        ("invalid_value".into(), "after".into())
    );
    let branch = format!("GET /api/v1/threads/{}/messages", first.run);
    assert_eq!(
        native.refused(&branch, &Value::Null, 400).await.0,
        "not_a_thread"
    );
    native.end().await;
}

#[tokio::test]
async fn a_message_that_is_left_reaches_the_next_run() {
    let native = Native::start().await;
    let (id, _) = native.talk(&["hello"]).await;
    let line = format!("POST /api/v1/threads/{id}/queue");
    let left = native
        .call_with(&line, &json!({"text": "The tide is at four."}), 202)
        .await;
    assert_eq!((&left["queued"], &left["run"]), (&json!(1), &Value::Null));
    let threads = throughline::Threads::of(&native.store);
    let thread = threads.open(ThreadId::new(&id).unwrap()).await.unwrap();
    native
        .agent()
        .run_on(&thread, "How many messages?")
        .await
        .unwrap();
    let shown = native.call(&format!("GET /api/v1/threads/{id}"), 200).await;
    assert!(
        shown["messages"]
            .to_string()
            .contains("The tide is at four.")
    );
    assert_eq!(shown["queued"], 0);
    native.end().await;
}

#[tokio::test]
async fn a_thread_is_deleted_with_a_receipt() {
    let native = Native::start().await;
    let (id, run) = native.talk(&["hello"]).await;
    let line = format!("DELETE /api/v1/threads/{id}");
    let by_run = format!("DELETE /api/v1/threads/{run}");
    assert_eq!(
        native.refused(&by_run, &Value::Null, 400).await.0,
        "not_a_thread"
    );
    let receipt = native.call(&line, 200).await;
    assert_eq!(
        receipt,
        json!({"id": id, "object": "thread", "deleted": true, "vendor_copies": []})
    );
    native.call(&line, 404).await;
    native.call(&format!("GET /api/v1/runs/{run}"), 404).await;
    native.end().await;
}

#[tokio::test]
async fn threads_are_found_by_what_was_asked_of_them() {
    let native = Native::with("[[agent]]\nid = \"pilot\"\nmodel = \"demo\"\n").await;
    let mut made = Vec::new();
    for model in ["demo", "agent/pilot"] {
        let body = json!({"model": model, "input": "hello"}).to_string();
        let mut client = crate::http::support::Client::to(native.server.address).await;
        let answer = client
            .send("POST /v1/responses", &[], body.as_bytes())
            .await;
        let response: Value = serde_json::from_str(&answer.body).unwrap();
        made.push(
            response["throughline"]["thread"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let title = json!({"title": "High Water"});
    native
        .call_with(&format!("PATCH /api/v1/threads/{}", made[0]), &title, 200)
        .await;
    let (waits, _) = native.talk(&["use open_sluice"]).await;
    for (query, expected) in [
        ("title=high%20w", &made[..1]),
        ("agent=pilot", &made[1..]),
        ("model=demo&title=water", &made[..1]),
        ("model=gone", &[]),
        ("state=parked", std::slice::from_ref(&waits)),
        ("state=parked&state=failed&title=a", &[]),
        ("created_before=1", &[]),
    ] {
        let found = native
            .call(&format!("GET /api/v1/threads?{query}"), 200)
            .await;
        assert_eq!(ids(&found["threads"]), expected, "{query}");
    }
    let all = native.call("GET /api/v1/threads?created_from=1", 200).await;
    assert_eq!(ids(&all["threads"]).len(), 3);
    native.end().await;
}

#[tokio::test]
async fn what_a_message_says_is_removed_and_who_did_it_stays() {
    let native = Native::start().await;
    let (id, _) = native.talk(&["The key is under the mat."]).await;
    let line = format!("POST /api/v1/threads/{id}/redact");
    let path = format!("GET /api/v1/threads/{id}");
    let shown = native.call(&path, 200).await;
    let message = &shown["messages"][0]["message"]["id"];
    for (body, param) in [
        (json!({}), "message"),
        (json!({"message": message, "position": 1}), "position"),
        (json!({"position": 0}), "position"),
        (json!({"position": 1, "by": ""}), "by"),
    ] {
        assert_eq!(native.refused(&line, &body, 400).await.1, param, "{body}");
    }
    let missing = json!({"position": 99});
    assert_eq!(
        native.refused(&line, &missing, 404).await.0,
        "message_not_found"
    );
    let body = json!({"message": message, "by": "ada"});
    let done = native.call_with(&line, &body, 200).await;
    assert_eq!(
        (&done["redacted"]["position"], &done["redacted"]["by"]),
        (&json!(1), &json!("ada"))
    );
    let body = json!({"position": 1, "by": "bob"});
    let again = native.call_with(&line, &body, 200).await;
    assert_eq!(again["redacted"], done["redacted"], "the first one stays");
    let shown = native.call(&path, 200).await;
    assert_eq!(shown["messages"][0]["redacted"]["by"], "ada");
    let said = &shown["messages"][0]["message"]["contents"][0]["text"];
    assert_eq!(said, "[redacted]");
    native.end().await;
}
