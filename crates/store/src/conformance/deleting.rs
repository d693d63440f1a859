use std::time::Duration;

use super::fixture::{Fixture, said_by_model};
use crate::{
    Alias, Anchor, At, ErrorKind, Fork, Idempotency, NewThread, NodeId, NodeRef, Publish,
    ThreadFilter, ThreadId, Version,
};

async fn sweep(f: &Fixture<'_>) -> crate::Purged {
    let mut all = crate::Purged::default();
    loop {
        let some = f.store.purge(7).await.unwrap();
        all.threads += some.threads;
        all.items += some.items;
        if !some.more {
            return all;
        }
    }
}

pub(super) async fn a_deleted_thread_is_gone(f: &mut Fixture<'_>) {
    let new = NewThread {
        aliases: vec![Alias::new("a2a", "ctx")],
        ..NewThread::new(ThreadId::new("t").unwrap())
    };
    f.store.open_or_create(&f.scope, &new, 0).await.unwrap();
    let id = new.id.clone();
    let run = f.turn(&id, "one", "1").await;
    let mut live = f.begin_at(
        Anchor::Head {
            thread: id.clone(),
            expected: Version(1),
        },
        "two",
    );
    live.key = Some(Idempotency {
        key: "k".into(),
        request: [0; 16],
    });
    let lease = f.started(&live).await.lease;
    f.store.delete(&f.scope, &id).await.unwrap();
    for at in [
        At::Thread(id.clone()),
        At::Alias(Alias::new("a2a", "ctx")),
        At::Node(NodeRef::Run(run)),
    ] {
        let error = f.store.open(&f.scope, &at, 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{at:?}");
    }
    let list = f
        .store
        .threads(&f.scope, &ThreadFilter::default(), None, 10)
        .await;
    assert_eq!(list.unwrap().found, []);
    let publish = Publish::new(0, said_by_model("too late"));
    let error = f
        .store
        .publish(&f.scope, lease, &publish)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    f.store.delete(&f.scope, &id).await.unwrap();
    // Its names and its keys are free at once.
    let fresh = f.store.open_or_create(&f.scope, &new, 10).await.unwrap();
    assert_eq!((fresh.entries.len(), fresh.thread.version), (0, Version(0)));
    let mut again = f.begin_at(
        Anchor::Head {
            thread: id.clone(),
            expected: Version(0),
        },
        "anew",
    );
    again.key = live.key.clone();
    let lease = f.started(&again).await.lease;
    f.publish(lease, 0, "1").await;
    let purged = sweep(f).await;
    assert_eq!(purged.threads, 1);
    assert!(purged.items >= 2);
    assert_eq!(f.texts(&id).await, ["anew", "1"]);
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.damage, checked.items), (vec![], 2));
}

pub(super) async fn a_fork_survives_its_origin(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    f.turn(&id, "two", "2").await;
    let fork = Fork {
        from: At::Node(NodeRef::Run(first)),
        thread: NewThread::new(ThreadId::new("fork").unwrap()),
    };
    let fork = f.store.fork(&f.scope, &fork).await.unwrap().id;
    f.turn(&fork, "three", "3").await;
    f.store.delete(&f.scope, &id).await.unwrap();
    sweep(f).await;
    let expected = ["one", "1", "three", "3"];
    assert_eq!(f.texts(&fork).await, expected);
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.damage, checked.items), (vec![], 4));
    f.turn(&fork, "four", "4").await;
    f.store.delete(&f.scope, &fork).await.unwrap();
    sweep(f).await;
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(
        (checked.damage, checked.items, checked.nodes),
        (vec![], 0, 0)
    );
}

/// Nodes of a thread are read as long as a fork of a fork has them, before and after sweeping.
pub(super) async fn a_fork_of_a_fork_survives_both_origins(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    let fork_of = async |run, name: &str| {
        let fork = Fork {
            from: At::Node(NodeRef::Run(run)),
            thread: NewThread::new(ThreadId::new(name).unwrap()),
        };
        f.store.fork(&f.scope, &fork).await.unwrap().id
    };
    let middle = fork_of(first, "middle").await;
    let second = f.turn(&middle, "two", "2").await;
    let unshared = f.turn(&middle, "three", "3").await;
    let last = fork_of(second, "last").await;
    f.turn(&last, "four", "4").await;
    f.store.delete(&f.scope, &id).await.unwrap();
    f.store.delete(&f.scope, &middle).await.unwrap();
    for swept in [false, true] {
        for run in [first, second] {
            let node = NodeId { run, step: 0 };
            let read = f.store.node(&f.scope, node, 0, 10).await;
            assert_eq!(read.unwrap().items.len(), 2, "swept: {swept}");
        }
        let node = NodeId {
            run: unshared,
            step: 0,
        };
        let gone = f.store.node(&f.scope, node, 0, 10).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound, "swept: {swept}");
        sweep(f).await;
    }
    assert_eq!(f.texts(&last).await, ["one", "1", "two", "2", "four", "4"]);
    f.store.delete(&f.scope, &last).await.unwrap();
    sweep(f).await;
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.damage, checked.nodes), (vec![], 0));
}

pub(super) async fn old_threads_are_swept(f: &mut Fixture<'_>) {
    for (name, keep) in [
        ("short", Some(1_000)),
        ("long", Some(100_000)),
        ("ever", None),
    ] {
        let new = NewThread {
            keep,
            ..NewThread::new(ThreadId::new(name).unwrap())
        };
        f.store.open_or_create(&f.scope, &new, 0).await.unwrap();
        f.turn(&new.id, "one", "1").await;
    }
    assert_eq!(sweep(f).await.threads, 0);
    f.clock.advance(Duration::from_secs(2));
    assert_eq!(sweep(f).await.threads, 1);
    let list = f
        .store
        .threads(&f.scope, &ThreadFilter::default(), None, 10)
        .await
        .unwrap();
    let mut names: Vec<_> = list.found.iter().map(|thread| thread.id.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ever", "long"]);
}

pub(super) async fn the_store_is_whole(f: &mut Fixture<'_>) {
    let empty = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(empty, crate::Checked::default());
    let id = f.thread("t").await;
    for n in 0..10 {
        f.turn(&id, &format!("ask {n}"), "answer").await;
    }
    let mut calls = 0;
    let checked = f.store.check(&mut |_| calls += 1).await.unwrap();
    assert_eq!((checked.threads, checked.nodes, checked.items), (1, 10, 20));
    assert_eq!(checked.damage, []);
    assert!(calls > 0, "no progress was reported");
    let profile = f.store.profile().await.unwrap();
    assert!(
        profile.settings.iter().all(crate::Setting::is_right),
        "{profile:?}"
    );
}
