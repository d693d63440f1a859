//! Several writers of one thread.

use std::collections::BTreeSet;

use throughline_store::{Error, ErrorKind, RunState, Store, ThreadId};
use throughline_testkit::record::{block_on, whole_runs};

use crate::behaviours::ground::{ask, at, each, history, local, reply, thread, version};

const WRITERS: usize = 8;
const TURNS: usize = 1000;

#[test]
fn b146_writers_of_one_head_are_told_and_lose_nothing() {
    each(async |ground| {
        let (first, second) = (ground.open().await, ground.open().await);
        let id = thread(&first, "t").await;
        let seen = version(&second, &id).await;
        let started = ask(&first, &id, seen, "first").await.unwrap();
        let busy = ask(&second, &id, seen, "second").await.unwrap_err();
        assert!(
            matches!(&busy, Error::Busy { thread, run, state: RunState::Running }
                if *thread == id && *run == started.lease.run),
            "{busy}"
        );
        let published = reply(&first, started, "done").await.unwrap();
        let moved = ask(&second, &id, seen, "second").await.unwrap_err();
        assert!(
            matches!(&moved, Error::HeadMoved { thread, expected, actual, head }
                if *thread == id
                    && *expected == seen
                    && *actual == published.version
                    && *head == published.node),
            "{moved}"
        );
        let actual = version(&second, &id).await;
        let started = ask(&second, &id, actual, "second").await.unwrap();
        reply(&second, started, "done").await.unwrap();

        let id = thread(&first, "many").await;
        let mut stores = Vec::new();
        for _ in 0..WRITERS {
            stores.push(ground.open().await);
        }
        let acknowledged: BTreeSet<String> = std::thread::scope(|scope| {
            let writers: Vec<_> = stores
                .iter()
                .enumerate()
                .map(|(writer, store)| {
                    let id = &id;
                    scope.spawn(move || block_on(write(store, id, writer)))
                })
                .collect();
            let said = writers.into_iter().flat_map(|done| done.join().unwrap());
            said.collect()
        });
        assert_eq!(acknowledged.len(), TURNS);
        let runs = whole_runs(&history(&first, &id).await.unwrap()).unwrap();
        assert_eq!(runs.len(), TURNS);
        let mut found = BTreeSet::new();
        for (_, texts) in runs {
            assert_eq!(texts[1..], [format!("re: {}", texts[0])]);
            found.insert(texts[0].clone());
        }
        assert_eq!(found, acknowledged);
        let opened = first.open(&local(), &at(&id), 0).await.unwrap();
        assert_eq!(opened.thread.version.0, TURNS as u64);
        assert_eq!(opened.unsettled, None);
    });
}

/// A writer's share of the turns, each tried until it is acknowledged.
async fn write(store: &Store, id: &ThreadId, writer: usize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let mut seen = version(store, id).await;
    for n in 0..TURNS / WRITERS {
        let text = format!("{writer}/{n}");
        let started = loop {
            match ask(store, id, seen, &text).await {
                Ok(started) => break started,
                Err(Error::HeadMoved { actual, .. }) => seen = actual,
                Err(error) if error.kind() == ErrorKind::Busy => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        };
        let answer = format!("re: {text}");
        let published = loop {
            match reply(store, started, &answer).await {
                Ok(published) => break published,
                Err(error) if error.kind() == ErrorKind::Busy => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        };
        seen = published.version;
        acknowledged.push(text);
    }
    acknowledged
}
