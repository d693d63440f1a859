//! The checks themselves, written against messages alone.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_compact::ToolHistory;
use throughline_model::{Body, Content, Message, Pairing, Role, Source, Wire};
use throughline_testkit::trajectory::is_refused;

/// The stored form of messages.
pub(crate) fn bytes<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Vec<String> {
    messages.into_iter().map(|one| one.to_json()).collect()
}

/// How many calls of each id have no result after them, and how many results no call before them.
fn open(messages: &[Arc<Message>]) -> (HashMap<&str, usize>, usize) {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut strays = 0;
    for content in messages.iter().flat_map(|message| &message.contents) {
        match &content.body {
            Body::ToolCall(call) => *open.entry(call.call.value()).or_default() += 1,
            Body::ToolResult(result) if result.pairing() == Pairing::Answers => {
                match open.get_mut(result.call().value()) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => strays += 1,
                }
            }
            _ => {}
        }
    }
    (open, strays)
}

/// No result without its call, and no call without the result that the record has.
pub(crate) fn pairs(view: &[Arc<Message>], record: &[Arc<Message>]) -> Result<(), String> {
    let (open_in_view, strays) = open(view);
    if strays > 0 {
        return Err(format!("{strays} results without a call"));
    }
    let (known, _) = open(record);
    for (id, count) in open_in_view {
        let most = known.get(id).copied().unwrap_or_default();
        if count > most {
            return Err(format!("{count} calls {id} are open, {most} of the record"));
        }
    }
    Ok(())
}

/// System text and the first request stand in the view: system text as it was said, the request too
/// unless it had to give way to a budget.
pub(crate) fn pinned(view: &[Arc<Message>], record: &[Arc<Message>]) -> Result<(), String> {
    let speaks = |message: &&Arc<Message>| {
        let own = |content: &Content| content.as_tool_result().is_none();
        message.contents.is_empty() || message.contents.iter().any(own)
    };
    let system = record
        .iter()
        .filter(|one| matches!(one.role, Role::System | Role::Developer));
    let first = record
        .iter()
        .filter(|one| one.role == Role::User)
        .find(speaks);
    for wanted in system {
        if !view.iter().any(|shown| shown == wanted) {
            return Err(format!("not shown: {}", wanted.to_json()));
        }
    }
    if let Some(wanted) = first {
        let is_shown = |shown: &Arc<Message>| shown == wanted || in_part(shown, wanted);
        if !view.iter().any(is_shown) {
            return Err(format!("not shown: {}", wanted.to_json()));
        }
    }
    Ok(())
}

/// Whether a message is another one with its texts in part: the start and the end of each, and a mark
/// between them.
fn in_part(shown: &Message, whole: &Message) -> bool {
    let alike = |(shown, whole): (&Content, &Content)| {
        let (Some(part), Some(text)) = (shown.as_text(), whole.as_text()) else {
            return shown == whole;
        };
        let Some((head, rest)) = part.split_once("[… ") else {
            return part == text;
        };
        let head = head.strip_suffix('\n').unwrap_or(head);
        let tail = rest.lines().last().unwrap_or_default();
        let marked = rest.contains("left out, all of it is #");
        marked && text.starts_with(head) && text.trim_end().ends_with(tail.trim_end())
    };
    let same_parts = shown.contents.len() == whole.contents.len();
    let mut parts = shown.contents.iter().zip(&whole.contents);
    shown.role == whole.role && shown.id == whole.id && same_parts && parts.all(alike)
}

/// What is digested is marked so.
pub(crate) fn digests(view: &[Arc<Message>]) -> impl Iterator<Item = &Arc<Message>> {
    view.iter()
        .filter(|message| message.source == Some(Source::Summary))
}

/// Every group is in the tail from its first message on, or before the cut and in a block.
pub(crate) fn covered(history: &ToolHistory) -> Result<(), String> {
    let Some(epoch) = history.epoch() else {
        return Ok(());
    };
    let begins = |place: usize| history.seq_at(place).unwrap_or_default();
    let groups = history.groups().iter().map(|group| begins(group.first()));
    let known = groups.filter(|seq| *seq <= epoch.upto_seq);
    let (mut before, mut kept) = (0, 0);
    for seq in known.filter(|seq| *seq < epoch.cut_seq) {
        before += 1;
        kept += u64::from(epoch.blocks.iter().any(|block| block.kept.contains(&seq)));
    }
    // A group whose result came late is digested twice.
    let digested: u64 = epoch.blocks.iter().map(|block| block.groups).sum();
    if kept + digested < before {
        return Err(format!(
            "{before} groups before #{}, {kept} shown and {digested} digested",
            epoch.cut_seq
        ));
    }
    Ok(())
}

/// Every vendor takes it; gives how many were asked.
pub(crate) fn vendors(view: &[Arc<Message>]) -> Result<u64, String> {
    let mut asked = 0;
    for wire in Wire::KNOWN {
        if is_refused(view, &wire) {
            return Err(format!("refused by {}", wire.as_str()));
        }
        asked += 1;
    }
    Ok(asked)
}
