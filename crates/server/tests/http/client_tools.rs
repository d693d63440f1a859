//! Tools of the client in forms that not every vendor has, and tools that a vendor runs.

use serde_json::{Value, json};
use throughline_model::Wire;
use throughline_testkit::upstream::{Entry, Reply, Script, entries};

use crate::http::support::end;
use crate::http::vendors::{World, function, ignored, response};

/// A model that calls the last function that it is offered, and repeats the result.
fn calls_the_last_tool(wire: &Wire) -> Script {
    let wire = wire.clone();
    Script::respond_with(move |request| {
        if let Some(Entry::Result { text, .. }) = entries(&wire, &request.body).last() {
            return Reply::text(format!("It says: {text}"));
        }
        let mut names = Vec::new();
        named(&request.body["tools"], &mut names);
        let name = names.last().cloned().unwrap_or_default();
        let arguments = match name.as_str() {
            "patch" => r#"{"input":"*** Begin\nline"}"#,
            _ => r#"{"port":"Hull"}"#,
        };
        Reply::calls([(name, arguments)])
    })
}

/// The names of all functions in a list of tools, at any depth.
fn named(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| named(one, names)),
        Value::Object(object) => {
            let is_schema =
                |key: &str| key.to_lowercase().contains("schema") || key == "parameters";
            if let Some(name) = object.get("name").and_then(Value::as_str) {
                names.push(name.to_owned());
            }
            for (_, value) in object.iter().filter(|(key, _)| !is_schema(key)) {
                named(value, names);
            }
        }
        _ => {}
    }
}

/// The only call of a response.
fn call(response: &Value) -> Value {
    let items = response["output"].as_array().expect("items");
    let calls = items.iter().filter(|item| item.get("call_id").is_some());
    let [call] = calls.collect::<Vec<_>>()[..] else {
        panic!("{response}");
    };
    call.clone()
}

const FUNCTIONS: [&str; 3] = ["openai-chat", "anthropic", "gemini"];

#[tokio::test]
async fn a_tool_that_takes_free_text_is_a_function_elsewhere_and_comes_back_as_it_was_declared() {
    let world = World::start(calls_the_last_tool, "").await;
    let grammar = json!({"type": "grammar", "syntax": "lark", "definition": "start: /.+/"});
    let tools = json!([{"type": "custom", "name": "patch", "description": "Changes a file.",
        "format": grammar}]);
    for vendor in world
        .vendors
        .iter()
        .filter(|vendor| FUNCTIONS.contains(&vendor.kind))
    {
        for stream in [false, true] {
            let ask = json!({"model": vendor.model, "input": "go", "tools": tools, "stream": stream,
                "tool_choice": {"type": "custom", "name": "patch"}});
            let answer = world.send(&ask).await;
            let first = response(&answer);
            let made = call(&first);
            assert_eq!(made["type"], "custom_tool_call", "{first}");
            assert_eq!(made["name"], "patch");
            assert_eq!(made["input"], "*** Begin\nline");
            assert_eq!(
                answer.body.contains("response.custom_tool_call_input.done"),
                stream
            );
            assert!(ignored(&first).is_empty(), "{}: {first}", vendor.kind);
            assert!(vendor.asked().to_string().contains("start: /.+/"));
            let output = json!({"type": "custom_tool_call_output", "call_id": made["call_id"],
                "output": "done"});
            // By the chain, and by sending everything back.
            let chained = json!({"model": vendor.model, "tools": tools, "input": [output],
                "previous_response_id": first["id"]});
            let mut echoed = vec![json!({"role": "user", "content": "go"})];
            echoed.extend(first["output"].as_array().expect("items").iter().cloned());
            echoed.push(output.clone());
            let echoed = json!({"model": vendor.model, "tools": tools, "input": echoed});
            for next in [chained, echoed] {
                let last = world.create(&next).await;
                assert!(
                    last["output"].to_string().contains("It says: done"),
                    "{last}"
                );
                assert!(ignored(&last).is_empty(), "{}: {last}", vendor.kind);
            }
            // GET returns the same response.
            let path = format!("/v1/responses/{}", first["id"].as_str().expect("an id"));
            let again = crate::http::support::get(world.server.address, &path).await;
            assert_eq!(response(&again), first);
        }
    }
    end(world.server).await;
}

