//! The cost of compaction: relative to reading the same history once, and its growth per turn.

use std::process::{Command, ExitCode};
use std::sync::Arc;

use throughline_compact::tokens::units;
use throughline_compact::{Call, Planned, Policy, ToolHistory};
use throughline_model::Message;
use throughline_testkit::bench::{Bench, Limit, Report, Row, black_box};
use throughline_testkit::trajectory::{long, synthetic};
use throughline_wire::Wire;

use crate::say;
use crate::wire::bytes;

/// Bytes of the messages that are read and digested, each rendered separately.
const SIZE: usize = 1_100_000;

/// Digesting and planning, relative to parsing by another library.
pub(crate) fn full() -> bool {
    let mut history: Vec<Arc<Message>> = Vec::new();
    let mut text = 0;
    // Whole sessions in sequence, until there is enough.
    'enough: loop {
        for message in synthetic().into_iter().flat_map(|session| session.messages) {
            text += bytes(std::slice::from_ref(&message), &Wire::OpenAiChat).len();
            history.push(message);
            if text >= SIZE {
                break 'enough;
            }
        }
    }
    let json = bytes(&history, &Wire::OpenAiChat);
    let json = format!("[{}]", json.trim_end_matches(','));
    let counted: Vec<u32> = history.iter().map(|message| units(message)).collect();
    let name = format!("{} messages, {} KB", history.len(), json.len() / 1_000);
    let mut bench = Bench::new(name).with_rounds(21);
    bench.case("serde_json reads it", || {
        black_box(serde_json::from_str::<serde_json::Value>(black_box(&json)).is_ok());
    });
    let (all, sizes) = (&history, &counted);
    for budget in [8_000, 32_000] {
        let name = format!("digest and plan for {}k", budget / 1_000);
        bench.against(name, "serde_json reads it", Limit::AtMost(5.0), move || {
            let mut whole = ToolHistory::new(Policy::with_budget(budget));
            for (seq, (message, units)) in all.iter().zip(sizes).enumerate() {
                whole.push_counted(seq as u64, Arc::clone(message), *units);
            }
            black_box(whole.plan(&Call::default()).is_ok());
        });
    }
    bench.shown_against("counting", "serde_json reads it", || {
        black_box(
            history
                .iter()
                .map(|message| u64::from(units(message)))
                .sum::<u64>(),
        );
    });
    let report = bench.run();
    let _ = report.finish();
    report.holds()
}

/// The state of the history when one more turn is added.
#[derive(Clone, Copy)]
enum State {
    /// Never compacted.
    Whole,
    /// With epochs, as an agent makes them.
    Compacted,
}

impl State {
    const ALL: [Self; 2] = [Self::Whole, Self::Compacted];

    fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Compacted => "compacted",
        }
    }

    fn policy(self) -> Policy {
        Policy::with_budget(match self {
            Self::Whole => u64::MAX / 1_000,
            Self::Compacted => 32_000,
        })
    }
}

/// Adds a turn to a history where callgrind counts it.
pub(crate) fn turn(state: &str, count: usize) -> ExitCode {
    let Some(state) = State::ALL.into_iter().find(|found| found.word() == state) else {
        return ExitCode::FAILURE;
    };
    let mut history = ToolHistory::new(state.policy());
    for (seq, message) in long(count).messages.into_iter().take(count).enumerate() {
        history.push(seq as u64, message);
        if seq % 2 == 0 {
            step(&mut history);
        }
    }
    // The turn must lie between epochs.
    if let (State::Compacted, Ok(Planned::Epoch(epoch, _))) =
        (state, history.plan_now(&Call::default()))
    {
        history.install(epoch);
    }
    step(&mut history);
    let new: Vec<Arc<Message>> = long(8).messages.into_iter().skip(1).take(4).collect();
    let shown = one_more_turn(&mut history, count as u64, new);
    ExitCode::from(u8::from(shown == 0))
}

fn step(history: &mut ToolHistory) {
    if let Ok(Planned::Epoch(epoch, _)) = history.plan(&Call::default()) {
        history.install(epoch);
    }
}

#[inline(never)]
fn one_more_turn(history: &mut ToolHistory, from: u64, new: Vec<Arc<Message>>) -> usize {
    for (seq, message) in (from..).zip(new) {
        history.push(seq, message);
    }
    black_box(history.plan(&Call::default()).is_ok());
    history.view().len()
}

/// One more turn onto short and long histories.
pub(crate) fn turns() -> bool {
    let mut report = Report::new("one more turn, in instructions");
    for state in State::ALL {
        let turn = |count: &str| instructions("one_more_turn", &["--turn", state.word(), count]);
        let (Some(few), Some(many)) = (turn("100"), turn("10000")) else {
            say("callgrind is not there; install valgrind to count instructions");
            return false;
        };
        report.push(Row {
            name: format!("{}, 100 messages", state.word()),
            figure: few.to_string(),
            ratio: None,
            limit: None,
        });
        report.push(Row {
            name: format!("{}, 10,000 messages", state.word()),
            figure: many.to_string(),
            ratio: Some(many as f64 / few as f64),
            limit: Some(Limit::AtMost(1.2)),
        });
    }
    let _ = report.finish();
    report.holds()
}

/// The instructions of a function of this program with these arguments, as callgrind counts them;
/// `None` without callgrind.
pub(crate) fn instructions(function: &str, arguments: &[&str]) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(program)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.split(':').nth(1)?.trim().parse().ok()
}
