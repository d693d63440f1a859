//! Malformed tool output: how the cost of digesting grows with its size.

use std::process::ExitCode;
use std::sync::Arc;

use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Scope, ToolCall};
use throughline_testkit::bench::{Limit, Report, Row};

use crate::say;
use crate::speed::instructions;

/// What the output consists of.
const KINDS: [(&str, &str); 9] = [
    ("one line", "x"),
    ("names", "some_name/of_it "),
    ("line breaks", "\n"),
    ("NUL", "a\0b\0"),
    ("terminal colours", "\u{1b}[31mred\u{1b}[0m \u{1b}["),
    ("lone surrogates", "\u{fffd}\\ud800"),
    ("binary", "\u{fffd}\u{1}PK\u{3}\u{fffd}\u{7f}ELF"),
    ("error lines", "error: error\n"),
    ("exit codes", "exit code exit code "),
];

/// Beyond the inspected start and end of an output, and four times that.
const SIZES: [&str; 2] = ["500000", "2000000"];

/// Digests an output where callgrind counts it.
pub(crate) fn digest(kind: &str, bytes: usize) -> ExitCode {
    let Some((_, part)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return ExitCode::FAILURE;
    };
    let mut told = vec![Message::user("look")];
    let mut round = |output: String| {
        let id = CallId::minted(Scope::Place(told.len()), 0);
        let call = ToolCall::function(id, "Bash", r#"{"command":"look"}"#);
        let result = call.answer(Outcome::Error, Output::Text(output));
        told.push(Message::new(Role::Assistant, vec![Content::from(call)]));
        told.push(Message::new(Role::Tool, vec![Content::from(result)]));
    };
    round(part.repeat(bytes / part.len()));
    for _ in 0..8 {
        round("fine ".repeat(400));
    }
    let shown = one_digest(told.into_iter().map(Arc::new).collect());
    ExitCode::from(u8::from(shown == 0))
}

#[inline(never)]
fn one_digest(told: Vec<Arc<Message>>) -> usize {
    let mut history = ToolHistory::new(Policy::with_budget(4_000));
    for (seq, message) in (1..).zip(told) {
        history.push(seq, message);
    }
    if let Ok(Planned::Epoch(epoch, _)) = history.plan(&Call::default()) {
        history.install(epoch);
    }
    history.epoch().map_or(0, |_| history.view().len())
}

/// Four times the output costs at most 4.2 times the instructions.
pub(crate) fn grows() -> bool {
    let mut report = Report::new("hostile output, 2 MB against 500 KB, in instructions");
    for (kind, _) in KINDS {
        let counted = SIZES.map(|bytes| instructions("one_digest", &["--hostile", kind, bytes]));
        let [Some(small), Some(large)] = counted else {
            say("callgrind is not there; install valgrind to count instructions");
            return false;
        };
        report.push(Row {
            name: kind.to_owned(),
            figure: large.to_string(),
            ratio: Some(large as f64 / small as f64),
            limit: Some(Limit::AtMost(4.2)),
        });
    }
    let _ = report.finish();
    report.holds()
}
