//! The tool types whose id class is not natural, each by name, and why its pair matches.

use std::collections::BTreeSet;

use throughline_model::json::RawJson;
use throughline_model::{Body, CallId, Message, Origin, Pairing, pairs};
use throughline_wire::{Wire, codec};

use crate::common::{Entry, decode, entries};

/// Why a call and its result belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// A set id is a correlation id; without one, the first call of the kind that still waits.
    IdOrFirstWaiting,
    /// The result names the call in `call_id`, or in `id` where that is missing.
    EitherField,
    /// Call and result are one item, named by the item's id.
    OneItem,
    /// One item without any id: the place of the call names both.
    OneItemByPlace,
    /// A call of the vendor whose result never comes as an item.
    NeverAnswered,
    /// A result without a call; its id is only a handle.
    NeverCalled,
}

use Why::{EitherField, IdOrFirstWaiting, NeverAnswered, NeverCalled, OneItem, OneItemByPlace};

const TYPES: [(&str, &str, Why); 25] = [
    (
        "openai-responses",
        "FunctionToolCallOutput",
        IdOrFirstWaiting,
    ),
    (
        "openai-responses",
        "FunctionToolCallOutputResource",
        IdOrFirstWaiting,
    ),
    (
        "openai-responses",
        "FunctionCallOutputItemParam",
        IdOrFirstWaiting,
    ),
    ("openai-responses", "LocalShellToolCallOutput", EitherField),
    ("openai-responses", "ToolSearchCall", IdOrFirstWaiting),
    (
        "openai-responses",
        "ToolSearchCallItemParam",
        IdOrFirstWaiting,
    ),
    ("openai-responses", "ToolSearchOutput", IdOrFirstWaiting),
    (
        "openai-responses",
        "ToolSearchOutputItemParam",
        IdOrFirstWaiting,
    ),
    ("openai-responses", "CodeInterpreterToolCall", OneItem),
    ("openai-responses", "FileSearchToolCall", OneItem),
    ("openai-responses", "ImageGenToolCall", OneItem),
    ("openai-responses", "MCPToolCall", OneItem),
    ("openai-responses", "WebSearchToolCall", NeverAnswered),
    ("gemini", "FunctionCall", IdOrFirstWaiting),
    ("gemini", "FunctionResponse", IdOrFirstWaiting),
    ("gemini", "ExecutableCode", IdOrFirstWaiting),
    ("gemini", "CodeExecutionResult", IdOrFirstWaiting),
    ("gemini", "ToolCall", IdOrFirstWaiting),
    ("gemini", "ToolResponse", IdOrFirstWaiting),
    ("foundry", "MemorySearchToolCallItemParam", OneItemByPlace),
    ("foundry", "MemorySearchToolCallItemResource", OneItem),
    ("foundry", "WorkflowActionOutputItem", NeverCalled),
    ("foundry", "OAuthConsentRequestOutputItem", NeverCalled),
    (
        "foundry",
        "OutputItemFunctionToolCallOutput",
        IdOrFirstWaiting,
    ),
    ("foundry", "OutputItemToolSearchCall", IdOrFirstWaiting),
];

