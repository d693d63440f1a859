//! Names together with what they belong to.
//!
//! A name alone says that something exists, not where. A bag of all names of a history would keep
//! every need and leave the model with nothing to do about it.

use std::collections::{BTreeSet, HashMap};

use throughline_model::{Body, Content, Message, ToolCall};

use super::atoms::{atoms, stands_in};
use super::facts::{command, first_characters, folded};
use super::past::{Past, Piece};
use super::text::{argument_strings, message_texts};
use super::{Need, Origin, Session};

/// A line with more files and commands than this says of no name where it belongs.
const MOST_OWNERS: usize = 12;

/// How many characters of a command must be there.
const ENOUGH: usize = 40;

/// A need for a name that is no file itself, with the files and commands whose results showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundNeed {
    /// The index of the model's message that uses the name.
    pub at: usize,
    /// The name.
    pub atom: String,
    /// Files by their last two components, and the starts of commands with white space folded.
    pub owners: Vec<String>,
    /// The calls whose results showed it.
    calls: BTreeSet<String>,
}

/// Those of a session's needs that come from a result and belong to a file or a command.
pub fn bound_needs(session: &Session, needs: &[Need]) -> Vec<BoundNeed> {
    let past = Past::of(session);
    let calls: HashMap<&str, &ToolCall> = session
        .messages
        .iter()
        .flat_map(|message| message.contents.iter().filter_map(Content::as_tool_call))
        .map(|call| (call.call.value(), call))
        .collect();
    let wanted = needs
        .iter()
        .filter(|need| need.origin == Origin::Result && !is_file(&need.atom));
    let bound = wanted.map(|need| {
        let mut bound = BoundNeed {
            at: need.at,
            atom: need.atom.clone(),
            owners: Vec::new(),
            calls: BTreeSet::new(),
        };
        for piece in past.before(need.at) {
            let call = piece.answers.as_ref().and_then(|id| calls.get(id.as_str()));
            if let Some(call) = call
                && stands_in(&piece.text, &need.atom)
            {
                bound.calls.insert(call.call.value().to_owned());
                let mut found = owners(call);
                found.extend(owners_in_lines(piece, &need.atom));
                found.retain(|owner| *owner != need.atom && !bound.owners.contains(owner));
                bound.owners.append(&mut found);
            }
        }
        bound
    });
    bound.filter(|bound| !bound.owners.is_empty()).collect()
}

/// The files and commands of a session, as [`BoundNeed::owners`] has them.
pub fn all_owners(session: &Session) -> BTreeSet<String> {
    let messages = session.messages.iter();
    let calls =
        messages.flat_map(|message| message.contents.iter().filter_map(Content::as_tool_call));
    calls.flat_map(owners).collect()
}

impl BoundNeed {
    /// Whether a message shows the name with what it belongs to: in a result of such a call, or in
    /// one line, unless that line lists many others too.
    pub fn is_shown_by(&self, message: &Message, all: &BTreeSet<String>) -> bool {
        let contents = message.contents.iter().zip(message_texts(message));
        contents.into_iter().any(|(content, text)| {
            if !stands_in(&text, &self.atom) {
                return false;
            }
            let whole = match &content.body {
                Body::ToolResult(result) => self.calls.contains(result.call().value()),
                _ => false,
            };
            whole || text.lines().any(|line| self.is_bound_by(line, all))
        })
    }

    fn is_bound_by(&self, line: &str, all: &BTreeSet<String>) -> bool {
        if !stands_in(line, &self.atom) {
            return false;
        }
        let line = folded(line);
        let named = |owner: &String| stands_in(&line, owner);
        let few = || {
            all.iter()
                .filter(|owner| named(owner))
                .nth(MOST_OWNERS)
                .is_none()
        };
        self.owners.iter().any(named) && few()
    }
}

/// The file of a call, or its command; if it has neither, what it asks for.
fn owners(call: &ToolCall) -> Vec<String> {
    let arguments = argument_strings(&call.arguments);
    let mut found: Vec<String> = Vec::new();
    for (key, value) in &arguments {
        let key = key.to_ascii_lowercase();
        if key.contains("path") || key.contains("file") {
            found.extend(atoms(value).into_iter().next());
        }
    }
    found.extend(command(call).map(|command| first_characters(&command, ENOUGH)));
    if found.is_empty() {
        let values = arguments
            .iter()
            .map(|(_, value)| first_characters(value, ENOUGH));
        found.extend(values.filter(|value| value.len() >= 3));
    }
    found
}

/// The files in the lines of a result in which a name stands, as search results have them.
fn owners_in_lines(piece: &Piece, atom: &str) -> Vec<String> {
    let lines = piece.text.lines().filter(|line| stands_in(line, atom));
    let files = lines.flat_map(atoms).filter(|atom| is_file(atom));
    files.take(MOST_OWNERS).collect()
}

fn is_file(atom: &str) -> bool {
    let extension = atom.rsplit_once('.').map(|(_, extension)| extension);
    let short = |extension: &str| extension.bytes().all(|byte| byte.is_ascii_lowercase());
    atom.contains('/')
        || extension.is_some_and(|extension| extension.len() <= 4 && short(extension))
}

#[cfg(test)]
mod tests {
    use throughline_model::{Message, Outcome};

    use super::{all_owners, bound_needs};
    use crate::trajectory::maker::Maker;
    use crate::trajectory::{Session, needs};

    #[test]
    fn a_name_is_bound_in_a_line_with_its_file_and_not_in_a_bag() {
        let mut made = Maker::new(0);
        made.user("fix it");
        let mut round =
            |arguments: &str, output: &str| made.called("read", arguments, Outcome::Ok, output);
        round(r#"{"path":"/p/src/tide.rs"}"#, "fn high_water() {}");
        for place in 0..20 {
            let arguments = format!(r#"{{"path":"src/other_{place}.rs"}}"#);
            round(&arguments, "nothing");
        }
        round(r#"{"query":"high_water"}"#, "");
        let session = Session::new("s", made.messages);
        let (needs, all) = (needs(&session), all_owners(&session));
        let bound = bound_needs(&session, &needs);
        assert_eq!(bound.len(), 1, "{needs:?}");
        assert_eq!(bound[0].owners, ["src/tide.rs"]);
        let is_shown = |text: String| bound[0].is_shown_by(&Message::user(text), &all);
        assert!(bound[0].is_shown_by(&session.messages[2], &all));
        assert!(is_shown(
            "Read /p/src/tide.rs, defines high_water".to_owned()
        ));
        assert!(!is_shown("Read src/tide.rs\nhigh_water".to_owned()));
        let names: Vec<String> = all.iter().cloned().collect();
        assert!(!is_shown(format!("high_water {}", names.join(" "))));
    }
}
