use std::path::Path;
use std::sync::Arc;

use throughline_store::{Error, Heartbeat, ManualClock, Millis, Options, Store, ThreadId};
use throughline_testkit::Scratch;
use throughline_testkit::record::block_on;

/// A store of each engine.
pub(crate) fn engines(word: &str) -> Vec<(&'static str, Store, Scratch)> {
    let scratch = Scratch::new(word);
    let sqlite = scratch.sqlite("store.db");
    vec![
        ("memory", open("memory:"), Scratch::new(word)),
        ("sqlite", open(&sqlite), scratch),
    ]
}

/// The time of a clock that does not advance.
pub(crate) const NOW: Millis = 1_790_000_000_000;

/// A store whose clock does not advance.
pub(crate) fn open(url: &str) -> Store {
    let options = Options {
        clock: Arc::new(ManualClock::at(NOW)),
        heartbeat: Heartbeat::Manual,
        ..Options::default()
    };
    block_on(Store::open_with(url, options)).expect("a store in a private directory opens")
}

/// The store in a directory.
pub(crate) fn url(directory: &Path) -> String {
    format!("sqlite://{}", directory.join("store.db").display())
}

/// The text of an error.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(crate) fn said(error: Error) -> String {
    format!("{error} ({error:?})")
}

pub(crate) fn named(name: &str) -> ThreadId {
    ThreadId::new(name).expect("a short name is a name")
}

/// Checks that the whole store is sound.
pub(crate) fn sound(store: &Store) -> Result<(), String> {
    let checked = block_on(store.check(&mut |_| {})).map_err(said)?;
    match checked.damage.first() {
        None => Ok(()),
        Some(damage) => Err(format!("{damage:?}")),
    }
}
