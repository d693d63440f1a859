//! Writers in the test's process, and the answers that they get.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline_store::{
    Anchor, Append, At, CallResult, CallState, Claim, Clock, End, Ending, Error, ErrorKind,
    Execution, Flush, Fork, Heartbeat, ManualClock, Mode, NewItem, NewThread, NodeRef, Options,
    Publish, Run, RunId, RunState, Stopped, Store, StoredEvent, SystemClock, TenantScope, ThreadId,
};
use throughline_testkit::Rng;
use throughline_testkit::record::{Turn, answered, assistant, begin, block_on};

use crate::record::common::{NOW, named, said};
use crate::record::ledger::{Ledger, threads};

/// Threads that all writers share.
const THREADS: usize = 4;

/// A store that soon takes over runs of another one.
pub(crate) fn open(url: &str) -> Result<Store, Error> {
    let options = Options {
        clock: Arc::new(SystemClock),
        heartbeat: Heartbeat::Automatic,
        lease: Duration::from_millis(60),
    };
    block_on(Store::open_with(url, options))
}

/// A store for which every lease has expired.
pub(crate) fn open_later(url: &str) -> Result<Store, Error> {
    // Later than every manual clock of these tests, too.
    let clock = Arc::new(ManualClock::at(SystemClock.now().max(NOW)));
    clock.advance(Duration::from_secs(3600));
    let options = Options {
        clock,
        heartbeat: Heartbeat::Manual,
        ..Options::default()
    };
    block_on(Store::open_with(url, options))
}

/// A writer: its store, its random choices, and the shared ledger.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) rng: Rng,
    pub(crate) ledger: &'a Mutex<Ledger>,
}

/// Whether a writer may get an error because of other writers.
pub(crate) fn expected(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Busy | ErrorKind::Conflict | ErrorKind::Fenced
    )
}

/// Events of a run, each with its own text.
pub(crate) fn events(run: RunId, from: usize, to: usize) -> Vec<StoredEvent> {
    let event = |n: usize| StoredEvent {
        kind: 1,
        body: format!("{} {n}", run.to_hex()).into_bytes(),
    };
    (from..to).map(event).collect()
}

/// A turn whose texts name its run.
pub(crate) fn turn_of(run: RunId, rng: &mut Rng) -> Turn {
    let hex = run.to_hex();
    let rounds = rng.below(3);
    let round = |n: usize, rng: &mut Rng| {
        let calls = rng.range(1..=3);
        let call = |k: usize| format!("{}_{n}_{k}", &hex[16..]);
        (0..calls).map(call).collect()
    };
    Turn {
        input: vec![format!("{hex} ask {}", "x".repeat(rng.below(3000)))],
        rounds: (0..rounds).map(|n| round(n, rng)).collect(),
        answer: format!("{hex} answer {}", "y".repeat(rng.below(3000))),
        mode: if rng.bool() {
            Mode::PerRun
        } else {
            Mode::PerCall
        },
    }
}

/// Appended items that look like a whole run.
pub(crate) fn append_of(run: RunId, thread: ThreadId, size: usize) -> (Append, String) {
    let text = format!("{} answer {}", run.to_hex(), "z".repeat(size));
    let append = Append {
        run,
        thread,
        expected: None,
        items: NewItem::of(&[assistant(&text)]),
        state: None,
        key: None,
    };
    (append, text)
}

