//! The tools `expand` and `recall`, answered from the record.

use serde_json::{Value, json};
use throughline_compact::ToolHistory;
use throughline_testkit::trajectory::message_texts;

/// Characters of an answer.
const MOST: usize = 40_000;
/// Characters of a place that was found.
const EXCERPT: usize = 200;
/// Places that are found.
const PLACES: usize = 10;

/// The tools as a request offers them.
pub(super) fn tools() -> Value {
    let tool = |name: &str, description: &str, key: &str, kind: &str| {
        json!({"type": "function", "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind}},
                "required": [key],
            },
        }})
    };
    json!([
        tool(
            "expand",
            "Show in full what a line of the form [Earlier: … #N] stands for.",
            "seq",
            "integer"
        ),
        tool(
            "recall",
            "Find earlier messages and tool results that have these words; answers with their numbers for expand.",
            "query",
            "string"
        ),
    ])
}

/// The answer to a call.
pub(super) fn answer(record: &ToolHistory, name: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    match name {
        "expand" => {
            // Models write numbers as strings at times.
            let seq = &arguments["seq"];
            let number = seq
                .as_u64()
                .or_else(|| seq.as_str()?.trim_start_matches('#').parse().ok());
            expand(record, number.unwrap_or(0))
        }
        "recall" => recall(record, arguments["query"].as_str().unwrap_or_default()),
        other => format!("There is no tool {other}."),
    }
}

fn expand(record: &ToolHistory, seq: u64) -> String {
    let found = record.expand(seq);
    if found.is_empty() {
        return format!("There is no #{seq} in this conversation.");
    }
    let texts: Vec<String> = found
        .iter()
        .flat_map(|message| message_texts(message))
        .collect();
    texts.join("\n").chars().take(MOST).collect()
}

fn recall(record: &ToolHistory, query: &str) -> String {
    let mut out = String::new();
    for seq in record.recall(query, PLACES) {
        let Some((_, message)) = record.record().find(|(found, _)| *found == seq) else {
            continue;
        };
        let text = message_texts(message).join("\n");
        let has = |line: &&str| query.split_whitespace().any(|word| line.contains(word));
        let line = text.lines().find(has).or_else(|| text.lines().next());
        let line: String = line.unwrap_or_default().chars().take(EXCERPT).collect();
        out.push_str(&format!("#{seq} {}: {line}\n", message.role.as_str()));
    }
    match out.is_empty() {
        true => "Nothing in this conversation has these words.".to_owned(),
        false => out,
    }
}
