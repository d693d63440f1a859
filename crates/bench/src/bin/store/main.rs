//! The cost of the record, as ratios within one run.
//!
//! Started by `cargo xtask bench store`. Durable turns are compared with raw grouped commits of the
//! same rows (run, two items, node, thread) through the same kind of writer thread, with the same
//! page size, by the same number of clients, in alternation.

mod export;
mod raw;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throughline_model::Message;
use throughline_store::{
    Anchor, Append, At, Flush, Fork, Mode, NewItem, NewThread, Publish, Store, StoredEvent,
    TenantScope, ThreadId, Version,
};
use throughline_testkit::bench::{Bench, Limit, Report, Row};
use throughline_testkit::record::{Turn, begin, block_on};
use throughline_testkit::{Rng, Scratch};

/// Threads that the writers write to.
const THREADS: usize = 2000;
/// Rounds for the median.
const ROUNDS: usize = 9;

fn main() -> ExitCode {
    let mut holds = true;
    // One part only, for development.
    match std::env::args().nth(1).as_deref() {
        Some("--streams") => return ExitCode::from(u8::from(!finish(&streams()))),
        Some("--export") => return ExitCode::from(u8::from(!finish(&export::report()))),
        _ => {}
    }
    for writers in [1, 16, 64] {
        holds &= finish(&turns(writers));
    }
    holds &= finish(&streams());
    holds &= finish(&modes());
    holds &= lengths();
    holds &= finish(&bytes());
    holds &= finish(&export::report());
    ExitCode::from(u8::from(!holds))
}

fn finish(report: &Report) -> bool {
    report.finish();
    report.holds()
}

/// A kilobyte that compresses badly.
fn kilobyte(rng: &mut Rng) -> String {
    (0..1024)
        .map(|_| char::from(b'a' + (rng.next_u64() % 26) as u8))
        .collect()
}

fn open(scratch: &Scratch) -> Store {
    block_on(Store::open(&scratch.sqlite("store.db"))).expect("a store opens in a new directory")
}

/// Threads with the versions that their writer knows.
struct Known {
    id: ThreadId,
    version: Version,
}

fn threads(store: &Store, count: usize) -> Vec<Known> {
    let scope = TenantScope::local();
    let make = |_| {
        let id = store.ids().thread();
        let new = NewThread::new(id.clone());
        block_on(store.open_or_create(&scope, &new, 0)).expect("a thread is made");
        Known {
            id,
            version: Version(0),
        }
    };
    (0..count).map(make).collect()
}

/// Takes `turns` turns on each writer's part of the threads; returns the duration.
fn clients<T: Send>(
    parts: &mut [T],
    turns: usize,
    one: impl Fn(&mut T, &mut Rng) + Sync,
) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let one = &one;
        for (n, part) in parts.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut rng = Rng::new(n as u64 + 1);
                for _ in 0..turns {
                    one(part, &mut rng);
                }
            });
        }
    });
    started.elapsed()
}

fn split<T>(mut all: Vec<T>, parts: usize) -> Vec<Vec<T>> {
    let size = all.len() / parts;
    (0..parts)
        .map(|_| all.split_off(all.len() - size))
        .collect()
}

fn head(known: &Known) -> Anchor {
    Anchor::Head {
        thread: known.id.clone(),
        expected: known.version,
    }
}

async fn plain(store: &Store, known: &mut Known, text: &str) {
    let scope = TenantScope::local();
    let input = NewItem::of(&[Message::user(text)]);
    let value = throughline_store::Begin::new(store.ids().run(), head(known), input);
    let started = begin(store, &scope, &value).await.expect("a turn begins");
    let output = NewItem::of(&[Message::user(text)]);
    let publish = Publish::new(0, output);
    let published = store.publish(&scope, started.lease, &publish).await;
    known.version = published.expect("a turn is published").version;
}

/// A turn with an answer in deltas.
async fn streamed(store: &Store, known: &mut Known, text: &str, deltas: &[StoredEvent]) {
    let scope = TenantScope::local();
    let input = NewItem::of(&[Message::user(text)]);
    let mut value = throughline_store::Begin::new(store.ids().run(), head(known), input);
    value.events = Some(Flush::new(0, &deltas[..2]));
    let started = begin(store, &scope, &value).await.expect("a turn begins");
    let mut sent = 2;
    for flush in deltas[2..].chunks(10) {
        let flush = Flush::new(sent, flush);
        sent = flush.end();
        store
            .flush(&scope, started.lease, &flush)
            .await
            .expect("events are stored");
    }
    let publish = Publish {
        events: Some(Flush::new(sent, &deltas[..1])),
        ..Publish::new(0, NewItem::of(&[Message::user(text)]))
    };
    let published = store.publish(&scope, started.lease, &publish).await;
    known.version = published.expect("a turn is published").version;
}

