use super::fixture::Fixture;
use crate::{Run, RunFilter, RunId, Store};

async fn is_delivered(f: &Fixture<'_>, store: &Store, run: RunId) -> bool {
    store.run(&f.scope, run).await.unwrap().delivered
}

pub(super) async fn deliveries_are_noted_for_many_runs_at_once(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut runs = Vec::new();
    for text in ["one", "two", "three"] {
        runs.push(f.turn(&id, text, "answer").await);
    }
    let unmade = f.store.ids().run();
    let noted = [runs[0], unmade, runs[2]];
    // A note may be sent again, with others and alone.
    for noted in [noted.as_slice(), &noted[..1], &[]] {
        f.store.note_delivered(&f.scope, noted).await.unwrap();
    }
    for store in [f.store.clone(), f.other().await] {
        let filter = RunFilter::default();
        let listed = store.runs(&f.scope, &filter, None, 10).await.unwrap();
        let listed: Vec<_> = listed.found.iter().rev().map(|run| run.delivered).collect();
        assert_eq!(listed, [true, false, true]);
        for (run, delivered) in runs.iter().zip(listed) {
            assert_eq!(is_delivered(f, &store, *run).await, delivered);
        }
    }
}

pub(super) async fn a_note_of_a_delivery_goes_with_its_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = f.turn(&id, "one", "answer").await;
    let before = f.store.run(&f.scope, run).await.unwrap();
    f.store.note_delivered(&f.scope, &[run]).await.unwrap();
    let after = f.store.run(&f.scope, run).await.unwrap();
    let expected = Run {
        delivered: true,
        ..before
    };
    assert_eq!(after, expected, "nothing else changes");
    // One that is at work may be noted early, and publishes all the same.
    let lease = f.begin(&id, "two").await.lease;
    f.store
        .note_delivered(&f.scope, &[lease.run])
        .await
        .unwrap();
    f.publish(lease, 0, "another answer").await;
    assert!(is_delivered(f, &f.store, lease.run).await);
    assert_eq!(
        f.texts(&id).await,
        ["one", "answer", "two", "another answer"]
    );
    f.store.delete(&f.scope, &id).await.unwrap();
    f.store.note_delivered(&f.scope, &[run]).await.unwrap();
    while f.store.purge(1000).await.unwrap().more {}
    f.store.note_delivered(&f.scope, &[run]).await.unwrap();
    assert!(f.store.run(&f.scope, run).await.is_err());
    f.store.check(&mut |_| {}).await.unwrap();
}
