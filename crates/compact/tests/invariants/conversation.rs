//! Conversations as they go.

use std::sync::Arc;

use throughline_model::{Message, Role};
use throughline_testkit::{Rng, messages};

/// A conversation of about so many messages. Some results come late, when the user has said something else or the next
/// call was made.
pub(crate) fn conversation(rng: &mut Rng, size: usize) -> Vec<Arc<Message>> {
    let mut told: Vec<Arc<Message>> = Vec::new();
    let mut late: Vec<(usize, Arc<Message>)> = Vec::new();
    for message in messages::history(rng, size) {
        let message = Arc::new(message);
        if message.role == Role::Tool && rng.chance(0.1) {
            late.push((told.len() + rng.range(1..=12), message));
        } else {
            told.push(message);
        }
        let here = told.len();
        let (due, rest): (Vec<_>, Vec<_>) = late.into_iter().partition(|(at, _)| *at <= here);
        told.extend(due.into_iter().map(|(_, message)| message));
        late = rest;
    }
    told.extend(late.into_iter().map(|(_, message)| message));
    told
}