fn turns(writers: usize) -> Report {
    let scratch = Scratch::new("bench-turns");
    let store = open(&scratch);
    let mut ours = split(threads(&store, THREADS), writers);
    let raw = raw::Raw::open(&scratch.path().join("raw.db"), THREADS);
    let mut theirs = split((0..THREADS).map(raw::Thread::new).collect(), writers);
    let text = kilobyte(&mut Rng::new(5));
    let count = (2400 / writers).max(40);
    let (mut speeds, mut rates) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let own = clients(&mut ours, count, |part, rng| {
            let place = rng.below(part.len());
            block_on(plain(&store, &mut part[place], &text));
        });
        let base = clients(&mut theirs, count, |part, rng| {
            let place = rng.below(part.len());
            raw.turn(&mut part[place], &text);
        });
        // The first round warms up.
        if round > 0 {
            speeds.push(base.as_secs_f64() / own.as_secs_f64());
            rates.push((count * writers) as f64 / own.as_secs_f64());
        }
    }
    let mut report = Report::new(format!("durable plain turns, {writers} writers"));
    report.push(Row {
        name: "speed against raw grouped commits of the same rows".into(),
        figure: format!("{:.0} turns/s", median(rates)),
        ratio: Some(median(speeds)),
        limit: Some(Limit::AtLeast(0.7)),
    });
    report
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Streamed,
}

/// The CPU time of the store's writer thread so far, in nanoseconds. Waiting clients do not count.
fn writer_time() -> Option<f64> {
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let task = task.ok()?.path();
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        if name.trim() == "store writer" {
            let spent = std::fs::read_to_string(task.join("schedstat")).ok()?;
            return spent.split(' ').next()?.parse().ok();
        }
    }
    None
}

/// A streamed turn of 200 deltas compared with a plain one, many concurrently: the CPU time of the
/// writer thread per turn.
fn streams() -> Report {
    const WRITERS: usize = 100;
    const TURNS: usize = 15;
    let scratch = Scratch::new("bench-streams");
    let store = open(&scratch);
    let mut parts = split(threads(&store, THREADS), WRITERS);
    let text: Arc<str> = kilobyte(&mut Rng::new(5)).into();
    let delta = |n: usize| StoredEvent {
        kind: 9,
        body: text.as_bytes()[n * 5..n * 5 + 5].to_vec(),
    };
    let deltas: Arc<[StoredEvent]> = (0..200).map(delta).collect();
    // Tasks, as in a server: with a thread per stream, the threads would be measured.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime starts");
    let mut all = |kind: Kind| {
        let started = Instant::now();
        let tasks: Vec<_> = std::mem::take(&mut parts)
            .into_iter()
            .enumerate()
            .map(|(n, mut part)| {
                let (store, text, deltas) = (store.clone(), Arc::clone(&text), Arc::clone(&deltas));
                runtime.spawn(async move {
                    let mut rng = Rng::new(n as u64 + 1);
                    for _ in 0..TURNS {
                        let place = rng.below(part.len());
                        match kind {
                            Kind::Plain => plain(&store, &mut part[place], &text).await,
                            Kind::Streamed => {
                                streamed(&store, &mut part[place], &text, &deltas).await;
                            }
                        }
                    }
                    part
                })
            })
            .collect();
        for task in tasks {
            parts.push(runtime.block_on(task).expect("a task ends"));
        }
        started.elapsed()
    };
    let (mut plain_times, mut streamed_times) = (Vec::new(), Vec::new());
    let (mut waits, mut times) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let started = writer_time();
        let base = all(Kind::Plain);
        let between = writer_time();
        let own = all(Kind::Streamed);
        if let (Some(started), Some(between), Some(ended)) = (started, between, writer_time())
            && round > 0
        {
            plain_times.push(between - started);
            streamed_times.push(ended - between);
            times.push((ended - between) / (TURNS * WRITERS) as f64 / 1000.0);
            waits.push(own.as_secs_f64() / base.as_secs_f64());
        }
    }
    let mut report = Report::new("streamed turns, 100 at once, 200 deltas in flushes of 10");
    let known = !plain_times.is_empty();
    report.push(Row {
        name: "work of the writer thread, against a plain turn".into(),
        figure: if known {
            format!("{:.0} µs", median(times))
        } else {
            "–".into()
        },
        ratio: known.then(|| median(streamed_times) / median(plain_times)),
        limit: Some(Limit::AtMost(2.5)),
    });
    report.push(Row {
        name: "time of the clients, against a plain turn".into(),
        figure: "–".into(),
        ratio: known.then(|| median(waits)),
        limit: None,
    });
    report
}

/// `per_call` against `per_run` for a run of five rounds.
fn modes() -> Report {
    let scratch = Scratch::new("bench-modes");
    let store = open(&scratch);
    let mut known = threads(&store, 200);
    let scope = TenantScope::local();
    let text = kilobyte(&mut Rng::new(5));
    let mut bench = Bench::new("a run of five rounds, one writer").with_rounds(ROUNDS);
    let mut rng = Rng::new(1);
    let mut ids = 0;
    let places = std::cell::RefCell::new((&mut known, &mut rng, &mut ids));
    let run = |mode: Mode| {
        let mut borrowed = places.borrow_mut();
        let (known, rng, ids) = &mut *borrowed;
        let place = rng.below(known.len());
        **ids += 1;
        let turn = Turn {
            input: vec![text.clone()],
            rounds: (0..5).map(|n| vec![format!("call_{ids}_{n}")]).collect(),
            answer: text.clone(),
            mode,
        };
        let at = head(&known[place]);
        let done = block_on(turn.run(&store, &scope, store.ids().run(), at, |_, _| {}));
        known[place].version = done.expect("a run is published").version;
    };
    bench.case("per_run", || run(Mode::PerRun));
    bench.shown_against("per_call", "per_run", || run(Mode::PerCall));
    bench.run()
}

