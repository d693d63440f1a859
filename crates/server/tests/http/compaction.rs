//! Long chains that a model is shown a part of, and conversations that are put in short.

use serde_json::{Value, json};
use throughline_server::Server;
use throughline_testkit::Scratch;
use throughline_testkit::openapi::{OpenApi, Others};

use crate::http::support::{Answer, Client, config, end, start, start_with};
use crate::schema::support::without_cache_writes;

async fn post(server: &Server, path: &str, body: &Value) -> Answer {
    let mut client = Client::to(server.address).await;
    let body = body.to_string();
    let line = format!("POST /v1/responses{path}");
    client.send(&line, &[], body.as_bytes()).await
}

async fn ok(server: &Server, path: &str, body: &Value) -> Value {
    let answer = post(server, path, body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

async fn read(server: &Server, path: &str) -> Value {
    let mut client = Client::to(server.address).await;
    let line = format!("GET /v1/responses/{path}");
    let answer = client.send(&line, &[], b"").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

fn fixture(name: &str) -> OpenApi {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/responses/");
    OpenApi::read(&std::fs::read_to_string(format!("{folder}{name}")).unwrap()).unwrap()
}

fn tools() -> Value {
    json!([{"type": "function", "name": "read_file", "parameters": {"type": "object"}}])
}

/// What a file holds.
fn file(number: usize) -> String {
    let lines = (0..40).map(|line| format!("fn plank_{number}_{line}() {{ nail({line}); }}\n"));
    lines.collect()
}

/// A chain of turns in which the client reads a file each; the last response, and all reports.
async fn session(server: &Server, turns: usize, more: &Value) -> (Value, Vec<Value>) {
    let mut last = Value::Null;
    let mut reports = Vec::new();
    for turn in 0..turns {
        let mut body = json!({
            "model": "demo",
            "input": format!("use read_file with path=/src/pier_{turn}.rs"),
            "tools": tools(),
        });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        if let Some(id) = last["id"].as_str() {
            body["previous_response_id"] = json!(id);
        }
        let asked = ok(server, "", &body).await;
        let call = &asked["output"][0];
        assert_eq!(call["type"], "function_call", "{asked}");
        body["previous_response_id"] = asked["id"].clone();
        body["input"] = json!([{"type": "function_call_output", "call_id": call["call_id"],
            "output": file(turn)}]);
        last = ok(server, "", &body).await;
        for response in [&asked, &last] {
            reports.extend(response["throughline"].get("compaction").cloned());
        }
    }
    (last, reports)
}

fn budget() -> Value {
    json!({"throughline": {"compaction": {"budget": 4000, "threshold": 1000, "recent_calls": 2}}})
}

#[tokio::test]
async fn it_is_off_unless_somebody_asks() {
    let server = start("").await;
    let (_, reports) = session(&server, 20, &json!({})).await;
    assert_eq!(reports, Vec::<Value>::new());
    let off = json!({"truncation": "auto", "throughline": {"compaction": false}});
    let (_, reports) = session(&server, 20, &off).await;
    assert_eq!(reports, Vec::<Value>::new());
    end(server).await;
    let always = "[compaction]\nwhen = \"always\"\nbudget = 4000\ntruncation_threshold = 1000\n\
                  recent_calls_to_keep = 2\n";
    let server = start(always).await;
    let (_, reports) = session(&server, 20, &json!({})).await;
    assert!(!reports.is_empty());
    end(server).await;
}

#[tokio::test]
async fn a_model_is_asked_for_a_summary_only_where_that_is_configured() {
    for (key, asks) in [("", false), ("narrative_tokens = 400\n", true)] {
        let server = start(&format!("[compaction]\nwhen = \"always\"\n{key}")).await;
        let (last, reports) = session(&server, 20, &budget()).await;
        let told: Vec<&Value> = reports
            .iter()
            .filter_map(|one| one.get("narrative"))
            .collect();
        assert_eq!(!told.is_empty(), asks, "{reports:?}");
        for one in &told {
            assert!(one["input_tokens"].as_u64().unwrap() > 0, "{one}");
        }
        // What was told once is told again.
        let again = read(&server, last["id"].as_str().unwrap()).await;
        assert_eq!(again["throughline"], last["throughline"]);
        println!("{key:?}: {} summaries in 20 turns", told.len());
        end(server).await;
    }
}

#[tokio::test]
async fn every_way_to_ask_bounds_what_is_shown_and_says_so() {
    let file = "[[upstream]]\nname = \"demo\"\nkind = \"demo\"\nwindow = 6000\n";
    let server = start(file).await;
    let managed = json!([{"type": "compaction", "compact_threshold": 4000}]);
    for (more, trigger, most) in [
        (json!({"truncation": "auto"}), "window", 3_600),
        (json!({"context_management": managed}), "budget", 4_000),
        (budget(), "budget", 4_000),
    ] {
        let (_, reports) = session(&server, 20, &more).await;
        assert!(!reports.is_empty(), "{more}");
        for (epoch, report) in (1..).zip(&reports) {
            assert_eq!(report["epoch"], epoch, "{report}");
            assert_eq!(report["trigger"], trigger);
            assert!(report["tokens_after"].as_u64().unwrap() <= most, "{report}");
            assert!(report.get("budget_unreachable").is_none(), "{report}");
            let line = report["summary"].as_str().unwrap();
            assert!(line.ends_with("Nothing was deleted."), "{line}");
        }
        println!("{more}: {} epochs in 20 turns", reports.len());
    }
    end(server).await;
}

#[tokio::test]
async fn what_is_read_later_is_what_was_answered_and_nothing_is_gone() {
    let server = start("").await;
    let (last, _) = session(&server, 12, &budget()).await;
    let mut body = json!({"model": "demo", "input": "use read_file with path=/src/last.rs",
        "tools": tools(), "previous_response_id": last["id"]});
    body["throughline"] =
        json!({"compaction": {"budget": 1000, "threshold": 0, "recent_calls": 1}});
    let told = ok(&server, "", &body).await;
    assert!(
        told["throughline"]["compaction"]["epoch"].is_u64(),
        "{told}"
    );
    let id = told["id"].as_str().unwrap();
    assert_eq!(read(&server, id).await, told);
    let mut client = Client::to(server.address).await;
    let stream = format!("GET /v1/responses/{id}?stream=true");
    let one = client.send(&stream, &[], b"").await.body;
    let two = Client::to(server.address).await;
    let two = { two }.send(&stream, &[], b"").await.body;
    assert_eq!(one, two);
    let done = one
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: {"));
    let done: Value = serde_json::from_str(&format!("{{{}", done.unwrap())).unwrap();
    assert_eq!(done["response"], told);
    let listed = read(&server, &format!("{id}/input_items?order=asc&limit=100")).await;
    let items = listed["data"].as_array().unwrap();
    assert_eq!(items.len(), 12 * 4 + 1);
    assert!(items.iter().all(|item| item["type"] != "compaction"));
    assert_eq!(items[2]["output"], file(0));
    // A streamed turn says the same in its last event.
    body["stream"] = json!(true);
    body["previous_response_id"] = last["id"].clone();
    let events = post(&server, "", &body).await.body;
    let done = events
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: {"));
    let done: Value = serde_json::from_str(&format!("{{{}", done.unwrap())).unwrap();
    let response = &done["response"];
    assert_eq!(
        response["throughline"]["compaction"],
        told["throughline"]["compaction"]
    );
    assert_eq!(
        read(&server, response["id"].as_str().unwrap()).await,
        *response
    );
    end(server).await;
}

/// A chain in short.
async fn short(server: &Server, previous: &Value) -> Value {
    let body = json!({"model": "demo", "previous_response_id": previous["id"]});
    ok(server, "/compact", &body).await
}

fn sealed(compacted: &Value) -> Value {
    let output = compacted["output"].as_array().unwrap();
    let found = output.iter().find(|item| item["type"] == "compaction");
    found.expect("a compaction item").clone()
}

#[tokio::test]
async fn a_chain_in_short_is_what_users_said_and_one_sealed_item() {
    for dialect in ["openai", "openresponses"] {
        let server = start(&format!("[server]\ndialect = \"{dialect}\"\n")).await;
        let (last, _) = session(&server, 20, &json!({})).await;
        let compacted = short(&server, &last).await;
        let (api, others) = match dialect {
            "openai" => (
                "openai-responses-conversations.openapi.json",
                Others::Allowed,
            ),
            _ => ("openresponses-2026-04-24.openapi.json", Others::Refused),
        };
        let checked = match others {
            Others::Allowed => compacted.clone(),
            Others::Refused => without_cache_writes(&compacted),
        };
        assert_eq!(
            fixture(api).check("CompactResource", &checked, others),
            Ok(())
        );
        assert_eq!(compacted["object"], "response.compaction");
        assert_eq!(compacted.get("throughline").is_some(), dialect == "openai");
        let output = compacted["output"].as_array().unwrap();
        let (item, users) = output.split_last().unwrap();
        assert_eq!(item["type"], "compaction");
        assert_eq!(users.len(), 20);
        for (turn, user) in users.iter().enumerate() {
            assert_eq!(user["role"], "user");
            let said = format!("use read_file with path=/src/pier_{turn}.rs");
            assert_eq!(user["content"][0]["text"], said);
        }
        // Sent back it is one message more, and the conversation goes on.
        let mut input = output.clone();
        input.push(json!({"role": "user", "content": "How many messages?"}));
        let body = json!({"model": "demo", "input": input});
        let next = ok(&server, "", &body).await;
        let text = next["output"][0]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("There are 22 messages"), "{text}");
        // It comes back as what it was.
        let id = next["id"].as_str().unwrap();
        let listed = read(&server, &format!("{id}/input_items?order=asc&limit=100")).await;
        let items = listed["data"].as_array().unwrap();
        assert_eq!(items[20], *item);
        let refer = json!({"model": "demo", "previous_response_id": id,
            "input": [{"type": "item_reference", "id": item["id"]},
                      {"role": "user", "content": "How many messages?"}]});
        let referred = ok(&server, "", &refer).await;
        let text = referred["output"][0]["content"][0]["text"]
            .as_str()
            .unwrap();
        // What the chain has is not said twice.
        assert!(text.starts_with("There are 24 messages"), "{text}");
        end(server).await;
    }
}

#[tokio::test]
async fn what_is_in_short_changes_nothing_more() {
    let server = start("").await;
    let (last, _) = session(&server, 12, &json!({})).await;
    let once = short(&server, &last).await;
    let body = json!({"model": "demo", "input": once["output"]});
    let twice = ok(&server, "/compact", &body).await;
    assert_eq!(twice["output"], once["output"]);
    assert_eq!(short(&server, &last).await["output"], once["output"]);
    // What is new is added to it; what was said there stays word for word.
    let text = |compacted: &Value| {
        let sealed = sealed(compacted)["encrypted_content"]
            .as_str()
            .unwrap()
            .to_owned();
        sealed.len()
    };
    let mut input = once["output"].as_array().unwrap().clone();
    input.push(json!({"role": "user", "content": "And the mole?"}));
    input.push(json!({"role": "assistant", "content": "The mole is dry."}));
    let more = ok(
        &server,
        "/compact",
        &json!({"model": "demo", "input": input}),
    )
    .await;
    assert_eq!(more["output"].as_array().unwrap().len(), 14);
    assert!(text(&more) > text(&once));
    end(server).await;
}

#[tokio::test]
async fn calls_that_wait_stay_as_they_are() {
    let server = start("").await;
    let (last, _) = session(&server, 3, &json!({})).await;
    let body = json!({"model": "demo", "input": "use read_file with path=/src/open.rs",
        "tools": tools(), "previous_response_id": last["id"]});
    let open = ok(&server, "", &body).await;
    let compacted = short(&server, &open).await;
    let mut input = compacted["output"].as_array().unwrap().clone();
    let call = input.last().unwrap().clone();
    assert_eq!(call["type"], "function_call");
    assert_eq!(call["call_id"], open["output"][0]["call_id"]);
    input
        .push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": "dry"}));
    let body = json!({"model": "demo", "input": input, "tools": tools()});
    let next = ok(&server, "", &body).await;
    let text = next["output"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "read_file says: dry");
    end(server).await;
}

#[tokio::test]
async fn forged_foreign_and_oversized_items_are_refused_by_their_place() {
    let server = start("").await;
    let (last, _) = session(&server, 8, &json!({})).await;
    let item = sealed(&short(&server, &last).await);
    let good = item["encrypted_content"].as_str().unwrap().to_owned();
    let other = start("").await;
    let with = |content: &str| {
        let mut forged = item.clone();
        forged["encrypted_content"] = json!(content);
        json!({"model": "demo", "input": [{"role": "user", "content": "hi"}, forged]})
    };
    assert_eq!(post(&server, "", &with(&good)).await.status, 200);
    let mut forged = Vec::new();
    for place in (5..good.len()).step_by(41).chain([good.len() - 1]) {
        let mut bytes = good.clone().into_bytes();
        bytes[place] = match bytes[place] {
            b'0' => b'1',
            _ => b'0',
        };
        let changed = String::from_utf8(bytes).unwrap();
        if changed != good {
            forged.push(changed);
        }
    }
    forged.push(good[..good.len() - 2].to_owned());
    forged.push("tlc9.abc.def".to_owned());
    let count = forged.len();
    for path in ["", "/compact"] {
        for content in &forged {
            let answer = post(&server, path, &with(content)).await;
            assert_eq!(answer.status, 400, "{content}");
            assert_eq!(answer.code(), "invalid_encrypted_content");
            let param = answer.error("param");
            assert_eq!(param.as_deref(), Some("input[1].encrypted_content"));
        }
    }
    // Another server, another secret.
    let answer = post(&other, "", &with(&good)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "invalid_encrypted_content")
    );
    let long = format!("tlc1.{}", "A".repeat(20_971_520));
    let answer = post(&server, "", &with(&long)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, "string_above_max_length")
    );
    // What other vendors sealed is theirs, and kept as it is.
    let vendors = with("gAAAAABpM0Yj-theirs");
    let compacted = ok(&server, "/compact", &vendors).await;
    assert_eq!(
        compacted["output"][1]["encrypted_content"],
        "gAAAAABpM0Yj-theirs"
    );
    assert_eq!(compacted["output"][2]["type"], "compaction");
    println!("compaction items: {count} forged, 1 foreign, 1 oversized, all refused");
    end(server).await;
    end(other).await;
}

#[tokio::test]
async fn an_item_opens_after_a_restart_on_the_same_store() {
    let folder = Scratch::new("parcels");
    let store = format!("sqlite://{}", folder.path().join("t.db").display());
    let variables = [("THROUGHLINE_STORE", store.as_str())];
    let server = start_with(config("", &variables)).await;
    let said = json!({"model": "demo", "input": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": "High water is at ten."}]});
    let compacted = ok(&server, "/compact", &said).await;
    end(server).await;
    let server = start_with(config("", &variables)).await;
    let body = json!({"model": "demo", "input": compacted["output"]});
    assert_eq!(post(&server, "", &body).await.status, 200);
    end(server).await;
}

#[tokio::test]
async fn what_cannot_be_put_in_short_is_named() {
    let server = start("").await;
    for (body, status, code, param) in [
        (
            json!({"input": "hi"}),
            400,
            "missing_required_parameter",
            Some("model"),
        ),
        (
            json!({"model": "demo"}),
            400,
            "missing_required_parameter",
            Some("input"),
        ),
        (
            json!({"model": "nobody", "input": "hi"}),
            404,
            "model_not_found",
            None,
        ),
        (
            json!({"model": "demo", "previous_response_id": "resp_1"}),
            400,
            "previous_response_not_found",
            Some("previous_response_id"),
        ),
        (
            json!({"model": "demo", "input": [{"type": "compaction"}]}),
            400,
            "missing_required_parameter",
            Some("input[0].encrypted_content"),
        ),
    ] {
        let answer = post(&server, "/compact", &body).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{body}"
        );
        if let Some(param) = param {
            assert_eq!(answer.error("param").as_deref(), Some(param));
        }
    }
    end(server).await;
}
