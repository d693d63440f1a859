use super::fixture::{Fixture, result, said_by_model, said_by_user, step};
use crate::{
    Anchor, Append, CallState, Claim, End, Error, Flush, Mode, NewItem, Publish, RemoteCall, Step,
    StepNode, Stopped, StoredEvent, Version,
};
use throughline_model::Message;
use throughline_model::json::RawJson;

/// Do it twice, and want the same answer.
macro_rules! twice {
    ($write:expr) => {{
        let first = $write.await.unwrap();
        let second = $write.await.unwrap();
        assert_eq!(first, second, "{}", stringify!($write));
        first
    }};
}

pub(super) async fn every_write_can_be_sent_again(f: &mut Fixture<'_>) {
    for mode in [Mode::PerRun, Mode::PerCall] {
        let id = f.thread(&format!("{mode:?}")).await;
        let mut begin = f.begin_at(
            Anchor::Head {
                thread: id.clone(),
                expected: Version(0),
            },
            "one",
        );
        begin.mode = mode;
        let begun = twice!(f.store.begin(&f.scope, &begin));
        let crate::Begun::Started(started) = begun else {
            panic!("{begun:?}")
        };
        let lease = started.lease;
        let remote = RemoteCall {
            step: 0,
            handle: RawJson::new("{}").unwrap(),
        };
        twice!(f.store.remote_call(&f.scope, lease, &remote));
        let mut first = step(0, &["a", "b"], CallState::Planned);
        first.node = (mode == Mode::PerCall).then(StepNode::default);
        twice!(f.store.step(&f.scope, lease, &first));
        twice!(f.store.intend(&f.scope, lease, 0, &[0, 1]));
        let results = [result(0, 0, "a"), result(0, 1, "b")];
        twice!(f.store.results(&f.scope, lease, &results));
        let flush = Flush::new(
            0,
            &[StoredEvent {
                kind: 1,
                body: b"x".to_vec(),
            }],
        );
        twice!(f.store.flush(&f.scope, lease, &flush));
        twice!(f.store.park(&f.scope, lease, None));
        let claimed = f
            .store
            .claim(&f.scope, lease.run, 1, Claim::Parked)
            .await
            .unwrap();
        let publish = Publish::new(1, said_by_model("end"));
        let published = twice!(f.store.publish(&f.scope, claimed.lease, &publish));
        assert!(published.moved);
        let expected = ["one", "call a+call b", "result a+result b", "end"];
        assert_eq!(f.texts(&id).await, expected);
        let version = f.open(&id).await.thread.version;
        let append = Append {
            run: f.store.ids().run(),
            thread: id.clone(),
            expected: Some(version),
            items: NewItem::of(&[Message::user("by hand")]),
            state: None,
            key: None,
        };
        twice!(f.store.append(&f.scope, &append));
        assert_eq!(f.texts(&id).await.len(), 5);
        let lease = f.begin(&id, "two").await.lease;
        let end = End {
            how: Stopped::Failed,
            note: None,
            events: None,
        };
        twice!(f.store.end(&f.scope, lease, &end));
    }
}

pub(super) async fn other_content_is_not_a_repeat(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let begin = f.begin_at(
        Anchor::Head {
            thread: id.clone(),
            expected: Version(0),
        },
        "one",
    );
    let lease = f.started(&begin).await.lease;
    // The same id from another process is not a repetition.
    let other = f.other().await;
    assert!(other.begin(&f.scope, &begin).await.is_err());
    let mut changed = begin.clone();
    changed.input = said_by_user("two");
    assert!(f.store.begin(&f.scope, &changed).await.is_err());
    let said = |text| Step {
        items: said_by_model(text),
        ..Step::default()
    };
    f.store.step(&f.scope, lease, &said("first")).await.unwrap();
    let error = f.store.step(&f.scope, lease, &said("other")).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");
    f.publish(lease, 1, "end").await;
    let publish = Publish::new(1, said_by_model("another end"));
    let error = f.store.publish(&f.scope, lease, &publish).await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    assert_eq!(f.texts(&id).await, ["one", "first", "end"]);
}
