//! The entries of a request.

use serde_json::{Value, json};
use throughline_model::Wire;

/// An entry of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A call of a function.
    Call {
        /// Its id; empty if it has none.
        id: String,
        /// Its arguments, parsed.
        arguments: Value,
    },
    /// The result of a call.
    Result {
        /// The id of the call; empty if it has none.
        id: String,
        /// What the function returned.
        text: String,
    },
    /// Text of a user.
    User(String),
    /// Text of the model.
    Assistant(String),
}

/// The entries of a request, in order, read from the vendor's JSON without the codec under test.
/// Ids are as in the request, including repeated and empty ones, so that a test can tell which
/// result belongs to which call as the vendor would. Instructions, reasoning and tools are omitted.
pub fn entries(wire: &Wire, body: &Value) -> Vec<Entry> {
    let mut entries = Vec::new();
    match wire {
        Wire::OpenAiChat => chat(body, &mut entries),
        Wire::Anthropic => anthropic(body, &mut entries),
        Wire::Gemini => gemini(body, &mut entries),
        _ => responses(body, &mut entries),
    }
    entries
}

fn chat(body: &Value, entries: &mut Vec<Entry>) {
    for message in list(&body["messages"]) {
        let said = texts(&message["content"]);
        match string(&message["role"]) {
            "tool" => entries.push(Entry::Result {
                id: string(&message["tool_call_id"]).to_owned(),
                text: said,
            }),
            "assistant" => {
                push_text(entries, said, Entry::Assistant);
                for call in list(&message["tool_calls"]) {
                    let arguments = string(&call["function"]["arguments"]);
                    entries.push(Entry::Call {
                        id: string(&call["id"]).to_owned(),
                        arguments: parsed(arguments),
                    });
                }
            }
            "user" => push_text(entries, said, Entry::User),
            _ => {}
        }
    }
}

fn anthropic(body: &Value, entries: &mut Vec<Entry>) {
    for message in list(&body["messages"]) {
        let said = if message["role"] == "assistant" {
            Entry::Assistant
        } else {
            Entry::User
        };
        if let Some(text) = message["content"].as_str() {
            push_text(entries, text.to_owned(), said);
        }
        for block in list(&message["content"]) {
            match string(&block["type"]) {
                "text" => {
                    push_text(entries, string(&block["text"]).to_owned(), said);
                }
                "tool_use" => entries.push(Entry::Call {
                    id: string(&block["id"]).to_owned(),
                    arguments: block["input"].clone(),
                }),
                "tool_result" => entries.push(Entry::Result {
                    id: string(&block["tool_use_id"]).to_owned(),
                    text: texts(&block["content"]),
                }),
                _ => {}
            }
        }
    }
}

fn gemini(body: &Value, entries: &mut Vec<Entry>) {
    for content in list(&body["contents"]) {
        let said = if content["role"] == "model" {
            Entry::Assistant
        } else {
            Entry::User
        };
        for part in list(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                entries.push(Entry::Call {
                    id: string(&call["id"]).to_owned(),
                    arguments: call["args"].clone(),
                });
            } else if let Some(result) = part.get("functionResponse") {
                entries.push(Entry::Result {
                    id: string(&result["id"]).to_owned(),
                    text: only_text(&result["response"]),
                });
            } else {
                push_text(entries, string(&part["text"]).to_owned(), said);
            }
        }
    }
}

fn responses(body: &Value, entries: &mut Vec<Entry>) {
    for item in list(&body["input"]) {
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => entries.push(Entry::Call {
                id: string(&item["call_id"]).to_owned(),
                arguments: parsed(string(&item["arguments"])),
            }),
            "function_call_output" => entries.push(Entry::Result {
                id: string(&item["call_id"]).to_owned(),
                text: texts(&item["output"]),
            }),
            "message" => {
                let said = match string(&item["role"]) {
                    "assistant" => Entry::Assistant,
                    _ => Entry::User,
                };
                push_text(entries, texts(&item["content"]), said);
            }
            _ => {}
        }
    }
}

fn push_text(entries: &mut Vec<Entry>, text: String, said: fn(String) -> Entry) {
    if !text.is_empty() {
        entries.push(said(text));
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Arguments in a string.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// The only text of an object, else the whole object.
fn only_text(value: &Value) -> String {
    let mut members = value.as_object().into_iter().flatten();
    match (members.next(), members.next()) {
        (Some((_, Value::String(text))), None) => text.clone(),
        _ => value.to_string(),
    }
}

/// A text, or the texts of parts.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => list(content)
            .filter_map(|part| part["text"].as_str())
            .collect(),
    }
}
