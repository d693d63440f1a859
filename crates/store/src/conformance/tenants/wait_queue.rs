//! Wait queues of threads with the same id, with waiters of the same id.

use super::twins::{Twins, alike};
use crate::conformance::fixture::Fixture;
use crate::{AfterTurn, Claim, ClaimInTurn, Error, RunId, ThreadId};

pub(in crate::conformance) async fn tenants_wait_in_their_own_lines(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let (waiter, unmade) = (ids.run(), ids.run());
    let nowhere = ThreadId::new("nowhere").unwrap();
    let waiting =
        |line: Vec<crate::Waiter>| -> Vec<RunId> { line.iter().map(|waiter| waiter.run).collect() };
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        alike("join_wait_queue", &other.own, &nowhere, async |thread| {
            store.join_wait_queue(scope, &thread, unmade).await
        })
        .await;
        alike("wait_queue", &other.own, &nowhere, async |thread| {
            store.wait_queue(scope, &thread).await
        })
        .await;
        alike("leave_wait_queue", &other.own, &nowhere, async |thread| {
            store.leave_wait_queue(scope, &thread, waiter).await
        })
        .await;
        alike(
            "claim_in_turn",
            &other.own_lease.run,
            &unmade,
            async |run| {
                let asked = ClaimInTurn {
                    run,
                    seen: 1,
                    claim: Claim::Own,
                    waiter,
                    after: AfterTurn::Leave,
                };
                store.claim_in_turn(scope, &asked).await
            },
        )
        .await;
        assert!(store.wait_queue(scope, &me.work).await.unwrap().is_empty());
    }
    // The same run waits for a thread of the same id, in both: each is in one wait queue.
    for (me, _) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        store
            .join_wait_queue(scope, &me.work, waiter)
            .await
            .unwrap();
        let line = store.wait_queue(scope, &me.work).await.unwrap();
        assert_eq!(waiting(line), [waiter]);
    }
    let [(one, two), _] = twins.pairs();
    let claim = |run, waiter| ClaimInTurn {
        run,
        seen: 1,
        claim: Claim::Own,
        waiter,
        after: AfterTurn::Leave,
    };
    let (store, scope) = (&one.f.store, &one.f.scope);
    let before = two.view().await;
    let late = store
        .claim_in_turn(scope, &claim(one.lease.run, unmade))
        .await;
    assert!(matches!(late, Err(Error::Busy { .. })), "{late:?}");
    let turn = claim(one.lease.run, waiter);
    let claimed = store.claim_in_turn(scope, &turn).await.unwrap();
    assert_eq!(claimed.lease.epoch, 2);
    assert!(store.wait_queue(scope, &one.work).await.unwrap().is_empty());
    // The other waits on, with its place.
    two.still_sees(&before).await;
    let (store, scope) = (&two.f.store, &two.f.scope);
    let line = store.wait_queue(scope, &two.work).await.unwrap();
    assert_eq!(waiting(line), [waiter]);
    store
        .leave_wait_queue(scope, &two.work, waiter)
        .await
        .unwrap();
    assert!(store.wait_queue(scope, &two.work).await.unwrap().is_empty());
    twins.are_apart().await;
}
