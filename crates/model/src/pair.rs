use std::collections::HashMap;

use crate::{Body, Message, Pairing};

/// Where a content stands in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentAt {
    /// Index of the message.
    pub message: usize,
    /// Index of the content in the message.
    pub content: usize,
}

/// A call and the result that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The call.
    pub call: ContentAt,
    /// Its result.
    pub result: ContentAt,
}

/// Find the result of each call, by occurrence.
///
/// Ids repeat in real histories: models count from one again in each turn, and some wires have no
/// id at all. So a result answers, among the calls of its id that stand before it and have no
/// result yet, those of the *newest message*, first come first served. A result whose calls all
/// come later (an import that mixed up the order) answers the first of those. One call has one
/// result; what remains is not in the list. Pairs come in the order of their results.
///
/// ```
/// use throughline_model::{pairs, CallId, Content, Message, Outcome, Output, Role, ToolCall};
///
/// let call = || ToolCall::function(CallId::natural("call_0").unwrap(), "f", "{}");
/// let result = || call().answer(Outcome::Ok, Output::None);
/// let mut history = Vec::new();
/// for _turn in 0..2 {
///     history.push(Message::new(Role::Assistant, vec![call().into(), call().into()]));
///     history.push(Message::new(Role::Tool, vec![result().into(), result().into()]));
/// }
/// let found = pairs(&history);
/// let places: Vec<_> = found
///     .iter()
///     .map(|p| (p.call.message, p.call.content, p.result.message, p.result.content))
///     .collect();
/// assert_eq!(places, [(0, 0, 1, 0), (0, 1, 1, 1), (2, 0, 3, 0), (2, 1, 3, 1)]);
/// ```
pub fn pairs(messages: &[Message]) -> Vec<Pair> {
    let mut open: HashMap<&str, Vec<ContentAt>> = HashMap::new();
    let mut early: HashMap<&str, Vec<ContentAt>> = HashMap::new();
    let mut found = Vec::new();
    for (at_message, message) in messages.iter().enumerate() {
        for (at_content, content) in message.contents.iter().enumerate() {
            let here = ContentAt {
                message: at_message,
                content: at_content,
            };
            match &content.body {
                Body::ToolCall(call) => open.entry(call.call.value()).or_default().push(here),
                Body::ToolResult(result) if result.pairing() == Pairing::Answers => {
                    let id = result.call().value();
                    match open.get_mut(id).and_then(take_newest) {
                        Some(call) => found.push(Pair { call, result: here }),
                        None => early.entry(id).or_default().push(here),
                    }
                }
                Body::ToolResult(_)
                | Body::Text(_)
                | Body::Reasoning(_)
                | Body::Media(_)
                | Body::ApprovalRequest(_)
                | Body::ApprovalResponse(_)
                | Body::Refusal(_)
                | Body::Error(_)
                | Body::Opaque(_)
                | Body::Unknown(_) => {}
            }
        }
    }
    for (id, results) in early {
        let mut calls = open.remove(id).unwrap_or_default().into_iter();
        let mut next = calls.next();
        for result in results {
            while next.is_some_and(|call| call < result) {
                next = calls.next();
            }
            let Some(call) = next else { break };
            found.push(Pair { call, result });
            next = calls.next();
        }
    }
    found.sort_by_key(|pair| pair.result);
    found
}

/// Take the first of the calls that stand in the newest message.
fn take_newest(calls: &mut Vec<ContentAt>) -> Option<ContentAt> {
    let newest = calls.last()?.message;
    let first = calls.partition_point(|call| call.message < newest);
    Some(calls.remove(first))
}
