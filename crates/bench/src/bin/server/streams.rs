//! Many concurrent streams: their memory, and the delay of the first words.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::json;
use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};
use tokio::task::LocalSet;

use super::child::Child;
use super::load::{Connection, post};
use super::mock::{EVENTS, PACED};
use super::{median, runtime};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The numbers of concurrent streams.
const FEW: usize = 100;
const MANY: usize = 500;

/// How often the smaller number is measured.
const ROUNDS: usize = 4;

/// The first words of the mock.
const DIRECT: &str = "\"content\":\"Barges";

pub(super) fn reports() -> Vec<Report> {
    let scratch = Scratch::new("bench-server");
    let mock = Child::mock();
    let server = Child::server(&mock, &scratch);
    let proxy = Child::proxy(&mock, &scratch);
    let runtime = runtime();
    let direct =
        json!({"model": PACED, "stream": true, "messages": [{"role": "user", "content": "Hello"}]});
    let direct_body = direct.to_string();
    let direct = post("/v1/chat/completions", "", &direct_body);
    let passed = post("/stream", "", &direct_body);
    let own = json!({"model": format!("up/{PACED}"), "stream": true, "input": "Hello"});
    let own = post("/v1/responses", "", &own.to_string());
    let idle = server.memory();
    let first = |address: &str, request: &[u8], mark: &'static str, streams: usize| {
        let (address, request) = (address.to_owned(), request.to_vec());
        runtime.block_on(streamed(&server, address, request, mark, streams))
    };
    let theirs = || median(first(&mock.at, &direct, DIRECT, FEW).first);
    let mut added = Vec::new();
    let (mut few, mut event) = (f64::NAN, f64::NAN);
    for round in 0..ROUNDS {
        let theirs = theirs();
        let ours = first(&server.at, &own, "output_text.delta", FEW);
        // The first round warms up.
        if round > 0 {
            added.push(median(ours.first) - theirs);
            few = ours.memory / MEBIBYTE;
            event = ours.spent;
        }
    }
    let all = first(&server.at, &own, "output_text.delta", MANY);
    let mut least = Vec::new();
    for round in 0..ROUNDS {
        let theirs = theirs();
        let proxied = first(&proxy.at, &passed, DIRECT, FEW);
        if round > 0 {
            least.push(median(proxied.first) - theirs);
        }
    }
    let added = median(added) * 1e3;
    let least = median(least) * 1e3;
    let mut report = Report::new(format!("streams of {EVENTS} events, 20 each second"));
    report.push(Row {
        name: "processor time of an event at 500 streams, against 100".to_owned(),
        figure: format!("{:.0} µs {:.0} µs", all.spent / 1e3, event / 1e3),
        ratio: Some(all.spent / event),
        // The cost of a stream must not depend on the number of others.
        limit: Some(Limit::AtMost(1.3)),
    });
    push(
        &mut report,
        "added time to the first words at 100 streams, p50, of 3 ms",
        format!("{added:.2} ms"),
        Some(added / 3.0),
    );
    push(
        &mut report,
        "the same of the proxy, with one commit before it answers",
        format!("{least:.2} ms"),
        None,
    );
    times(&mut report, &all);
    memory(&mut report, idle / MEBIBYTE, few, all.memory / MEBIBYTE);
    vec![report]
}

/// A row with a limit that its name says: `ratio` is the used part of it.
fn push(report: &mut Report, name: &str, figure: String, ratio: Option<f64>) {
    report.push(Row {
        name: name.to_owned(),
        figure,
        ratio,
        limit: ratio.map(|_| Limit::AtMost(1.0)),
    });
}

/// The delay of words with many streams.
fn times(report: &mut Report, all: &Streamed) {
    let mut times = all.first.clone();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[(part * (times.len() - 1) as f64) as usize] * 1e3;
    push(
        report,
        "time to the first words at 500 streams, p50 and p99",
        format!("{:.1} {:.1} ms", at(0.5), at(0.99)),
        None,
    );
    let late = all.late * 1e3;
    push(
        report,
        "an event behind its time at 500 streams, p50",
        format!("{late:.1} ms"),
        None,
    );
}

/// Memory of the server in MiB: idle, with few streams and with many.
fn memory(report: &mut Report, idle: f64, few: f64, many: f64) {
    push(
        report,
        "memory when idle, of 40 MiB",
        format!("{idle:.1} MiB"),
        Some(idle / 40.0),
    );
    push(
        report,
        "memory at 500 streams, of 400 MiB",
        format!("{many:.1} MiB"),
        Some(many / 400.0),
    );
    // One-time allocations, such as the caches of the store, happen with the first streams.
    let each = (many - few) * 1024.0 / (MANY - FEW) as f64;
    push(
        report,
        "memory for each stream between 100 and 500, of 128 KiB",
        format!("{each:.0} KiB"),
        Some(each / 128.0),
    );
}

struct Streamed {
    /// Seconds until the first words.
    first: Vec<f64>,
    /// The peak memory of the server.
    memory: f64,
    /// CPU time of the server per event, in nanoseconds.
    spent: f64,
    /// The delay of a stream per event relative to the plan, in seconds.
    late: f64,
}

/// Opens streams one after the other, and reads all of them to the end.
async fn streamed(
    server: &Child,
    address: String,
    request: Vec<u8>,
    mark: &'static str,
    streams: usize,
) -> Streamed {
    let first = Rc::new(RefCell::new(Vec::new()));
    let lasted = Rc::new(RefCell::new(Vec::new()));
    let local = LocalSet::new();
    let mut memory: f64 = 0.0;
    let before = server.processor();
    let request = Rc::new(request);
    local
        .run_until(async {
            let mut open = Vec::new();
            for _ in 0..streams {
                let mut connection = Connection::to(&address).await;
                let (first, lasted) = (Rc::clone(&first), Rc::clone(&lasted));
                let request = Rc::clone(&request);
                open.push(local.spawn_local(async move {
                    let asked = Instant::now();
                    connection.ask(&request).await;
                    let mut began = None;
                    let holds = |piece: &[u8]| {
                        let mark = mark.as_bytes();
                        piece.windows(mark.len()).any(|window| window == mark)
                    };
                    while let Some(piece) = connection.piece().await {
                        if began.is_none() && holds(&piece) {
                            began = Some(Instant::now());
                            first.borrow_mut().push(asked.elapsed().as_secs_f64());
                        }
                    }
                    let began = began.expect("a stream has words");
                    lasted.borrow_mut().push(began.elapsed().as_secs_f64());
                }));
                // Streams begin while others are in progress, not all at the same moment.
                tokio::time::sleep(Duration::from_millis(4)).await;
            }
            for stream in open {
                memory = memory.max(server.memory());
                stream.await.expect("a stream is read");
            }
        })
        .await;
    let planned = (EVENTS - 1) as f64 * 0.05;
    let late = (median(lasted.take()) - planned) / EVENTS as f64;
    Streamed {
        first: first.take(),
        memory,
        spent: (server.processor() - before) / (streams * EVENTS) as f64,
        late,
    }
}
