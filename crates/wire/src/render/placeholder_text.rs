//! The texts that stand where something else cannot.

use throughline_model::{
    Arguments, Body, Content, Outcome, Output, Status, ToolCall, ToolResult, json,
};

use crate::foreign;

/// The text of a user message that is inserted where the target requires one.
pub(super) const CONTINUE: &str = "Continue.";

/// What stands for the result of a call that has none.
pub(super) fn no_result(status: Option<&Status>) -> &'static str {
    match status {
        Some(Status::Incomplete | Status::InProgress) => {
            "[No result: the call was interrupted before it was complete.]"
        }
        Some(Status::Failed) => "[No result: the call failed.]",
        Some(Status::Completed | Status::Other(_)) | None => {
            "[No result was recorded for this call; whether it ran is unknown.]"
        }
    }
}

/// The text of a result that has an outcome but no output.
pub(super) fn outcome(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Error => Some("[The call failed.]"),
        Outcome::Rejected => Some("[The call was rejected by a person and did not run.]"),
        Outcome::Expired => Some("[Nobody approved the call in time; it did not run.]"),
        Outcome::Withdrawn => Some("[The call was withdrawn and did not run.]"),
        Outcome::Limit => Some("[A limit was reached; the call did not run.]"),
        Outcome::Terminated => Some("[The run was ended; the call did not run.]"),
        Outcome::Cancelled => Some("[The call was cancelled.]"),
        Outcome::Unknown => Some("[The result of this call was lost; whether it ran is unknown.]"),
    }
}

/// The text of an output.
pub(super) fn output(output: &Output) -> String {
    match output {
        Output::None => String::new(),
        Output::Text(text) => text.clone(),
        Output::Json(json) => json.get().to_owned(),
        Output::Parts(parts) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
    }
}

fn part(content: &Content) -> String {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => text.text.clone(),
        Body::Media(media) => format!("[{:?}]", media.kind).to_lowercase(),
        Body::Error(fault) => fault.message.clone(),
        Body::Opaque(opaque) => format!("[{}]", opaque.tag),
        Body::Reasoning(_)
        | Body::ToolCall(_)
        | Body::ToolResult(_)
        | Body::ApprovalRequest(_)
        | Body::ApprovalResponse(_)
        | Body::Unknown(_) => "[content]".to_owned(),
    }
}

/// A call as text.
pub(super) fn call(call: &ToolCall) -> String {
    let arguments = match &call.arguments {
        Arguments::None => String::new(),
        arguments => format!(" {}", foreign::arguments_text(arguments)),
    };
    format!("[Called {}{arguments}]", foreign::tool_name(call))
}

/// A tool, what it was given and how that ended: the head of a result whose call is not shown. Past
/// tense and no braces, so that nothing of it reads like a call.
pub(super) fn asked(call: &ToolCall, outcome: Outcome) -> String {
    let mut text = foreign::tool_name(call).to_owned();
    let given = given(&call.arguments);
    if !given.is_empty() {
        text.push_str(", which was given ");
        text.push_str(&given.join("; "));
    }
    if outcome != Outcome::Ok {
        text.push_str(&format!(" ({})", outcome.as_str()));
    }
    text
}

/// The longest value that is repeated of what a tool was given.
const LONGEST_VALUE: usize = 200;

/// How many values are repeated of what a tool was given.
const MOST_VALUES: usize = 12;

fn given(arguments: &Arguments) -> Vec<String> {
    let text = match arguments {
        Arguments::None => return Vec::new(),
        Arguments::Free(text) => return vec![quoted(text)],
        Arguments::Text(text) => text.as_str(),
        Arguments::Json(json) => json.get(),
    };
    let Ok(value) = json::parse(text) else {
        return vec![quoted(text)];
    };
    let Some(members) = value.as_object() else {
        return vec![short(value.raw())];
    };
    let shown = members.iter().take(MOST_VALUES);
    let mut given: Vec<String> = shown
        .map(|member| {
            let name = short(member.key.token());
            format!("{name}: {}", short(member.value.raw()))
        })
        .collect();
    if members.len() > MOST_VALUES {
        given.push(format!("{} more", members.len() - MOST_VALUES));
    }
    given
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    json::push_string(&mut out, text);
    short(&out)
}

/// One line of a text, cut where it is too long.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_VALUE {
        return line;
    }
    let mut cut: String = line.chars().take(LONGEST_VALUE).collect();
    cut.push('…');
    cut
}

/// A result as text.
pub(crate) fn result(result: &ToolResult) -> String {
    let name = result.name.as_deref().unwrap_or(result.family.as_str());
    let mark = match result.outcome {
        Outcome::Ok => "",
        other => other.as_str(),
    };
    let mark = if mark.is_empty() {
        String::new()
    } else {
        format!(" ({mark})")
    };
    let text = output(&result.output);
    if text.is_empty() {
        format!("[Result of {name}{mark}]")
    } else {
        format!("[Result of {name}{mark}]\n{text}")
    }
}