/// The other half of a pair, as JSON, for the types that have one; `{id}` stands for its id field.
fn other_half(tag: &str) -> (&'static str, bool) {
    match tag {
        "function_call_output" => (
            r#"{"type":"function_call",{id}"name":"get_tide_table","arguments":"{}"}"#,
            true,
        ),
        "local_shell_call_output" => (
            r#"{"type":"local_shell_call",{id}"id":"lsh_1","action":{"type":"exec","command":[],"env":{}},"status":"completed"}"#,
            true,
        ),
        "tool_search_call" => (r#"{"type":"tool_search_output",{id}"tools":[]}"#, false),
        "tool_search_output" => (r#"{"type":"tool_search_call",{id}"arguments":{}}"#, true),
        "functionCall" => (
            r#"{"role":"user","parts":[{"functionResponse":{{id}"name":"get_tide_table","response":{}}}]}"#,
            false,
        ),
        "functionResponse" => (
            r#"{"role":"model","parts":[{"functionCall":{{id}"name":"get_tide_table","args":{}}}]}"#,
            true,
        ),
        "executableCode" => (
            r#"{"role":"model","parts":[{"codeExecutionResult":{{id}"outcome":"OUTCOME_OK"}}]}"#,
            false,
        ),
        "codeExecutionResult" => (
            r#"{"role":"model","parts":[{"executableCode":{{id}"language":"PYTHON","code":"1"}}]}"#,
            true,
        ),
        "toolCall" => (
            r#"{"role":"model","parts":[{"toolResponse":{{id}"toolType":"GOOGLE_SEARCH_WEB"}}]}"#,
            false,
        ),
        "toolResponse" => (
            r#"{"role":"model","parts":[{"toolCall":{{id}"toolType":"GOOGLE_SEARCH_WEB"}}]}"#,
            true,
        ),
        other => panic!("{other} has no other half"),
    }
}

/// The example with its correlation id set to some JSON, or without it.
fn with_call_id(entry: &Entry, id: Option<&str>) -> String {
    let path = entry.call_id_path.as_deref().unwrap_or("/call_id");
    let keys: Vec<&str> = path.split('/').skip(1).collect();
    let (last, parents) = keys.split_last().unwrap();
    let value = entry.example.value();
    let parent = value.at(parents).unwrap();
    let changed = RawJson::object(|object| {
        if let Some(id) = id {
            object.raw(last, id);
        }
        for member in parent
            .members()
            .iter()
            .filter(|member| !member.key.is(last))
        {
            let out = object.key_token(&member.key);
            throughline_model::json::push_compact(out, &member.value);
        }
    });
    let example = RawJson::of_with(&value, &[(parent, changed.get())]);
    entry.wrap(example.get())
}

fn ids(messages: &[Message]) -> Vec<(CallId, bool)> {
    messages
        .iter()
        .flat_map(|message| &message.contents)
        .filter_map(|content| match &content.body {
            Body::ToolCall(call) => Some((call.call.clone(), true)),
            Body::ToolResult(result) => Some((result.call().clone(), false)),
            _ => None,
        })
        .collect()
}

/// Decode the example beside its other half; both must carry one id of the expected origin.
fn paired(entry: &Entry, id: Option<&str>, origin: Origin) {
    let (half, half_is_call) = other_half(&entry.tag);
    let field = entry.call_id_path.as_deref().unwrap_or("/call_id");
    let field = field.rsplit('/').next().unwrap();
    let slot = id.map_or(String::new(), |id| format!("\"{field}\":{id},"));
    let half = half.replace("{id}", &slot);
    let own = with_call_id(entry, id);
    let array = if half_is_call {
        format!("[{half},{own}]")
    } else {
        format!("[{own},{half}]")
    };
    let messages = decode(codec(&entry.wire).unwrap(), &array).unwrap();
    let found = ids(&messages);
    assert_eq!(found.len(), 2, "{}: {array}", entry.name());
    assert_eq!(found[0].0, found[1].0, "{}: {array}", entry.name());
    assert_eq!(found[0].0.origin(), origin, "{}: {array}", entry.name());
    assert_eq!(pairs(&messages).len(), 1, "{}: {array}", entry.name());
}

#[test]
fn each_type_without_a_natural_id_pairs_for_its_reason() {
    let all = entries();
    let listed: BTreeSet<(String, String)> = all
        .iter()
        .filter(|entry| entry.class != "natural" && entry.role != "other")
        .filter(|entry| entry.catalogue == "row" || entry.catalogue == "variant")
        .map(|entry| (entry.wire.to_string(), entry.wire_type.clone()))
        .collect();
    let named: BTreeSet<(String, String)> = TYPES
        .iter()
        .map(|(wire, name, _)| ((*wire).to_owned(), (*name).to_owned()))
        .collect();
    assert_eq!(
        listed, named,
        "the catalogue and this list name the same types"
    );
    for (wire, name, why) in TYPES {
        let wire = Wire::named(wire);
        let mut found = all
            .iter()
            .filter(|entry| entry.wire == wire && entry.wire_type == name);
        let entry = found.next().unwrap();
        let array = format!("[{}]", entry.wrapped());
        let messages = decode(entry.codec(), &array).unwrap();
        let ids = ids(&messages);
        match why {
            IdOrFirstWaiting => {
                paired(entry, Some("\"call_Given1\""), Origin::Natural);
                paired(entry, Some("null"), Origin::Minted);
                paired(entry, None, Origin::Minted);
            }
            EitherField => {
                paired(entry, Some("\"call_lsh01\""), Origin::Natural);
                // Its schema has `id` only, which is described as the id of the call.
                let own = with_call_id(entry, None);
                let (half, _) = other_half(&entry.tag);
                let half = half.replace("{id}", "\"call_id\":\"call_lsh01\",");
                let messages = decode(entry.codec(), &format!("[{half},{own}]")).unwrap();
                assert_eq!(pairs(&messages).len(), 1, "{name}");
            }
            OneItem => {
                assert_eq!(ids.len(), 2, "{name}");
                assert_eq!(ids[0].0, ids[1].0);
                assert_eq!(ids[0].0.origin(), Origin::Item);
            }
            OneItemByPlace => {
                assert_eq!(ids.len(), 2, "{name}");
                assert_eq!(ids[0].0, ids[1].0);
                assert_eq!(ids[0].0.origin(), Origin::Minted);
            }
            NeverAnswered => {
                assert_eq!(ids.len(), 1, "{name}");
                assert!(ids[0].1, "{name} is a call");
                assert_eq!(ids[0].0.origin(), Origin::Item);
            }
            NeverCalled => {
                assert_eq!(ids.len(), 1, "{name}");
                assert_eq!(ids[0].0.origin(), Origin::Item);
                let result = messages[0].contents[0].as_tool_result().unwrap();
                assert_eq!(result.pairing(), Pairing::Standalone, "{name}");
            }
        }
        println!("table {:<50} pairs by {why:?}", format!("{wire} {name}"));
    }
}

#[test]
fn the_tables_of_the_codecs_agree_with_the_catalogue() {
    let mut checked = 0;
    for entry in entries() {
        let rows = entry.codec().types();
        let row = rows.iter().flat_map(|table| table.iter());
        let Some(row) = row.into_iter().find(|row| row.tag == entry.tag) else {
            panic!("{} has no row for {}", entry.wire, entry.tag);
        };
        // One row serves both forms of a memory search; the form without an id is its instance.
        if entry.class != "absent" && entry.role != "other" {
            assert_eq!(row.class.as_str(), entry.class, "{}", entry.name());
        }
        checked += 1;
    }
    println!("table {checked} examples have a row of their class");
}
