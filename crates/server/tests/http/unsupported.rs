//! Each member of a request is sent on, refused with 400, or named in the answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use throughline_testkit::upstream::{Reply, Script};

use crate::http::support::{Client, end};
use crate::http::vendors::{Vendor, World, function, ignored, response};

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The upstream was asked something else than without it.
    Sent,
    /// 400 or 501, about this member.
    Refused,
    /// The answer names it.
    Named,
    /// It is the server's to do, and the response or the record shows it.
    Here,
}

impl Fate {
    fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Refused => "refused",
            Self::Named => "listed",
            Self::Here => "done here",
        }
    }
}

/// A few values of each member of the request, in OpenAI's and in the Open Responses specification.
/// A member that has no row here fails the test.
fn samples() -> BTreeMap<&'static str, Vec<Value>> {
    let picture = "data:image/png;base64,iVBORw0KGgo=";
    let tool = |tag: &str| json!([{"type": tag}]);
    BTreeMap::from([
        ("background", vec![json!(true)]),
        (
            "context_management",
            vec![json!([{"type": "compaction", "compact_threshold": 5000}])],
        ),
        (
            "conversation",
            vec![json!("conv_1"), json!({"id": "conv_1"})],
        ),
        ("frequency_penalty", vec![json!(0.5)]),
        (
            "include",
            [
                "file_search_call.results",
                "web_search_call.results",
                "web_search_call.action.sources",
                "message.input_image.image_url",
                "computer_call_output.output.image_url",
                "code_interpreter_call.outputs",
                "reasoning.encrypted_content",
                "message.output_text.logprobs",
            ]
            .map(|word| json!([word]))
            .to_vec(),
        ),
        (
            "input",
            vec![
                json!("Another text"),
                json!([{"role": "user", "content": [{"type": "input_image", "image_url": picture}]}]),
                json!([{"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]}]),
                json!([{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]),
                json!([{"role": "user", "content": [
                    {"type": "input_file", "file_url": "https://harbour.example/a.pdf"}]}]),
                json!([]),
            ],
        ),
        ("instructions", vec![json!("Be brief.")]),
        ("max_output_tokens", vec![json!(7), json!(700)]),
        ("max_tool_calls", vec![json!(3)]),
        ("metadata", vec![json!({"berth": "7"})]),
        ("model", vec![json!("nowhere/none")]),
        (
            "moderation",
            vec![json!({"model": "omni-moderation-latest"})],
        ),
        ("parallel_tool_calls", vec![json!(false)]),
        ("presence_penalty", vec![json!(0.5)]),
        ("previous_response_id", vec![json!("resp_nothing")]),
        ("prompt", vec![json!({"id": "pmpt_1"})]),
        ("prompt_cache_key", vec![json!("harbour")]),
        (
            "prompt_cache_options",
            vec![json!({"mode": "explicit", "ttl": "1h"})],
        ),
        ("prompt_cache_retention", vec![json!("24h")]),
        (
            "reasoning",
            ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
                .map(|word| json!({"effort": word}))
                .into_iter()
                .chain([json!({"summary": "auto"}), json!({"context": "all_turns"})])
                .collect(),
        ),
        ("safety_identifier", vec![json!("u1")]),
        (
            "service_tier",
            vec![json!("default"), json!("flex"), json!("priority")],
        ),
        ("store", vec![json!(false)]),
        ("stream", vec![json!(true)]),
        ("stream_options", vec![json!({"include_obfuscation": true})]),
        ("temperature", vec![json!(0.5)]),
        (
            "text",
            vec![
                json!({"format": {"type": "json_object"}}),
                json!({"format": {"type": "json_schema", "name": "tide", "strict": true,
                    "schema": {"type": "object", "properties": {"at": {"type": "string"}}}}}),
                json!({"format": {"type": "json_schema", "name": "tide",
                    "schema": {"type": "object", "additionalProperties": {"type": "string"}}}}),
                json!({"verbosity": "low"}),
            ],
        ),
        (
            "tool_choice",
            vec![
                json!("required"),
                json!("none"),
                json!({"type": "function", "name": "get_tide"}),
                json!({"type": "allowed_tools", "mode": "auto", "tools": []}),
                json!({"type": "web_search"}),
            ],
        ),
        (
            "tools",
            [
                "web_search",
                "web_search_preview",
                "file_search",
                "code_interpreter",
                "image_generation",
                "computer_use_preview",
                "shell",
                "local_shell",
                "apply_patch",
                "tool_search",
                "nobody_knows_this",
            ]
            .map(tool)
            .into_iter()
            .chain([
                json!([function("add")]),
                json!([{"type": "function", "name": "add", "strict": true,
                    "parameters": {"type": "object", "properties": {}, "required": [],
                        "additionalProperties": false}}]),
                json!([{"type": "function", "name": "add", "defer_loading": true,
                    "parameters": {"type": "object"}}]),
                json!([{"type": "custom", "name": "patch", "description": "Changes a file."}]),
                json!([{"type": "namespace", "name": "harbour", "description": "Of the harbour.",
                    "tools": [function("berth")]}]),
                json!([{"type": "mcp", "server_label": "nowhere"}]),
            ])
            .collect(),
        ),
        ("top_logprobs", vec![json!(3)]),
        ("top_p", vec![json!(0.5)]),
        ("truncation", vec![json!("auto")]),
        ("user", vec![json!("u1")]),
    ])
}

/// Members that the server carries out itself, and how that is seen.
fn is_done_here(member: &str, value: &Value, kind: &str, response: &Value, answer: &str) -> bool {
    match member {
        "metadata" | "max_tool_calls" | "truncation" | "store" | "background" => {
            response[member] == *value
        }
        "conversation" => response["conversation"]["id"].is_string(),
        // There is nothing to make smaller yet.
        "context_management" => response["status"] == "completed",
        "stream" => answer.starts_with("event: response.created"),
        // It is shown where it is asked for, and no upstream is asked for it.
        "include" => {
            let word = value[0].as_str().unwrap_or_default();
            matches!(
                word,
                "reasoning.encrypted_content" | "message.input_image.image_url"
            )
        }
        // The built-in model evaluates these itself; there is no upstream request to compare.
        "input" | "instructions" | "max_output_tokens" | "parallel_tool_calls" => kind == "demo",
        "tool_choice" => kind == "demo" && response["tool_choice"] == *value,
        "tools" => {
            kind == "demo"
                && response["tools"]
                    .as_array()
                    .is_some_and(|all| all.len() > 1)
        }
        _ => false,
    }
}

/// Members of a request in a specification.
fn members(text: &str, schema: &str) -> BTreeSet<String> {
    fn gather(schemas: &Value, of: &Value, found: &mut BTreeSet<String>) {
        if let Some(name) = of["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return gather(schemas, &schemas[name], found);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for part in of[key].as_array().into_iter().flatten() {
                gather(schemas, part, found);
            }
        }
        found.extend(
            of["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone()),
        );
    }
    let document: Value = serde_json::from_str(text).expect("the specification is JSON");
    let schemas = &document["components"]["schemas"];
    let mut found = BTreeSet::new();
    gather(schemas, &schemas[schema], &mut found);
    found
}

#[tokio::test]
async fn each_member_is_sent_on_refused_or_named_on_every_kind_of_upstream() {
    let samples = samples();
    for (text, schema) in [
        (
            include_str!("../fixtures/responses/openai-responses-conversations.openapi.json"),
            "CreateResponse",
        ),
        (
            include_str!("../fixtures/responses/openresponses-2026-04-24.openapi.json"),
            "CreateResponseBody",
        ),
    ] {
        for member in members(text, schema) {
            assert!(samples.contains_key(member.as_str()), "{member} has no row");
        }
    }
    let script = |_: &_| Script::respond_with(|_| Reply::text("High water is at ten."));
    let world = World::start(script, "").await;
    let mut models: Vec<(&str, String)> = vec![("demo", "demo".to_owned())];
    models.extend(
        world
            .vendors
            .iter()
            .map(|vendor| (vendor.kind, vendor.model.clone())),
    );
    let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut silent = Vec::new();
    let mut table: BTreeMap<&str, BTreeMap<&str, BTreeSet<Fate>>> = BTreeMap::new();
    for (kind, model) in &models {
        let vendor = world.vendors.iter().find(|vendor| vendor.kind == *kind);
        let tools = json!([function("get_tide")]);
        let plain = json!({"model": model, "input": "When is high water?", "tools": tools});
        world.create(&plain).await;
        let without = vendor.map(Vendor::asked);
        for (member, values) in &samples {
            for value in values {
                let mut body = plain.clone();
                match *member {
                    "tools" => body["tools"] = json!([tools[0], value[0]]),
                    "stream_options" => {
                        body["stream"] = json!(true);
                        body[*member] = value.clone();
                    }
                    "conversation" => {
                        let mut client = Client::to(world.server.address).await;
                        let made = client.send("POST /v1/conversations", &[], b"{}").await;
                        let made: Value = serde_json::from_str(&made.body).unwrap();
                        body[*member] = match value {
                            Value::String(_) => made["id"].clone(),
                            _ => json!({"id": made["id"]}),
                        };
                    }
                    _ => body[*member] = value.clone(),
                }
                let before = vendor.map_or(0, |vendor| vendor.requests().len());
                let answer = world.send(&body).await;
                if *member == "background" {
                    // Its call comes after the answer.
                    while vendor.is_some_and(|vendor| vendor.requests().len() == before) {
                        tokio::task::yield_now().await;
                    }
                }
                let fate = match answer.status {
                    200 => {
                        let response = response(&answer);
                        let names = |(path, _): &(String, String)| {
                            path.split(['.', '[']).next() == Some(*member)
                        };
                        let asked = vendor.filter(|vendor| vendor.requests().len() > before);
                        let asked = asked.map(Vendor::asked);
                        let named = ignored(&response);
                        // What is named there is named in the header too.
                        let header = answer.header("x-throughline-ignored").unwrap_or_default();
                        for (path, reason) in &named {
                            assert!(header.contains(path.as_str()), "{path}: {header}");
                            assert!(!reason.is_empty());
                        }
                        if named.iter().any(names) {
                            Some(Fate::Named)
                        } else if asked.is_some() && asked != without {
                            Some(Fate::Sent)
                        } else {
                            let done = is_done_here(member, value, kind, &response, &answer.body);
                            done.then_some(Fate::Here)
                        }
                    }
                    400 | 404 | 501 => {
                        let param = answer.error("param").unwrap_or_default();
                        let about = param.split(['.', '[']).next() == Some(*member);
                        about.then_some(Fate::Refused)
                    }
                    _ => None,
                };
                match fate {
                    Some(fate) => {
                        *counts.entry(fate).or_default() += 1;
                        let row = table.entry(member).or_default();
                        row.entry(kind).or_default().insert(fate);
                    }
                    None => silent.push(format!(
                        "{kind}: {member} = {value}: {} {}",
                        answer.status, answer.body
                    )),
                }
            }
        }
    }
    assert!(
        silent.is_empty(),
        "{}:\n{}",
        silent.len(),
        silent.join("\n")
    );
    println!(
        "campaign members: kinds={} members={} {counts:?}",
        models.len(),
        samples.len()
    );
    assert!(counts.len() == 4, "{counts:?}");
    end(world.server).await;
    let kinds: Vec<&str> = models.iter().map(|(kind, _)| *kind).collect();
    let shown = shown(&table, &kinds);
    let guide = include_str!("../../../../docs/server.md");
    assert!(
        guide.contains(&shown),
        "docs/server.md has another table:\n{shown}"
    );
}

/// The table of the guide.
fn shown(table: &BTreeMap<&str, BTreeMap<&str, BTreeSet<Fate>>>, kinds: &[&str]) -> String {
    let heads: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
    let mut text = format!("| member | {} |\n|", heads.join(" | "));
    text.push_str(&" --- |".repeat(kinds.len() + 1));
    for (member, row) in table {
        text.push_str(&format!("\n| `{member}` |"));
        for kind in kinds {
            let fates = row.get(kind).into_iter().flatten();
            let words: Vec<&str> = fates.map(|fate| fate.word()).collect();
            text.push_str(&format!(" {} |", words.join(", ")));
        }
    }
    text
}
