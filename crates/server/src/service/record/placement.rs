//! Where a request belongs in the record: a pure decision from what was found.

use std::collections::HashMap;

use throughline_store::{
    FingerprintDigest, FingerprintMatch, ItemRef, NodeId, RunId, RunState, ThreadId,
};

use super::conversation::DigestedMessage;

/// How many histories are looked up first: the last messages of a request are new, and the answer that
/// they follow is rarely further away.
const FIRST_BATCH: usize = 8;

/// How much larger each further batch is.
const BATCH_GROWTH: usize = 8;

/// The messages whose histories are looked up, last ones first: ranges of places, in batches.
pub(super) fn batches(messages: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut end = messages;
    let mut size = FIRST_BATCH;
    std::iter::from_fn(move || {
        if end == 0 {
            return None;
        }
        let start = end.saturating_sub(size);
        let batch = start..end;
        end = start;
        size = size.saturating_mul(BATCH_GROWTH);
        Some(batch)
    })
}

/// An answer after which a request goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownHistory {
    /// How many messages of the request it covers.
    pub(super) messages: usize,
    pub(super) node: NodeId,
    pub(super) thread: ThreadId,
    /// Whether it is the head of its thread.
    pub(super) is_head: bool,
}

/// The longest known history of a request in a batch. Of several answers that end equal histories the
/// head of a thread is preferred, then the newest.
pub(super) fn longest(
    messages: &[DigestedMessage],
    batch: std::ops::Range<usize>,
    found: &[FingerprintMatch],
) -> Option<KnownHistory> {
    batch.rev().find_map(|place| {
        let digest = messages.get(place)?.history.end();
        let answers = || {
            let found = found.iter().filter(move |one| one.digest == digest);
            found.filter_map(|one| Some((one, one.run.published?)))
        };
        let head = answers().find(|(one, _)| one.is_head());
        let (one, node) = head.or_else(|| answers().next())?;
        Some(KnownHistory {
            messages: place + 1,
            node,
            thread: one.thread().clone(),
            is_head: one.is_head(),
        })
    })
}

/// A thread whose first request was the same and has no answer.
pub(super) fn unanswered(found: &[FingerprintMatch]) -> Option<&FingerprintMatch> {
    let newest = found.first()?;
    let ended = match newest.run.state {
        RunState::Failed | RunState::Interrupted | RunState::Discarded => true,
        RunState::Running
        | RunState::Parked
        | RunState::Held
        | RunState::Committed
        | RunState::Cancelled
        | RunState::Unpublished => false,
    };
    (ended && newest.head.is_none()).then_some(newest)
}

/// Where each message is stored already, by its digest.
pub(super) fn stored(found: &[FingerprintMatch]) -> HashMap<FingerprintDigest, ItemRef> {
    let mut stored = HashMap::new();
    for one in found {
        // The newest comes first.
        stored.entry(one.digest).or_insert(ItemRef {
            run: one.run.id,
            no: one.item,
        });
    }
    stored
}

/// The run that a new conversation comes from, if its client has compacted or edited one: the newest
/// known message of a thread that has one of the answers, or two of the messages.
pub(super) fn origin(
    messages: &[DigestedMessage],
    found: &[FingerprintMatch],
) -> Option<(ThreadId, RunId)> {
    let mut known: HashMap<&ThreadId, (usize, bool)> = HashMap::new();
    let mut last = Vec::new();
    for message in messages {
        let digest = message.content;
        let mut threads: Vec<&ThreadId> = Vec::new();
        for one in found.iter().filter(|one| one.digest == digest) {
            last.push(one);
            if threads.contains(&one.thread()) {
                continue;
            }
            threads.push(one.thread());
            let (count, has_answer) = known.entry(one.thread()).or_default();
            *count += 1;
            *has_answer |= message.is_answer;
        }
    }
    let is_origin = |one: &&&FingerprintMatch| {
        let counted = known.get(one.thread());
        counted.is_some_and(|(count, has_answer)| *has_answer || *count > 1)
    };
    // Of the matches of the last message the newest comes first.
    let digest = last.iter().rev().find(|one| is_origin(one))?.digest;
    let one = last
        .iter()
        .find(|one| one.digest == digest && is_origin(one))?;
    Some((one.thread().clone(), one.run.id))
}