/// The cost of a turn must not depend on the length of the history.
fn lengths() -> bool {
    let scratch = Scratch::new("bench-lengths");
    let store = open(&scratch);
    let scope = TenantScope::local();
    let text = kilobyte(&mut Rng::new(5));
    let lengths = [10, 1_000, 100_000];
    let mut made = Vec::new();
    for length in lengths {
        let mut known = threads(&store, 1).remove(0);
        let mut written = 0;
        while written < length {
            let count = (length - written).min(10);
            let messages = vec![Message::user(&text); count];
            known.version = append(&store, &known.id, &messages);
            written += count;
        }
        made.push(known.id);
    }
    let mut holds = true;
    let name = |length: usize| format!("at {length} messages");
    let mut opens = Bench::new("open with a tail of 50").with_rounds(ROUNDS);
    let mut appends = Bench::new("append").with_rounds(ROUNDS);
    let mut forks = Bench::new("fork").with_rounds(ROUNDS);
    for (length, id) in lengths.into_iter().zip(&made) {
        let (store, scope) = (&store, &scope);
        let at = At::Thread(id.clone());
        let open = move || {
            let opened = block_on(store.open(scope, &at, 50)).expect("a thread opens");
            throughline_testkit::bench::black_box(opened);
        };
        let text = &text;
        let add = move || {
            append(store, id, &[Message::user(text)]);
        };
        let fork = move || {
            let fork = Fork {
                from: At::Thread(id.clone()),
                thread: NewThread::new(store.ids().thread()),
            };
            block_on(store.fork(scope, &fork)).expect("a thread is forked");
        };
        match length {
            // Ten messages are less than a tail of fifty: the baseline is the first full tail.
            10 => {
                drop(open);
                appends.case(name(length), add);
                forks.case(name(length), fork);
            }
            1_000 => {
                opens.case(name(length), open);
                appends.against(name(length), &name(10), Limit::AtMost(1.5), add);
                forks.against(name(length), &name(10), Limit::AtMost(1.5), fork);
            }
            _ => {
                opens.against(name(length), &name(1_000), Limit::AtMost(1.5), open);
                appends.against(name(length), &name(10), Limit::AtMost(1.5), add);
                forks.against(name(length), &name(10), Limit::AtMost(1.5), fork);
            }
        }
    }
    for bench in [opens, appends, forks] {
        holds &= finish(&bench.run());
    }
    holds
}

fn append(store: &Store, id: &ThreadId, messages: &[Message]) -> Version {
    let append = Append {
        run: store.ids().run(),
        thread: id.clone(),
        expected: None,
        items: NewItem::of(messages),
        state: None,
        key: None,
    };
    let published = block_on(store.append(&TenantScope::local(), &append));
    published.expect("items are appended").version
}

/// Bytes on disk, per turn and per byte of content.
fn bytes() -> Report {
    const MANY: usize = 20;
    let scratch = Scratch::new("bench-bytes");
    let text = kilobyte(&mut Rng::new(5));
    let path = scratch.path().join("store.db");
    let mut known: Vec<Known> = Vec::new();
    // The file is measured while no process has it open, so that the WAL is empty.
    let mut grow = |turns: usize| {
        let store = open(&scratch);
        if known.is_empty() {
            known = threads(&store, MANY);
        }
        for _ in 0..turns {
            for one in &mut known {
                block_on(plain(&store, one, &text));
            }
        }
        block_on(store.close()).expect("a store closes");
        std::fs::metadata(&path).map_or(0, |file| file.len()) as f64
    };
    let sizes = [grow(5), grow(10), grow(980), grow(10)];
    let per_turn =
        |from: usize, turns: usize| (sizes[from + 1] - sizes[from]) / (turns * MANY) as f64;
    let early = per_turn(0, 10);
    let late = per_turn(1, 980);
    let mut report = Report::new("bytes on disk, 1 KB messages");
    report.push(Row {
        name: "a turn, turns 5 to 15".into(),
        figure: format!("{early:.0} B"),
        ratio: None,
        limit: None,
    });
    report.push(Row {
        name: "a turn, turns 15 to 995, against turns 5 to 15".into(),
        figure: format!("{late:.0} B"),
        ratio: Some(late / early),
        limit: Some(Limit::AtMost(1.05)),
    });
    report.push(Row {
        name: "per byte said".into(),
        figure: format!("{late:.0} B"),
        ratio: Some(late / 2048.0),
        limit: Some(Limit::AtMost(1.3)),
    });
    report
}
