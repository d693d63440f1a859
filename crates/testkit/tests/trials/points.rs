use throughline_store::trials::Point;
use throughline_testkit::Scratch;
use throughline_testkit::agent::Ledger;

use crate::trials::worker::{Worker, reached};

/// Agents reach every fault point without any fault.
#[test]
fn every_fault_point_is_reached() {
    let scratch = Scratch::in_memory("points");
    let url = scratch.sqlite("store.db");
    let log = scratch.path().join("points.log");
    let mut ledger = Ledger::default();
    let mut runs = 0;
    // A living process loses no lease: each process starts after the one before, on a clock that is
    // past its lease, and the first is still there to be fenced.
    let settings = |n: i64, clock: i64, visits: u32| {
        [
            format!("seed={n}"),
            format!("visits={visits}"),
            format!("clock={clock}"),
            "deletes=0.1".to_owned(),
            "lease=1000".to_owned(),
        ]
    };
    while runs < 6 {
        let early = Worker::start(&url, &settings(runs, 0, 120), "", &log);
        let late = Worker::start(&url, &settings(runs + 100, 5_000, 120), "", &log);
        late.end(&mut ledger);
        early.end(&mut ledger);
        runs += 2;
    }
    let found = reached(&log);
    let missing: Vec<&str> = Point::ALL
        .iter()
        .map(|point| point.as_str())
        .filter(|name| !found.contains(*name))
        .collect();
    println!(
        "campaign points: {} of {} reached",
        found.len(),
        Point::ALL.len()
    );
    assert_eq!(
        missing,
        [] as [&str; 0],
        "fault points that nothing reaches"
    );
}
