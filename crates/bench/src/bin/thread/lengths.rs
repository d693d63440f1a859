//! The cost of a long history must be the cost of its bytes.

use std::sync::atomic::Ordering;

use throughline::model::{Content, Message, Role};
use throughline::store::{NewThread, ThreadId};
use throughline::{Agent, StopReason, Thread, Threads};
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row, black_box};
use tokio::runtime::Runtime;

use super::client::{Does, Instant};
use super::{kilobyte, median, open, runtime};

const FEW: usize = 10;
const MANY: usize = 1000;
/// Rounds for the median.
const ROUNDS: usize = 15;
/// Threads of one round, and turns on each: few enough that a thread hardly grows.
const THREADS: usize = 20;
const TURNS: usize = 8;

/// How a thread is held between turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// By one handle.
    Kept,
    /// By its id: each turn opens it again.
    Anew,
}

pub(super) fn reports() -> Vec<Report> {
    let mut report = Report::new(format!(
        "a turn at {MANY} messages against {FEW}, in processor time"
    ));
    let limit = Some(Limit::AtMost(1.3));
    for (name, does, held, limit) in [
        ("one handle", Does::Answer, Held::Kept, limit),
        (
            // Without a limit: `bench agent` counts the instructions of rendering. Here a megabyte
            // is copied from cold memory, and a warm copy is subtracted.
            "one handle, rendered, beyond one copy of the body",
            Does::Render,
            Held::Kept,
            None,
        ),
        ("opened anew", Does::Answer, Held::Anew, None),
    ] {
        compare(&mut report, name, (does, held), limit);
    }
    vec![report]
}

/// Threads of a length to continue.
struct Place {
    threads: Threads,
    origin: ThreadId,
}

fn compare(report: &mut Report, name: &str, (does, held): (Does, Held), limit: Option<Limit>) {
    // Waiting for the disk is not CPU time.
    let scratch = Scratch::in_memory("bench-lengths");
    let store = open(&scratch);
    let client = Instant::new(does);
    let sent = client.sent();
    let agent = Agent::builder(client).store(&store);
    let agent = agent.build().expect("an agent");
    let runtime = runtime();
    let threads = Threads::of(&store);
    let places = [FEW, MANY].map(|length| Place {
        origin: runtime.block_on(said(&threads, length)),
        threads: threads.clone(),
    });
    let (mut few, mut many, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let [least, most] = [0, 1].map(|place| {
            let spent = turns(&runtime, &agent, &places[place], held);
            spent - copies(sent.load(Ordering::Relaxed))
        });
        // The first round warms up.
        if round > 0 {
            few.push(least);
            many.push(most);
            ratios.push(most / least);
        }
    }
    let figure = |values| format!("{:.0} µs", median(values) / 1e3);
    report.push(Row {
        name: format!("{name}: {FEW} messages"),
        figure: figure(few),
        ratio: None,
        limit: None,
    });
    report.push(Row {
        name: format!("{name}: {MANY} messages"),
        figure: figure(many),
        ratio: Some(median(ratios)),
        limit,
    });
}

/// A thread with messages of a kilobyte.
async fn said(threads: &Threads, length: usize) -> ThreadId {
    let text = kilobyte();
    let said = |place: usize| match place % 2 {
        0 => Message::user(&*text),
        _ => Message::new(Role::Assistant, vec![Content::text(&*text)]),
    };
    let whole = Thread::of(
        threads.store().ids().thread(),
        (0..length).map(said).collect(),
    );
    let json = whole.to_json().await.expect("a thread as JSON");
    let thread = threads.from_json(&json).await.expect("a thread");
    thread.id().clone()
}

/// The CPU time of one turn, in nanoseconds, on threads that share the first messages.
fn turns(runtime: &Runtime, agent: &Agent, place: &Place, held: Held) -> f64 {
    let mut known = Vec::new();
    runtime.block_on(async {
        for _ in 0..THREADS {
            let new = NewThread::new(place.threads.store().ids().thread());
            let forked = place.threads.fork(place.origin.clone(), new).await;
            let thread = forked.expect("a thread is forked");
            // One-time work of the thread happens here.
            turn(agent, &thread).await;
            known.push(thread);
        }
    });
    let started = processor();
    runtime.block_on(async {
        for thread in &mut known {
            for _ in 0..TURNS {
                match held {
                    Held::Kept => turn(agent, thread).await,
                    Held::Anew => {
                        let opened = place.threads.open(thread.id().clone()).await;
                        turn(agent, &opened.expect("a thread opens")).await;
                    }
                }
            }
        }
    });
    (processor() - started) / (THREADS * TURNS) as f64
}

async fn turn(agent: &Agent, thread: &Thread) {
    let outcome = agent.run_on(thread, "When is high water?").await;
    assert_eq!(outcome.ok().map(|one| one.stop), Some(StopReason::Done));
}

/// The time of one copy of these bytes, in nanoseconds.
fn copies(bytes: usize) -> f64 {
    const TIMES: usize = 40;
    let text = "x".repeat(bytes);
    let started = processor();
    for _ in 0..TIMES {
        black_box(black_box(&text).clone());
    }
    (processor() - started) / TIMES as f64
}

/// The CPU time of all threads of this process so far, in nanoseconds. Ended threads do not count:
/// none ends during a measurement.
fn processor() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the system says what threads did");
    let spent = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    spent.sum()
}
