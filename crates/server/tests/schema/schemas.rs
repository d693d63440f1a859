//! Every event and every response against the published descriptions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use throughline::StopReason;
use throughline_model::{CallId, Message, Stop, ToolCall};
use throughline_server::Dialect;
use throughline_server::api::openai::items::{
    InputPart, Item, Listing, MessagePosition, PositionedMessage, input_items,
};
use throughline_server::api::openai::responses::wire::{CreateRequest, Frame, ResponseContext};
use throughline_store::RunId;
use throughline_testkit::openapi::{OpenApi, Others};
use throughline_testkit::{Rng, property};

use crate::schema::runs::{Fate, known, run, tool_index, tool_list};
use crate::schema::support::{context, ending, fixture, projected, without_cache_writes};

/// Two descriptions and which of their schemas each event has.
struct Published {
    openai: OpenApi,
    open: OpenApi,
    /// By type: the schema at OpenAI, and in the other specification.
    events: BTreeMap<String, (Option<String>, Option<String>)>,
}

/// The schema of each event: the one that has its type as the only value of `type`.
fn schemas_of(text: &str, api: &OpenApi) -> BTreeMap<String, String> {
    let root: Value = serde_json::from_str(text).unwrap();
    let mut found = BTreeMap::new();
    for name in api.names().filter(|name| name.ends_with("Event")) {
        let tag = &root["components"]["schemas"][name]["properties"]["type"]["enum"][0];
        if let Some(tag) = tag.as_str() {
            found.insert(tag.to_owned(), name.to_owned());
        }
    }
    found
}

fn published() -> Published {
    let openai_text = fixture("openai-responses-conversations.openapi.json");
    let open_text = fixture("openresponses-2026-04-24.openapi.json");
    let openai = OpenApi::read(&openai_text).unwrap();
    let open = OpenApi::read(&open_text).unwrap();
    let (one, two) = (
        schemas_of(&openai_text, &openai),
        schemas_of(&open_text, &open),
    );
    let listed: Value = serde_json::from_str(&fixture("streaming-events.json")).unwrap();
    let mut events = BTreeMap::new();
    for event in listed.as_array().unwrap() {
        let tag = event["type"].as_str().unwrap();
        let at_openai = one.get(tag).cloned();
        let at_open = two.get(tag).cloned();
        assert_eq!(at_openai.is_some(), !event["openai"].is_null(), "{tag}");
        assert_eq!(
            at_open.is_some(),
            !event["open_responses"].is_null(),
            "{tag}"
        );
        events.insert(tag.to_owned(), (at_openai, at_open));
    }
    let shared = events
        .values()
        .filter(|(one, two)| one.is_some() && two.is_some());
    assert_eq!(shared.count(), 22);
    Published {
        openai,
        open,
        events,
    }
}

/// Counts of what was checked.
#[derive(Debug, Default)]
struct Counts {
    openai: usize,
    both: usize,
    open: usize,
    responses: usize,
    seen: BTreeSet<String>,
}

impl Published {
    fn frame(&self, frame: &Frame, dialect: Dialect, counts: &mut Counts) -> Result<(), String> {
        let event: Value = serde_json::from_str(frame.data()).map_err(|error| error.to_string())?;
        let (one, two) = self.events.get(frame.kind).cloned().unwrap_or_default();
        counts.seen.insert(frame.kind.to_owned());
        let fits = |api: &OpenApi, name: &str, others| {
            let event = match others {
                Others::Allowed => event.clone(),
                Others::Refused => without_cache_writes(&event),
            };
            api.check(name, &event, others)
                .map_err(|why| format!("{name}: {why:#?}\n{event}"))
        };
        match dialect {
            Dialect::OpenAi => {
                let name = one.ok_or_else(|| format!("{} is not OpenAI's", frame.kind))?;
                fits(&self.openai, &name, Others::Allowed)?;
                counts.openai += 1;
                if let (Some(name), true) = (two, is_shared(&event)) {
                    fits(&self.open, &name, Others::Allowed)?;
                    counts.both += 1;
                }
            }
            Dialect::OpenResponses => {
                let name =
                    two.ok_or_else(|| format!("{} is not in the specification", frame.kind))?;
                // The one event that has both shapes at once.
                let others = match frame.kind {
                    "error" => Others::Allowed,
                    _ => Others::Refused,
                };
                fits(&self.open, &name, others)?;
                counts.open += 1;
            }
        }
        Ok(())
    }
}

/// Whether an event speaks only of what both specifications have.
pub(crate) fn is_shared(event: &Value) -> bool {
    let known = |item: &Value| {
        let tag = item["type"].as_str().unwrap_or_default();
        matches!(
            tag,
            "message" | "function_call" | "function_call_output" | "reasoning"
        )
    };
    let response = &event["response"];
    let mut tools = response["tools"].as_array().into_iter().flatten();
    if response["tool_choice"]["type"] == "mcp"
        || response["text"]["format"]["type"] == "json_schema"
        || tools.any(|tool| tool["type"] != "function")
    {
        return false;
    }
    let items = response["output"].as_array().into_iter().flatten();
    let mut items = items.chain(event.get("item"));
    items.all(known)
}

