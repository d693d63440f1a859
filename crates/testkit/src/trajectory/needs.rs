//! Names that an agent needs of its past.

use throughline_model::{Content, ToolCall};

use super::atoms::{atoms, stands_in};
use super::past::Past;
use super::text::argument_strings;
use super::{RECENT, Session};

/// The origin of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The result of a tool.
    Result,
    /// The user, or the instructions.
    User,
}

/// A name that a call uses and that the session last showed some calls before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The index of the model's message that uses it: its view must show the name.
    pub at: usize,
    /// The name.
    pub atom: String,
    /// Where it occurred first.
    pub origin: Origin,
    /// How many tool calls ago it occurred last.
    pub back: usize,
    /// The index of the message in which it occurred last.
    pub last: usize,
    /// The tool that uses it.
    pub tool: String,
}

/// Arguments with text to be written rather than names.
pub(super) const BODIES: &[&str] = &[
    "code_edit",
    "content",
    "contents",
    "diff",
    "file_text",
    "insert_text",
    "new_source",
    "new_str",
    "new_string",
    "newText",
    "new_text",
    "old_str",
    "old_string",
    "oldText",
    "old_text",
    "patch",
];

/// The needs of a session's calls, in order.
pub fn needs(session: &Session) -> Vec<Need> {
    let past = Past::of(session);
    let mut found = Vec::new();
    for (at, message) in session.messages.iter().enumerate() {
        let mut used: Vec<String> = Vec::new();
        for call in message.contents.iter().filter_map(Content::as_tool_call) {
            for atom in used_by(call) {
                if !used.contains(&atom) {
                    found.extend(need(&past, at, &atom, &call.name));
                    used.push(atom);
                }
            }
        }
    }
    found
}

fn need(past: &Past, at: usize, atom: &str, tool: &str) -> Option<Need> {
    let pieces = past.before(at);
    let last = pieces.iter().rfind(|piece| stands_in(&piece.text, atom))?;
    let back = past.back(at, last);
    if back < RECENT {
        return None;
    }
    let first = pieces.iter().find(|piece| stands_in(&piece.text, atom))?;
    Some(Need {
        at,
        atom: atom.to_owned(),
        origin: first.origin()?,
        back,
        last: last.at,
        tool: tool.to_owned(),
    })
}

/// The names in the arguments of a call, without text to be written.
fn used_by(call: &ToolCall) -> Vec<String> {
    let mut found = Vec::new();
    for (key, text) in argument_strings(&call.arguments) {
        if BODIES.contains(&key.as_str()) {
            continue;
        }
        for atom in atoms(without_written(&text)) {
            if !found.contains(&atom) {
                found.push(atom);
            }
        }
    }
    found
}

/// A command without text that it writes to a file.
fn without_written(command: &str) -> &str {
    let Some(at) = command.find("<<") else {
        return command;
    };
    let first = command[..at].rsplit('\n').next().unwrap_or_default();
    let line = command[at..].find('\n').map(|end| at + end);
    match (first.contains('>') || first.contains("tee "), line) {
        (true, Some(end)) => &command[..end],
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::Outcome;

    use super::{Origin, needs};
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    fn round(made: &mut Maker, arguments: &str, output: &str) {
        made.called("read", arguments, Outcome::Ok, output);
    }

    #[test]
    fn a_need_is_a_name_that_was_last_seen_six_calls_back() {
        for (between, expected) in [(4, 0), (5, 1), (9, 1)] {
            let mut made = Maker::new(0);
            made.user("fix src/tide.rs");
            round(&mut made, r#"{"path":"other"}"#, "fn high_water() {}");
            for _ in 0..between {
                round(&mut made, r#"{"path":"other"}"#, "nothing");
            }
            round(&mut made, r#"{"query":"high_water"}"#, "");
            let found = needs(&Session::new("s", made.messages));
            assert_eq!(found.len(), expected, "{between}: {found:?}");
            if let [need] = found.as_slice() {
                assert_eq!((need.origin, need.back), (Origin::Result, between + 1));
                assert_eq!((need.atom.as_str(), need.last), ("high_water", 2));
            }
        }
    }

    #[test]
    fn what_the_user_said_first_is_from_the_user_and_own_words_are_no_need() {
        let mut made = Maker::new(0);
        made.user("fix src/tide.rs");
        made.says("my_own_idea");
        for _ in 0..6 {
            round(&mut made, r#"{"path":"other"}"#, "nothing");
        }
        let uses = r#"{"path":"/project/src/tide.rs","query":"my_own_idea never_seen","new_string":"src/tide.rs"}"#;
        round(&mut made, uses, "");
        let found = needs(&Session::new("s", made.messages));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].origin, found[0].back), (Origin::User, 7));
    }

    #[test]
    fn edit_bodies_do_not_count() {
        let mut made = Maker::new(0);
        made.user("src/tide.rs high_water");
        for _ in 0..6 {
            round(&mut made, r#"{"path":"other"}"#, "nothing");
        }
        let body = r#"{"new_string":"high_water","command":"cat > x <<'EOF'\nhigh_water\nEOF"}"#;
        round(&mut made, body, "");
        assert_eq!(needs(&Session::new("s", made.messages)), []);
    }
}
