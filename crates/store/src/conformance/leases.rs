use std::time::Duration;

use throughline_model::json::RawJson;

use super::fixture::{Fixture, LEASE, result, said_by_model, step, texts};
use crate::{
    Anchor, CallState, Claim, End, Error, ErrorKind, Flush, Mode, Publish, RemoteCall, RunState,
    Stopped, Store, StoredEvent, Version,
};

fn past_the_lease() -> Duration {
    LEASE + Duration::from_millis(1)
}

pub(super) async fn an_orphan_is_claimed_once(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let other = f.other().await;
    assert_eq!(other.orphans(10).await.unwrap(), []);
    let error = other.claim(&f.scope, lease.run, 1, Claim::Orphan).await;
    assert!(matches!(error, Err(Error::Busy { .. })), "{error:?}");
    f.clock.advance(past_the_lease());
    let seen = f.open(&id).await.unsettled.unwrap();
    assert_eq!(seen.state, RunState::Interrupted);
    let orphans = other.orphans(10).await.unwrap();
    assert_eq!(orphans.len(), 1);
    assert_eq!((orphans[0].run, orphans[0].epoch), (lease.run, 1));
    assert_eq!(orphans[0].scope, f.scope);
    let claimed = other
        .claim(&f.scope, lease.run, 1, Claim::Orphan)
        .await
        .unwrap();
    assert_eq!(claimed.lease.epoch, 2);
    assert_eq!(other.orphans(10).await.unwrap(), []);
    let third = f.other().await;
    let error = third.claim(&f.scope, lease.run, 1, Claim::Orphan).await;
    assert!(
        matches!(
            error,
            Err(Error::Fenced {
                mine: 1,
                current: 2,
                ..
            })
        ),
        "{error:?}"
    );
    let error = third.claim(&f.scope, lease.run, 2, Claim::Orphan).await;
    assert!(matches!(error, Err(Error::Busy { .. })), "{error:?}");
    let publish = Publish::new(0, said_by_model("by the second"));
    other
        .publish(&f.scope, claimed.lease, &publish)
        .await
        .unwrap();
    assert_eq!(f.texts(&id).await, ["one", "by the second"]);
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!((run.epoch, run.attempt), (2, 1));
}

pub(super) async fn the_old_owner_is_fenced_everywhere(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let old = f.begin(&id, "one").await.lease;
    f.store
        .step(&f.scope, old, &step(0, &["a"], CallState::Planned))
        .await
        .unwrap();
    f.clock.advance(past_the_lease());
    let other = f.other().await;
    let new = other
        .claim(&f.scope, old.run, 1, Claim::Orphan)
        .await
        .unwrap()
        .lease;
    let s = &f.store;
    let event = Flush::new(
        0,
        &[StoredEvent {
            kind: 1,
            body: vec![],
        }],
    );
    let publish = Publish::new(1, said_by_model("stale"));
    let end = End {
        how: Stopped::Failed,
        note: None,
        events: None,
    };
    let later = step(1, &["b"], CallState::Planned);
    let remote = RemoteCall {
        step: 1,
        handle: RawJson::new("{}").unwrap(),
    };
    let refused = [
        s.remote_call(&f.scope, old, &remote).await,
        s.step(&f.scope, old, &later).await.map(drop),
        s.intend(&f.scope, old, 0, &[0]).await,
        s.results(&f.scope, old, &[result(0, 0, "a")]).await,
        s.flush(&f.scope, old, &event).await,
        s.publish(&f.scope, old, &publish).await.map(drop),
        s.park(&f.scope, old, None).await,
        s.end(&f.scope, old, &end).await,
    ];
    for (n, answer) in refused.into_iter().enumerate() {
        let error = answer.unwrap_err();
        let fenced = matches!(
            error,
            Error::Fenced {
                mine: 1,
                current: 2,
                ..
            }
        );
        assert!(fenced, "write {n}: {error:?}");
    }
    other.intend(&f.scope, new, 0, &[0]).await.unwrap();
    other
        .results(&f.scope, new, &[result(0, 0, "a")])
        .await
        .unwrap();
    let publish = Publish::new(1, said_by_model("fresh"));
    other.publish(&f.scope, new, &publish).await.unwrap();
    // It stays fenced after the end.
    let error = s.publish(&f.scope, old, &publish).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    assert_eq!(f.texts(&id).await, ["one", "call a", "result a", "fresh"]);
}

