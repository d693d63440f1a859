//! Bringing results to their calls.

use std::borrow::Cow;
use std::collections::HashMap;

use throughline_model::{Content, ContentAt, Message, Pair, Pairing, Role, Runner, pairs};

use super::target::Adjacency;

/// A message and the index it has in the history.
pub(super) type Placed<'m> = (usize, Cow<'m, Message>);

/// The history with each result behind its call, and where the moved results stood.
pub(super) fn in_order<'m>(
    messages: &'m [Message],
    adjacency: Adjacency,
) -> (Vec<Placed<'m>>, Vec<ContentAt>) {
    let found = pairs(messages);
    let mut moved: HashMap<usize, Vec<Pair>> = HashMap::new();
    let mut taken: Vec<ContentAt> = Vec::new();
    for pair in &found {
        if !moves(messages, pair) || stands_well(messages, pair, adjacency) {
            continue;
        }
        moved.entry(pair.call.message).or_default().push(*pair);
        taken.push(pair.result);
    }
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
    (placed, taken)
}

fn result<'m>(messages: &'m [Message], pair: &Pair) -> &'m Content {
    &messages[pair.result.message].contents[pair.result.content]
}

/// Only results of the application have a place of their own; those of a vendor stay where the
/// vendor put them.
fn moves(messages: &[Message], pair: &Pair) -> bool {
    result(messages, pair)
        .as_tool_result()
        .is_some_and(|result| result.runner == Runner::Client && result.pairing() == Pairing::Answers)
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
