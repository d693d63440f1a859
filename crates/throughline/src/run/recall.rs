//! Tools that show a model the messages behind a digest, by number or by words.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_compact::ToolHistory;
use throughline_model::json::{RawJson, Value};
use throughline_model::{Arguments, Body, Content, Message, Outcome, Output};

use crate::prompt::number;
use crate::tool::{CallContext, Effect, Parameters, Tool, ToolError, ToolOutput, ToolSpec};

/// Characters that one answer has at most. A range of lines shows the rest.
const MOST: usize = 20_000;
/// Messages that one answer names at most.
const PLACES: u64 = 50;

/// What `expand` takes.
const EXPAND: &str = r##"{"type":"object","properties":{
    "seq":{"type":"integer","minimum":1,"description":"The number behind the # of a digest line."},
    "from_line":{"type":"integer","minimum":1,"description":"The first line to show, from 1."},
    "to_line":{"type":"integer","minimum":1,"description":"The last line to show."}},
    "required":["seq"]}"##;

/// What `recall` takes.
const RECALL: &str = r#"{"type":"object","properties":{
    "query":{"type":"string","description":"Words to look for: names, paths, ids."},
    "limit":{"type":"integer","minimum":1,"description":"How many places to name, 10 unless told."}},
    "required":["query"]}"#;

struct Expand {
    seq: u64,
    from_line: Option<usize>,
    to_line: Option<usize>,
}

struct Recall {
    query: String,
    limit: Option<u64>,
}

/// One of the two tools.
struct RecordTool {
    spec: ToolSpec,
    look: fn(&Value<'_>, &ToolHistory) -> Result<String, ToolError>,
}

/// `expand` and `recall`.
pub(crate) fn tools() -> [Arc<dyn Tool>; 2] {
    let known = |name: &str, description: &str, takes: &str| ToolSpec {
        description: Some(description.to_owned()),
        parameters: Parameters::parse(takes).expect("the schema is one"),
        effect: Effect::ReadOnly,
        ..ToolSpec::named(name)
    };
    let expand_tool = RecordTool {
        spec: known(
            "expand",
            "Show in full what a line of the form [Earlier: … #N] stands for.",
            EXPAND,
        ),
        look: |asked, record| {
            let number = |key: &str| asked.get(key).and_then(Value::as_u64);
            let place = |key: &str| number(key).and_then(|number| usize::try_from(number).ok());
            let asked = Expand {
                seq: number("seq").unwrap_or(0),
                from_line: place("from_line"),
                to_line: place("to_line"),
            };
            expand(&asked, record)
        },
    };
    let recall_tool = RecordTool {
        spec: known(
            "recall",
            "Find earlier messages and tool results of this conversation that have these words. \
             Answers with their numbers for expand.",
            RECALL,
        ),
        look: |asked, record| {
            let query = asked.get("query").and_then(Value::as_str);
            let asked = Recall {
                query: query.unwrap_or_default().into_owned(),
                limit: asked.get("limit").and_then(Value::as_u64),
            };
            Ok(recall(&asked, record))
        },
    };
    [Arc::new(expand_tool), Arc::new(recall_tool)]
}

#[async_trait]
impl Tool for RecordTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(
        &self,
        arguments: &RawJson,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let record = number(&context.record());
        (self.look)(&arguments.value(), &record).map(ToolOutput::text)
    }
}

fn expand(asked: &Expand, record: &ToolHistory) -> Result<String, ToolError> {
    let messages = record.expand(asked.seq);
    if messages.is_empty() {
        return Err(format!("there is no #{} in this conversation", asked.seq).into());
    }
    let whole: Vec<String> = messages
        .iter()
        .map(|message| message_text(message))
        .collect();
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
            // A line that is longer than an answer is cut.
            let room = MOST.saturating_sub(out.len());
            out.extend(line.chars().take(room));
            let _ = write!(out, "\n[line {no} of {lines}; go on with from_line]");
            return Ok(out);
        }
        out.push_str(line);
        out.push('\n');
    }
    Ok(out)
}