#[tokio::test]
async fn tools_of_a_namespace_come_back_with_their_names() {
    let world = World::start(calls_the_last_tool, "").await;
    let tools = json!([{"type": "namespace", "name": "harbour", "description": "Of the harbour.",
        "tools": [function("berth")]}]);
    for vendor in world
        .vendors
        .iter()
        .filter(|vendor| FUNCTIONS.contains(&vendor.kind))
    {
        let ask = json!({"model": vendor.model, "input": "go", "tools": tools});
        let first = world.create(&ask).await;
        let made = call(&first);
        assert_eq!(
            (&made["type"], &made["name"]),
            (&json!("function_call"), &json!("berth"))
        );
        assert_eq!(made["namespace"], "harbour");
        assert!(vendor.asked().to_string().contains("harbour__berth"));
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(first["output"].as_array().expect("items").iter().cloned());
        input.push(
            json!({"type": "function_call_output", "call_id": made["call_id"],
            "output": "7"}),
        );
        let last = world
            .create(&json!({"model": vendor.model, "tools": tools, "input": input}))
            .await;
        assert!(last["output"].to_string().contains("It says: 7"), "{last}");
        assert!(ignored(&last).is_empty(), "{}: {last}", vendor.kind);
    }
    end(world.server).await;
}

#[tokio::test]
async fn a_vendors_tool_is_offered_in_its_own_words_and_one_that_is_missing_cannot_be_demanded() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("Found."));
    let world = World::start(script, "").await;
    for vendor in &world.vendors {
        let ask = |choice: Value| {
            json!({"model": vendor.model, "input": "go", "tools": [{"type": "web_search"}],
                "tool_choice": choice})
        };
        let wanted = match vendor.kind {
            "anthropic" => Some("web_search_20250305"),
            "gemini" => Some("googleSearch"),
            "openai-chat" => None,
            _ => Some("web_search"),
        };
        let answer = world.create(&ask(json!("auto"))).await;
        match wanted {
            Some(word) => {
                assert!(vendor.asked()["tools"].to_string().contains(word));
                assert!(ignored(&answer).is_empty(), "{answer}");
                assert_eq!(answer["tools"][0]["type"], "web_search");
            }
            None => {
                assert_eq!(ignored(&answer)[0].0, "tools[0]");
                assert_eq!(answer["tools"], json!([]));
                for choice in [json!("required"), json!({"type": "web_search"})] {
                    let refused = world.send(&ask(choice)).await;
                    assert_eq!(
                        (refused.status, refused.code().as_str()),
                        (400, "unsupported_tool_choice")
                    );
                }
            }
        }
    }
    end(world.server).await;
}

#[tokio::test]
async fn a_server_may_refuse_what_it_cannot_carry_out() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("Yes."));
    let world = World::start(script, "[server]\nunsupported = \"refuse\"\n").await;
    let ask = json!({"model": "anthropic/claude-opus-4-8", "input": "go", "temperature": 0.5,
        "verbose": true});
    let refused = world.send(&ask).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (400, "unsupported_parameter")
    );
    let message = refused.error("message").unwrap_or_default();
    assert!(
        message.contains("'temperature'") && message.contains("'verbose'"),
        "{message}"
    );
    world
        .create(&json!({"model": "openai-chat/gpt-5", "input": "go", "temperature": 0.5}))
        .await;
    let unknown = json!({"model": "demo", "input": "go", "throughline": {"on_bussy": "reject"}});
    let refused = world.send(&unknown).await;
    assert_eq!(
        refused.error("param").as_deref(),
        Some("throughline.on_bussy")
    );
    assert!(refused.body.contains("on_busy"), "{}", refused.body);
    end(world.server).await;
}

