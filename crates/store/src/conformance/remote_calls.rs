use throughline_model::json::RawJson;

use super::fixture::{Fixture, LEASE, said_by_model};
use crate::{
    Claim, End, Error, ErrorKind, Lease, Mode, Publish, RemoteCall, RunId, Step, StepNode, Stopped,
    Store,
};

fn call(step: u32, id: &str) -> RemoteCall {
    let handle = RawJson::new(&format!(r#"{{"id":"{id}"}}"#)).unwrap();
    RemoteCall { step, handle }
}

fn said(no: u32, text: &str) -> Step {
    Step {
        no,
        items: said_by_model(text),
        ..Step::default()
    }
}

fn failed() -> End {
    End {
        how: Stopped::Failed,
        note: None,
        events: None,
    }
}

async fn stored(f: &Fixture<'_>, store: &Store, run: RunId) -> Option<RemoteCall> {
    store.journal(&f.scope, run).await.unwrap().remote
}

pub(super) async fn a_remote_call_is_journaled_until_its_step(f: &mut Fixture<'_>) {
    for mode in [Mode::PerRun, Mode::PerCall] {
        let id = f.thread(&format!("{mode:?}")).await;
        let lease = f.begin_in(&id, "one", mode).await.lease;
        let (s, run) = (&f.store, lease.run);
        assert_eq!(stored(f, s, run).await, None);
        let first = call(0, "resp_1");
        for _ in 0..2 {
            s.remote_call(&f.scope, lease, &first).await.unwrap();
            assert_eq!(stored(f, s, run).await, Some(first.clone()));
        }
        // The service may have accepted the call a second time.
        let second = call(0, "resp_2");
        s.remote_call(&f.scope, lease, &second).await.unwrap();
        assert_eq!(stored(f, s, run).await, Some(second));
        let mut step = said(0, "said");
        step.node = (mode == Mode::PerCall).then(StepNode::default);
        s.step(&f.scope, lease, &step).await.unwrap();
        assert_eq!(stored(f, s, run).await, None, "its step is stored");
        let third = call(1, "resp_3");
        s.remote_call(&f.scope, lease, &third).await.unwrap();
        assert_eq!(stored(f, s, run).await, Some(third));
        f.publish(lease, 1, "end").await;
        assert_eq!(stored(f, s, run).await, None, "its step is published");
        assert_eq!(f.texts(&id).await, ["one", "said", "end"]);
    }
}

pub(super) async fn a_remote_call_outlives_its_process(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let old = f.begin(&id, "one").await.lease;
    let first = call(0, "resp_1");
    f.store.remote_call(&f.scope, old, &first).await.unwrap();
    let other = f.other().await;
    assert_eq!(stored(f, &other, old.run).await, Some(first.clone()));
    f.clock.advance(LEASE * 2);
    let claimed = other.claim(&f.scope, old.run, 1, Claim::Orphan).await;
    let new = claimed.unwrap().lease;
    assert_eq!(stored(f, &other, old.run).await, Some(first));
    // The process before comes back with a handle of its own.
    let late = f.store.remote_call(&f.scope, old, &call(0, "late")).await;
    assert!(
        matches!(
            late,
            Err(Error::Fenced {
                mine: 1,
                current: 2,
                ..
            })
        ),
        "{late:?}"
    );
    let second = call(0, "resp_2");
    other.remote_call(&f.scope, new, &second).await.unwrap();
    // A parked run keeps it, and takes no other.
    other.park(&f.scope, new, None).await.unwrap();
    let parked = other.remote_call(&f.scope, new, &call(0, "parked")).await;
    assert!(
        matches!(parked, Err(Error::WrongState { .. })),
        "{parked:?}"
    );
    assert_eq!(stored(f, &f.store, old.run).await, Some(second));
}

pub(super) async fn a_remote_call_is_for_the_next_step_of_a_running_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let s = &f.store;
    let out_of_order = async |step: u32, next: u64| {
        let error = s.remote_call(&f.scope, lease, &call(step, "resp")).await;
        let error = error.unwrap_err();
        let fits = matches!(
            error,
            Error::OutOfOrder { what: "step", expected, found, .. }
                if (expected, found) == (next, u64::from(step))
        );
        assert!(fits, "step {step}: {error:?}");
    };
    out_of_order(1, 0).await;
    s.remote_call(&f.scope, lease, &call(0, "resp"))
        .await
        .unwrap();
    s.step(&f.scope, lease, &said(0, "said")).await.unwrap();
    out_of_order(0, 1).await;
    out_of_order(2, 1).await;
    assert_eq!(stored(f, s, lease.run).await, None);
    f.publish(lease, 1, "end").await;
    let error = s.remote_call(&f.scope, lease, &call(2, "resp")).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    let failing = f.begin(&id, "two").await.lease;
    let last = call(0, "resp");
    s.remote_call(&f.scope, failing, &last).await.unwrap();
    s.end(&f.scope, failing, &failed()).await.unwrap();
    let error = s.remote_call(&f.scope, failing, &call(0, "other")).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    // A run that failed while it waited still says what it waited for.
    assert_eq!(stored(f, s, failing.run).await, Some(last));
    let unknown = Lease {
        run: s.ids().run(),
        epoch: 1,
    };
    let error = s.remote_call(&f.scope, unknown, &call(0, "resp")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

pub(super) async fn a_remote_call_goes_with_its_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let s = &f.store;
    s.remote_call(&f.scope, lease, &call(0, "resp"))
        .await
        .unwrap();
    s.delete(&f.scope, &id).await.unwrap();
    let error = s.remote_call(&f.scope, lease, &call(0, "late")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    let error = s.journal(&f.scope, lease.run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    while s.purge(7).await.unwrap().more {}
    let checked = s.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.damage, checked.items), (vec![], 0));
}

pub(super) async fn redacting_an_item_removes_the_remote_call_of_its_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let begun = f.begin_in(&id, "one", Mode::PerCall).await.lease;
    let (s, run) = (&f.store, begun.run);
    let mut step = said(0, "said");
    step.node = Some(StepNode::default());
    s.step(&f.scope, begun, &step).await.unwrap();
    let waiting = call(1, "resp");
    s.remote_call(&f.scope, begun, &waiting).await.unwrap();
    let at = crate::ItemRef { run, no: 1 };
    s.redact(&f.scope, at, "ada").await.unwrap();
    assert_eq!(stored(f, s, run).await, None);
    s.remote_call(&f.scope, begun, &waiting).await.unwrap();
    assert_eq!(stored(f, s, run).await, Some(waiting));
    let publish = Publish::new(1, said_by_model("end"));
    s.publish(&f.scope, begun, &publish).await.unwrap();
}
