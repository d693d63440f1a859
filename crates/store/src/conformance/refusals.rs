//! Refusals that engines could word or order differently: they come from `rules`.

use super::fixture::{Fixture, answered, result, said_by_model, said_by_user, step};
use crate::{
    Anchor, Append, ApprovalFilter, Begun, CallRef, CallResult, CallState, Claim, Error, Flush,
    Idempotency, ItemRef, NewItem, NodeRef, Publish, RunFilter, Step, StoredEvent, ThreadId,
    Version,
};

/// What a refused call would have to be like.
fn wanted(error: Error) -> &'static str {
    match error {
        Error::WrongCall { wanted, .. } | Error::WrongState { wanted, .. } => wanted,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn refusals_of_calls_and_runs_are_worded_alike(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let (store, scope, run) = (&f.store, &f.scope, lease.run);
    let planned = step(0, &["a", "b"], CallState::Planned);
    store.step(scope, lease, &planned).await.unwrap();
    let unknown = store.intend(scope, lease, 0, &[7]).await.unwrap_err();
    let Error::NotFound { what, id } = unknown else {
        panic!("{unknown:?}")
    };
    assert_eq!((what, id), ("call", format!("7 of step 0 of {run}")));
    store
        .results(scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    let error = store.intend(scope, lease, 0, &[0]).await.unwrap_err();
    assert_eq!(wanted(error), "it must be planned");
    let other = CallResult::new(0, 0, &answered("x"));
    let error = store.results(scope, lease, &[other]).await.unwrap_err();
    assert_eq!(wanted(error), "it has another result already");
    let twice = [result(0, 1, "b"), result(0, 1, "b")];
    let error = store.results(scope, lease, &twice).await.unwrap_err();
    assert_eq!(wanted(error), "it has one result, and two were given");
    let publish = Publish::new(1, said_by_model("end"));
    store.publish(scope, lease, &publish).await.unwrap();
    let late = Step {
        no: 2,
        ..Step::default()
    };
    let error = store.step(scope, lease, &late).await.unwrap_err();
    assert_eq!(wanted(error), "it must be running");
    let claims = [
        (Claim::Orphan, "its owner must be gone"),
        (Claim::Own, "it must be running"),
        (Claim::Parked, "it must be parked"),
        (Claim::Settle, "it must not be finished"),
    ];
    for (claim, text) in claims {
        let error = store.claim(scope, run, 1, claim).await.unwrap_err();
        assert_eq!(wanted(error), text);
    }
}

pub(super) async fn a_key_is_looked_at_before_the_id_of_a_run(f: &mut Fixture<'_>) {
    let (first, second) = (f.thread("a").await, f.thread("b").await);
    let key = |request: u8| {
        Some(Idempotency {
            key: "k".into(),
            request: [request; 16],
        })
    };
    let head = |thread: &ThreadId| Anchor::Head {
        thread: thread.clone(),
        expected: Version(0),
    };
    let mut keyed = f.begin_at(head(&first), "one");
    keyed.key = key(1);
    f.started(&keyed).await;
    // The same run by another request: the key says so.
    let mut changed = keyed.clone();
    changed.key = key(2);
    let error = f.store.begin(&f.scope, &changed).await;
    assert!(matches!(error, Err(Error::KeyReused { .. })), "{error:?}");
    // The id of one run with the key of another: the key names the answer.
    let mut other = f.begin_at(head(&second), "two");
    f.started(&other).await;
    other.key = key(1);
    other.input = said_by_user("three");
    let begun = f.store.begin(&f.scope, &other).await.unwrap();
    let Begun::Repeated(run) = begun else {
        panic!("{begun:?}")
    };
    assert_eq!(run.id, keyed.run);
}

pub(super) async fn what_is_not_there_is_refused_alike(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let (store, scope) = (&f.store, &f.scope);
    let run = f.turn(&id, "one", "1").await;
    let lease = f.begin(&id, "two").await.lease;
    let step = step(0, &["a", "b"], CallState::Planned);
    store.step(scope, lease, &step).await.unwrap();
    let results = [result(0, 1, "b")];
    store.results(scope, lease, &results).await.unwrap();
    f.publish(lease, 1, "2").await;
    // A place without a result says nothing: there is nothing to say again or to redact.
    let gap = ItemRef {
        run: lease.run,
        no: 3,
    };
    let append = |run, items| Append {
        run,
        thread: id.clone(),
        expected: None,
        items,
        state: None,
        key: None,
    };
    let again = append(store.ids().run(), vec![NewItem::Repeat(gap)]);
    let missing = format!("there is no item 3 of {}", lease.run);
    let error = store.append(scope, &again).await.unwrap_err();
    assert_eq!(error.to_string(), missing);
    let error = store.redact(scope, gap, "ada").await.unwrap_err();
    assert_eq!(error.to_string(), missing);
    // A position behind the end of a thread.
    let error = store.cursor(scope, &id, 9).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a cursor: t ends at position 7, before 9"
    );
    let empty = append(store.ids().run(), Vec::new());
    let error = store.append(scope, &empty).await.unwrap_err();
    assert_eq!(error.to_string(), "an append: it has no items");
    // A thread that is not there has no runs; its approvals and its queue cannot be listed.
    let unknown = ThreadId::new("unknown").unwrap();
    let filter = RunFilter {
        thread: Some(unknown.clone()),
        states: Vec::new(),
    };
    let listed = store.runs(scope, &filter, None, 10).await.unwrap();
    assert_eq!((listed.found, listed.next), (Vec::new(), None));
    let filter = ApprovalFilter {
        thread: Some(unknown.clone()),
        waiting: false,
    };
    let error = store.approvals(scope, &filter, None, 10).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no thread unknown");
    let error = store.queue(scope, &unknown).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no thread unknown");
    // The id of a run of a deleted thread names nothing that can be begun or added again.
    let by_hand = append(store.ids().run(), said_by_user("by hand"));
    store.append(scope, &by_hand).await.unwrap();
    store.delete(scope, &id).await.unwrap();
    f.thread("t").await;
    let error = store.append(scope, &by_hand).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no run {}", by_hand.run)
    );
    let mut begun = f.begin_at(Anchor::Node(NodeRef::Run(run)), "three");
    begun.run = run;
    let error = store.begin(scope, &begun).await.unwrap_err();
    assert_eq!(error.to_string(), format!("there is no run {run}"));
}

pub(super) async fn a_run_is_begun_at_a_place_before_calls_are_taken(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let call = CallRef {
        run: lease.run,
        step: 7,
        position: 0,
    };
    // The run has no node yet, and no such call.
    let mut begin = f.begin_at(Anchor::Node(NodeRef::Run(lease.run)), "two");
    begin.takes = vec![call];
    let error = f.store.begin(&f.scope, &begin).await;
    assert!(matches!(error, Err(Error::NotFinal { .. })), "{error:?}");
    // The thread is busy, and there is no such call.
    let at = Anchor::Head {
        thread: id.clone(),
        expected: Version(0),
    };
    let mut begin = f.begin_at(at, "two");
    begin.takes = vec![call];
    let error = f.store.begin(&f.scope, &begin).await.unwrap_err();
    assert!(
        matches!(error, Error::NotFound { what: "call", .. }),
        "{error:?}"
    );
    // The first events of a run have the first numbers.
    let event = StoredEvent {
        kind: 1,
        body: Vec::new(),
    };
    begin.takes.clear();
    begin.events = Some(Flush::new(1, &[event]));
    let error = f.store.begin(&f.scope, &begin).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");
}
