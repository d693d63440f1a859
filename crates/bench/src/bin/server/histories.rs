//! Memory with many clients whose histories together exceed the cache limit.
//!
//! Each of 256 connections continues its own chain, turn by turn. The server's history cache is
//! bounded by `limits.history_bytes`; its resident memory may be that and [`BESIDE`] more. The
//! server's own figure is read from `/metrics`.

use throughline_testkit::Scratch;
use throughline_testkit::bench::{Limit, Report, Row};
use tokio::task::LocalSet;

use super::child::Child;
use super::load::Connection;
use super::turns::create;
use super::{kilobyte, runtime};

const MEGABYTE: f64 = 1_000_000.0;

/// The configuration key, and its default.
const KEY: &str = "THROUGHLINE_LIMITS_HISTORY_BYTES";
const HISTORY_BYTES: usize = 64 << 20;

/// Resident memory besides histories: code, SQLite's caches, buffers of connections, and memory
/// that the allocator has not returned.
const BESIDE: f64 = 128.0 * MEGABYTE;

const CONNECTIONS: usize = 256;

/// Turns of each chain, and the size of each: 1 MB per connection, four times the limit in all.
const TURNS: usize = 16;
const KILOBYTES: usize = 64;

pub(super) fn reports() -> Vec<Report> {
    let scratch = Scratch::new("bench-server");
    let mock = Child::mock();
    let set = format!("{KEY}={HISTORY_BYTES}");
    let server = Child::server_with(&mock, &scratch, &[&set]);
    let metrics = runtime().block_on(async {
        let local = LocalSet::new();
        let mut chains = Vec::new();
        for number in 0..CONNECTIONS {
            let address = server.at.clone();
            chains.push(local.spawn_local(chain(address, number)));
        }
        // Connections stay open until all chains have ended.
        let mut open = Vec::new();
        local
            .run_until(async {
                for chain in chains {
                    open.push(chain.await.expect("every turn is answered"));
                }
            })
            .await;
        let request = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
        let text = Connection::to(&server.at).await.whole(request).await;
        String::from_utf8(text).unwrap_or_default()
    });
    let most = HISTORY_BYTES as f64 + BESIDE;
    let name = format!("{CONNECTIONS} connections with histories of 268 MB");
    let mut report = Report::new("memory with histories larger than what is kept of them");
    let memory = server.memory();
    report.push(Row {
        name: format!("{name}: resident memory, of history_bytes + 128 MB"),
        figure: format!("{:.0} MB of {:.0} MB", memory / MEGABYTE, most / MEGABYTE),
        ratio: Some(memory / most),
        limit: Some(Limit::AtMost(1.0)),
    });
    // A turn under way has its whole history and the request that is rendered from it, whatever is
    // kept between turns: without a limit, to see what a burst takes.
    let peak = server.peak_memory();
    report.push(Row {
        name: format!("{name}: peak, while all turns are under way"),
        figure: format!("{:.0} MB", peak / MEGABYTE),
        ratio: Some(peak / most),
        limit: None,
    });
    let kept = kept(&metrics);
    report.push(Row {
        name: format!("{name}: what /metrics counts as kept, of history_bytes"),
        figure: kept.map_or_else(
            || "not shown by /metrics".to_owned(),
            |kept| format!("{:.0} MB", kept / MEGABYTE),
        ),
        // A missing gauge is over every limit.
        ratio: Some(kept.map_or(f64::INFINITY, |kept| kept / HISTORY_BYTES as f64)),
        limit: Some(Limit::AtMost(1.0)),
    });
    vec![report]
}

/// One client: a chain of turns on one connection.
async fn chain(address: String, number: usize) -> Connection {
    let mut connection = Connection::to(&address).await;
    let text = format!("{number} {}", kilobyte().repeat(KILOBYTES));
    let mut previous = None;
    for _ in 0..TURNS {
        let request = create(&text, previous.as_deref());
        previous = Some(connection.response(&request).await);
    }
    connection
}

/// The bytes of cached histories that the server reports.
fn kept(metrics: &str) -> Option<f64> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let gauge = lines
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| {
            name.starts_with("throughline_histor")
                && name.contains("bytes")
                && !name.contains("limit")
        });
    gauge?.1.trim().parse().ok()
}
