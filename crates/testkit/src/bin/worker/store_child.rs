//! A process that writes to a store until it is killed.
//!
//! `worker store-child write URL SEED` runs turns on a few threads from several writers
//! concurrently and prints what was acknowledged, line by line, *after* the store did so:
//!
//! - `begun RUN`: the run is stored, with its input;
//! - `step RUN N`: so is this step;
//! - `done RUN THREAD MODE TEXT|TEXT|…`: it is published, with these messages;
//! - `error …`: an error that no caller should get.
//!
//! `worker store-child long URL ITEMS` and `worker store-child chain URL FORKS` make a long thread
//! and a deep chain of forks, read them in pages, and print how much memory that took.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use throughline_store::{
    Anchor, Append, At, CallState, Claim, End, Ending, Error, ErrorKind, Fork, Heartbeat, Mode,
    NewItem, NewThread, NodeRef, Options, Publish, Run, RunState, Span, Stopped, Store,
    SystemClock, TenantScope, ThreadId,
};
use throughline_testkit::Rng;
use throughline_testkit::bench::peak_rss;
use throughline_testkit::disk::from_environment;
use throughline_testkit::record::{Turn, answered, assistant, begin, block_on, user};

const WRITERS: u64 = 4;
const THREADS: usize = 6;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = crate::arguments().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The environment may cut the power of the disk, which lives until the end.
    let done = from_environment().and_then(|_disk| match words.as_slice() {
        ["write", url, seed] => write(url, seed.parse().unwrap_or(0)),
        ["long", url, items] => block_on(long(url, items.parse().unwrap_or(0))),
        ["chain", url, forks] => block_on(chain(url, forks.parse().unwrap_or(0))),
        _ => Err("usage: worker store-child write|long|chain URL NUMBER".to_owned()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error {error}"));
            ExitCode::FAILURE
        }
    }
}

/// One write per line, so that a kill cannot tear it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn words(error: Error) -> String {
    format!("{error} ({error:?})")
}

fn options() -> Options {
    Options {
        clock: Arc::new(SystemClock),
        heartbeat: Heartbeat::Automatic,
        // Short, so that the next process can soon settle this one's runs.
        lease: Duration::from_millis(300),
    }
}

fn write(url: &str, seed: u64) -> Result<(), String> {
    let store = block_on(Store::open_with(url, options())).map_err(words)?;
    say("ready");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = store.clone();
            scope.spawn(move || {
                let mut rng = Rng::new(seed.wrapping_mul(31).wrapping_add(writer));
                loop {
                    if let Err(error) = block_on(one_turn(&store, &mut rng)) {
                        say(&format!("error {}", words(error)));
                        std::process::exit(1);
                    }
                }
            });
        }
    });
    Ok(())
}

/// Whether a writer may get an error because of other writers.
fn expected(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Busy | ErrorKind::Conflict | ErrorKind::Fenced
    )
}

async fn one_turn(store: &Store, rng: &mut Rng) -> Result<(), Error> {
    match attempt(store, rng).await {
        Err(error) if expected(&error) => Ok(()),
        other => other,
    }
}

async fn attempt(store: &Store, rng: &mut Rng) -> Result<(), Error> {
    let scope = TenantScope::local();
    let name = format!("t{}", rng.below(THREADS));
    let Ok(id) = ThreadId::new(&name) else {
        return Ok(());
    };
    let new = NewThread::new(id.clone());
    let opened = store.open_or_create(&scope, &new, 5).await?;
    if let Some(unsettled) = opened.unsettled {
        return settle(store, &scope, &unsettled).await;
    }
    let run = store.ids().run();
    let hex = run.to_hex();
    let rounds = rng.below(3);
    let size = |rng: &mut Rng| "x".repeat(rng.below(3000));
    let turn = Turn {
        input: vec![format!("{hex} ask {}", size(rng))],
        rounds: (0..rounds)
            .map(|n| {
                let calls = rng.range(1..=3);
                (0..calls)
                    .map(|k| format!("{}_{n}_{k}", &hex[16..]))
                    .collect()
            })
            .collect(),
        answer: format!("{hex} answer {}", size(rng)),
        mode: if rng.bool() {
            Mode::PerRun
        } else {
            Mode::PerCall
        },
    };
    let at = match (rng.chance(0.2), opened.tip) {
        (true, Some(tip)) => Anchor::Node(NodeRef::Node(tip.node)),
        _ => Anchor::Head {
            thread: id,
            expected: opened.thread.version,
        },
    };
    let lease = begin(store, &scope, &turn.begin(run, at)).await?.lease;
    say(&format!("begun {run}"));
    for no in 0..turn.rounds.len() {
        store.step(&scope, lease, &turn.step(no)).await?;
        say(&format!("step {run} {no}"));
        for result in turn.results(no) {
            store.results(&scope, lease, &[result]).await?;
        }
    }
    if rng.chance(0.1) {
        let end = End {
            how: Stopped::Failed,
            note: None,
            events: None,
        };
        return store.end(&scope, lease, &end).await;
    }
    store.publish(&scope, lease, &turn.publish()).await?;
    let mode = turn.mode.as_str();
    say(&format!(
        "done {run} {name} {mode} {}",
        turn.texts().join("|")
    ));
    Ok(())
}

