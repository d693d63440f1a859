use std::sync::Arc;
use std::time::Duration;

use throughline_store::{
    Anchor, At, Entry, Fork, Heartbeat, ManualClock, Mode, NewThread, Options, Span, Store,
    TenantScope, ThreadId,
};
use throughline_testkit::record::{Turn, block_on, shorts};
use throughline_testkit::{Rng, Scratch, property};

use crate::record::common::said;

/// A thread of turns with rounds of several calls.
fn filled(store: &Store, rng: &mut Rng, keep: Option<u64>) -> Result<ThreadId, String> {
    let scope = TenantScope::local();
    let id = store.ids().thread();
    let new = NewThread {
        keep,
        ..NewThread::new(id.clone())
    };
    let mut expected = block_on(store.open_or_create(&scope, &new, 0))
        .map_err(said)?
        .thread
        .version;
    for turn in 0..rng.range(1..=4) {
        let rounds = (0..rng.below(4)).map(|round| {
            let calls = rng.range(1..=5);
            (0..calls)
                .map(|call| format!("c{turn}_{round}_{call}"))
                .collect()
        });
        let value = Turn {
            rounds: rounds.collect(),
            input: vec![format!("ask {turn}")],
            answer: format!("answer {turn}"),
            mode: if rng.bool() {
                Mode::PerRun
            } else {
                Mode::PerCall
            },
        };
        let at = Anchor::Head {
            thread: id.clone(),
            expected,
        };
        let run = store.ids().run();
        let done = block_on(value.run(store, &scope, run, at, |_, _| {})).map_err(said)?;
        expected = done.version;
    }
    Ok(id)
}

fn all(store: &Store, id: &ThreadId) -> Result<Vec<Entry>, String> {
    let at = At::Thread(id.clone());
    let page = block_on(store.read(&TenantScope::local(), &at, Span::Tail, 100_000));
    Ok(page.map_err(said)?.entries)
}

/// Reads at a position, in both directions, and compares with the whole.
fn cut(store: &Store, id: &ThreadId, whole: &[Entry], at: u64, limit: usize) -> Result<(), String> {
    let scope = TenantScope::local();
    let place = At::Thread(id.clone());
    let after: Vec<&Entry> = whole.iter().filter(|entry| entry.first > at).collect();
    let before: Vec<&Entry> = whole.iter().filter(|entry| entry.last < at).collect();
    let read = |span| block_on(store.read(&scope, &place, span, limit)).map_err(said);
    let found = read(Span::After(at))?;
    let wanted = &after[..limit.min(after.len())];
    if !found.entries.iter().eq(wanted.iter().copied()) || found.more != (after.len() > limit) {
        let seen = shorts(&found.entries);
        return Err(format!(
            "{limit} after {at} are {seen:?} (more: {})",
            found.more
        ));
    }
    let found = read(Span::Before(at))?;
    let wanted = &before[before.len() - limit.min(before.len())..];
    if !found.entries.iter().eq(wanted.iter().copied()) || found.more != (before.len() > limit) {
        let seen = shorts(&found.entries);
        return Err(format!(
            "{limit} before {at} are {seen:?} (more: {})",
            found.more
        ));
    }
    Ok(())
}

/// R20, the store's half: a window that begins or ends anywhere has whole messages, so that no
/// round of results is split; what is read does not depend on where it is cut.
#[test]
fn r20_windows_cut_anywhere_split_nothing() {
    let mut cuts = 0;
    for (engine, store, _scratch) in crate::record::common::engines("cuts") {
        let cases = if engine == "memory" { 230 } else { 12 };
        property(&format!("r20 cuts on {engine}"), cases, |rng, _| {
            let id = filled(&store, rng, None)?;
            let whole = all(&store, &id)?;
            let last = whole.last().map_or(0, |entry| entry.last);
            for at in 0..=last + 1 {
                for limit in [1, 2, 3, 7, 50] {
                    cut(&store, &id, &whole, at, limit)?;
                    cuts += 2;
                }
            }
            Ok(())
        });
    }
    println!("campaign r20 cuts: cuts={cuts} split=0");
}

/// R20: a thread with a retention exists until it expires, and what a fork reaches exists as long
/// as the fork does.
#[test]
fn r20_nothing_goes_before_its_time() {
    const KEEP: u64 = 60_000;
    let scope = TenantScope::local();
    let mut threads = 0;
    property("r20 retention", 40, |rng, _| {
        let scratch = Scratch::in_memory("retention");
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let options = Options {
            clock: Arc::<ManualClock>::clone(&clock),
            heartbeat: Heartbeat::Manual,
            ..Options::default()
        };
        let url = if rng.bool() {
            "memory:".to_owned()
        } else {
            scratch.sqlite("store.db")
        };
        let store = block_on(Store::open_with(&url, options)).map_err(said)?;
        let id = filled(&store, rng, Some(KEEP))?;
        let whole = shorts(&all(&store, &id)?);
        let fork = Fork {
            from: At::Thread(id.clone()),
            thread: NewThread::new(store.ids().thread()),
        };
        let fork = block_on(store.fork(&scope, &fork)).map_err(said)?.id;
        let sweep = || -> Result<(), String> {
            while block_on(store.purge(rng.range(1..=40))).map_err(said)?.more {}
            Ok(())
        };
        let mut sweep = sweep;
        clock.advance(Duration::from_millis(KEEP - 1));
        sweep()?;
        if shorts(&all(&store, &id)?) != whole {
            return Err("something went before its time".to_owned());
        }
        clock.advance(Duration::from_millis(2));
        sweep()?;
        if all(&store, &id).is_ok() {
            return Err("a thread is there after its time".to_owned());
        }
        if shorts(&all(&store, &fork)?) != whole {
            return Err("a fork lost what it reaches".to_owned());
        }
        threads += 1;
        block_on(store.close()).map_err(said)
    });
    println!("campaign r20 retention: threads={threads} lost=0");
}
