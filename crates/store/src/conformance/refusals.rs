//! Refusals that engines could word or order differently: they come from `rules`.

use super::fixture::{Fixture, answered, result, said_by_model, said_by_user, step};
use crate::{
    Anchor, Begun, CallResult, CallState, Claim, Error, Idempotency, Publish, Step, Version,
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
    let head = |thread: &crate::ThreadId| Anchor::Head {
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