impl Writer<'_> {
    fn say(&self, line: &str) {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.note(line).expect("the ledger knows this line");
    }

    /// Does one action. Errors that other writers cause are expected.
    pub(crate) fn work(&mut self) -> Result<(), Error> {
        let done = match self.rng.below(10) {
            0 => block_on(self.add()),
            1 => block_on(self.doom()),
            _ => block_on(self.turn()),
        };
        match done {
            Err(error) if expected(&error) => Ok(()),
            other => other,
        }
    }

    fn name(&mut self) -> ThreadId {
        named(&format!("t{}", self.rng.below(THREADS)))
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let scope = TenantScope::local();
        let (store, id) = (self.store, self.name());
        let new = NewThread::new(id.clone());
        let opened = store.open_or_create(&scope, &new, 5).await?;
        if let Some(unsettled) = opened.unsettled {
            return settle(store, &unsettled).await;
        }
        let run = store.ids().run();
        let turn = turn_of(run, &mut self.rng);
        let at = match (self.rng.chance(0.2), opened.tip) {
            (true, Some(tip)) => Anchor::Node(NodeRef::Node(tip.node)),
            _ => Anchor::Head {
                thread: id.clone(),
                expected: opened.thread.version,
            },
        };
        let lease = begin(store, &scope, &turn.begin(run, at)).await?.lease;
        self.say(&format!("begun {run}"));
        let mut told = 0;
        for no in 0..turn.rounds.len() {
            if self.rng.bool() {
                let more = told + self.rng.range(1..=4);
                let flush = Flush::new(told as u64, &events(run, told, more));
                store.flush(&scope, lease, &flush).await?;
                told = more;
                self.say(&format!("events {run} {told}"));
            }
            store.step(&scope, lease, &turn.step(no)).await?;
            self.say(&format!("step {run} {no}"));
            for (count, result) in (1..).zip(turn.results(no)) {
                store.results(&scope, lease, &[result]).await?;
                self.say(&format!("results {run} {no} {count}"));
            }
        }
        if self.rng.chance(0.1) {
            let end = End {
                how: Stopped::Failed,
                note: None,
                events: None,
            };
            return store.end(&scope, lease, &end).await;
        }
        store.publish(&scope, lease, &turn.publish()).await?;
        let texts = turn.texts().join("|");
        self.say(&format!("done {run} {id} {} {texts}", turn.mode.as_str()));
        if self.rng.chance(0.2) {
            self.fork(run).await?;
        }
        Ok(())
    }

    async fn append(&mut self, id: &ThreadId) -> Result<RunId, Error> {
        let run = self.store.ids().run();
        let (append, text) = append_of(run, id.clone(), self.rng.below(3000));
        self.store.append(&TenantScope::local(), &append).await?;
        self.say(&format!("done {run} {id} append {text}"));
        Ok(run)
    }

    async fn add(&mut self) -> Result<(), Error> {
        let id = self.name();
        let new = NewThread::new(id.clone());
        let scope = TenantScope::local();
        self.store.open_or_create(&scope, &new, 0).await?;
        self.append(&id).await.map(drop)
    }

    /// Continues a run in a thread of its own.
    async fn fork(&mut self, run: RunId) -> Result<(), Error> {
        let id = self.store.ids().thread();
        let fork = Fork {
            from: At::Node(NodeRef::Run(run)),
            thread: NewThread::new(id.clone()),
        };
        self.store.fork(&TenantScope::local(), &fork).await?;
        self.say(&format!("forked {id} {run}"));
        Ok(())
    }

    /// Makes a thread to be deleted, with or without forks.
    pub(crate) async fn doom(&mut self) -> Result<(), Error> {
        let scope = TenantScope::local();
        let id = self.store.ids().thread();
        let new = NewThread::new(id.clone());
        self.store.open_or_create(&scope, &new, 0).await?;
        for _ in 0..self.rng.range(1..=4) {
            let run = self.append(&id).await?;
            if self.rng.chance(0.2) {
                self.fork(run).await?;
            }
        }
        self.say(&format!("deleting {id}"));
        self.store.delete(&scope, &id).await?;
        self.say(&format!("deleted {id}"));
        if self.rng.bool() {
            self.store.purge(self.rng.range(1..=30)).await?;
        }
        Ok(())
    }
}

/// Closes an unfinished run of another worker.
pub(crate) async fn settle(store: &Store, run: &Run) -> Result<(), Error> {
    if run.state != RunState::Interrupted {
        return Ok(());
    }
    let scope = &TenantScope::local();
    let claimed = store.claim(scope, run.id, run.epoch, Claim::Settle).await?;
    let journal = store.journal(scope, run.id).await?;
    let waiting = journal
        .calls
        .iter()
        .filter(|call| call.state != CallState::Done);
    let result =
        |call: &Execution| CallResult::new(call.at.step, call.at.position, &answered(&call.call));
    let last = assistant(&format!("{} closed", run.id.to_hex()));
    let publish = Publish {
        results: waiting.map(result).collect(),
        ending: Ending::Cancelled,
        ..Publish::new(journal.run.next_step, NewItem::of(&[last]))
    };
    store
        .publish(scope, claimed.lease, &publish)
        .await
        .map(drop)
}

/// Takes one more turn on every thread; returns the number of threads.
pub(crate) fn go_on(store: &Store, rng: &mut Rng) -> Result<usize, String> {
    let scope = TenantScope::local();
    let ids = threads(store)?;
    for id in &ids {
        let at = At::Thread(id.clone());
        let opened = block_on(store.open(&scope, &at, 0)).map_err(said)?;
        if let Some(run) = &opened.unsettled {
            block_on(settle(store, run)).map_err(said)?;
        }
        let opened = block_on(store.open(&scope, &at, 0)).map_err(said)?;
        let run = store.ids().run();
        let turn = turn_of(run, rng);
        let at = Anchor::Head {
            thread: id.clone(),
            expected: opened.thread.version,
        };
        let published = block_on(turn.run(store, &scope, run, at, |_, _| {})).map_err(said)?;
        if !published.moved {
            return Err(format!("a turn on {id} did not move its head"));
        }
    }
    Ok(ids.len())
}