/// Closes a run of a killed process.
async fn settle(store: &Store, scope: &TenantScope, run: &Run) -> Result<(), Error> {
    if run.state != RunState::Interrupted {
        return Ok(());
    }
    let lease = store
        .claim(scope, run.id, run.epoch, Claim::Settle)
        .await?
        .lease;
    let journal = store.journal(scope, run.id).await?;
    let mut results = Vec::new();
    for call in &journal.calls {
        if call.state != CallState::Done {
            let (step, position) = (call.at.step, call.at.position);
            let message = answered(&call.call);
            results.push(throughline_store::CallResult::new(step, position, &message));
        }
    }
    let publish = Publish {
        results,
        ending: Ending::Cancelled,
        ..Publish::new(
            journal.run.next_step,
            NewItem::of(&[assistant(&format!("{} closed", run.id.to_hex()))]),
        )
    };
    store.publish(scope, lease, &publish).await.map(drop)
}

fn megabytes(bytes: Option<u64>) -> u64 {
    bytes.unwrap_or(u64::MAX) / (1024 * 1024)
}

/// A thread of many items, written and read in pieces.
async fn long(url: &str, items: usize) -> Result<(), String> {
    let store = Store::open_with(url, options()).await.map_err(words)?;
    let scope = TenantScope::local();
    let id = store.ids().thread();
    let new = NewThread::new(id.clone());
    store.open_or_create(&scope, &new, 0).await.map_err(words)?;
    let mut written = 0;
    while written < items {
        let count = (items - written).min(200);
        let messages: Vec<_> = (written..written + count)
            .map(|n| user(&format!("{n} {}", "x".repeat(1000))))
            .collect();
        let append = Append {
            run: store.ids().run(),
            thread: id.clone(),
            expected: None,
            items: NewItem::of(&messages),
            state: None,
            key: None,
        };
        store.append(&scope, &append).await.map_err(words)?;
        written += count;
    }
    let (mut read, mut bytes, mut after) = (0, 0, 0);
    let at = At::Thread(id);
    loop {
        let page = store
            .read(&scope, &at, Span::After(after), 500)
            .await
            .map_err(words)?;
        for entry in &page.entries {
            if !entry.message.text().starts_with(&format!("{read} ")) {
                return Err(format!("message {read} is {:?}", entry.message.text()));
            }
            read += 1;
            bytes += entry.message.text().len();
            after = entry.last;
        }
        if !page.more {
            break;
        }
    }
    if read != items {
        return Err(format!("{read} of {items} items were read"));
    }
    let peak = megabytes(peak_rss());
    say(&format!("long items={items} bytes={bytes} peak_mib={peak}"));
    Ok(())
}

/// A chain of forks, each with one turn of its own.
async fn chain(url: &str, forks: usize) -> Result<(), String> {
    let store = Store::open_with(url, options()).await.map_err(words)?;
    let scope = TenantScope::local();
    let mut id = store.ids().thread();
    let new = NewThread::new(id.clone());
    store.open_or_create(&scope, &new, 0).await.map_err(words)?;
    for n in 0..=forks {
        if n > 0 {
            let fork = Fork {
                from: At::Thread(id.clone()),
                thread: NewThread::new(store.ids().thread()),
            };
            id = store.fork(&scope, &fork).await.map_err(words)?.id;
        }
        let append = Append {
            run: store.ids().run(),
            thread: id.clone(),
            expected: None,
            items: NewItem::of(&[user(&format!("turn {n}"))]),
            state: None,
            key: None,
        };
        store.append(&scope, &append).await.map_err(words)?;
    }
    let (mut read, mut after) = (0, 0);
    let at = At::Thread(id);
    loop {
        let page = store
            .read(&scope, &at, Span::After(after), 100)
            .await
            .map_err(words)?;
        for entry in &page.entries {
            if entry.message.text() != format!("turn {read}") {
                return Err(format!("message {read} is {:?}", entry.message.text()));
            }
            read += 1;
            after = entry.last;
        }
        if !page.more {
            break;
        }
    }
    if read != forks + 1 {
        return Err(format!("{read} of {} messages were read", forks + 1));
    }
    let peak = megabytes(peak_rss());
    say(&format!("chain forks={forks} peak_mib={peak}"));
    Ok(())
}
