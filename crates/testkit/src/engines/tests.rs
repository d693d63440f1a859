use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use throughline_store::conformance::Harness;
use throughline_store::{
    Anchor, At, Claim, Error, Flush, Ids, Lease, Memory, Mode, NewThread, Options, RunState, Store,
    StoredEvent, TenantScope, ThreadId, Version,
};

use super::{Class, Counted, Fault, Faulty};
use crate::Scratch;
use crate::record::{Turn, begin, block_on, shorts};

/// A store of each engine, with the folder of its files.
fn stores() -> Vec<(Store, Option<Scratch>)> {
    let scratch = Scratch::in_memory("engines");
    let url = scratch.sqlite("store.db");
    block_on(async {
        let memory = Store::open("memory:").await.unwrap();
        let sqlite = Store::open(&url).await.unwrap();
        vec![(memory, None), (sqlite, Some(scratch))]
    })
}

fn turn() -> Turn {
    Turn {
        input: vec!["one".into()],
        rounds: vec![vec!["a".into(), "b".into()]],
        answer: "end".into(),
        mode: Mode::PerRun,
    }
}

async fn thread(store: &Store) -> ThreadId {
    let id = ThreadId::new("t").unwrap();
    let new = NewThread::new(id.clone());
    let opened = store.open_or_create(&TenantScope::local(), &new, 0).await;
    opened.unwrap().thread.id
}

fn head(thread: &ThreadId, version: u64) -> Anchor {
    Anchor::Head {
        thread: thread.clone(),
        expected: Version(version),
    }
}

/// A run with its first step stored.
async fn half(store: &Store, thread: &ThreadId) -> Lease {
    let scope = TenantScope::local();
    let run = store.ids().run();
    let started = begin(store, &scope, &turn().begin(run, head(thread, 0))).await;
    let lease = started.unwrap().lease;
    store.step(&scope, lease, &turn().step(0)).await.unwrap();
    let results = turn().results(0);
    store.results(&scope, lease, &results).await.unwrap();
    lease
}

async fn seen(store: &Store, thread: &ThreadId) -> Vec<String> {
    let at = At::Thread(thread.clone());
    let opened = store.open(&TenantScope::local(), &at, 100).await.unwrap();
    shorts(&opened.entries)
}

fn is_io<T: std::fmt::Debug>(answer: &Result<T, Error>) {
    assert!(matches!(answer, Err(Error::Io { .. })), "{answer:?}");
}

#[test]
fn calls_are_counted_by_name_and_class() {
    for (below, _kept) in stores() {
        block_on(async {
            let scope = TenantScope::local();
            let (store, counted) = Counted::over(&below);
            let id = thread(&store).await;
            let run = store.ids().run();
            let turn = turn();
            let done = turn.run(&store, &scope, run, head(&id, 0), |_, _| {});
            done.await.unwrap();
            // A refused call counts too.
            let run = store.ids().run();
            let late = turn.run(&store, &scope, run, head(&id, 7), |_, _| {});
            late.await.unwrap_err();
            store.renew().await.unwrap();
            seen(&store, &id).await;
            let log = [
                "open_or_create",
                "begin",
                "step",
                "results",
                "publish",
                "begin",
                "open",
            ];
            assert_eq!(counted.log(), log);
            assert_eq!((counted.reads(), counted.writes()), (2, 5));
            assert_eq!((counted.flushes(), counted.renewals()), (0, 1));
            assert_eq!((counted.of("begin"), counted.of("renew")), (2, 1));
            assert_eq!(counted.of_class(Class::Upkeep), 0);

            counted.reset();
            let next = turn.begin(store.ids().run(), head(&id, 1));
            let started = begin(&store, &scope, &next);
            let lease = started.await.unwrap().lease;
            let event = StoredEvent {
                kind: 1,
                body: b"word".to_vec(),
            };
            let flush = Flush::new(0, &[event]);
            store.flush(&scope, lease, &flush).await.unwrap();
            assert_eq!((counted.writes(), counted.flushes()), (1, 1));
            assert_eq!(counted.log(), ["begin", "flush"]);
            assert_eq!(store.owner(), below.owner());
            assert_eq!(store.backups().is_some(), below.backups().is_some());
        });
    }
}

#[test]
fn a_call_fails_before_or_after_it_is_done() {
    for (fault, done) in [(Fault::Before, false), (Fault::After, true)] {
        for (below, _kept) in stores() {
            block_on(async {
                let scope = TenantScope::local();
                let (store, faulty) = Faulty::over(&below);
                let id = thread(&store).await;
                let lease = half(&store, &id).await;
                faulty.next("publish", fault);
                assert_eq!(faulty.left(), 1);
                is_io(&store.publish(&scope, lease, &turn().publish()).await);
                assert_eq!(faulty.left(), 0);
                let there = seen(&below, &id).await;
                assert_eq!(!there.is_empty(), done, "{fault:?}: {there:?}");
                // Sent again it is done, once.
                let again = store.publish(&scope, lease, &turn().publish()).await;
                assert_eq!(again.unwrap().version, Version(1));
                assert_eq!(seen(&store, &id).await, turn().texts());
            });
        }
    }
}

