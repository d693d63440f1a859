//! A plain turn, compared with one read and two commits of the same bytes.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use throughline::model::Message;
use throughline::{Agent, StopReason, Thread};
use throughline_testkit::bench::{Limit, Report, Row, black_box};
use throughline_testkit::{Rng, Scratch};
use tokio::runtime::{Builder, Runtime};

use super::client::{Does, Instant as Model};
use super::{kilobyte, median, open, raw, runtime};

/// The threads of the turns.
const THREADS: usize = 480;
/// Rounds for the median.
const ROUNDS: usize = 9;
/// Turns of one round.
const TURNS: usize = 480;

pub(super) fn reports() -> Vec<Report> {
    let on_disk = || Scratch::new("bench-turns");
    // Without a disk, the CPU time of both remains.
    let in_memory = || Scratch::in_memory("bench-turns");
    let limit = Some(Limit::AtMost(1.5));
    vec![
        report(&on_disk(), "SQLite", 1, limit),
        report(&on_disk(), "SQLite", 16, limit),
        report(&in_memory(), "SQLite, file in memory", 1, None),
        report(&in_memory(), "SQLite, file in memory", 16, None),
    ]
}

fn report(scratch: &Scratch, name: &str, writers: usize, limit: Option<Limit>) -> Report {
    let store = open(scratch);
    let agent = Agent::builder(Model::new(Does::Answer)).store(&store);
    let agent = agent.build().expect("an agent");
    let runtime = match writers {
        1 => runtime(),
        // As in a server.
        _ => Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .expect("a runtime starts"),
    };
    let text = kilobyte();
    let mut ours: Vec<Vec<Thread>> = split((0..THREADS).map(|_| agent.new_thread()), writers);
    // Every thread has had its first turn.
    let first = ours.first().map_or(0, Vec::len);
    all(&runtime, &agent, &mut ours, (&text, first), |_, turn| turn);

    let path = scratch.path().join("raw.db");
    let raw = raw::Raw::open(&path, THREADS);
    let known = (0..THREADS).map(|place| (place, raw::Thread::new(place)));
    let mut theirs = split(known, writers);
    // The bytes of a message in the store.
    let stored = Message::user(&*text).to_json();
    let readers: Vec<Connection> = theirs.iter().map(|_| reader(&path)).collect();
    let mut clients: Vec<_> = theirs.iter_mut().zip(readers).collect();

    let turns = TURNS / writers;
    let any = move |rng: &mut Rng, _| rng.below(first);
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let own = all(&runtime, &agent, &mut ours, (&text, turns), any);
        let base = raw_turns(&raw, &mut clients, &stored, turns);
        // The first round warms up.
        if round > 0 {
            ratios.push(own.as_secs_f64() / base.as_secs_f64());
            times.push(own.as_secs_f64() / (turns * writers) as f64);
        }
    }
    let mut report = Report::new(format!("a plain turn, {name}, {writers} at once"));
    report.push(Row {
        name: "against one read and two grouped commits of the same bytes".into(),
        figure: format!("{:.0} µs", median(times) * 1e6),
        ratio: Some(median(ratios)),
        limit,
    });
    report
}

fn split<T>(all: impl Iterator<Item = T>, parts: usize) -> Vec<Vec<T>> {
    let mut split: Vec<Vec<T>> = (0..parts).map(|_| Vec::new()).collect();
    for (place, one) in all.enumerate() {
        split[place % parts].push(one);
    }
    split
}

/// Takes turns on each part of the threads, all parts concurrently; returns the duration.
fn all(
    runtime: &Runtime,
    agent: &Agent,
    parts: &mut Vec<Vec<Thread>>,
    (text, turns): (&str, usize),
    choose: impl Fn(&mut Rng, usize) -> usize + Copy + Send + 'static,
) -> Duration {
    let started = Instant::now();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for (n, part) in std::mem::take(parts).into_iter().enumerate() {
            let (agent, text) = (agent.clone(), text.to_owned());
            tasks.push(tokio::spawn(async move {
                let mut rng = Rng::new(n as u64 + 1);
                for turn in 0..turns {
                    let place = choose(&mut rng, turn);
                    let outcome = agent.run_on(&part[place], &*text).await;
                    let stop = outcome.map(|outcome| outcome.stop);
                    assert_eq!(stop.ok(), Some(StopReason::Done));
                }
                part
            }));
        }
        for task in tasks {
            parts.push(task.await.expect("a task ends"));
        }
    });
    started.elapsed()
}

fn reader(path: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).expect("the database opens")
}

/// The thread, and its last node.
fn read(connection: &Connection, place: usize) {
    let id = (place as u64 + 1).to_be_bytes().repeat(2);
    let mut statement = connection
        .prepare_cached(
            "SELECT t.thread, t.version, t.touched, n.node, n.last, n.run, n.digest FROM thread t
             LEFT JOIN node n ON n.tl=t.head_tl AND n.first=t.head_first WHERE t.tenant=1 AND t.id=?1",
        )
        .expect("the tables are known");
    let mut rows = statement.query([id]).expect("rows are read");
    while let Some(row) = rows.next().expect("a row is read") {
        for column in 0..7 {
            black_box(row.get_ref(column).expect("a column is read"));
        }
    }
}

type Client<'c> = (&'c mut Vec<(usize, raw::Thread)>, Connection);

fn raw_turns(raw: &raw::Raw, clients: &mut [Client<'_>], text: &str, turns: usize) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for (n, (threads, connection)) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut rng = Rng::new(n as u64 + 1);
                for _ in 0..turns {
                    let place = rng.below(threads.len());
                    let (row, thread) = &mut threads[place];
                    read(connection, *row);
                    raw.turn(thread, text);
                }
            });
        }
    });
    started.elapsed()
}
