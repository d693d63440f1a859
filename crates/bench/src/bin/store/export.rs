//! The speed of exports, compared with reading the same rows and writing the same bytes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use throughline_model::Message;
use throughline_store::transfer::{Extent, export};
use throughline_store::{At, Store, TenantScope, ThreadId};
use throughline_testkit::bench::{Report, Row, black_box};
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, Scratch};

use super::{append, kilobyte, median, open, threads};

/// Messages of a kilobyte: about 30 MB.
const MESSAGES: usize = 30_000;
/// Rounds for the median.
const ROUNDS: usize = 5;

/// Writes the file that `throughline threads export` writes.
fn ours(store: &Store, id: &ThreadId, to: &Path) -> (Duration, u64) {
    let started = Instant::now();
    let mut out = BufWriter::new(File::create(to).expect("a file is made"));
    let scope = TenantScope::local();
    let at = At::Thread(id.clone());
    let exported = block_on(export(
        store,
        &scope,
        &at,
        Extent::Tree,
        &mut out,
        &mut |_| {},
    ));
    let exported = exported.expect("a thread is exported");
    (started.elapsed(), exported.bytes)
}

/// Reads every exported row in the order of the export, and writes as many bytes.
fn raw(store: &Path, like: &Path, to: &Path) -> Duration {
    let said = std::fs::read(like).expect("the export is there");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(store, flags).expect("the store opens");
    let started = Instant::now();
    let mut statement = conn
        .prepare(
            "SELECT n.node, n.created, r.id, i.no, i.kind, i.digest, i.body FROM node n CROSS JOIN run r ON r.run=n.run
             CROSS JOIN item i ON i.run=n.run AND i.no BETWEEN n.item_lo AND n.item_lo+n.last-n.first ORDER BY n.tl, n.first, i.no",
        )
        .expect("the tables are known");
    let mut rows = statement.query([]).expect("rows are read");
    while let Some(row) = rows.next().expect("a row is read") {
        for column in 0..7 {
            black_box(row.get_ref(column).expect("a column is read"));
        }
    }
    let mut out = BufWriter::new(File::create(to).expect("a file is made"));
    for part in said.chunks(1200) {
        out.write_all(part).expect("bytes are written");
    }
    out.flush().expect("bytes are written");
    started.elapsed()
}

/// Exports a thread of tens of megabytes.
pub(crate) fn report() -> Report {
    let scratch = Scratch::new("bench-export");
    let store = open(&scratch);
    let known = threads(&store, 1).remove(0);
    let text = kilobyte(&mut Rng::new(5));
    for _ in 0..MESSAGES / 10 {
        append(&store, &known.id, &vec![Message::user(&text); 10]);
    }
    let file = |name: &str| scratch.path().join(name);
    let (mut speeds, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (own, bytes) = ours(&store, &known.id, &file("ours.ndjson"));
        let base = raw(&file("store.db"), &file("ours.ndjson"), &file("raw.ndjson"));
        // The first round warms up.
        if round > 0 {
            speeds.push(bytes as f64 / 1e6 / own.as_secs_f64());
            ratios.push(base.as_secs_f64() / own.as_secs_f64());
        }
    }
    let mut report = Report::new("export of a thread, 1 KB messages");
    report.push(Row {
        name: "speed against reading the rows and writing the bytes".into(),
        figure: format!("{:.0} MB/s", median(speeds)),
        ratio: Some(median(ratios)),
        limit: None,
    });
    report
}
