use std::collections::HashMap;

use crate::{Body, Message, Pairing, Runner};

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
    /// The position of the call.
    pub call: ContentAt,
    /// The position of its result.
    pub result: ContentAt,
}

/// Find the result of each call, by occurrence.
///
/// Ids repeat in real histories: models count from one again in each turn, and some wires have no
/// id at all. So a result answers, among the calls of its id that stand before it and have no
/// result yet, those of the *newest message*, first come first served. A result whose calls all
/// come later (an import that mixed up the order) answers the first of those. A result that names
/// its [occurrence](crate::ToolResult::occurrence) answers that call of the message and no other.
/// One call has one result; what remains is not in the list. Pairs come in the order of their
/// results.
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
    let mut open: HashMap<&str, Vec<Call>> = HashMap::new();
    let mut early: HashMap<&str, Vec<ContentAt>> = HashMap::new();
    let mut found = Vec::new();
    for (at_message, message) in messages.iter().enumerate() {
        for (at_content, content) in message.contents.iter().enumerate() {
            let here = ContentAt {
                message: at_message,
                content: at_content,
            };
            match &content.body {
                Body::ToolCall(call) => {
                    let id = call.call.value();
                    let occurrence = occurrence_in(message, at_content);
                    open.entry(id).or_default().push(Call {
                        at: here,
                        occurrence,
                    });
                }
                Body::ToolResult(result) if result.pairing() == Pairing::Answers => {
                    let id = result.call().value();
                    let calls = open.get_mut(id);
                    match calls.and_then(|calls| take_newest(calls, result.occurrence())) {
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
        let calls = open.remove(id).unwrap_or_default();
        let mut calls = calls.into_iter().map(|call| call.at);
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

/// The calls of a response that wait for the application, in order: those that the vendor does not
/// run and for which the response has no result, and questions of the vendor's own tool host. The
/// position of a call among them is its place in a step of the journal.
pub fn open_calls(response: &[Message]) -> Vec<ContentAt> {
    let answered: Vec<ContentAt> = pairs(response).iter().map(|pair| pair.call).collect();
    let mut calls = Vec::new();
    for (at_message, message) in response.iter().enumerate() {
        for (at_content, content) in message.contents.iter().enumerate() {
            let here = ContentAt {
                message: at_message,
                content: at_content,
            };
            let waits = match &content.body {
                Body::ToolCall(call) => call.runner == Runner::Client && !answered.contains(&here),
                Body::ApprovalRequest(_) => true,
                Body::ToolResult(_)
                | Body::Text(_)
                | Body::Reasoning(_)
                | Body::Media(_)
                | Body::ApprovalResponse(_)
                | Body::Refusal(_)
                | Body::Error(_)
                | Body::Opaque(_)
                | Body::Unknown(_) => false,
            };
            if waits {
                calls.push(here);
            }
        }
    }
    calls
}

/// A call that has no result yet.
struct Call {
    at: ContentAt,
    occurrence: u32,
}

/// How many calls of the same id stand before a call in its message.
///
/// ```
/// use throughline_model::{CallId, Message, Role, ToolCall, occurrence_in};
///
/// let call = |id| ToolCall::function(CallId::natural(id).unwrap(), "f", "{}").into();
/// let message = Message::new(Role::Assistant, vec![call("a"), call("b"), call("a")]);
/// let occurrences = [0, 1, 2].map(|content| occurrence_in(&message, content));
/// assert_eq!(occurrences, [0, 0, 1]);
/// ```
pub fn occurrence_in(message: &Message, content: usize) -> u32 {
    let id = |content: &crate::Content| content.as_tool_call().map(|call| call.call.clone());
    let Some(of) = message.contents.get(content).and_then(id) else {
        return 0;
    };
    let before = message.contents[..content].iter();
    let same = before.filter(|one| {
        one.as_tool_call()
            .is_some_and(|one| one.call.value() == of.value())
    });
    u32::try_from(same.count()).unwrap_or(u32::MAX)
}

/// Take, of the calls that stand in the newest message, the one with this occurrence, or the first.
fn take_newest(calls: &mut Vec<Call>, occurrence: Option<u32>) -> Option<ContentAt> {
    let place = match occurrence {
        Some(occurrence) => calls
            .iter()
            .rposition(|call| call.occurrence == occurrence)?,
        None => {
            let newest = calls.last()?.at.message;
            calls.partition_point(|call| call.at.message < newest)
        }
    };
    Some(calls.remove(place).at)
}
