//! The cost of rendering a history, as ratios within one run.
//!
//! Started by `cargo xtask bench render`. One more turn onto a cached prefix is counted in
//! instructions by callgrind, which is repeatable on a busy machine; the program starts itself
//! under it. Full rendering is timed.

use std::process::{Command, ExitCode};
use std::time::Duration;

use throughline_model::{CallId, Content, Message, Outcome, Output, Role, Scope, ToolCall};
use throughline_testkit::Rng;
use throughline_testkit::bench::{Bench, Limit, Report, Row, black_box};
use throughline_wire::render::{Options, Renderer, Target, render, renderer};
use throughline_wire::{Losses, Wire, codec};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, wire, count] = arguments.as_slice()
        && word == "--turn"
    {
        return turn(&Wire::named(wire), count.parse().unwrap_or(0));
    }
    if let [word, wire, whose, times] = arguments.as_slice()
        && word == "--times"
    {
        let whose = Whose::ALL.into_iter().find(|found| found.word() == whose);
        let times = times.parse().unwrap_or(1);
        return several(&Wire::named(wire), whose.unwrap_or(Whose::Own), times);
    }
    let mut holds = true;
    for wire in Wire::KNOWN {
        for whose in Whose::ALL {
            holds &= full(&wire, whose);
        }
    }
    holds &= turns();
    ExitCode::from(u8::from(!holds))
}

fn prose(rng: &mut Rng, words: usize) -> String {
    const WORDS: [&str; 12] = [
        "the",
        "tide",
        "turns",
        "at",
        "ten\n",
        "\"berth\"",
        "harbour",
        "naïve",
        "and",
        "moors",
        "C:\\charts",
        "again",
    ];
    let chosen: Vec<&str> = (0..words).map(|_| *rng.pick::<&str>(&WORDS)).collect();
    chosen.join(" ")
}

/// The origin of a history.
#[derive(Clone, Copy)]
enum Whose {
    /// The target itself: its own items are sent back.
    Own,
    /// Another vendor: everything is converted.
    Others,
    /// No vendor: neutral messages.
    Neutral,
}

impl Whose {
    const ALL: [Self; 3] = [Self::Own, Self::Others, Self::Neutral];

    /// The word on the command line.
    fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Others => "others",
            Self::Neutral => "neutral",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Own => "its own items",
            Self::Others => "items of another vendor",
            Self::Neutral => "neutral messages",
        }
    }

    /// The format of the history, for a target.
    fn wire(self, target: &Wire) -> Option<Wire> {
        match (self, target) {
            (Self::Own, target) => Some(target.clone()),
            (Self::Others, Wire::Anthropic) => Some(Wire::OpenAiResponses),
            (Self::Others, _) => Some(Wire::Anthropic),
            (Self::Neutral, _) => None,
        }
    }
}

/// A history of turns with one round of two tools each, in its vendor's form.
fn history(whose: Whose, target: &Wire, messages: usize) -> Vec<Message> {
    let mut rng = Rng::new(11);
    let mut said = Vec::new();
    let mut made = 0;
    while said.len() < messages {
        said.push(Message::user(prose(&mut rng, 60)));
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for _ in 0..2 {
            made += 1;
            let id = CallId::natural(&format!("call_{made:08}"))
                .unwrap_or_else(|| CallId::minted(Scope::Place(made), 0));
            let arguments = format!("{{\"path\":\"src/tide_{made}.rs\",\"line\":{made}}}");
            let call = ToolCall::function(id, "read_file", arguments);
            let output = Output::Text(prose(&mut rng, 150));
            results.push(Content::from(call.answer(Outcome::Ok, output)));
            calls.push(Content::from(call));
        }
        said.push(Message::new(Role::Assistant, calls));
        said.push(Message::new(Role::Tool, results));
        let text = Content::text(prose(&mut rng, 90));
        said.push(Message::new(Role::Assistant, vec![text]));
    }
    said.truncate(messages);
    let wire = whose.wire(target);
    let Some(codec) = wire.as_ref().and_then(codec) else {
        return said;
    };
    let array = codec.encode_messages(&said, &mut Losses::default());
    let native = throughline_model::json::parse(&array)
        .ok()
        .and_then(|items| codec.decode_messages(items.as_array()?).ok());
    native.unwrap_or(said)
}

