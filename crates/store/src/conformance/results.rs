use super::fixture::{Fixture, result, step};
use crate::{CallState, Claim, Error, ItemNo, Journal, Publish, RunId, Store};

async fn journal(f: &Fixture<'_>, store: &Store, run: RunId) -> Journal {
    store.journal(&f.scope, run).await.unwrap()
}

fn ends(journal: &Journal) -> Vec<bool> {
    journal.calls.iter().map(|call| call.ends).collect()
}

pub(super) async fn a_result_that_ends_the_run_says_so(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let calls = step(0, &["a", "b", "c"], CallState::Intent);
    f.store.step(&f.scope, lease, &calls).await.unwrap();
    assert_eq!(ends(&journal(f, &f.store, lease.run).await), [false; 3]);
    let results = [result(0, 0, "a"), result(0, 1, "b").ending()];
    for _ in 0..2 {
        f.store.results(&f.scope, lease, &results).await.unwrap();
    }
    // With and without are two results.
    for other in [result(0, 0, "a").ending(), result(0, 1, "b")] {
        let error = f.store.results(&f.scope, lease, &[other]).await;
        assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    }

    // The process that goes on with the run knows it, and nothing else of the call is another.
    f.clock.advance(super::fixture::LEASE * 2);
    let other = f.other().await;
    let claimed = other.claim(&f.scope, lease.run, 1, Claim::Orphan).await;
    let lease = claimed.unwrap().lease;
    let read = journal(f, &other, lease.run).await;
    assert_eq!(ends(&read), [false, true, false]);
    let states: Vec<_> = read.calls.iter().map(|call| call.state).collect();
    let expected = [CallState::Done, CallState::Done, CallState::Intent];
    assert_eq!(states, expected);
    assert_eq!(read.calls[1].effect, read.calls[0].effect);

    let publish = |last| Publish {
        results: vec![last],
        ..Publish::new(1, Vec::new())
    };
    let last = publish(result(0, 2, "c").ending());
    let first = other.publish(&f.scope, lease, &last).await.unwrap();
    let again = other.publish(&f.scope, lease, &last).await.unwrap();
    assert_eq!(first, again);
    let without = publish(result(0, 2, "c"));
    let error = other.publish(&f.scope, lease, &without).await;
    assert!(error.is_err(), "{error:?}");
    let read = journal(f, &f.store, lease.run).await;
    assert_eq!(ends(&read), [false, true, true]);
}

fn numbers(entry: &crate::Entry) -> Vec<ItemNo> {
    let refs = entry.item_refs();
    refs.inspect(|item| assert_eq!(item.run, entry.at.run))
        .map(|item| item.no)
        .collect()
}

pub(super) async fn a_message_names_its_items(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let calls = step(0, &["a", "b", "c", "d"], CallState::Client);
    f.store.step(&f.scope, lease, &calls).await.unwrap();
    let results = [result(0, 3, "d"), result(0, 0, "a")];
    f.store.results(&f.scope, lease, &results).await.unwrap();
    let read = journal(f, &f.store, lease.run).await;
    let found: Vec<_> = read.entries.iter().map(numbers).collect();
    assert_eq!(found, [vec![1], vec![2], vec![3, 6]]);

    // On a branch the places of results that did not come are gaps.
    f.publish(lease, 1, "end").await;
    let opened = f.open(&id).await;
    let found: Vec<_> = opened.entries.iter().map(numbers).collect();
    assert_eq!(found, [vec![1], vec![2], vec![3, 6], vec![7]]);
    assert_eq!((opened.entries[2].first, opened.entries[2].last), (3, 6));

    // What was never sent names its own.
    let lease = f.begin(&id, "two").await.lease;
    let calls = step(0, &["e", "f", "g"], CallState::Intent);
    f.store.step(&f.scope, lease, &calls).await.unwrap();
    let results = [result(0, 0, "e"), result(0, 2, "g")];
    f.store.results(&f.scope, lease, &results).await.unwrap();
    let publish = Publish {
        through: crate::Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    let unsent = f.open(&id).await.unsent;
    let found: Vec<_> = unsent.iter().map(numbers).collect();
    assert_eq!(found, [[3, 5]]);
    assert_eq!(unsent[0].at.run, lease.run);
}
