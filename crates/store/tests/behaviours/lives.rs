//! How long threads live, and whose they are.

use std::time::Duration;

use throughline_store::{
    Alias, At, Authority, Claim, ErrorKind, Fork, NewThread, Store, Tenant, ThreadFilter, ThreadId,
    ThreadPatch, Version,
};

use crate::behaviours::ground::{
    add, ask, at, each, local, named, numbered, reply, said, thread, turn, version,
};

const HOUR: u64 = 3_600_000;

async fn sweep(store: &Store) {
    while store.purge(100).await.unwrap().more {}
}

async fn keep(store: &Store, id: &ThreadId, keep: u64) {
    let patch = ThreadPatch {
        keep: Some(Some(keep)),
        ..ThreadPatch::default()
    };
    store.patch(&local(), id, &patch).await.unwrap();
}

async fn is_gone(store: &Store, at: &At) -> bool {
    match store.open(&local(), at, 10).await {
        Ok(_) => false,
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn b144_a_thread_whose_time_is_over_goes_whole() {
    each(async |ground| {
        let store = ground.open().await;
        let kept = thread(&store, "kept").await;
        let ever = thread(&store, "ever").await;
        for id in [&kept, &ever] {
            for from in 0..5 {
                add(&store, id, &numbered("message", from * 10..from * 10 + 10)).await;
            }
        }
        keep(&store, &kept, HOUR).await;
        ground.clock.advance(Duration::from_millis(HOUR - 1));
        sweep(&store).await;
        assert_eq!(said(&store, &kept).await.len(), 50);
        ground.clock.advance(Duration::from_millis(1));
        // Step by step, a reader sees all of it or nothing.
        loop {
            let purged = store.purge(1).await.unwrap();
            if !is_gone(&store, &at(&kept)).await {
                assert_eq!(said(&store, &kept).await.len(), 50);
            }
            if !purged.more {
                break;
            }
        }
        assert!(is_gone(&store, &at(&kept)).await);
        let checked = store.check(&mut |_| {}).await.unwrap();
        assert_eq!((checked.items, checked.damage), (50, vec![]));
        // A thread with a running or parked run is spared until that has ended; one whose run was left
        // by a process that is gone is not.
        for (name, spared) in [("running", true), ("parked", true), ("left", false)] {
            let id = thread(&store, name).await;
            turn(&store, &id, "one").await;
            keep(&store, &id, HOUR).await;
            let seen = version(&store, &id).await;
            let started = ask(&store, &id, seen, "two").await.unwrap();
            if name == "parked" {
                store.park(&local(), started.lease, None).await.unwrap();
            }
            ground.clock.advance(Duration::from_millis(HOUR));
            if spared {
                store.renew().await.unwrap();
            }
            sweep(&store).await;
            assert_eq!(is_gone(&store, &at(&id)).await, !spared, "{name}");
            if !spared {
                continue;
            }
            assert_eq!(said(&store, &id).await, ["one", "re: one"], "{name}");
            let lease = match name {
                "parked" => {
                    let run = started.lease.run;
                    let epoch = store.run(&local(), run).await.unwrap().epoch;
                    let claimed = store.claim(&local(), run, epoch, Claim::Parked).await;
                    claimed.unwrap()
                }
                _ => started,
            };
            reply(&store, lease, "re: two").await.unwrap();
            ground.clock.advance(Duration::from_millis(HOUR - 1));
            sweep(&store).await;
            assert_eq!(said(&store, &id).await.len(), 4, "{name}");
            ground.clock.advance(Duration::from_millis(1));
            sweep(&store).await;
            assert!(is_gone(&store, &at(&id)).await, "{name}");
        }
        // Nothing ends by itself.
        ground
            .clock
            .advance(Duration::from_millis(1000 * 24 * HOUR));
        sweep(&store).await;
        assert_eq!(said(&store, &ever).await.len(), 50);
    });
}

#[test]
fn b147_no_blank_names_and_no_thread_of_two_tenants() {
    for blank in ["", " ", "\t", "a b", "\u{a0}"] {
        assert!(ThreadId::new(blank).is_err(), "{blank:?}");
        assert!(Tenant::new(blank).is_err(), "{blank:?}");
    }
    each(async |ground| {
        let store = ground.open().await;
        let mine = local();
        let theirs = Authority::assume().scope(Tenant::new("theirs").unwrap());
        let new = NewThread {
            aliases: vec![Alias::new("conversation", "c")],
            ..NewThread::new(named("t"))
        };
        for scope in [&mine, &theirs] {
            store.open_or_create(scope, &new, 0).await.unwrap();
        }
        turn(&store, &new.id, "mine").await;
        let theirs_now = async |at: &At| store.open(&theirs, at, 10).await.unwrap();
        for at in [at(&new.id), At::Alias(Alias::new("conversation", "c"))] {
            let opened = theirs_now(&at).await;
            assert_eq!(
                (opened.entries, opened.thread.version),
                (vec![], Version(0))
            );
        }
        let titled = ThreadPatch {
            title: Some(Some("theirs".to_owned())),
            ..ThreadPatch::default()
        };
        store.patch(&theirs, &new.id, &titled).await.unwrap();
        let opened = store.open(&mine, &at(&new.id), 10).await.unwrap();
        assert_eq!((opened.thread.title, opened.entries.len()), (None, 2));
        store.delete(&theirs, &new.id).await.unwrap();
        sweep(&store).await;
        assert_eq!(said(&store, &new.id).await, ["mine", "re: mine"]);
        let error = store.open(&theirs, &at(&new.id), 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let filter = ThreadFilter::default();
        let list = store.threads(&theirs, &filter, None, 10).await.unwrap();
        assert_eq!(list.found, []);
    });
}

#[test]
fn b148_a_deleted_thread_and_its_names_are_gone_and_its_forks_are_not() {
    each(async |ground| {
        let store = ground.open().await;
        let alias = Alias::new("a2a", "ctx");
        let new = NewThread {
            aliases: vec![alias.clone()],
            ..NewThread::new(named("t"))
        };
        store.open_or_create(&local(), &new, 0).await.unwrap();
        turn(&store, &new.id, "one").await;
        let fork = Fork {
            from: at(&new.id),
            thread: NewThread::new(named("fork")),
        };
        let fork = store.fork(&local(), &fork).await.unwrap().id;
        turn(&store, &new.id, "two").await;
        store.delete(&local(), &new.id).await.unwrap();
        assert!(is_gone(&store, &at(&new.id)).await);
        assert!(is_gone(&store, &At::Alias(alias)).await);
        // Again it changes nothing, before the rows are swept and after.
        for _ in 0..2 {
            store.delete(&local(), &new.id).await.unwrap();
            assert!(is_gone(&store, &at(&new.id)).await);
            assert_eq!(said(&store, &fork).await, ["one", "re: one"]);
            sweep(&store).await;
        }
        turn(&store, &fork, "three").await;
        assert_eq!(
            said(&store, &fork).await,
            ["one", "re: one", "three", "re: three"]
        );
        assert_eq!(store.check(&mut |_| {}).await.unwrap().damage, []);
    });
}
