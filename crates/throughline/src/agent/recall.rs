//! Tools with which a model gets at what it is shown only as a digest: by number, or by words.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use throughline_compact::ToolHistory;
use throughline_model::{Arguments, Body, Content, Message, Output};

use crate::history::number;
use crate::tool::{CallContext, Effect, Tool, ToolError, tool};

/// Characters that one answer has at most; a range gets at the rest.
const MOST: usize = 20_000;
/// Places that one answer names at most.
const PLACES: u32 = 50;

#[derive(Deserialize, JsonSchema)]
struct Expand {
    /// The number behind the # of a digest line.
    seq: u64,
    /// The first line to show, from 1.
    #[serde(default)]
    from_line: Option<usize>,
    /// The last line to show.
    #[serde(default)]
    to_line: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
struct Recall {
    /// Words to look for: names, paths, ids.
    query: String,
    /// How many places to name, 10 unless told.
    #[serde(default)]
    limit: Option<u32>,
}

/// `expand` and `recall`.
pub(super) fn tools() -> [Arc<dyn Tool>; 2] {
    let expand = tool(
        "expand",
        "Show in full what a line of the form [Earlier: … #N] stands for.",
        |asked: Expand| async move { expand(&asked, &record()?) },
    );
    let recall = tool(
        "recall",
        "Find earlier messages and tool results of this conversation that have these words. Answers with their numbers for expand.",
        |asked: Recall| async move { recall(&asked, &record()?) },
    );
    [expand, recall].map(|one| one.effect(Effect::ReadOnly).into_tool())
}

/// The conversation so far.
fn record() -> Result<ToolHistory, ToolError> {
    let context = CallContext::current().ok_or("there is no conversation here")?;
    Ok(number(&context.record()))
}

fn expand(asked: &Expand, record: &ToolHistory) -> Result<String, ToolError> {
    let messages = record.expand(asked.seq);
    if messages.is_empty() {
        return Err(format!("there is no #{} in this conversation", asked.seq).into());
    }
    let whole: Vec<String> = messages.iter().map(|message| told(message)).collect();
    let whole = whole.join("\n");
    let lines = whole.lines().count();
    let first = asked.from_line.unwrap_or(1).max(1);
    let last = asked.to_line.unwrap_or(lines).min(lines);
    let mut out = String::new();
    for (no, line) in (1..).zip(whole.lines()).skip(first - 1) {
        if no > last {
            break;
        }
        if out.len() + line.len() > MOST {
            let room = line.floor_char_boundary(MOST.saturating_sub(out.len()));
            let _ = write!(
                out,
                "{}\n[line {no} of {lines}; go on with from_line]",
                &line[..room]
            );
            return Ok(out);
        }
        out.push_str(line);
        out.push('\n');
    }
    Ok(out)
}

fn recall(asked: &Recall, record: &ToolHistory) -> Result<String, ToolError> {
    let most = asked.limit.unwrap_or(10).clamp(1, PLACES);
    let found = record.recall(&asked.query, most as usize);
    let mut out = String::new();
    for seq in found {
        let Some((_, message)) = record.record().find(|(no, _)| *no == seq) else {
            continue;
        };
        let text = told(message);
        let words = asked.query.split_whitespace();
        let has = |line: &&str| words.clone().any(|word| line.contains(word));
        let line = text.lines().find(has).or_else(|| text.lines().next());
        let line: String = line.unwrap_or_default().trim().chars().take(200).collect();
        let _ = writeln!(out, "#{seq} {}: {line}", message.role.as_str());
    }
    match out.is_empty() {
        true => Ok("Nothing in this conversation has these words.".to_owned()),
        false => Ok(out),
    }
}

/// A message as text: what was said, asked of tools and answered by them.
fn told(message: &Message) -> String {
    let mut out = String::new();
    for content in &message.contents {
        match &content.body {
            Body::Text(text) | Body::Refusal(text) => out.push_str(&text.text),
            Body::ToolCall(call) => {
                let arguments = match &call.arguments {
                    Arguments::None => "",
                    Arguments::Text(text) | Arguments::Free(text) => text,
                    Arguments::Json(json) => json.get(),
                };
                let _ = write!(out, "{}({arguments})", call.name);
            }
            Body::ToolResult(result) => match &result.output {
                Output::None => {}
                Output::Text(text) => out.push_str(text),
                Output::Json(json) => out.push_str(json.get()),
                Output::Parts(parts) => {
                    let texts = parts.iter().filter_map(Content::as_text);
                    texts.for_each(|text| out.push_str(text));
                }
            },
            Body::Reasoning(_)
            | Body::Media(_)
            | Body::ApprovalRequest(_)
            | Body::ApprovalResponse(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => continue,
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}
