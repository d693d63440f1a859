use std::sync::Arc;

use throughline_store::{Heartbeat, ManualClock, Options, Store};
use throughline_testkit::Scratch;
use throughline_testkit::record::block_on;

/// A store of each engine, on its own.
pub(crate) fn engines(word: &str) -> Vec<(&'static str, Store, Scratch)> {
    let scratch = Scratch::new(word);
    let sqlite = scratch.sqlite("store.db");
    vec![
        ("memory", open("memory:"), Scratch::new(word)),
        ("sqlite", open(&sqlite), scratch),
    ]
}

/// A store whose clock stands still.
pub(crate) fn open(url: &str) -> Store {
    let options = Options {
        clock: Arc::new(ManualClock::at(1_790_000_000_000)),
        heartbeat: Heartbeat::Manual,
        ..Options::default()
    };
    block_on(Store::open_with(url, options)).expect("a store in a private directory opens")
}
