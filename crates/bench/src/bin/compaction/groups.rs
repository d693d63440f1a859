//! Messages that belong together, as simple strategies see them.

use std::sync::Arc;

use throughline_model::{Body, Content, Message, Output, Role};

use crate::count::Counter;

/// A message, or calls with their results and all that stands between them.
pub(crate) type MessageGroup = Vec<Arc<Message>>;

/// Add a message; returns the index of its group. Groups after that one are gone.
pub(crate) fn push(groups: &mut Vec<MessageGroup>, message: &Arc<Message>) -> usize {
    let answers = |group: &MessageGroup| {
        let calls: Vec<_> = contents(group).filter_map(Content::as_tool_call).collect();
        let mut results = message.contents.iter().filter_map(Content::as_tool_result);
        results.any(|result| calls.iter().any(|call| &call.call == result.call()))
    };
    match groups.iter().rposition(answers) {
        // Text between a call and its late result belongs to the same group from then on.
        Some(place) => {
            let mut late: Vec<_> = groups.drain(place + 1..).flatten().collect();
            late.push(Arc::clone(message));
            groups[place].append(&mut late);
        }
        None => groups.push(vec![Arc::clone(message)]),
    }
    groups.len() - 1
}

/// The index of the oldest group of the newest `wanted` calls.
pub(crate) fn recent(groups: &[MessageGroup], wanted: usize) -> usize {
    let mut calls = 0;
    for (place, group) in groups.iter().enumerate().rev() {
        calls += calls_of(group);
        if calls >= wanted {
            return place;
        }
    }
    0
}

/// The newest groups that fit, and instructions. The newest is always there: the model has to
/// answer it.
pub(crate) fn newest(
    groups: &[MessageGroup],
    limit: Option<u64>,
    counter: &mut Counter,
) -> Vec<Arc<Message>> {
    let sizes: Vec<u64> = groups.iter().map(|group| counter.view(group)).collect();
    let mut left: u64 = sizes.iter().sum();
    let mut messages = Vec::new();
    for (place, (group, size)) in groups.iter().zip(sizes).enumerate() {
        let over = limit.is_some_and(|limit| left > limit);
        if over && !is_system(group) && place + 1 < groups.len() {
            left -= size;
        } else {
            messages.extend(group.iter().cloned());
        }
    }
    messages
}

pub(crate) fn is_system(group: &[Arc<Message>]) -> bool {
    group.iter().any(|message| message.role == Role::System)
}

pub(crate) fn contents(group: &[Arc<Message>]) -> impl Iterator<Item = &Content> {
    group.iter().flat_map(|message| &message.contents)
}

pub(crate) fn calls_of(group: &[Arc<Message>]) -> usize {
    contents(group).filter_map(Content::as_tool_call).count()
}

/// The group with placeholders instead of results.
pub(crate) fn masked(group: &[Arc<Message>]) -> MessageGroup {
    let masked = group.iter().map(|message| {
        let mut message = (**message).clone();
        for content in &mut message.contents {
            if let Body::ToolResult(result) = &mut content.body {
                result.output = Output::from("[Old tool result left out]");
            }
        }
        Arc::new(message)
    });
    masked.collect()
}
