use std::time::Duration;

use super::fixture::{Fixture, LEASE, said_by_model, said_by_user};
use crate::{
    AfterTurn, Anchor, Append, Authority, Begin, Begun, Claim, ClaimInTurn, End, Error, ErrorKind,
    Lease, NodeRef, Publish, RunId, RunState, Started, Stopped, Store, Tenant, ThreadId,
};

fn past_the_lease() -> Duration {
    LEASE + Duration::from_millis(1)
}

/// Who waits for a thread.
async fn line(f: &Fixture<'_>, thread: &ThreadId) -> Vec<RunId> {
    let line = f.store.wait_queue(&f.scope, thread).await.unwrap();
    assert!(line.is_sorted_by_key(|waiter| waiter.no));
    let line: Vec<RunId> = line.iter().map(|waiter| waiter.run).collect();
    assert_eq!(f.open(thread).await.next, line.first().copied());
    line
}

/// A new run that waits for a thread.
async fn lined_up(f: &Fixture<'_>, store: &Store, thread: &ThreadId) -> RunId {
    let run = store.ids().run();
    store.join_wait_queue(&f.scope, thread, run).await.unwrap();
    run
}

/// Begin a run at the head, under an id.
async fn begin(
    f: &Fixture<'_>,
    store: &Store,
    thread: &ThreadId,
    run: RunId,
) -> Result<Lease, Error> {
    let expected = f.open(thread).await.thread.version;
    let at = Anchor::Head {
        thread: thread.clone(),
        expected,
    };
    let begin = Begin::new(run, at, said_by_user("next"));
    match store.begin(&f.scope, &begin).await? {
        Begun::Started(Started { lease, .. }) => Ok(lease),
        Begun::Repeated(run) => panic!("a repetition of {}", run.id),
    }
}

/// A run that is not the first waiter is refused.
async fn refused(f: &Fixture<'_>, store: &Store, thread: &ThreadId, run: RunId, first: RunId) {
    let error = begin(f, store, thread, run).await.unwrap_err();
    let busy = matches!(&error, Error::Busy { run, state: RunState::Running, .. } if *run == first);
    assert!(busy, "{error:?}");
}

async fn publish(f: &Fixture<'_>, store: &Store, lease: Lease) {
    let publish = Publish::new(0, said_by_model("done"));
    store.publish(&f.scope, lease, &publish).await.unwrap();
}

pub(super) async fn waiters_begin_in_the_order_in_which_they_came(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let elsewhere = f.thread("elsewhere").await;
    let zero = f.turn(&id, "zero", "0").await;
    let other = f.other().await;
    let at_work = f.begin(&id, "one").await.lease;
    let first = lined_up(f, &other, &id).await;
    let second = lined_up(f, &f.store, &id).await;
    let third = lined_up(f, &other, &id).await;
    assert_eq!(line(f, &id).await, [first, second, third]);
    assert_eq!(line(f, &elsewhere).await, []);
    // While a run is at work it is the one that is in the way.
    refused(f, &other, &id, first, at_work.run).await;
    f.publish(at_work, 0, "1").await;

    // In the gap: neither a later waiter begins nor a run that never joined.
    refused(f, &f.store, &id, second, first).await;
    refused(f, &f.store, &id, f.store.ids().run(), first).await;
    let by_hand = Append {
        run: f.store.ids().run(),
        thread: id.clone(),
        expected: None,
        items: said_by_user("by hand"),
        state: None,
        key: None,
    };
    let error = f.store.append(&f.scope, &by_hand).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    // A run that takes no lease ignores the wait queue.
    f.turn_at(NodeRef::Run(zero), "aside", "well").await;
    // Another thread is another wait queue.
    let there = begin(f, &f.store, &elsewhere, f.store.ids().run()).await;
    f.publish(there.unwrap(), 0, "there").await;

    let lease = begin(f, &other, &id, first).await.unwrap();
    assert_eq!(line(f, &id).await, [second, third]);
    refused(f, &f.store, &id, second, first).await;
    // A beginning that is sent again is answered again.
    let expected = f.open(&id).await.thread.version;
    let again = Begin::new(
        first,
        Anchor::Head {
            thread: id.clone(),
            expected,
        },
        said_by_user("next"),
    );
    let answered = other.begin(&f.scope, &again).await.unwrap();
    assert!(matches!(answered, Begun::Started(started) if started.lease == lease));
    publish(f, &other, lease).await;

    // A waiter that leaves does not change the order of the others.
    f.store
        .leave_wait_queue(&f.scope, &id, second)
        .await
        .unwrap();
    refused(f, &f.store, &id, second, third).await;
    let lease = begin(f, &other, &id, third).await.unwrap();
    assert_eq!(line(f, &id).await, []);
    publish(f, &other, lease).await;
    let lease = begin(f, &f.store, &id, second).await.unwrap();
    publish(f, &f.store, lease).await;
    let said = f.texts(&id).await;
    assert_eq!(
        said[2..],
        ["one", "1", "next", "done", "next", "done", "next", "done"]
    );
}

