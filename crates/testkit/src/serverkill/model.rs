//! The scripted model of the upstream.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Rng;
use crate::loopkill::brackets;
use crate::upstream::{Fault, Recorded, Reply, Script};

/// The input of a turn.
pub fn said(code: &str) -> String {
    format!("[[turn {code}]] What is new in the harbour?")
}

/// The mark in an answer: its turn and its request, as `c3.17/204`.
pub fn mark(text: &str) -> Option<&str> {
    brackets(text, "done").next()
}

/// The answers of the model; `say` receives a line for each accepted request: `asked NUMBER
/// turns=CODE,… done=MARK,…`. The last of the codes is the requested turn. Some answers arrive one
/// byte at a time.
pub fn model(say: impl Fn(String) + Send + Sync + 'static) -> Script {
    let count = AtomicU64::new(0);
    Script::respond_with(move |request: &Recorded| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let text = request.body.to_string();
        let turns: Vec<&str> = brackets(&text, "turn").collect();
        let done: Vec<&str> = brackets(&text, "done").collect();
        let Some(code) = turns.last() else {
            return Reply::text("[[lost]] no turn was named");
        };
        say(format!(
            "asked {number} turns={} done={}",
            turns.join(","),
            done.join(",")
        ));
        let mut rng = Rng::new(number);
        let more = "Two barges, a pilot, and fog. ".repeat(1 + rng.below(4));
        let mut reply = Reply::text(format!("[[done {code}/{number}]] {more}"));
        if rng.chance(0.2) {
            reply = reply.reasoning_first("The quay first, then the list.");
        }
        match rng.chance(0.5) {
            true => reply.with_fault(Fault::Drip),
            false => reply,
        }
    })
}
