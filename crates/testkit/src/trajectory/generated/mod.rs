//! Generated sessions of the kinds that are hard to make smaller. The same seed gives the same
//! sessions on every machine.

mod debugging;
mod pastes;
mod reads;
mod scripts;
mod source;
mod unanswered;

use throughline_model::Message;

use super::Session;

/// The seed of the sessions that are measured.
const SEED: u64 = 30;

/// Two sessions of each kind: long debugging with edits and failing tests, many small reads, huge
/// pastes, text that is not English, and calls without results. They are named so that both halves
/// of a split by the hash of names have most kinds.
pub fn generated() -> Vec<Session> {
    let kinds = [
        ("debugging", debugging::session as fn(u64) -> Vec<Message>),
        ("reads", reads::session),
        ("pastes", pastes::session),
        ("scripts", scripts::session),
        ("unanswered", unanswered::session),
    ];
    let mut sessions = Vec::new();
    for (round, which) in (1..).zip(["first", "second"]) {
        for (place, (kind, make)) in kinds.iter().enumerate() {
            let messages = make(SEED + 100 * round + place as u64);
            sessions.push(Session::new(format!("made-{kind}-{which}"), messages));
        }
    }
    sessions
}

#[cfg(test)]
mod tests {
    use super::generated;
    use crate::trajectory::{
        ValueKind, bound_needs, edits, failures, mentions, needs, rare_values,
    };

    #[test]
    fn generated_sessions_are_the_same_each_time_and_have_all_that_is_measured() {
        let (once, again) = (generated(), generated());
        for (one, two) in once.iter().zip(&again) {
            assert_eq!(one.messages, two.messages);
        }
        let edits: usize = once.iter().map(|session| edits(session).len()).sum();
        let failures: usize = once.iter().map(|session| failures(session).len()).sum();
        let mentions: usize = once.iter().map(|session| mentions(session).len()).sum();
        let bound = once
            .iter()
            .map(|session| bound_needs(session, &needs(session)).len());
        let bound: usize = bound.sum();
        assert!(edits > 100 && failures > 50, "{edits} {failures}");
        assert!(mentions > 20 && bound > 50, "{mentions} {bound}");
        let values: Vec<_> = once.iter().flat_map(rare_values).collect();
        for kind in [ValueKind::Number, ValueKind::Word] {
            let of = values.iter().filter(|value| value.kind == kind).count();
            assert!(of > 20, "{kind:?}: {of}");
        }
    }
}
