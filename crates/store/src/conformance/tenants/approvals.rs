//! Approvals of the same id, and queues.

use throughline_model::json::RawJson;

use super::twins::{PLANNED, Twins, WAITING, alike};
use crate::conformance::fixture::Fixture;
use crate::{
    Answer, ApprovalFilter, ApprovalId, ApprovalState, Decision, Error, ThreadId, Unanswerable,
    arguments_digest,
};

pub(in crate::conformance) async fn tenants_answer_their_own_approvals(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let unmade = ids.approval();
    let nowhere = ThreadId::new("nowhere").unwrap();
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let answer = |approval: ApprovalId, decision: Decision| Answer {
            approval,
            shown: arguments_digest("get_tide", "{}"),
            decision,
            by: me.word.into(),
            reason: Some(format!("because of {}", me.word)),
        };
        for decision in [Decision::Approved, Decision::Denied] {
            alike("answer", &other.own_approval, &unmade, async |approval| {
                store.answer(scope, &answer(approval, decision)).await
            })
            .await;
        }
        // The same id stands for another approval. Until it is answered here, nothing may run here,
        // whatever the other has said; the other waits on.
        let refused = store.intend(scope, me.lease, 0, &[WAITING]).await;
        assert!(
            matches!(refused, Err(Error::WrongCall { .. })),
            "{refused:?}"
        );
        let yes = answer(me.approval, Decision::Approved);
        let answered = store.answer(scope, &yes).await.unwrap();
        assert_eq!(
            (answered.thread, answered.call.run, answered.state),
            (me.work.clone(), me.lease.run, ApprovalState::Approved)
        );
        assert_eq!(answered.detail, Some(me.json()));
        match store
            .answer(scope, &answer(me.approval, Decision::Denied))
            .await
        {
            Err(Error::NotAnswerable { why, .. }) => assert_eq!(why, Unanswerable::Answered),
            other => panic!("{other:?}"),
        }
        other.still_sees(&before).await;
    }
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        store.intend(scope, me.lease, 0, &[WAITING]).await.unwrap();
        // The id of an approval that the other has is free, once.
        let theirs = [me.asked(other.own_approval, 0, PLANNED)];
        for _ in 0..2 {
            store.ask(scope, me.lease, &theirs).await.unwrap();
        }
        let taken = [me.asked(me.approval, 0, PLANNED)];
        assert!(store.ask(scope, me.own_lease, &taken).await.is_err());
        other.still_sees(&before).await;

        let list = async |thread: Option<ThreadId>, waiting, after| {
            let filter = ApprovalFilter { thread, waiting };
            let page = store.approvals(scope, &filter, after, 10).await?;
            for approval in &page.found {
                assert_eq!(approval.detail, Some(me.json()));
            }
            let mut found: Vec<_> = page.found.iter().map(|one| one.id).collect();
            found.sort();
            Ok(found)
        };
        let sorted = |mut ids: Vec<ApprovalId>| {
            ids.sort();
            ids
        };
        let waiting = sorted(vec![me.own_approval, other.own_approval]);
        let all = sorted(vec![me.own_approval, other.own_approval, me.approval]);
        assert_eq!(list(None, true, None).await.unwrap(), waiting);
        assert_eq!(list(None, false, None).await.unwrap(), all);
        let of_work = sorted(vec![me.approval, other.own_approval]);
        let work = || Some(me.work.clone());
        assert_eq!(list(work(), false, None).await.unwrap(), of_work);
        assert_eq!(
            list(work(), true, None).await.unwrap(),
            [other.own_approval]
        );
        alike("approvals", &other.own, &nowhere, async |id| {
            list(Some(id), false, None).await
        })
        .await;
        // Where a page of the other ended is a place like any other.
        let filter = ApprovalFilter::default();
        let theirs = other.f.store.approvals(&other.f.scope, &filter, None, 1);
        let after = theirs.await.unwrap().next;
        let rest = list(None, false, after).await.unwrap();
        assert!(rest.iter().all(|id| all.contains(id)), "{rest:?}");
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_queue_their_own_messages(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let nowhere = ThreadId::new("nowhere").unwrap();
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let forged = RawJson::new("{}").unwrap();
        alike("enqueue", &other.own, &nowhere, async |id| {
            store.enqueue(scope, &id, &forged).await
        })
        .await;
        alike("queue", &other.own, &nowhere, async |id| {
            store.queue(scope, &id).await
        })
        .await;
        let added = me.enqueue(&me.thread).await;
        let queue = store.queue(scope, &me.thread).await.unwrap();
        let found: Vec<_> = queue.iter().map(|one| (one.no, &one.body)).collect();
        let body = me.json();
        assert_eq!(found, [(me.queued, &body), (added, &body)]);
        assert_eq!(me.f.open(&me.thread).await.queued, 2);
        assert_eq!(me.f.open(&me.own).await.queued, 0);
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}
