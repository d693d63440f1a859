//! The cost of an agent besides the model, as ratios within one run.
//!
//! Started by `cargo xtask bench agent`. callgrind counts instructions, which is repeatable on a
//! busy machine; the program starts itself under it. The agent runs over the real client of each
//! vendor, retries and breaker included; only the transport is in memory.

mod sample;
mod service;
mod work;

use std::process::{Command, ExitCode};

use throughline_testkit::bench::{Limit, Report, Row};
use throughline_wire::Wire;
use work::{How, Work};

/// A format with its limits: the measured values plus a quarter, last measured when runs became
/// journaled.
struct Held {
    wire: Wire,
    /// A run with one model call.
    text: f64,
    /// A model call that asks for a tool, and the tool call.
    asks: f64,
    /// One more tool call.
    tool: f64,
}

const WIRES: [Held; 5] = [
    Held {
        wire: Wire::OpenAiResponses,
        text: 6.1,
        asks: 5.6,
        tool: 1.6,
    },
    Held {
        wire: Wire::OpenAiChat,
        text: 8.1,
        asks: 7.3,
        tool: 2.5,
    },
    Held {
        wire: Wire::Anthropic,
        text: 11.7,
        asks: 11.6,
        tool: 2.9,
    },
    Held {
        wire: Wire::Gemini,
        text: 12.6,
        asks: 11.3,
        tool: 2.8,
    },
    Held {
        wire: Wire::Foundry,
        text: 5.8,
        asks: 5.3,
        tool: 1.85,
    },
];

/// Messages on the thread.
const FEW: usize = 10;
const MANY: usize = 10_000;
/// Calls in the round that is compared with a round of one.
const CALLS: usize = 9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, wire, work, number, messages, times] = arguments.as_slice()
        && word == "--work"
    {
        let messages = messages.parse().unwrap_or(FEW);
        let times = times.parse().unwrap_or(1);
        return match Work::named(work, number) {
            Some(work) => work.times(&Wire::named(wire), messages, times),
            None => ExitCode::FAILURE,
        };
    }
    let reports = [
        calls_of_models as fn(&mut Report) -> Option<()>,
        calls_of_tools,
        long_threads,
    ];
    // One part only, for development.
    let chosen = match arguments.first().map(String::as_str) {
        Some("--tools") => &reports[1..2],
        Some("--long") => &reports[2..],
        _ => &reports[..],
    };
    let mut holds = true;
    for fill in chosen {
        let mut report = Report::new("");
        if fill(&mut report).is_none() {
            return unavailable();
        }
        let _ = report.finish();
        holds &= report.holds();
    }
    ExitCode::from(u8::from(!holds))
}

fn calls_of_models(report: &mut Report) -> Option<()> {
    report.name = format!("a run of one model call, {FEW} messages, in instructions");
    for Held {
        wire, text, asks, ..
    } in &WIRES
    {
        let name = |what: &str| format!("{wire}: {what}");
        let ways = |limit: &f64| {
            [
                (How::Whole, "whole", Some(Limit::AtMost(*limit))),
                (How::Streamed, "streamed", None),
            ]
        };
        let parsed = reading(report, wire, 0)?;
        let mut alone = Vec::new();
        for (how, word, limit) in ways(text) {
            let run = marginal(wire, Work::Run { calls: 0, how })?;
            let name = name(&format!("text, {word}"));
            ratio(report, name, run, parsed, limit);
            alone.push(run);
        }
        let parsed = reading(report, wire, 1)?;
        for ((how, word, limit), alone) in ways(asks).into_iter().zip(alone) {
            let run = marginal(wire, Work::Run { calls: 1, how })?;
            let name = name(&format!("a tool call before it, {word}"));
            ratio(report, name, run.saturating_sub(alone), parsed, limit);
        }
    }
    Some(())
}

/// The instructions that `serde_json` needs to parse an answer.
fn reading(report: &mut Report, wire: &Wire, calls: usize) -> Option<u64> {
    let parsed = marginal(wire, Work::Parse { calls })?;
    let size = sample::answer(wire, calls).len();
    let name = format!("{wire}: serde_json reads {size} bytes");
    figure(report, name, parsed);
    Some(parsed)
}

fn calls_of_tools(report: &mut Report) -> Option<()> {
    report.name = "one more tool call in a round, in instructions".to_owned();
    for Held { wire, tool, .. } in &WIRES {
        let parsed = reading(report, wire, 1)?;
        let how = How::Whole;
        let many = marginal(wire, Work::Run { calls: CALLS, how })?;
        let one = marginal(wire, Work::Run { calls: 1, how })?;
        let each = many.saturating_sub(one) / (CALLS as u64 - 1);
        let limit = Some(Limit::AtMost(*tool));
        let name = format!("{wire}: the call and its result");
        ratio(report, name, each, parsed, limit);
    }
    Some(())
}

/// Messages are copied into the body once, so one copy of a body is subtracted.
fn long_threads(report: &mut Report) -> Option<()> {
    report.name = "one more turn beyond the bytes sent, in instructions".to_owned();
    let work = Work::Run {
        calls: 0,
        how: How::Whole,
    };
    for Held { wire, .. } in &WIRES {
        let mut beyond = Vec::new();
        for messages in [FEW, MANY] {
            let (all, sent) = counted(wire, work, messages, 1)?;
            let bytes = sent.trim().parse().ok()?;
            let (copy, _) = counted(wire, Work::Copy { bytes }, messages, 1)?;
            let rest = all.saturating_sub(copy);
            let name = format!("{wire}: {messages} messages, {bytes} bytes ({all} − {copy})");
            match beyond.first() {
                None => figure(report, name, rest),
                Some(&few) => ratio(report, name, rest, few, Some(Limit::AtMost(1.3))),
            }
            beyond.push(rest);
        }
    }
    Some(())
}

fn figure(report: &mut Report, name: String, figure: u64) {
    report.push(Row {
        name,
        figure: figure.to_string(),
        ratio: None,
        limit: None,
    });
}

fn ratio(report: &mut Report, name: String, figure: u64, base: u64, limit: Option<Limit>) {
    report.push(Row {
        name,
        figure: figure.to_string(),
        ratio: Some(figure as f64 / base as f64),
        limit,
    });
}

/// The instructions of one repetition, as the difference of many and few, without the setup.
fn marginal(wire: &Wire, work: Work) -> Option<u64> {
    let (few, many) = (1, 5);
    let (less, _) = counted(wire, work, FEW, few)?;
    let (more, _) = counted(wire, work, FEW, many)?;
    Some(more.checked_sub(less)? / (many - few) as u64)
}

/// The instructions of some work, as callgrind counts them, and its output.
fn counted(wire: &Wire, work: Work, messages: usize, times: usize) -> Option<(u64, String)> {
    let program = std::env::current_exe().ok()?;
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*counted_by_callgrind*")
        .arg(program)
        .args(["--work", wire.as_str()])
        .args(work.words())
        .args([messages.to_string(), times.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected"))?;
    let count = line.split(':').nth(1)?.trim().parse().ok()?;
    let printed = String::from_utf8_lossy(&out.stdout).into_owned();
    out.status.success().then_some((count, printed))
}

#[expect(clippy::print_stderr, reason = "the person at the terminal must know")]
fn unavailable() -> ExitCode {
    eprintln!("a run failed, or callgrind is not there; install valgrind to count instructions");
    ExitCode::FAILURE
}
