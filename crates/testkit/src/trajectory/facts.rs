//! Facts that must still be known late in a session.

use std::collections::HashMap;

use throughline_model::{Body, Content, Outcome, Role, ToolCall, ToolResult};

use super::atoms::atoms;
use super::text::{argument_strings, message_texts};
use super::{RECENT, Session};

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FactKind {
    /// A file that was written.
    Written,
    /// A command that failed.
    Failed,
    /// The first line that says what went wrong.
    ErrorLine,
    /// A request of the user.
    Request,
}

/// A fact that the last view of a session should show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub kind: FactKind,
    /// The text to search for, with white space folded.
    pub text: String,
}

/// How many characters of a command, an error line or a request must be there.
const ENOUGH: usize = 80;

/// The facts of a session that are older than its recent calls.
pub fn facts(session: &Session) -> Vec<Fact> {
    let last = session.model_calls().last().unwrap_or(0);
    let seen = &session.messages[..last];
    let mut results: HashMap<&str, &ToolResult> = HashMap::new();
    for result in seen.iter().flat_map(|message| &message.contents) {
        if let Body::ToolResult(result) = &result.body {
            results.entry(result.call().value()).or_insert(result);
        }
    }
    let all: Vec<&ToolCall> = seen
        .iter()
        .flat_map(|message| message.contents.iter().filter_map(Content::as_tool_call))
        .collect();
    let old = all.len().saturating_sub(RECENT);
    let mut found = Vec::new();
    let mut add = |kind, text: String| {
        let fact = Fact { kind, text };
        if !fact.text.is_empty() && !found.contains(&fact) {
            found.push(fact);
        }
    };
    for call in &all[..old] {
        let Some(result) = results.get(call.call.value()) else {
            continue;
        };
        let output = output(result);
        if let Some(path) = written(call).filter(|_| result.outcome == Outcome::Ok) {
            let again = all[old..]
                .iter()
                .any(|late| written(late).as_ref() == Some(&path));
            if !again {
                add(FactKind::Written, path);
            }
        }
        if let Some(command) = command(call).filter(|_| failed(result, &output)) {
            add(FactKind::Failed, start(&command));
            if let Some(line) = error_line(&output) {
                add(FactKind::ErrorLine, start(line));
            }
        }
    }
    for message in seen.iter().filter(|message| message.role == Role::User) {
        // Messages that the application inserted are not requests.
        if message
            .meta
            .as_ref()
            .is_none_or(|meta| meta.value().get("kind").is_none())
        {
            add(FactKind::Request, start(&message.text()));
        }
    }
    found
}

/// A text with each run of white space as one blank.
pub fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The first line of an output that reports an error.
pub fn error_line(output: &str) -> Option<&str> {
    const PHRASES: [&str; 3] = ["no such file", "not found", "cannot "];
    output.lines().map(str::trim).find(|line| {
        let lower = line.to_ascii_lowercase();
        let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(says_failure) || PHRASES.iter().any(|phrase| lower.contains(phrase))
    })
}

fn says_failure(word: &str) -> bool {
    const WORDS: [&str; 7] = [
        "fatal",
        "panic",
        "fail",
        "failed",
        "failure",
        "errored",
        "undefined",
    ];
    WORDS.contains(&word) || word.ends_with("error") || word.ends_with("exception")
}

/// As much of a text as must be shown, white space folded.
pub(super) fn start(text: &str) -> String {
    first_characters(text, ENOUGH)
}

/// The first characters of a text, white space folded.
pub(super) fn first_characters(text: &str, most: usize) -> String {
    let text = folded(text);
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(at, _)| at);
    text[..end].trim_end().to_owned()
}

pub(super) fn output(result: &ToolResult) -> String {
    let content = Content::from(result.clone());
    let message = throughline_model::Message::new(Role::Tool, vec![content]);
    message_texts(&message).concat()
}

/// The file that a call writes, as a name.
fn written(call: &ToolCall) -> Option<String> {
    const WORDS: [&str; 7] = [
        "write",
        "edit",
        "create",
        "patch",
        "replace",
        "insert",
        "multiedit",
    ];
    const KEYS: [&str; 4] = ["path", "file_path", "filename", "filePath"];
    let name = call.name.to_ascii_lowercase();
    let writes = name
        .split(['_', '-', '.'])
        .any(|word| WORDS.contains(&word));
    let arguments = argument_strings(&call.arguments);
    let path = arguments
        .iter()
        .find(|(key, _)| KEYS.contains(&key.as_str()));
    let (_, path) = path.filter(|_| writes)?;
    atoms(path).into_iter().next()
}

/// The command that a call runs, if it runs one.
pub(super) fn command(call: &ToolCall) -> Option<String> {
    let arguments = argument_strings(&call.arguments);
    let mut found = arguments.into_iter();
    let (_, command) = found.find(|(key, _)| key == "command" || key == "cmd")?;
    Some(command)
}

/// Whether a command failed: by its exit code, or by the tool's report of an error.
pub(super) fn failed(result: &ToolResult, output: &str) -> bool {
    let lower = output.to_ascii_lowercase();
    let code = ["exit code ", "exited with code ", "exit code: "]
        .iter()
        .find_map(|words| {
            let at = lower.find(words)? + words.len();
            let digits: String = lower[at..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse::<u32>().ok()
        });
    match code {
        Some(code) if result.outcome == Outcome::Error => code != 0,
        _ => result.outcome == Outcome::Error && error_line(output).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::Outcome;

    use super::{FactKind, facts};
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    #[test]
    fn files_failures_and_requests_are_facts_once_they_are_old() {
        let mut made = Maker::new(0);
        made.user("please  fix\nthe tide");
        let mut round = |name: &str, arguments: &str, outcome, output: &str| {
            made.called(name, arguments, outcome, output);
        };
        round("Edit", r#"{"file_path":"/a/b/c.rs"}"#, Outcome::Ok, "ok");
        let output = "Exit code 2\nbuilding\nerror: no tide";
        round(
            "Bash",
            r#"{"command":"make  tide"}"#,
            Outcome::Error,
            output,
        );
        round("Bash", r#"{"command":"true"}"#, Outcome::Ok, "no error");
        for _ in 0..6 {
            round("Edit", r#"{"file_path":"late.rs"}"#, Outcome::Ok, "ok");
        }
        made.says("done");
        let found = facts(&Session::new("s", made.messages));
        let found: Vec<_> = found
            .iter()
            .map(|fact| (fact.kind, fact.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (FactKind::Written, "b/c.rs"),
                (FactKind::Failed, "make tide"),
                (FactKind::ErrorLine, "error: no tide"),
                (FactKind::Request, "please fix the tide"),
            ]
        );
    }
}
