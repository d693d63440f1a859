//! Edits whose old text the model must have before it.

use throughline_model::{Content, Message};

use super::Session;
use super::text::{argument_strings, message_texts};

/// Arguments with the text that an edit replaces.
const OLD: [&str; 4] = ["old_string", "oldText", "old_str", "oldString"];

/// An edit of text that the session had shown before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The index of the model's message that makes it: its view must show the text.
    pub at: usize,
    /// The text that it replaces, without white space at the end.
    pub old: String,
    /// The index of the message in which it occurred last.
    pub last: usize,
    /// How many tool calls were made since.
    pub back: usize,
}

/// The edits of a session's calls, in order.
pub fn edits(session: &Session) -> Vec<Edit> {
    let mut found = Vec::new();
    let mut shown: Vec<String> = Vec::with_capacity(session.messages.len());
    let mut calls_before = Vec::with_capacity(session.messages.len());
    let mut calls = 0;
    for (at, message) in session.messages.iter().enumerate() {
        for old in replaced(message) {
            if let Some(last) = shown.iter().rposition(|text| text.contains(&old)) {
                let back = calls - calls_before[last];
                found.push(Edit {
                    at,
                    old,
                    last,
                    back,
                });
            }
        }
        calls_before.push(calls);
        let made = message.contents.iter().filter_map(Content::as_tool_call);
        calls += made.count();
        shown.push(editable_text(message));
    }
    found
}

/// The text of a message as an edit would quote it.
pub fn editable_text(message: &Message) -> String {
    let texts: Vec<String> = message_texts(message)
        .iter()
        .map(|text| without_line_numbers(text))
        .collect();
    texts.join("\n")
}

/// A file as a tool shows it, without the numbers before its lines.
///
/// ```
/// use throughline_testkit::trajectory::without_line_numbers;
///
/// assert_eq!(without_line_numbers("  12\tlet tide = 3;\n  13→}"), "let tide = 3;\n}\n");
/// assert_eq!(without_line_numbers("12 boats"), "12 boats\n");
/// ```
pub fn without_line_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        let start = line.trim_start();
        let rest = start.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = rest.len() < start.len();
        let plain = rest.strip_prefix(['\t', '→', '|']).filter(|_| numbered);
        out.push_str(plain.unwrap_or(line));
        out.push('\n');
    }
    out
}

fn replaced(message: &Message) -> Vec<String> {
    let calls = message.contents.iter().filter_map(Content::as_tool_call);
    let arguments = calls.flat_map(|call| argument_strings(&call.arguments));
    let old =
        arguments.filter(|(key, text)| OLD.contains(&key.as_str()) && !text.trim().is_empty());
    old.map(|(_, text)| text.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use throughline_model::Outcome;

    use super::edits;
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    #[test]
    fn an_edit_counts_when_its_old_text_was_shown_before() {
        let mut made = Maker::new(0);
        made.user("fix it");
        let mut round = |name: &str, arguments: &str, output: &str| {
            made.called(name, arguments, Outcome::Ok, output);
        };
        round(
            "Read",
            r#"{"path":"a"}"#,
            "    1\tlet a = 1;\n    2\tlet b = 2;\n",
        );
        round("Edit", r#"{"old_string":"let a = 1;\nlet b = 2;\n"}"#, "ok");
        round("Edit", r#"{"old_string":"never shown"}"#, "no match");
        let found = edits(&Session::new("s", made.messages));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].at, found[0].last, found[0].back), (3, 2, 0));
        assert_eq!(found[0].old, "let a = 1;\nlet b = 2;");
    }
}
