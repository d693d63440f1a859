//! Failures that are not resolved yet, and the line that says what went wrong.

use std::collections::HashMap;

use throughline_model::{Outcome, ToolCall};

use super::Session;
use super::atoms::atoms;
use super::facts::{command, error_line, failed, folded, output, start};
use super::text::argument_strings;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The index of the message with its result.
    pub at: usize,
    /// The index of the message in which the same command, or a call for the same file, succeeded.
    pub resolved: Option<usize>,
    /// The start of its first error line, with white space folded.
    pub line: String,
}

impl Failure {
    /// Whether the model has to know of it when it writes a message.
    pub fn is_open_at(&self, at: usize) -> bool {
        self.at < at && self.resolved.is_none_or(|resolved| resolved >= at)
    }
}

/// The failures of a session that say what went wrong, in order.
///
/// A failure is resolved when the same command succeeds later, or another call for the same file;
/// of a call without command and file, when a call with the same arguments does.
pub fn failures(session: &Session) -> Vec<Failure> {
    let mut found: Vec<Failure> = Vec::new();
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, call, result) in session.answered_calls() {
        let subject = subject(call);
        let text = output(result);
        if result.outcome == Outcome::Ok {
            for place in open.remove(&subject).unwrap_or_default() {
                found[place].resolved = Some(at);
            }
        } else if failed(result, &text)
            && let Some(line) = error_line(&text).map(start)
            && !line.is_empty()
        {
            open.entry(subject).or_default().push(found.len());
            found.push(Failure {
                at,
                resolved: None,
                line,
            });
        }
    }
    found
}

/// What a call is about: its command, its file, or all of its arguments.
fn subject(call: &ToolCall) -> String {
    if let Some(command) = command(call) {
        return format!("command {}", folded(&command));
    }
    let arguments = argument_strings(&call.arguments);
    let file = arguments.iter().find_map(|(key, value)| {
        let key = key.to_ascii_lowercase();
        let named = key.contains("path") || key.contains("file");
        atoms(value).into_iter().next().filter(|_| named)
    });
    match file {
        Some(file) => format!("file {file}"),
        None => {
            let values: Vec<&str> = arguments.iter().map(|(_, value)| value.as_str()).collect();
            format!("call {} {}", call.name, folded(&values.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::Outcome;

    use super::failures;
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    #[test]
    fn a_failure_is_open_until_the_same_command_or_file_succeeds() {
        let mut made = Maker::new(0);
        made.user("fix it");
        let mut round = |name: &str, arguments: &str, outcome, output: &str| {
            made.called(name, arguments, outcome, output);
        };
        let (make, edit) = (r#"{"command":"make  tide"}"#, r#"{"file_path":"src/a.rs"}"#);
        round("Bash", make, Outcome::Error, "Exit code 2\nerror: no tide");
        round("Edit", edit, Outcome::Error, "text not found");
        round("Bash", r#"{"command":"make"}"#, Outcome::Ok, "fine");
        round("Bash", r#"{"command":"make tide"}"#, Outcome::Ok, "fine");
        let found = failures(&Session::new("s", made.messages));
        let open: Vec<_> = found
            .iter()
            .map(|failure| (failure.line.as_str(), failure.at, failure.resolved))
            .collect();
        assert_eq!(
            open,
            [("error: no tide", 2, Some(8)), ("text not found", 4, None)]
        );
        assert!(!found[0].is_open_at(2) && found[0].is_open_at(7));
        assert!(found[0].is_open_at(8) && !found[0].is_open_at(9) && found[1].is_open_at(99));
    }
}
