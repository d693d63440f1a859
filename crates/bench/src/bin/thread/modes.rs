//! The cost of persistence modes and of readers.

use std::cell::RefCell;

use futures_util::StreamExt;
use throughline::thread::Persistence;
use throughline::tool::Effect;
use throughline::{Agent, StopReason, Thread, tool};
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Bench, Limit, Report, black_box};

use super::client::{Does, Instant};
use super::{kilobyte, open, runtime};

/// Deltas of a streamed answer.
const DELTAS: usize = 200;

pub(super) fn reports() -> Vec<Report> {
    vec![persistence(), readers()]
}

/// `per_call` against `per_run`, for a turn with one round of tools.
fn persistence() -> Report {
    let scratch = Scratch::new("bench-modes");
    let store = open(&scratch);
    let runtime = runtime();
    let text = kilobyte();
    let tide = tool("get_tide", "When is high water?", || async { "04:12" });
    let agent = Agent::builder(Instant::new(Does::Ask)).store(&store);
    let agent = agent.tool(tide.effect(Effect::ReadOnly)).build();
    let agent = agent.expect("an agent");
    let run = |persistence: Persistence| {
        // A thread of its own for each, so that lengths do not matter.
        let threads = RefCell::new(agent.new_thread());
        let (agent, runtime, text) = (&agent, &runtime, &*text);
        move || {
            let thread: &Thread = &threads.borrow_mut();
            let run = agent.run_on(thread, text).persistence(persistence);
            let outcome = runtime.block_on(async { run.await });
            assert_eq!(outcome.ok().map(|one| one.stop), Some(StopReason::Done));
        }
    };
    let mut bench = Bench::new("a turn with one tool call, SQLite");
    bench.case("per_run", run(Persistence::PerRun));
    let limit = Limit::AtMost(1.5);
    bench.against("per_call", "per_run", limit, run(Persistence::PerCall));
    bench.run()
}

/// A turn whose events are read, compared with one that is awaited.
fn readers() -> Report {
    let scratch = Scratch::new("bench-readers");
    let store = open(&scratch);
    let runtime = runtime();
    let text = kilobyte();
    let agent = Agent::builder(Instant::new(Does::Stream(DELTAS))).store(&store);
    let agent = agent.build().expect("an agent");
    let (awaited, heard) = (agent.new_thread(), agent.new_thread());
    let mut bench = Bench::new(format!("a plain turn, SQLite, {DELTAS} deltas"));
    bench.case("awaited", || {
        let run = agent.run_on(&awaited, &*text);
        black_box(runtime.block_on(async { run.await }).is_ok());
    });
    bench.shown_against("streamed to a reader", "awaited", || {
        runtime.block_on(async {
            let mut stream = agent.run_on(&heard, &*text).stream();
            while let Some(event) = stream.next().await {
                black_box(event);
            }
            black_box(stream.outcome().await.is_ok());
        });
    });
    bench.run()
}
