use std::time::Duration;

use throughline_model::json::RawJson;

use super::fixture::{Fixture, result, said_by_model, said_by_user, step};
use crate::{
    Anchor, Answer, Approval, ApprovalFilter, ApprovalId, ApprovalState, Authority, CallRef,
    CallState, Claim, Clock, Decision, End, Error, ErrorKind, Lease, NewApproval, NodeRef, Publish,
    Step, Stopped, Tenant, ThreadId, Unanswerable, arguments_digest,
};

/// A run whose only call waits for an approval.
async fn waiting(f: &Fixture<'_>, thread: &ThreadId, expires: Option<u64>) -> (Lease, ApprovalId) {
    let lease = f.begin(thread, "one").await.lease;
    let approval = f.store.ids().approval();
    let step = Step {
        approvals: vec![NewApproval {
            id: approval,
            step: 0,
            position: 0,
            shown: arguments_digest("get_tide", "{}"),
            expires,
            detail: Some(RawJson::new(r#"{"tool":"get_tide"}"#).unwrap()),
        }],
        ..step(0, &["a"], CallState::Approval)
    };
    f.store.step(&f.scope, lease, &step).await.unwrap();
    (lease, approval)
}

fn answer(approval: ApprovalId, decision: Decision) -> Answer {
    Answer {
        approval,
        shown: arguments_digest("get_tide", "{}"),
        decision,
        by: "ada".into(),
        reason: Some("looks right".into()),
    }
}

async fn listed(f: &Fixture<'_>, waiting: bool) -> Vec<Approval> {
    let filter = ApprovalFilter {
        thread: None,
        waiting,
    };
    let page = f
        .store
        .approvals(&f.scope, &filter, None, 100)
        .await
        .unwrap();
    page.found
}

fn why(answer: crate::Result<Approval>) -> Unanswerable {
    match answer {
        Err(Error::NotAnswerable { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn an_approval_is_answered_once(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let now = f.clock.now();
    let (lease, approval) = waiting(f, &id, Some(now + 60_000)).await;
    f.store.park(&f.scope, lease, None).await.unwrap();
    let list = listed(f, true).await;
    assert_eq!(
        (list.len(), list[0].id, list[0].thread.clone()),
        (1, approval, id.clone())
    );
    assert_eq!(
        (list[0].state, list[0].expires),
        (ApprovalState::Waiting, Some(now + 60_000))
    );
    assert_eq!(list[0].call.run, lease.run);
    let yes = answer(approval, Decision::Approved);
    let other_arguments = Answer {
        shown: arguments_digest("get_tide", r#"{"port":"x"}"#),
        ..yes.clone()
    };
    let refused = f.store.answer(&f.scope, &other_arguments).await;
    assert_eq!(why(refused), Unanswerable::OtherArguments);
    let stranger = Authority::assume().scope(Tenant::new("stranger").unwrap());
    let error = f.store.answer(&stranger, &yes).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // Another process, days later, is what it is for.
    let other = f.other().await;
    let answered = other.answer(&f.scope, &yes).await.unwrap();
    assert_eq!(answered.state, ApprovalState::Approved);
    assert_eq!(answered.answered, Some(("ada".into(), now)));
    let no = answer(approval, Decision::Denied);
    assert_eq!(
        why(f.store.answer(&f.scope, &no).await),
        Unanswerable::Answered
    );
    assert_eq!(listed(f, true).await, []);
    assert_eq!(listed(f, false).await.len(), 1);
    // Too late is too late.
    let id = f.thread("u").await;
    let (_, approval) = waiting(f, &id, Some(now + 60_000)).await;
    f.clock.advance(Duration::from_secs(60));
    let late = answer(approval, Decision::Approved);
    assert_eq!(
        why(f.store.answer(&f.scope, &late).await),
        Unanswerable::Expired
    );
    let list = listed(f, false).await;
    let expired = list.iter().find(|one| one.id == approval).unwrap();
    assert_eq!(expired.state, ApprovalState::Expired);
}

pub(super) async fn no_intent_without_leave(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let (lease, approval) = waiting(f, &id, None).await;
    let intend = async |lease| f.store.intend(&f.scope, lease, 0, &[0]).await;
    let error = intend(lease).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    f.store.park(&f.scope, lease, None).await.unwrap();
    f.store
        .answer(&f.scope, &answer(approval, Decision::Approved))
        .await
        .unwrap();
    let claim = f
        .store
        .claim(&f.scope, lease.run, 1, Claim::Parked)
        .await
        .unwrap();
    intend(claim.lease).await.unwrap();
    let list = listed(f, false).await;
    assert_eq!(list[0].state, ApprovalState::Used);
    f.store
        .results(&f.scope, claim.lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    f.publish(claim.lease, 1, "end").await;
    // A denied one is never dispatched, but it is answered.
    let id = f.thread("u").await;
    let (lease, approval) = waiting(f, &id, None).await;
    f.store
        .answer(&f.scope, &answer(approval, Decision::Denied))
        .await
        .unwrap();
    let error = intend(lease).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    f.store
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    f.publish(lease, 1, "end").await;
    let list = listed(f, false).await;
    let denied = list.iter().find(|one| one.id == approval).unwrap();
    assert_eq!(denied.state, ApprovalState::Denied);
}

pub(super) async fn approvals_end_with_their_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let (lease, approval) = waiting(f, &id, None).await;
    let end = End {
        how: Stopped::Failed,
        note: None,
        events: None,
    };
    f.store.end(&f.scope, lease, &end).await.unwrap();
    assert_eq!(listed(f, true).await, []);
    let late = f
        .store
        .answer(&f.scope, &answer(approval, Decision::Approved))
        .await;
    assert_eq!(why(late), Unanswerable::Withdrawn);
    // A run that was closed before it was answered.
    let (lease, approval) = waiting(f, &id, None).await;
    let publish = Publish {
        results: vec![result(0, 0, "a")],
        ..Publish::new(1, said_by_model("end"))
    };
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    let late = f
        .store
        .answer(&f.scope, &answer(approval, Decision::Approved))
        .await;
    assert_eq!(why(late), Unanswerable::Withdrawn);
}

pub(super) async fn a_waiting_call_is_taken_once(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let (lease, approval) = waiting(f, &id, None).await;
    // Over HTTP the response ends here, with an open node.
    let publish = Publish::new(1, Vec::new());
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    assert!(f.open(&id).await.tip.unwrap().open);
    f.store
        .answer(&f.scope, &answer(approval, Decision::Approved))
        .await
        .unwrap();
    let call = CallRef {
        run: lease.run,
        step: 0,
        position: 0,
    };
    let mut first = f.begin_at(Anchor::Node(NodeRef::Run(lease.run)), "unused");
    first.input = said_by_user("go on");
    first.takes = vec![call];
    let taken = f.started(&first).await.lease;
    let mut second = f.begin_at(Anchor::Node(NodeRef::Run(lease.run)), "me too");
    second.takes = vec![call];
    match f.store.begin(&f.scope, &second).await {
        Err(Error::Taken { by, .. }) => assert_eq!(by, first.run),
        other => panic!("{other:?}"),
    }
    assert!(f.store.run(&f.scope, second.run).await.is_err());
    f.publish(taken, 0, "end").await;
    let journal = f.store.journal(&f.scope, lease.run).await.unwrap();
    assert_eq!(journal.calls[0].state, CallState::Taken);
    assert_eq!(journal.calls[0].taken_by, Some(first.run));
    assert_eq!(listed(f, false).await[0].state, ApprovalState::Used);
    let nowhere = CallRef {
        position: 5,
        ..call
    };
    let mut third = f.begin_at(Anchor::Node(NodeRef::Run(lease.run)), "nothing");
    third.takes = vec![nowhere];
    assert!(f.store.begin(&f.scope, &third).await.is_err());
}

pub(super) async fn an_answer_that_was_used_is_no_new_one(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let (lease, approval) = waiting(f, &id, Some(f.clock.now() + 60_000)).await;
    let yes = answer(approval, Decision::Approved);
    f.store.answer(&f.scope, &yes).await.unwrap();
    f.store.intend(&f.scope, lease, 0, &[0]).await.unwrap();
    let used = listed(f, false).await;
    assert_eq!(used[0].state, ApprovalState::Used);
    // Also after its time: it was answered before.
    f.clock.advance(Duration::from_secs(61));
    let again = f.store.answer(&f.scope, &yes).await.unwrap();
    assert_eq!(again, used[0]);
    assert_eq!(listed(f, false).await, used);
    for other in [
        answer(approval, Decision::Denied),
        Answer {
            by: "bob".into(),
            ..yes.clone()
        },
        Answer {
            shown: arguments_digest("get_tide", "[]"),
            ..yes
        },
    ] {
        let refused = f.store.answer(&f.scope, &other).await;
        assert_eq!(why(refused), Unanswerable::Answered);
    }
    assert_eq!(listed(f, false).await, used);
}

pub(super) async fn a_planned_call_waits_when_leave_is_asked_for(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let planned = step(0, &["a", "b", "c"], CallState::Planned);
    f.store.step(&f.scope, lease, &planned).await.unwrap();
    f.store.intend(&f.scope, lease, 0, &[1]).await.unwrap();
    let asked = |id, position| NewApproval {
        id,
        step: 0,
        position,
        shown: arguments_digest("get_tide", "{}"),
        expires: None,
        detail: None,
    };
    let approval = f.store.ids().approval();
    let other = f.store.ids().approval();
    let ask =
        async |lease, approvals: &[NewApproval]| f.store.ask(&f.scope, lease, approvals).await;
    // All or none: the second call is on its way, and a call has one approval.
    for wrong in [
        [asked(approval, 0), asked(other, 1)],
        [asked(approval, 0), asked(other, 0)],
        [asked(approval, 0), asked(approval, 2)],
        [asked(approval, 0), asked(other, 7)],
    ] {
        assert!(ask(lease, &wrong).await.is_err());
    }
    assert_eq!(listed(f, false).await, []);
    ask(lease, &[asked(approval, 0)]).await.unwrap();
    // Sent again, and asked with another.
    ask(lease, &[asked(approval, 0)]).await.unwrap();
    let error = ask(lease, &[asked(other, 0)]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let error = ask(lease, &[asked(approval, 2)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let list = listed(f, true).await;
    let call = CallRef {
        run: lease.run,
        step: 0,
        position: 0,
    };
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].id, list[0].call), (approval, call));
    assert_eq!(
        (list[0].thread.clone(), list[0].state),
        (id, ApprovalState::Waiting)
    );
    let journal = f.store.journal(&f.scope, lease.run).await.unwrap();
    let calls = journal.calls.iter().map(|call| (call.state, call.approval));
    assert_eq!(
        calls.collect::<Vec<_>>(),
        [
            (CallState::Approval, Some(approval)),
            (CallState::Intent, None),
            (CallState::Planned, None),
        ]
    );
    // From here on it is as if the step had asked.
    let error = f.store.intend(&f.scope, lease, 0, &[0]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    f.store.park(&f.scope, lease, None).await.unwrap();
    let error = ask(lease, &[asked(other, 2)]).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    let yes = answer(approval, Decision::Approved);
    f.store.answer(&f.scope, &yes).await.unwrap();
    let claimed = f.store.claim(&f.scope, lease.run, 1, Claim::Parked).await;
    let claimed = claimed.unwrap().lease;
    let error = ask(lease, &[asked(other, 2)]).await;
    assert!(matches!(error, Err(Error::Fenced { .. })), "{error:?}");
    f.store.intend(&f.scope, claimed, 0, &[0]).await.unwrap();
    assert_eq!(listed(f, false).await[0].state, ApprovalState::Used);
}