#[tokio::test]
async fn an_answer_that_the_vendor_stopped_for_safety_is_incomplete_on_every_vendor() {
    let script = |wire: &Wire| {
        let body = match wire {
            Wire::Anthropic => json!({"id": "msg_1", "type": "message", "role": "assistant",
                "model": "m", "content": [{"type": "text", "text": "The"}],
                "stop_reason": "refusal", "stop_sequence": null,
                "usage": {"input_tokens": 1, "output_tokens": 1}}),
            Wire::Gemini => json!({"candidates": [{"index": 0, "finishReason": "SAFETY",
                "content": {"role": "model", "parts": [{"text": "The"}]}}]}),
            Wire::OpenAiChat => json!({"id": "c", "object": "chat.completion", "created": 1,
                "model": "m", "choices": [{"index": 0, "finish_reason": "content_filter",
                    "message": {"role": "assistant", "content": "The"}}]}),
            _ => json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "m",
                "status": "incomplete", "incomplete_details": {"reason": "content_filter"},
                "output": [{"id": "msg_1", "type": "message", "role": "assistant",
                    "status": "incomplete",
                    "content": [{"type": "output_text", "text": "The", "annotations": []}]}]}),
        };
        Script::respond_with(move |_| Reply::raw(200, "application/json", body.to_string()))
    };
    let world = World::start(script, "").await;
    for vendor in &world.vendors {
        let answer = world
            .create(&json!({"model": vendor.model, "input": "go"}))
            .await;
        let status = (&answer["status"], &answer["incomplete_details"]["reason"]);
        assert_eq!(
            status,
            (&json!("incomplete"), &json!("content_filter")),
            "{}: {answer}",
            vendor.kind
        );
    }
    end(world.server).await;
}

#[tokio::test]
async fn a_trigger_is_answered_with_the_conversation_in_short_and_no_model_is_asked() {
    let script = |_: &Wire| Script::respond_with(|_| Reply::text("High water is at ten."));
    let world = World::start(script, "").await;
    for vendor in &world.vendors {
        let first = world
            .create(&json!({"model": vendor.model, "input": "When?"}))
            .await;
        for stream in [false, true] {
            let asked = vendor.requests().len();
            let short = world
                .create(
                    &json!({"model": vendor.model, "previous_response_id": first["id"],
                    "input": [{"type": "compaction_trigger"}], "stream": stream}),
                )
                .await;
            let output = short["output"].as_array().expect("items");
            assert_eq!(output.len(), 1, "{short}");
            assert_eq!(
                (&output[0]["type"], &short["status"]),
                (&json!("compaction"), &json!("completed"))
            );
            let path = format!("/v1/responses/{}", short["id"].as_str().expect("an id"));
            let again = crate::http::support::get(world.server.address, &path).await;
            assert_eq!(response(&again), short);
            assert_eq!(vendor.requests().len(), asked);
            // It begins a new chain.
            let next = json!({"model": vendor.model, "input": [output[0],
                {"role": "user", "content": "And low water?"}]});
            world.create(&next).await;
            assert!(vendor.asked().to_string().contains("And low water?"));
            // And the old one goes on.
            let next = json!({"model": vendor.model, "previous_response_id": short["id"],
                "input": "And low water?"});
            world.create(&next).await;
            assert!(vendor.asked().to_string().contains("When?"));
        }
        let misplaced = world
            .send(&json!({"model": vendor.model,
                "input": [{"type": "compaction_trigger"}, {"role": "user", "content": "x"}]}))
            .await;
        assert_eq!(misplaced.error("param").as_deref(), Some("input[0]"));
    }
    end(world.server).await;
}
