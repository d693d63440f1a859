use std::fmt::Write;

use throughline::Outcome;
use throughline::model::{Body, Message, Outcome as Ending, Role};

/// A history in short form: `u a(c1,c2) t(c1,c2:error) a`, with outcomes other than `ok`.
pub fn short<'m>(messages: impl IntoIterator<Item = &'m Message>) -> String {
    let mut out = String::new();
    for message in messages {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(match message.role {
            Role::System | Role::Developer => "s",
            Role::User => "u",
            Role::Assistant => "a",
            Role::Tool => "t",
            Role::Other(_) => "?",
        });
        let inner: Vec<String> = message
            .contents
            .iter()
            .filter_map(|content| match &content.body {
                Body::ToolCall(call) => Some(call.call.to_string()),
                Body::ToolResult(result) if result.outcome == Ending::Ok => {
                    Some(result.call().to_string())
                }
                Body::ToolResult(result) => {
                    Some(format!("{}:{}", result.call(), result.outcome.as_str()))
                }
                _ => None,
            })
            .collect();
        if !inner.is_empty() {
            write!(out, "({})", inner.join(",")).expect("a string takes everything");
        }
    }
    out
}

/// The transcript of an outcome in short form.
pub fn said(outcome: &Outcome) -> String {
    short(&outcome.messages)
}

/// The text of the result of a call.
pub fn result_text(messages: &[Message], call: &str) -> String {
    let results = messages.iter().flat_map(|message| &message.contents);
    results
        .filter_map(|content| content.as_tool_result())
        .filter(|result| result.call().value() == call)
        .map(|result| match &result.output {
            throughline::model::Output::Text(text) => text.clone(),
            other => format!("{other:?}"),
        })
        .next_back()
        .unwrap_or_default()
}
