//! A view for people at a terminal: digests and what is shown in part are marked.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throughline_model::json;
use throughline_model::{Content, Message, Source};
use throughline_store::Entry;

use super::super::text;

/// One or more lines for each message. `messages` are the messages of the record.
pub(super) fn lines(
    view: &[Arc<Message>],
    record: &[Entry],
    messages: &[Arc<Message>],
) -> Vec<String> {
    let record = record.iter().zip(messages.iter().map(Arc::as_ptr));
    let whole: HashMap<*const Message, &Entry> = record
        .clone()
        .map(|(entry, messages)| (messages, entry))
        .collect();
    let shown: HashSet<*const Message> = view.iter().map(Arc::as_ptr).collect();
    let others = record.filter(|(_, messages)| !shown.contains(messages));
    let mut others = others.map(|(entry, _)| entry);
    let mut lines = Vec::with_capacity(view.len());
    for message in view {
        lines.push(match whole.get(&Arc::as_ptr(message)) {
            Some(entry) => text::entry(entry),
            None if message.source == Some(Source::Summary) => digest(message),
            None => match part_of(message, &mut others) {
                Some(entry) => text::message(&format!("#{} in part,", entry.first), message),
                None => text::message("in part,", message),
            },
        });
    }
    lines
}

/// The message that another shows a part of. Parts stand in the order of the record.
fn part_of<'a>(
    part: &Message,
    others: &mut (impl Iterator<Item = &'a Entry> + Clone),
) -> Option<&'a Entry> {
    calls(part).next()?;
    let mut ahead = others.clone();
    let found = ahead.find(|entry| is_part(part, &entry.message))?;
    *others = ahead;
    Some(found)
}

/// A digest, and what it stands for.
fn digest(message: &Message) -> String {
    let covers = message.meta.as_ref().and_then(|meta| {
        let meta = json::parse(meta.get()).ok()?;
        let covers = meta.get("summary")?.get("covers")?;
        match covers.as_array()? {
            [first, last] => Some((first.as_u64()?, last.as_u64()?)),
            _ => None,
        }
    });
    let place = match covers {
        Some((first, last)) if first < last => format!("#{first}-{last} "),
        Some((first, _)) => format!("#{first} "),
        None => String::new(),
    };
    format!("{place}digest: {}", text::indented(&message.text()))
}

/// Whether a message shows results of another.
fn is_part(part: &Message, whole: &Message) -> bool {
    part.role == whole.role && calls(part).any(|call| calls(whole).any(|other| other == call))
}

/// The calls that a message has results of.
fn calls(message: &Message) -> impl Iterator<Item = &str> {
    let results = message.contents.iter().filter_map(Content::as_tool_result);
    results.map(|result| result.call().value())
}
