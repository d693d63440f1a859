//! The contents of a store as text for people.

use throughline::thread::{CopyOutcome, Owner, VendorCopy};
use throughline_model::{
    Arguments, Body, Content, MediaSource, Message, Output, Role, ToolCall, ToolResult,
};
use throughline_store::{Entry, Run, Thread};

use super::json_form::run_kind;
use crate::time;

/// Characters of a call or a result that are shown.
const SHORT: usize = 160;

/// Characters that turn the direction of writing or begin a line without being control characters.
fn is_direction_control(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// A text without what would move the cursor, change colours or turn the direction of writing.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_direction_control(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The start of a text, in one line.
fn short(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > 4 * SHORT {
            break;
        }
    }
    let words = plain(&words);
    match words.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// One line about a thread.
pub(super) fn thread(thread: &Thread) -> String {
    let mut line = thread.id.to_string();
    if let Some(title) = &thread.title {
        line.push_str(&format!("  {:?}", short(title)));
    }
    for alias in &thread.aliases {
        line.push_str(&format!("  {}:{}", short(&alias.kind), short(&alias.name)));
    }
    let items = thread.head.map_or(0, |head| head.last);
    let open = thread.head.is_some_and(|head| head.open);
    line.push_str(&format!(
        "  {}, {}{}, touched {}",
        counted(items, "item"),
        counted(thread.tokens(), "token"),
        if open { ", open" } else { "" },
        time::format_utc(thread.touched)
    ));
    line
}

/// One line about a run.
pub(super) fn run(run: &Run) -> String {
    let mut line = format!(
        "{}  {}  {} {}  thread {}  began {}",
        run.id,
        run.state.as_str(),
        run_kind(run.kind),
        run.mode.as_str(),
        run.thread,
        time::format_utc(run.created)
    );
    if run.cancelling && !run.state.is_settled() {
        line.push_str("  to be cancelled");
    }
    line
}

/// Who keeps a history, in a few words.
pub(super) fn owner(owner: &Owner) -> String {
    match owner {
        Owner::Local => "our store".to_owned(),
        Owner::Services(services) => {
            let names: Vec<String> = services.iter().map(plain).collect();
            names.join(", ")
        }
        Owner::External { store, key } => format!(
            "the message store {} of the application, under {}",
            plain(store),
            plain(key.get())
        ),
    }
}

/// One line about what a vendor has of a thread, and what was done about it.
pub(super) fn vendor_copy(copy: &VendorCopy) -> String {
    let (upstream, mut id) = (plain(&copy.upstream), plain(&copy.id));
    if !copy.agent.is_empty() {
        id.push_str(&format!(" (agent {})", plain(&copy.agent)));
    }
    match &copy.outcome {
        CopyOutcome::Remains => format!("{upstream} has {id}"),
        CopyOutcome::Inherited => format!("{upstream} has {id} of another thread"),
        CopyOutcome::Deleted => format!("{upstream} deleted {id}"),
        CopyOutcome::Absent => format!("{upstream} did not have {id} any more"),
        CopyOutcome::Unsupported => format!("{upstream} has {id} and cannot delete it"),
        CopyOutcome::Failed { reason } => {
            format!("{upstream} did not delete {id}: {}", plain(reason))
        }
    }
}

/// `1 item`, `2 items`
pub(super) fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// A message: its position, role and contents; calls and results have a line each.
pub(super) fn entry(entry: &Entry) -> String {
    let place = match (entry.first, entry.last) {
        (0, _) => format!("item {}", entry.at.no),
        (first, last) if first == last => format!("#{first}"),
        (first, last) => format!("#{first}-{last}"),
    };
    if let Some(redaction) = &entry.redacted
        && entry.message.contents.is_empty()
    {
        return format!(
            "{place} [redacted by {}, {}]",
            short(&redaction.by),
            time::format_utc(redaction.at)
        );
    }
    let mut out = message(&place, &entry.message);
    if let Some(redaction) = &entry.redacted {
        let (by, at) = (short(&redaction.by), time::format_utc(redaction.at));
        out.push_str(&format!("\n    [redacted by {by}, {at}]"));
    }
    out
}

/// A message under the name of its position: role and contents; calls and results have a line each.
pub(super) fn message(place: &str, message: &Message) -> String {
    let mut lines = Vec::new();
    let mut texts = String::new();
    for content in &message.contents {
        match words(content) {
            ContentText::Text(text) => {
                if !texts.is_empty() {
                    texts.push('\n');
                }
                texts.push_str(&text);
            }
            ContentText::Line(line) => lines.push(line),
        }
    }
    let who = role(&message.role);
    let mut out = match texts.is_empty() {
        true => format!("{place} {who}:"),
        false => format!("{place} {who}: {}", indented(&texts)),
    };
    for line in lines {
        out.push_str("\n    ");
        out.push_str(&line);
    }
    out
}

/// Text whose later lines stand under its first.
pub(super) fn indented(text: &str) -> String {
    plain(text).replace('\n', "\n    ")
}

fn role(role: &Role) -> String {
    short(role.as_str())
}

/// The text form of a content.
enum ContentText {
    /// What belongs into the message's own text.
    Text(String),
    /// What has a line of its own.
    Line(String),
}

fn words(content: &Content) -> ContentText {
    ContentText::Line(match &content.body {
        Body::Text(text) => return ContentText::Text(text.text.clone()),
        Body::Refusal(text) => format!("[refusal] {}", short(&text.text)),
        Body::Reasoning(reasoning) => {
            let text = reasoning.summary.iter().chain(&reasoning.text);
            let text: Vec<&str> = text.map(String::as_str).collect();
            format!("[reasoning] {}", short(&text.join(" ")))
                .trim_end()
                .to_owned()
        }
        Body::Media(media) => {
            let what = format!("{:?}", media.kind).to_lowercase();
            match &media.source {
                MediaSource::Uri(uri) => format!("[{what}] {}", short(uri)),
                _ => format!("[{what}]"),
            }
        }
        Body::ToolCall(call) => self::call(call),
        Body::ToolResult(result) => self::result(result),
        Body::ApprovalRequest(_) => "[asks for approval]".to_owned(),
        Body::ApprovalResponse(_) => "[answers an approval]".to_owned(),
        Body::Error(fault) => format!("[error] {}", short(&fault.message)),
        Body::Opaque(opaque) => format!("[{}]", short(&opaque.tag)),
        Body::Unknown(_) => "[content of a later version]".to_owned(),
    })
}

fn call(call: &ToolCall) -> String {
    let name = match call.name.as_str() {
        "" => call.family.as_str(),
        name => name,
    };
    let arguments = match &call.arguments {
        Arguments::None => String::new(),
        Arguments::Text(text) | Arguments::Free(text) => short(text),
        Arguments::Json(json) => short(json.get()),
    };
    format!(
        "-> {} {arguments} ({})",
        short(name),
        short(call.call.value())
    )
}

fn result(result: &ToolResult) -> String {
    let name = result.name.as_deref().unwrap_or(result.family.as_str());
    let output = match &result.output {
        Output::None => String::new(),
        Output::Text(text) => short(text),
        Output::Json(json) => short(json.get()),
        Output::Parts(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(Content::as_text).collect();
            match texts.is_empty() {
                true => counted(parts.len() as u64, "part"),
                false => short(&texts.join(" ")),
            }
        }
    };
    format!(
        "<- {} {}: {output} ({})",
        short(name),
        result.outcome.as_str(),
        short(result.call().value())
    )
}

#[cfg(test)]
mod tests {
    use super::{plain, short};

    #[test]
    fn what_is_stored_cannot_drive_the_terminal() {
        assert_eq!(
            plain("a\x1b[2Jb\tc\n\u{9b}d\r"),
            "a\\u{1b}[2Jb\tc\n\\u{9b}d\\r"
        );
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(short("a\n  b"), "a b");
        let long = short(&"ä ".repeat(500));
        assert_eq!(
            (long.chars().count(), long.chars().last()),
            (161, Some('…'))
        );
    }
}
