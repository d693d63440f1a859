//! The cost of a turn on a stored thread besides the model, as ratios within one run.
//!
//! Started by `cargo xtask bench thread`. The model answers at once, so that the agent, the journal
//! and SQLite with full durability are measured.

mod client;
mod lengths;
mod modes;
#[path = "../store/raw.rs"]
mod raw;
mod turns;

use std::process::ExitCode;

use throughline::store::Store;
use throughline_testkit::bench::Report;
use throughline_testkit::record::block_on;
use throughline_testkit::{Rng, Scratch};
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    let reports = [
        ("--turns", turns::reports as fn() -> Vec<Report>),
        ("--lengths", lengths::reports),
        ("--modes", modes::reports),
    ];
    // One part only, for development.
    let word = std::env::args().nth(1);
    let known = reports
        .iter()
        .any(|(part, _)| word.as_deref() == Some(part));
    let mut holds = true;
    for (part, made) in reports {
        if known && word.as_deref() != Some(part) {
            continue;
        }
        for report in made() {
            report.finish();
            holds &= report.holds();
        }
    }
    ExitCode::from(u8::from(!holds))
}

fn open(scratch: &Scratch) -> Store {
    block_on(Store::open(&scratch.sqlite("store.db"))).expect("a store opens in a new directory")
}

/// A single-threaded runtime, so that wake-ups between threads are not measured.
fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime starts")
}

/// A kilobyte that compresses badly.
fn kilobyte() -> String {
    let mut rng = Rng::new(5);
    (0..1024)
        .map(|_| char::from(b'a' + (rng.next_u64() % 26) as u8))
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