/// Requests with everything in them that is echoed.
const BODIES: [&str; 7] = [
    r#"{"model":"demo"}"#,
    r#"{"model":"demo","truncation":"auto","context_management":[{"type":"compaction","compact_threshold":2000}],"throughline":{"compaction":{"budget":4000}}}"#,
    r#"{"model":"demo","instructions":"Be brief.","store":false,"temperature":0.5,"top_p":0.25,"max_output_tokens":100,"max_tool_calls":3,"metadata":{"a":"b"},"parallel_tool_calls":false,"service_tier":"flex","safety_identifier":"s","prompt_cache_key":"k","top_logprobs":2,"truncation":"disabled","user":"u"}"#,
    r#"{"model":"demo","tools":[{"type":"function","name":"f"},{"type":"function","name":"g","description":"d","parameters":{"type":"object","properties":{}},"strict":true}],"tool_choice":{"type":"function","name":"f"},"reasoning":{"effort":"high","summary":"auto"}}"#,
    r#"{"model":"demo","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}},"verbosity":"low"},"tool_choice":"none","include":["reasoning.encrypted_content"]}"#,
    r#"{"model":"demo","text":{"format":{"type":"json_object"}},"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]},"prompt_cache_retention":"24h","presence_penalty":0.5,"frequency_penalty":-0.5}"#,
    r#"{"model":"demo","tools":[{"type":"mcp","server_label":"orders","require_approval":"never"},{"type":"web_search"},{"type":"custom","name":"c"}],"tool_choice":{"type":"mcp","server_label":"orders"},"client_metadata":{"x":1}}"#,
];

fn staged(rng: &mut Rng, dialect: Dialect) -> ResponseContext {
    let body = *rng.pick(&BODIES);
    let mut context = context(body, dialect);
    context.tool_index = tool_index();
    if rng.chance(0.3) {
        context.lists = vec![tool_list()];
    }
    if rng.chance(0.2) {
        let id = CallId::natural("known_0").unwrap();
        context
            .known_calls
            .push(known(ToolCall::function(id, "place_order", "{}")));
    }
    context
}

#[test]
fn every_event_fits_the_published_schemas() {
    let published = published();
    let mut counts = Counts::default();
    property("events fit their schemas", 400, |rng, size| {
        let dialect = *rng.pick(&[Dialect::OpenAi, Dialect::OpenAi, Dialect::OpenResponses]);
        let fate = *rng.pick(&[
            Fate::Plain,
            Fate::Plain,
            Fate::Redone,
            Fate::Cut,
            Fate::Fails,
        ]);
        let context = staged(rng, dialect);
        let told = run(rng, size, fate, context);
        let (frames, projector) = projected(&told.context, &told.streamed, &told.ending);
        for frame in &frames {
            published.frame(frame, dialect, &mut counts)?;
        }
        let response: Value = serde_json::from_str(projector.response().get()).unwrap();
        let checked = match dialect {
            Dialect::OpenAi => published
                .openai
                .check("Response", &response, Others::Allowed),
            Dialect::OpenResponses => {
                let strict = without_cache_writes(&response);
                let open = published
                    .open
                    .check("ResponseResource", &strict, Others::Refused);
                open.and_then(|()| match is_shared(&json!({"response": response})) {
                    true => published
                        .openai
                        .check("Response", &response, Others::Allowed),
                    false => Ok(()),
                })
            }
        };
        counts.responses += 1;
        checked.map_err(|why| format!("{why:#?}\n{response}"))
    });
    println!(
        "schemas: {} events fit OpenAI's, {} of them both, {} the other alone; {} responses; {} types",
        counts.openai,
        counts.both,
        counts.open,
        counts.responses,
        counts.seen.len()
    );
    for kind in [
        "response.created",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
        "response.reasoning_text.delta",
        "response.reasoning.delta",
        "response.reasoning_summary_text.delta",
        "response.refusal.delta",
        "response.mcp_call.failed",
        "response.mcp_list_tools.completed",
        "response.custom_tool_call_input.done",
        "response.output_text.annotation.added",
        "response.code_interpreter_call_code.done",
    ] {
        assert!(counts.seen.contains(kind), "{kind} was never seen");
    }
}

#[test]
fn a_response_has_all_members_of_both_specifications() {
    let published = published();
    for body in BODIES {
        for dialect in [Dialect::OpenAi, Dialect::OpenResponses] {
            let context = context(body, dialect);
            let end = ending(StopReason::Done, Some(Stop::Done));
            let (_, projector) = projected(&context, &[], &end);
            let response: Value = serde_json::from_str(projector.response().get()).unwrap();
            if dialect == Dialect::OpenAi {
                let openai = published
                    .openai
                    .check("Response", &response, Others::Allowed);
                assert_eq!(openai, Ok(()), "{response}");
            }
            // Their forms of a shape of answers exclude each other.
            let apart = body.contains("mcp") || body.contains("json_schema");
            let shared = dialect == Dialect::OpenResponses || !apart;
            if shared {
                let open = published
                    .open
                    .check("ResponseResource", &response, Others::Allowed);
                assert_eq!(open, Ok(()), "{response}");
            }
            let ours = response.get("throughline");
            assert_eq!(ours.is_some(), dialect == Dialect::OpenAi);
        }
    }
}