pub(super) async fn a_place_is_taken_and_given_up_once(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = f.begin(&id, "one").await.lease;
    let (one, two) = (f.store.ids().run(), f.store.ids().run());
    let first = f.store.join_wait_queue(&f.scope, &id, one).await.unwrap();
    let second = f.store.join_wait_queue(&f.scope, &id, two).await.unwrap();
    assert!(first < second);
    let again = f.store.join_wait_queue(&f.scope, &id, one).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(line(f, &id).await, [one, two]);
    for _ in 0..2 {
        f.store.leave_wait_queue(&f.scope, &id, one).await.unwrap();
        assert_eq!(line(f, &id).await, [two]);
    }
    // Who comes back stands at the end.
    let third = f.store.join_wait_queue(&f.scope, &id, one).await.unwrap();
    assert!(second < third);
    assert_eq!(line(f, &id).await, [two, one]);
    f.store.leave_wait_queue(&f.scope, &id, one).await.unwrap();
    let fourth = lined_up(f, &f.store, &id).await;
    let places = f.store.wait_queue(&f.scope, &id).await.unwrap();
    assert_eq!((places[1].run, third < places[1].no), (fourth, true));

    // A run that has begun waits for nothing.
    let error = f
        .store
        .join_wait_queue(&f.scope, &id, run.run)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
    let nowhere = ThreadId::new("nowhere").unwrap();
    let error = f
        .store
        .join_wait_queue(&f.scope, &nowhere, one)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = f.store.wait_queue(&f.scope, &nowhere).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    f.store
        .leave_wait_queue(&f.scope, &nowhere, one)
        .await
        .unwrap();
}

pub(super) async fn a_place_lapses_with_the_lease_of_its_process(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = f.begin(&id, "one").await.lease;
    let other = f.other().await;
    let theirs = lined_up(f, &other, &id).await;
    let ours = lined_up(f, &f.store, &id).await;
    f.clock.advance(past_the_lease());
    f.store.renew().await.unwrap();
    assert_eq!(line(f, &id).await, [ours]);
    // Late, but no run has passed it: the place is still there.
    other.renew().await.unwrap();
    assert_eq!(line(f, &id).await, [theirs, ours]);
    f.publish(run, 0, "1").await;
    refused(f, &f.store, &id, ours, theirs).await;

    f.clock.advance(past_the_lease());
    f.store.renew().await.unwrap();
    let lease = begin(f, &f.store, &id, ours).await.unwrap();
    assert_eq!(line(f, &id).await, []);
    // It was passed over, so the place is gone, whatever the process says later.
    other.renew().await.unwrap();
    assert_eq!(line(f, &id).await, []);
    let newcomer = lined_up(f, &f.store, &id).await;
    let again = other.join_wait_queue(&f.scope, &id, theirs).await.unwrap();
    assert_eq!(line(f, &id).await, [newcomer, theirs]);
    f.publish(lease, 0, "2").await;

    // When all places have lapsed, any run may begin, and the places do not come back.
    f.clock.advance(past_the_lease());
    let third = f.other().await;
    let lease = begin(f, &third, &id, third.ids().run()).await.unwrap();
    f.store.renew().await.unwrap();
    other.renew().await.unwrap();
    assert_eq!(line(f, &id).await, []);
    publish(f, &third, lease).await;
    assert!(other.join_wait_queue(&f.scope, &id, theirs).await.unwrap() > again);
}

