//! The cost of the server besides the model, as ratios within one run.
//!
//! Started by `cargo xtask bench server`. The server, the proxy that is the baseline and the mock
//! upstream are separate processes (this program, started with a word); the load comes from this
//! process. The proxy uses the same HTTP stack, and does for each request what every stateful
//! server has to: one read, two grouped commits of the same bytes, and the upstream request with
//! the same bytes.

mod child;
mod histories;
mod lengths;
mod load;
mod memory;
mod mock;
mod proxy;
#[expect(dead_code, reason = "the blocking client is another bench's")]
#[path = "../store/raw.rs"]
mod raw;
mod recorded;
mod sizes;
mod stateless;
mod streams;
mod transports;
mod turns;

use std::process::ExitCode;

use throughline_testkit::Rng;
use throughline_testkit::bench::Report;
use tokio::runtime::{Builder, Runtime};

/// The allocator of `throughline`, for all measured processes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["mock"] => return child::run(mock::serve()),
        ["proxy", url, database] => return child::run(proxy::serve(url, database)),
        ["serve", url, store, ref settings @ ..] => {
            return child::run(child::server(url, store, settings));
        }
        _ => {}
    }
    let parts = [
        ("--turns", turns::reports as fn() -> Vec<Report>),
        ("--stateless", stateless::reports),
        ("--transports", transports::reports),
        ("--lengths", lengths::reports),
        ("--sizes", sizes::reports),
        ("--streams", streams::reports),
        ("--memory", memory::reports),
        ("--histories", histories::reports),
        ("--recorded", recorded::reports),
    ];
    // One part only, for development.
    let known = |word: &&str| parts.iter().any(|(part, _)| part == word);
    let word = words.first().copied().filter(known);
    let mut holds = true;
    for (part, made) in parts {
        if word.is_some_and(|word| word != part) {
            continue;
        }
        for report in made() {
            report.finish();
            holds &= report.holds();
        }
    }
    ExitCode::from(u8::from(!holds))
}

/// The runtime of the load: a single thread, so that it takes little CPU time.
fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime starts")
}

/// A kilobyte that compresses badly.
fn kilobyte() -> String {
    let mut rng = Rng::new(5);
    let letter = |_| char::from(b'a' + (rng.next_u64() % 26) as u8);
    (0..1024).map(letter).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