#[test]
fn what_was_compacted_is_in_the_response_and_in_no_event_of_its_own() {
    let report = throughline::compact::Report {
        calls_digested: 84,
        tokens_before: 96_000,
        tokens_after: 21_000,
        epoch: 2,
        ..Default::default()
    };
    let events = [throughline::RunEvent::Compacted {
        step: 0,
        report: report.clone(),
    }];
    let end = ending(StopReason::Done, Some(Stop::Done));
    for dialect in [Dialect::OpenAi, Dialect::OpenResponses] {
        let context = context(r#"{"model":"demo","truncation":"auto"}"#, dialect);
        let (frames, projector) = projected(&context, &events, &end);
        let kinds: Vec<&str> = frames.iter().map(|frame| frame.kind).collect();
        assert_eq!(
            kinds,
            [
                "response.created",
                "response.in_progress",
                "response.completed"
            ]
        );
        let response: Value = serde_json::from_str(projector.response().get()).unwrap();
        assert_eq!(response["truncation"], "auto");
        let told = &response["throughline"]["compaction"];
        match dialect {
            Dialect::OpenAi => {
                let wanted: Value = serde_json::from_str(&report.to_json()).unwrap();
                assert_eq!(*told, wanted);
                let line = "Compacted 84 tool results: 96k → 21k tokens. Nothing was deleted.";
                assert_eq!(told["summary"], line);
            }
            Dialect::OpenResponses => assert!(response.get("throughline").is_none()),
        }
    }
}

#[test]
fn the_schemas_refuse_what_is_wrong() {
    let published = published();
    let context = context(r#"{"model":"demo"}"#, Dialect::OpenAi);
    let end = ending(StopReason::Done, Some(Stop::Done));
    let (_, projector) = projected(&context, &[], &end);
    let good: Value = serde_json::from_str(projector.response().get()).unwrap();
    let required = [
        "id",
        "object",
        "created_at",
        "output",
        "tools",
        "metadata",
        "temperature",
    ];
    for key in required {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(key);
        assert!(
            published
                .openai
                .check("Response", &bad, Others::Allowed)
                .is_err(),
            "{key}"
        );
        assert!(
            published
                .open
                .check("ResponseResource", &bad, Others::Allowed)
                .is_err(),
            "{key}"
        );
    }
    let refused = published
        .open
        .check("ResponseResource", &good, Others::Refused);
    let refused = refused.unwrap_err();
    assert!(
        refused.iter().any(|one| one.contains("$.throughline")),
        "{refused:?}"
    );
}

/// The items that the input of a request lists.
fn listed(body: &Value) -> Vec<Item> {
    let request = CreateRequest::parse(body.to_string().as_bytes()).unwrap();
    let parts = request.input().parts().iter();
    let messages: Vec<Message> = parts
        .filter_map(|part| match part {
            InputPart::Messages(messages) => Some(messages.clone()),
            InputPart::CompactionToken { token, .. } => {
                Some(vec![token.content.message("cmp_1", &token.seal)])
            }
            InputPart::Reference { .. } | InputPart::Approval { .. } => None,
        })
        .flatten()
        .collect();
    let spoken: Vec<PositionedMessage<'_>> = messages
        .iter()
        .map(|message| PositionedMessage {
            run: RunId::from_bytes([1; 16]),
            place: MessagePosition::Input,
            message,
        })
        .collect();
    let listing = Listing {
        dialect: Dialect::OpenAi,
        tool_index: &tool_index(),
        seals: true,
        summarizes: false,
        model: "demo",
        asked: &[],
    };
    input_items(&spoken, &listing)
}

#[test]
fn what_clients_sent_is_listed_as_the_schema_wants_it() {
    let published = published();
    let (mut fit, mut unknown) = (0, 0);
    for line in fixture("client-wire-captures.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let body = &row["body"];
        if row["path"] != "/responses" || CreateRequest::parse(body.to_string().as_bytes()).is_err()
        {
            continue;
        }
        for item in listed(body) {
            let value: Value = serde_json::from_str(item.json.get()).unwrap();
            let checked = published
                .openai
                .check("ItemResource", &value, Others::Allowed);
            match value["type"].as_str() {
                // Newer than the description.
                Some("additional_tools") => unknown += 1,
                _ => {
                    assert_eq!(checked, Ok(()), "{value}");
                    fit += 1;
                }
            }
        }
    }
    println!("listed inputs: {fit} items fit the schema, {unknown} are not in it");
    assert!(fit >= 50, "{fit}");
}