fn recall(asked: &Recall, record: &ToolHistory) -> String {
    let most = asked.limit.unwrap_or(10).clamp(1, PLACES);
    let found = record.recall(&asked.query, most as usize);
    let mut out = String::new();
    for seq in found {
        let Some((_, message)) = record.record().find(|(no, _)| *no == seq) else {
            continue;
        };
        let texts: Vec<(String, String)> = message
            .contents
            .iter()
            .map(|content| (mark(content), content_text(content)))
            .collect();
        let lines = || {
            let each = texts.iter();
            each.flat_map(|(mark, text)| text.lines().map(move |line| (mark.as_str(), line)))
        };
        let words = asked.query.split_whitespace();
        let has = |line: &str| words.clone().any(|word| line.contains(word));
        let found = lines().find(|(_, line)| has(line));
        let (mark, line) = found.or_else(|| lines().next()).unwrap_or_default();
        let line: String = line.trim().chars().take(200).collect();
        let _ = writeln!(out, "#{seq} {}{mark}: {line}", message.role.as_str());
    }
    match out.is_empty() {
        true => "Nothing in this conversation has these words.".to_owned(),
        false => out,
    }
}

/// A message as text, with its calls and results. A result whose outcome is not `ok` begins with it.
fn message_text(message: &Message) -> String {
    let mut out = String::new();
    for content in &message.contents {
        let text = content_text(content);
        let mark = mark(content);
        if !mark.is_empty() {
            out.push_str(mark.trim_start());
            out.push(if text.is_empty() { '\n' } else { ' ' });
        }
        out.push_str(&text);
        if !text.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// The outcome of a result as a mark; empty for `ok` and for other contents.
fn mark(content: &Content) -> String {
    match content.as_tool_result().map(|result| result.outcome) {
        None | Some(Outcome::Ok) => String::new(),
        Some(other) => format!(" ({})", other.as_str()),
    }
}

/// The text of a content; empty for contents without one.
fn content_text(content: &Content) -> String {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text.text.clone(),
        Body::ToolCall(call) => {
            let arguments = match &call.arguments {
                Arguments::None => "",
                Arguments::Text(text) | Arguments::Free(text) => text,
                Arguments::Json(json) => json.get(),
            };
            format!("{}({arguments})", call.name)
        }
        Body::ToolResult(result) => match &result.output {
            Output::None => String::new(),
            Output::Text(text) => text.clone(),
            Output::Json(json) => json.get().to_owned(),
            Output::Parts(parts) => {
                let texts = parts.iter().filter_map(Content::as_text);
                texts.collect()
            }
        },
        Body::Reasoning(_)
        | Body::Media(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Error(_)
        | Body::Opaque(_)
        | Body::Unknown(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Expand, Recall, expand, recall};
    use throughline_compact::{Policy, ToolHistory};
    use throughline_model::{CallId, Content, Message, Outcome, Output, Role, ToolCall};

    #[test]
    fn b249_what_is_recalled_names_its_outcome() {
        for outcome in Outcome::ALL {
            let mut record = ToolHistory::new(Policy::default());
            let call = |id: &str| {
                let id = CallId::natural(id).unwrap();
                ToolCall::function(id, "edit_file", r#"{"path":"/etc/passwd"}"#)
            };
            let calls = [call("c1"), call("c2")].map(Content::from);
            record.push(1, Message::new(Role::Assistant, calls.into()));
            let results = [
                call("c1").answer(Outcome::Ok, Output::from("first\nthe tide")),
                call("c2").answer(outcome, Output::from("second\nthe harbour")),
            ];
            let results = results.map(Content::from);
            record.push(2, Message::new(Role::Tool, results.into()));
            let found = recall(
                &Recall {
                    query: "harbour".to_owned(),
                    limit: None,
                },
                &record,
            );
            let whole = Expand {
                seq: 2,
                from_line: None,
                to_line: None,
            };
            let whole = expand(&whole, &record).unwrap();
            let (mark, start) = match outcome {
                Outcome::Ok => (String::new(), String::new()),
                other => (
                    format!(" ({})", other.as_str()),
                    format!("({}) ", other.as_str()),
                ),
            };
            assert_eq!(found, format!("#2 tool{mark}: the harbour\n"));
            assert!(
                whole.ends_with(&format!("first\nthe tide\n{start}second\nthe harbour\n")),
                "{whole}"
            );
        }
    }
}