pub(super) async fn a_left_run_is_taken_over_in_turn(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let other = f.other().await;
    let claim = |run: RunId, seen, waiter, after| ClaimInTurn {
        run,
        seen,
        claim: Claim::Own,
        waiter,
        after,
    };
    let left = begin(f, &other, &id, other.ids().run()).await.unwrap();
    let one = lined_up(f, &f.store, &id).await;
    let third = f.other().await;
    let two = lined_up(f, &third, &id).await;
    let early = claim(left.run, 1, one, AfterTurn::Keep);
    let error = f.store.claim_in_turn(&f.scope, &early).await.unwrap_err();
    assert!(matches!(error, Error::Busy { run, .. } if run == left.run));
    f.clock.advance(past_the_lease());
    f.store.renew().await.unwrap();
    third.renew().await.unwrap();

    // The first waiter settles it, and stays the first.
    for (store, waiter) in [(&third, two), (&f.store, f.store.ids().run())] {
        for place in [AfterTurn::Keep, AfterTurn::Leave] {
            let asked = claim(left.run, 1, waiter, place);
            let error = store.claim_in_turn(&f.scope, &asked).await.unwrap_err();
            assert!(
                matches!(error, Error::Busy { run, .. } if run == one),
                "{error:?}"
            );
        }
    }
    let stale = claim(left.run, 7, one, AfterTurn::Keep);
    let error = f.store.claim_in_turn(&f.scope, &stale).await.unwrap_err();
    assert!(
        matches!(error, Error::Fenced { current: 1, .. }),
        "{error:?}"
    );
    let asked = claim(left.run, 1, one, AfterTurn::Keep);
    let claimed = f.store.claim_in_turn(&f.scope, &asked).await.unwrap();
    assert_eq!(claimed.lease.epoch, 2);
    assert_eq!(line(f, &id).await, [one, two]);
    publish(f, &f.store, claimed.lease).await;
    let over = claim(left.run, 2, one, AfterTurn::Keep);
    let error = f.store.claim_in_turn(&f.scope, &over).await.unwrap_err();
    assert!(matches!(error, Error::WrongState { .. }), "{error:?}");
    refused(f, &third, &id, two, one).await;
    let lease = begin(f, &f.store, &id, one).await.unwrap();
    assert_eq!(line(f, &id).await, [two]);

    // A waiter that waited for the run itself gives up its place with the claim.
    f.store.park(&f.scope, lease, None).await.unwrap();
    let asked = ClaimInTurn {
        claim: Claim::Parked,
        ..claim(one, 1, two, AfterTurn::Leave)
    };
    let claimed = third.claim_in_turn(&f.scope, &asked).await.unwrap();
    assert_eq!(line(f, &id).await, []);

    // A run that settles another one while the wait queue is empty takes the first place.
    third.park(&f.scope, claimed.lease, None).await.unwrap();
    let settler = f.store.ids().run();
    let asked = ClaimInTurn {
        claim: Claim::Settle,
        ..claim(one, 2, settler, AfterTurn::Keep)
    };
    let claimed = f.store.claim_in_turn(&f.scope, &asked).await.unwrap();
    let late = lined_up(f, &third, &id).await;
    assert_eq!(line(f, &id).await, [settler, late]);
    publish(f, &f.store, claimed.lease).await;
    refused(f, &third, &id, late, settler).await;
    let lease = begin(f, &f.store, &id, settler).await.unwrap();
    publish(f, &f.store, lease).await;
    begin(f, &third, &id, late).await.unwrap();

    // A claim that leaves its place takes none if the wait queue is empty.
    let asked = ClaimInTurn {
        claim: Claim::Own,
        ..claim(late, 1, third.ids().run(), AfterTurn::Leave)
    };
    third.claim_in_turn(&f.scope, &asked).await.unwrap();
    assert_eq!(line(f, &id).await, []);
}

pub(super) async fn a_run_that_fails_changes_no_order(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut lease = f.begin(&id, "one").await.lease;
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(lined_up(f, &f.store, &id).await);
    }
    for place in 0..waiters.len() {
        let end = End {
            how: Stopped::Failed,
            note: None,
            events: None,
        };
        f.store.end(&f.scope, lease, &end).await.unwrap();
        assert_eq!(line(f, &id).await, waiters[place..]);
        refused(f, &f.store, &id, f.store.ids().run(), waiters[place]).await;
        lease = begin(f, &f.store, &id, waiters[place]).await.unwrap();
    }
    f.publish(lease, 0, "1").await;
    assert_eq!(f.texts(&id).await, ["next", "1"]);
}

pub(super) async fn a_line_goes_with_its_thread(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.begin(&id, "one").await;
    let run = lined_up(f, &f.store, &id).await;
    let tenant = Tenant::new("stranger").unwrap();
    let theirs = Authority::assume().scope(tenant);
    let error = f.store.wait_queue(&theirs, &id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = f
        .store
        .join_wait_queue(&theirs, &id, run)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    f.store.leave_wait_queue(&theirs, &id, run).await.unwrap();
    assert_eq!(line(f, &id).await, [run]);

    f.store.delete(&f.scope, &id).await.unwrap();
    let error = f.store.wait_queue(&f.scope, &id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    f.store.leave_wait_queue(&f.scope, &id, run).await.unwrap();
    f.thread("t").await;
    assert_eq!(line(f, &id).await, []);
    begin(f, &f.store, &id, f.store.ids().run()).await.unwrap();
}