#[test]
fn faults_come_in_the_order_in_which_they_were_told() {
    for (below, _kept) in stores() {
        block_on(async {
            let (store, faulty) = Faulty::over(&below);
            faulty.skip("orphans", 1);
            faulty.times("orphans", 2, Fault::Before);
            faulty.skip("orphans", 1);
            faulty.next("orphans", Fault::After);
            faulty.always("profile", Fault::Before);
            let mut fine = Vec::new();
            for _ in 0..6 {
                fine.push(store.orphans(1).await.is_ok());
                is_io(&store.profile().await);
            }
            assert_eq!(fine, [true, false, false, true, false, true]);
            faulty.times("orphans", 9, Fault::Before);
            faulty.heal();
            assert_eq!(faulty.left(), 0);
            assert!(store.orphans(1).await.is_ok());
            assert!(store.profile().await.is_ok());
        });
    }
}

#[test]
fn a_call_that_hangs_is_done_or_not_and_never_answers() {
    for (fault, done) in [(Fault::HangBefore, false), (Fault::HangAfter, true)] {
        for (below, _kept) in stores() {
            block_on(async {
                let scope = TenantScope::local();
                let (store, faulty) = Faulty::over(&below);
                let id = thread(&store).await;
                let lease = half(&store, &id).await;
                faulty.next("publish", fault);
                let publish = turn().publish();
                let mut call = std::pin::pin!(store.publish(&scope, lease, &publish));
                {
                    let mut hung = std::pin::pin!(faulty.hung(1));
                    std::future::poll_fn(|context| {
                        assert!(call.as_mut().poll(context).is_pending());
                        hung.as_mut().poll(context)
                    })
                    .await;
                }
                let there = seen(&below, &id).await;
                assert_eq!(!there.is_empty(), done, "{fault:?}: {there:?}");
                let mut context = Context::from_waker(Waker::noop());
                assert_eq!(call.as_mut().poll(&mut context).map(drop), Poll::Pending);
                // The waiting caller has given up: its process takes the run over.
                let claimed = store.claim(&scope, lease.run, 1, Claim::Own).await;
                assert_eq!(claimed.is_ok(), !done, "{claimed:?}");
            });
        }
    }
}

#[test]
fn a_hook_sees_the_store_before_the_call() {
    for (below, _kept) in stores() {
        block_on(async {
            let scope = TenantScope::local();
            let (store, faulty) = Faulty::over(&below);
            let id = thread(&store).await;
            let states = Arc::new(Mutex::new(Vec::new()));
            let run = store.ids().run();
            let (looked, base) = (Arc::clone(&states), below.clone());
            faulty.on("publish", move || {
                let (looked, base) = (Arc::clone(&looked), base.clone());
                async move {
                    let run = base.run(&TenantScope::local(), run).await.unwrap();
                    looked.lock().unwrap().push((run.state, run.next_step));
                }
            });
            // The hook runs before a failing call, too.
            faulty.next("publish", Fault::Before);
            let lease = begin(&store, &scope, &turn().begin(run, head(&id, 0))).await;
            let lease = lease.unwrap().lease;
            store.step(&scope, lease, &turn().step(0)).await.unwrap();
            is_io(&store.publish(&scope, lease, &turn().publish()).await);
            let published = store.publish(&scope, lease, &turn().publish()).await;
            published.unwrap();
            let running = (RunState::Running, 1);
            assert_eq!(*states.lock().unwrap(), [running, running]);
        });
    }
}

/// The suite passes with both wrappers as it does without.
fn wrapped(store: &Store) -> Store {
    let (counted, _) = Counted::over(store);
    Faulty::over(&counted).0
}

mod on_memory {
    use super::{Arc, Harness, Ids, Memory, Mutex, Options, Store, async_trait, wrapped};

    #[derive(Default)]
    struct InMemory(Mutex<Option<Memory>>);

    #[async_trait]
    impl Harness for InMemory {
        async fn open(&self, options: Options) -> Store {
            let ids = Arc::new(Ids::new(Arc::clone(&options.clock)));
            let mut first = self.0.lock().unwrap();
            let memory = first.get_or_insert_with(|| Memory::new(options.clone(), &ids));
            wrapped(&Store::on(Arc::new(memory.handle(options)), ids))
        }
    }

    throughline_store::conformance!(InMemory::default());
}

mod on_sqlite {
    use super::{Harness, Options, Scratch, Store, async_trait, wrapped};

    struct OnDisk(Scratch);

    #[async_trait]
    impl Harness for OnDisk {
        async fn open(&self, options: Options) -> Store {
            let url = self.0.sqlite("store.db");
            wrapped(&Store::open_with(&url, options).await.unwrap())
        }
    }

    throughline_store::conformance!(OnDisk(Scratch::in_memory("wrapped")));
}
