//! Bringing results to their calls.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use throughline_model::{
    Content, ContentAt, Message, Outcome, Pair, Pairing, Role, Runner, ToolResult, pairs,
};

use super::format::Adjacency;

/// A message and the index it has in the history.
pub(super) type Placed<'m> = (usize, Cow<'m, Message>);

/// A history with each result behind its call.
pub(super) struct Reordered<'m> {
    pub(super) placed: Vec<Placed<'m>>,
    /// Where results stood that were moved.
    pub(super) moved: Vec<ContentAt>,
    /// Where results stood for which real ones came later.
    pub(super) replaced: Vec<ContentAt>,
}

/// Whether a result is a placeholder: the real one may still come.
pub(super) fn is_placeholder(result: &ToolResult) -> bool {
    match result.outcome {
        Outcome::Expired
        | Outcome::Withdrawn
        | Outcome::Limit
        | Outcome::Terminated
        | Outcome::Cancelled
        | Outcome::Unknown => true,
        Outcome::Ok | Outcome::Error | Outcome::Rejected => false,
    }
}

/// Give calls that have a result which only stands in the real one that came later. What stood in
/// is returned.
fn replace(messages: &[Message], found: &mut [Pair]) -> Vec<ContentAt> {
    let answers = |at: ContentAt| {
        let result = messages[at.message].contents[at.content].as_tool_result();
        result.filter(|result| result.pairing() == Pairing::Answers)
    };
    let paired: HashSet<ContentAt> = found.iter().map(|pair| pair.result).collect();
    let mut replaced = Vec::new();
    for (message, one) in messages.iter().enumerate() {
        for content in 0..one.contents.len() {
            let at = ContentAt { message, content };
            let Some(late) = answers(at).filter(|late| !is_placeholder(late)) else {
                continue;
            };
            if paired.contains(&at) {
                continue;
            }
            // The newest call of its id before it, if that has no real result.
            let of_id = |pair: &&mut Pair| {
                let known = answers(pair.result);
                pair.result < at
                    && known.is_some_and(|one| {
                        one.call().value() == late.call().value()
                            && one.occurrence() == late.occurrence()
                    })
            };
            let newest = found.iter_mut().filter(of_id).max_by_key(|pair| pair.call);
            if let Some(pair) =
                newest.filter(|pair| answers(pair.result).is_some_and(is_placeholder))
            {
                replaced.push(pair.result);
                pair.result = at;
            }
        }
    }
    replaced
}

/// Bring each result behind its call.
pub(super) fn in_order(messages: &[Message], adjacency: Adjacency) -> Reordered<'_> {
    let mut found = pairs(messages);
    let replaced = replace(messages, &mut found);
    let mut moved: HashMap<usize, Vec<Pair>> = HashMap::new();
    let mut taken: Vec<ContentAt> = Vec::new();
    for pair in &found {
        if !moves(messages, pair) || stands_well(messages, pair, adjacency) {
            continue;
        }
        moved.entry(pair.call.message).or_default().push(*pair);
        taken.push(pair.result);
    }
    let moves = taken.clone();
    taken.extend(&replaced);
    taken.sort_unstable();
    let mut placed = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let stays = |content: usize| {
            let at = ContentAt {
                message: index,
                content,
            };
            taken.binary_search(&at).is_err()
        };
        if (0..message.contents.len()).all(stays) {
            placed.push((index, Cow::Borrowed(message)));
        } else {
            let contents = message.contents.iter().enumerate();
            let contents = contents.filter(|(place, _)| stays(*place));
            let mut rest = Message::new(message.role.clone(), Vec::new());
            rest.status.clone_from(&message.status);
            rest.contents = contents.map(|(_, content)| content.clone()).collect();
            placed.push((index, Cow::Owned(rest)));
        }
        if let Some(pairs) = moved.get(&index) {
            let contents = pairs.iter().map(|pair| result(messages, pair).clone());
            let results = Message::new(Role::Tool, contents.collect());
            placed.push((index, Cow::Owned(results)));
        }
    }
    Reordered {
        placed,
        moved: moves,
        replaced,
    }
}

fn result<'m>(messages: &'m [Message], pair: &Pair) -> &'m Content {
    &messages[pair.result.message].contents[pair.result.content]
}

/// Only results of the application have a place of their own; those of a vendor stay where the
/// vendor put them.
fn moves(messages: &[Message], pair: &Pair) -> bool {
    result(messages, pair)
        .as_tool_result()
        .is_some_and(|result| {
            result.runner == Runner::Client && result.pairing() == Pairing::Answers
        })
}

/// Whether a result stands where the target wants it.
fn stands_well(messages: &[Message], pair: &Pair, adjacency: Adjacency) -> bool {
    if pair.result < pair.call {
        return false;
    }
    let between = messages
        .get(pair.call.message + 1..pair.result.message)
        .unwrap_or_default();
    let same = pair.call.message == pair.result.message;
    let only_results = |message: &Message| match adjacency {
        Adjacency::Next => message.role == Role::Tool || message.contents.is_empty(),
        Adjacency::BeforeModel => message.role != Role::Assistant,
    };
    same || between.iter().all(only_results)
}