fn full(wire: &Wire, whose: Whose) -> bool {
    let history = history(whose, wire, 200);
    let target = Target::newest(wire.clone());
    let rendered = render(&history, &target, &Options::default()).array();
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&rendered) else {
        return false;
    };
    // The tree keeps the order of keys, so that both sides write the same bytes.
    if serde_json::to_string(&value).ok() != Some(rendered.clone()) {
        return differs(wire);
    }
    let size = rendered.len() / 1_000;
    let name = format!("{wire}, {}: {size} KB", whose.as_str());
    // Many short samples: other work interrupts few of them, which does not affect the median.
    let mut bench = Bench::new(name)
        .with_rounds(151)
        .with_sample(Duration::from_millis(1));
    bench.case("serde_json writes the same bytes", || {
        black_box(serde_json::to_string(black_box(&value)).is_ok());
    });
    bench.against(
        "full rendering",
        "serde_json writes the same bytes",
        Limit::AtMost(2.5),
        || {
            let rendered = render(black_box(&history), &target, &Options::default());
            black_box(rendered.array());
        },
    );
    let report = bench.run();
    let _ = report.finish();
    report.holds()
}

/// Renders a history several times, for a profiler.
fn several(wire: &Wire, whose: Whose, times: usize) -> ExitCode {
    let history = history(whose, wire, 200);
    let target = Target::newest(wire.clone());
    for _ in 0..times {
        black_box(render(black_box(&history), &target, &Options::default()).array());
    }
    ExitCode::SUCCESS
}

/// Renders a prefix, then one more turn where callgrind counts it.
fn turn(wire: &Wire, count: usize) -> ExitCode {
    let history = history(Whose::Own, wire, count + 4);
    let (old, new) = history.split_at(count.min(history.len()));
    let target = Target::newest(wire.clone());
    let Some(mut renderer) = renderer(&target, &Options::default()) else {
        return ExitCode::FAILURE;
    };
    for message in old {
        if renderer.push(message).is_err() {
            return ExitCode::FAILURE;
        }
    }
    let items = one_more_turn(&mut renderer, new);
    ExitCode::from(u8::from(items == 0))
}

#[inline(never)]
fn one_more_turn(renderer: &mut Renderer, new: &[Message]) -> usize {
    for message in new {
        if renderer.push(message).is_err() {
            return 0;
        }
    }
    let tail = renderer.tail();
    renderer.items().len() + tail.map_or(0, |tail| tail.items.len())
}

fn turns() -> bool {
    let mut report = Report::new("one more turn onto a cached prefix, in instructions");
    for wire in Wire::KNOWN {
        let (Some(few), Some(many)) = (instructions(&wire, 10), instructions(&wire, 10_000)) else {
            return unavailable();
        };
        report.push(Row {
            name: format!("{wire}: 10 messages"),
            figure: few.to_string(),
            ratio: None,
            limit: None,
        });
        report.push(Row {
            name: format!("{wire}: 10,000 messages"),
            figure: many.to_string(),
            ratio: Some(many as f64 / few as f64),
            limit: Some(Limit::AtMost(1.5)),
        });
    }
    let _ = report.finish();
    report.holds()
}

#[expect(clippy::print_stderr, reason = "the person at the terminal must know")]
fn differs(wire: &Wire) -> bool {
    eprintln!("{wire}: serde_json writes other bytes, so the times cannot be compared");
    false
}

#[expect(clippy::print_stderr, reason = "the person at the terminal must know")]
fn unavailable() -> bool {
    eprintln!("callgrind is not there; install valgrind to count instructions");
    false
}

/// The instructions of one more turn, as callgrind counts them.
fn instructions(wire: &Wire, count: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*one_more_turn*")
        .arg(program)
        .args(["--turn", wire.as_str(), &count.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.split(':').nth(1)?.trim().parse().ok()
}