pub(super) async fn the_intent_of_a_lost_owner_is_not_ones_own(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let old = f.begin(&id, "one").await.lease;
    f.store
        .step(&f.scope, old, &step(0, &["a"], CallState::Planned))
        .await
        .unwrap();
    f.store.intend(&f.scope, old, 0, &[0]).await.unwrap();
    // Sent again, it is the same intent.
    f.store.intend(&f.scope, old, 0, &[0]).await.unwrap();
    f.clock.advance(past_the_lease());
    let other = f.other().await;
    let claimed = other.claim(&f.scope, old.run, 1, Claim::Orphan).await;
    let new = claimed.unwrap().lease;
    // Whether the old owner dispatched the call is not known, so this is no leave to do so.
    let error = other.intend(&f.scope, new, 0, &[0]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
}

pub(super) async fn a_heartbeat_keeps_every_run(f: &mut Fixture<'_>) {
    let other = f.other().await;
    let mut runs = Vec::new();
    for n in 0..3 {
        let id = f.thread(&format!("t{n}")).await;
        runs.push(f.begin(&id, "one").await.lease);
    }
    for _ in 0..5 {
        f.clock.advance(LEASE / 2);
        f.store.renew().await.unwrap();
        assert_eq!(other.orphans(10).await.unwrap(), []);
    }
    f.clock.advance(past_the_lease());
    assert_eq!(other.orphans(2).await.unwrap().len(), 2);
    assert_eq!(other.orphans(10).await.unwrap().len(), 3);
    // The lease has lapsed, but no process has claimed them: the owner may go on.
    f.store.renew().await.unwrap();
    assert_eq!(other.orphans(10).await.unwrap(), []);
    for lease in runs {
        f.publish(lease, 0, "1").await;
    }
}

pub(super) async fn a_parked_run_waits(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    f.store
        .step(&f.scope, lease, &step(0, &["a"], CallState::Client))
        .await
        .unwrap();
    f.store.park(&f.scope, lease, None).await.unwrap();
    let error = f.store.results(&f.scope, lease, &[result(0, 0, "a")]).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    f.clock.advance(Duration::from_secs(30 * 24 * 3600));
    let other = f.other().await;
    assert_eq!(other.orphans(10).await.unwrap(), []);
    let opened = f.open(&id).await;
    let parked = opened.unsettled.unwrap();
    assert_eq!((parked.id, parked.state), (lease.run, RunState::Parked));
    assert_eq!(opened.tip, None);
    let begin = f.begin_at(
        Anchor::Head {
            thread: id.clone(),
            expected: Version(0),
        },
        "in between",
    );
    let error = f.store.begin(&f.scope, &begin).await;
    let parked_busy = matches!(
        error,
        Err(Error::Busy {
            state: RunState::Parked,
            ..
        })
    );
    assert!(parked_busy, "{error:?}");
    let error = other.claim(&f.scope, lease.run, 1, Claim::Orphan).await;
    assert!(error.is_err(), "a parked run is no orphan");
    let claimed = other
        .claim(&f.scope, lease.run, 1, Claim::Parked)
        .await
        .unwrap();
    let lease = claimed.lease;
    other
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    let publish = Publish::new(1, said_by_model("end"));
    other.publish(&f.scope, lease, &publish).await.unwrap();
    assert_eq!(f.texts(&id).await, ["one", "call a", "result a", "end"]);
}

pub(super) async fn a_run_that_was_given_up_is_claimed_by_its_process(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let old = f.begin(&id, "one").await.lease;
    let event = |n| {
        let event = StoredEvent {
            kind: 1,
            body: b"word".to_vec(),
        };
        Flush::new(n, &[event])
    };
    f.store.flush(&f.scope, old, &event(0)).await.unwrap();
    let other = f.other().await;
    for claim in [Claim::Orphan, Claim::Own, Claim::Parked, Claim::Settle] {
        let error = other.claim(&f.scope, old.run, 1, claim).await;
        assert!(
            matches!(error, Err(Error::Busy { .. })),
            "{claim:?}: {error:?}"
        );
    }
    for claim in [Claim::Orphan, Claim::Parked, Claim::Settle] {
        let error = f.store.claim(&f.scope, old.run, 1, claim).await;
        assert!(
            matches!(error, Err(Error::Busy { .. })),
            "{claim:?}: {error:?}"
        );
    }
    let new = f.store.claim(&f.scope, old.run, 1, Claim::Own).await;
    let new = new.unwrap().lease;
    assert_eq!(new.epoch, 2);
    let run = f.store.run(&f.scope, old.run).await.unwrap();
    assert_eq!((run.state, run.attempt), (RunState::Running, 1));
    assert_eq!(run.next_event, 1);
    // The task that had it is fenced like any other owner, and a claim is made once.
    let error = f.store.flush(&f.scope, old, &event(1)).await;
    assert!(matches!(error, Err(Error::Fenced { .. })), "{error:?}");
    let error = f.store.claim(&f.scope, old.run, 1, Claim::Own).await;
    assert!(matches!(error, Err(Error::Fenced { .. })), "{error:?}");
    f.store.flush(&f.scope, new, &event(1)).await.unwrap();
    // One whose process is gone may be had this way too.
    f.clock.advance(past_the_lease());
    let last = other.claim(&f.scope, old.run, 2, Claim::Own).await;
    let last = last.unwrap().lease;
    other.flush(&f.scope, last, &event(2)).await.unwrap();
    let publish = Publish::new(0, said_by_model("end"));
    other.publish(&f.scope, last, &publish).await.unwrap();
    let run = f.store.run(&f.scope, old.run).await.unwrap();
    assert_eq!((run.epoch, run.attempt, run.next_event), (3, 2, 3));
    let error = other.claim(&f.scope, old.run, 3, Claim::Own).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
}

pub(super) async fn going_on_with_a_parked_run_is_no_take_over(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut lease = f.begin(&id, "one").await.lease;
    for claim in [Claim::Parked, Claim::Settle] {
        f.store.park(&f.scope, lease, None).await.unwrap();
        let error = f.store.claim(&f.scope, lease.run, lease.epoch, Claim::Own);
        let error = error.await;
        assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
        let claimed = f.store.claim(&f.scope, lease.run, lease.epoch, claim).await;
        lease = claimed.unwrap().lease;
    }
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!((run.epoch, run.attempt), (3, 0));
    f.clock.advance(past_the_lease());
    let other = f.other().await;
    let claimed = other.claim(&f.scope, lease.run, 3, Claim::Settle).await;
    let lease = claimed.unwrap().lease;
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!((run.epoch, run.attempt), (4, 1));
}

pub(super) async fn the_journal_is_enough_to_go_on(f: &mut Fixture<'_>) {
    for mode in [Mode::PerRun, Mode::PerCall] {
        let id = f.thread(&format!("{mode:?}")).await;
        f.turn(&id, "zero", "0").await;
        let lease = f.begin_in(&id, "one", mode).await.lease;
        let mut first = step(0, &["a", "b"], CallState::Intent);
        first.node = (mode == Mode::PerCall).then(Default::default);
        f.store.step(&f.scope, lease, &first).await.unwrap();
        f.store
            .results(&f.scope, lease, &[result(0, 1, "b")])
            .await
            .unwrap();
        f.clock.advance(past_the_lease());
        let other = f.other().await;
        let claimed = other
            .claim(&f.scope, lease.run, 1, Claim::Orphan)
            .await
            .unwrap();
        let journal = other.journal(&f.scope, lease.run).await.unwrap();
        assert_eq!((journal.run.mode, journal.run.next_step), (mode, 1));
        assert_eq!(
            texts(&journal.entries),
            ["one", "call a+call b", "result b"]
        );
        let states: Vec<_> = journal.calls.iter().map(|call| call.state).collect();
        assert_eq!(states, [CallState::Intent, CallState::Done]);
        let results: Vec<_> = journal.calls.iter().map(|call| call.result).collect();
        assert_eq!(results, [3, 4]);
        other
            .results(&f.scope, claimed.lease, &[result(0, 0, "a")])
            .await
            .unwrap();
        let publish = Publish::new(1, said_by_model("end"));
        other
            .publish(&f.scope, claimed.lease, &publish)
            .await
            .unwrap();
        let expected = [
            "zero",
            "0",
            "one",
            "call a+call b",
            "result a+result b",
            "end",
        ];
        assert_eq!(f.texts(&id).await, expected);
        // The key of a call is the same for every process that dispatches it.
        let after = f.store.journal(&f.scope, lease.run).await.unwrap();
        assert_eq!(after.calls[0].key, journal.calls[0].key);
    }
}

pub(super) async fn a_cancel_is_seen(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let other = f.other().await;
    let asked = async |store: &Store| store.cancelling(&f.scope, lease.run).await.unwrap();
    assert!(!asked(&f.store).await);
    let run = other.cancel(&f.scope, lease.run).await.unwrap();
    assert!(run.cancelling);
    assert_eq!(run.state, RunState::Running);
    assert!(asked(&f.store).await && asked(&other).await);
    assert!(f.store.run(&f.scope, lease.run).await.unwrap().cancelling);
    assert!(f.open(&id).await.unsettled.unwrap().cancelling);
    // The owner closes it; a cancel that comes later changes nothing.
    f.publish(lease, 0, "1").await;
    let run = other.cancel(&f.scope, lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Committed);
    let unknown = f.store.ids().run();
    let error = other.cancel(&f.scope, unknown).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
