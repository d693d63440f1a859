use throughline_model::json::RawJson;

use super::fixture::{Fixture, model, result, said_by_model, said_by_user, step, texts};
use crate::{
    Anchor, At, Begin, Begun, CallResult, CallState, End, Ending, Error, ErrorKind, Flush,
    Idempotency, Leasing, NewItem, NewThread, NodeRef, Publish, RunState, Step, Stopped,
    StoredEvent, ThreadId, Version,
};

fn head(thread: &ThreadId, version: u64) -> Anchor {
    Anchor::Head {
        thread: thread.clone(),
        expected: Version(version),
    }
}

pub(super) async fn a_plain_turn(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let started = f.begin(&id, "when is high water?").await;
    assert_eq!((started.lease.epoch, started.base), (1, 0));
    // Nothing is visible before the end, but the run is.
    let during = f.open(&id).await;
    assert_eq!((during.entries.len(), during.tip), (0, None));
    let live = during.unsettled.unwrap();
    assert_eq!(
        (live.id, live.state, live.leased),
        (started.lease.run, RunState::Running, true)
    );
    let published = f.publish(started.lease, 0, "04:12").await;
    assert_eq!(
        (published.last, published.moved, published.version),
        (2, true, Version(1))
    );
    let after = f.open(&id).await;
    assert_eq!(texts(&after.entries), ["when is high water?", "04:12"]);
    assert_eq!(after.tip.unwrap().node, published.node.unwrap());
    assert_eq!((after.unsettled, after.thread.version), (None, Version(1)));
    let places: Vec<_> = after.entries.iter().map(|e| (e.first, e.last)).collect();
    assert_eq!(places, [(1, 1), (2, 2)]);
    f.turn(&id, "and low?", "10:30").await;
    let texts = f.texts(&id).await;
    assert_eq!(texts, ["when is high water?", "04:12", "and low?", "10:30"]);
    let run = f.store.run(&f.scope, started.lease.run).await.unwrap();
    assert_eq!(
        (run.state, run.published),
        (RunState::Committed, published.node)
    );
}

pub(super) async fn a_run_opens_its_thread(f: &mut Fixture<'_>) {
    for leasing in [Leasing::Thread, Leasing::Free] {
        let id = f.store.ids().thread();
        let new = NewThread::new(id.clone());
        let begin = f.begin_at(
            Anchor::New {
                thread: new,
                leasing,
            },
            "hello",
        );
        let started = f.started(&begin).await;
        let published = f.publish(started.lease, 0, "hi").await;
        assert!(published.moved);
        assert_eq!(f.texts(&id).await, ["hello", "hi"]);
        let again = Begin {
            run: f.store.ids().run(),
            ..begin
        };
        let error = f.store.begin(&f.scope, &again).await;
        assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    }
}

pub(super) async fn a_busy_thread_names_its_holder(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let holder = f.begin(&id, "first").await;
    let begin = f.begin_at(head(&id, 0), "second");
    match f.store.begin(&f.scope, &begin).await {
        Err(Error::Busy { thread, run, state }) => {
            assert_eq!((thread, run), (id.clone(), holder.lease.run));
            assert_eq!(state, RunState::Running);
        }
        other => panic!("{other:?}"),
    }
    f.publish(holder.lease, 0, "done").await;
    let begin = f.begin_at(head(&id, 1), "second");
    f.started(&begin).await;
}

pub(super) async fn a_stale_version_is_refused(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "one", "1").await;
    let tip = f.open(&id).await.tip.unwrap();
    let begin = f.begin_at(head(&id, 0), "stale");
    match f.store.begin(&f.scope, &begin).await {
        Err(Error::HeadMoved {
            expected,
            actual,
            head,
            ..
        }) => {
            assert_eq!((expected, actual), (Version(0), Version(1)));
            assert_eq!(head, Some(tip.node));
        }
        other => panic!("{other:?}"),
    }
    assert!(f.store.run(&f.scope, begin.run).await.is_err());
}

pub(super) async fn a_key_makes_one_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let key = |digest: u8| {
        Some(Idempotency {
            key: "k".into(),
            request: [digest; 16],
        })
    };
    let mut begin = f.begin_at(head(&id, 0), "one");
    begin.key = key(1);
    let started = f.started(&begin).await;
    let mut again = f.begin_at(head(&id, 0), "one");
    again.key = key(1);
    let repeated = |begun| match begun {
        Begun::Repeated(run) => run,
        other => panic!("{other:?}"),
    };
    let found = f
        .store
        .run_by_key(&f.scope, &begin.key.clone().unwrap())
        .await;
    assert_eq!(found.unwrap().map(|run| run.id), Some(begin.run));
    // While it runs, and after it ended; whatever became of the head meanwhile.
    let run = repeated(f.store.begin(&f.scope, &again).await.unwrap());
    assert_eq!((run.id, run.state), (begin.run, RunState::Running));
    f.publish(started.lease, 0, "1").await;
    let run = repeated(f.store.begin(&f.scope, &again).await.unwrap());
    assert_eq!((run.id, run.state), (begin.run, RunState::Committed));
    assert_eq!(run.key.as_deref(), Some("k"));
    again.key = key(2);
    let error = f.store.begin(&f.scope, &again).await;
    assert!(matches!(error, Err(Error::KeyReused { .. })), "{error:?}");
    let error = f.store.run_by_key(&f.scope, &key(2).unwrap()).await;
    assert!(matches!(error, Err(Error::KeyReused { .. })), "{error:?}");
    let unused = Idempotency {
        key: "unused".into(),
        request: [1; 16],
    };
    assert_eq!(f.store.run_by_key(&f.scope, &unused).await.unwrap(), None);
    assert_eq!(f.texts(&id).await, ["one", "1"]);
}

pub(super) async fn steps_come_in_order(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let started = f.begin(&id, "one").await;
    let error = f
        .store
        .step(
            &f.scope,
            started.lease,
            &step(1, &["a"], CallState::Planned),
        )
        .await;
    match error {
        Err(Error::OutOfOrder {
            expected, found, ..
        }) => assert_eq!((expected, found), (0, 1)),
        other => panic!("{other:?}"),
    }
    let first = step(0, &["a"], CallState::Intent);
    f.store.step(&f.scope, started.lease, &first).await.unwrap();
    f.store
        .results(&f.scope, started.lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    let publish = Publish::new(0, said_by_model("x"));
    let error = f.store.publish(&f.scope, started.lease, &publish).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");
    f.publish(started.lease, 1, "end").await;
    assert_eq!(f.texts(&id).await, ["one", "call a", "result a", "end"]);
    let error = f
        .store
        .step(
            &f.scope,
            started.lease,
            &step(2, &["b"], CallState::Planned),
        )
        .await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
}

fn events(first: u64, words: &[&str]) -> Flush {
    let event = |word: &&str| StoredEvent {
        kind: 7,
        body: word.as_bytes().to_vec(),
    };
    Flush::new(first, &words.iter().map(event).collect::<Vec<_>>())
}

pub(super) async fn events_come_in_order(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut begin = f.begin_at(head(&id, 0), "one");
    begin.events = Some(events(0, &["created", "in progress"]));
    let lease = f.started(&begin).await.lease;
    f.store
        .flush(&f.scope, lease, &events(2, &["a", "b"]))
        .await
        .unwrap();
    let error = f.store.flush(&f.scope, lease, &events(5, &["late"])).await;
    assert!(matches!(error, Err(Error::OutOfOrder { .. })), "{error:?}");
    // A flush that is sent again is stored once.
    f.store
        .flush(&f.scope, lease, &events(2, &["a", "b"]))
        .await
        .unwrap();
    let publish = Publish {
        events: Some(events(4, &["done"])),
        ..Publish::new(0, said_by_model("ab"))
    };
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    let read = async |from| {
        let flushes = f
            .store
            .events(&f.scope, lease.run, from, 100)
            .await
            .unwrap();
        let mut words = Vec::new();
        for flush in &flushes {
            for (n, event) in flush.events().unwrap().into_iter().enumerate() {
                let text = String::from_utf8(event.body).unwrap();
                words.push((flush.first() + n as u64, text));
            }
        }
        words
    };
    let all = read(0).await;
    let numbers: Vec<_> = all.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    let words: Vec<_> = all.iter().map(|(_, word)| word.as_str()).collect();
    assert_eq!(words, ["created", "in progress", "a", "b", "done"]);
    // From the middle of a flush: the whole flush.
    assert_eq!(read(3).await, all[2..]);
    assert_eq!(read(5).await, []);
    assert_eq!(
        f.store.run(&f.scope, lease.run).await.unwrap().next_event,
        5
    );
}

pub(super) async fn the_request_is_kept(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let request = RawJson::new(r#"{"v":1,"model":"demo"}"#).unwrap();
    let mut runs = Vec::new();
    for n in 0..3 {
        let mut begin = f.begin_at(head(&id, n), "one");
        begin.request = Some(request.clone());
        let lease = f.started(&begin).await.lease;
        f.publish(lease, 0, "1").await;
        runs.push(lease.run);
    }
    for run in runs {
        let journal = f.store.journal(&f.scope, run).await.unwrap();
        assert_eq!(journal.request.as_ref(), Some(&request));
        assert_eq!(journal.inputs, 1);
    }
}

pub(super) async fn a_note_stays_with_its_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let note = RawJson::new(r#"{"usage":{"input":7}}"#).unwrap();
    let publish = Publish {
        note: Some(note.clone()),
        ..Publish::new(0, said_by_model("1"))
    };
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!(run.note, Some(note));
}

pub(super) async fn a_failed_run_leaves_the_head(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "one", "1").await;
    let lease = f.begin(&id, "two").await.lease;
    f.store
        .step(&f.scope, lease, &step(0, &["a"], CallState::Intent))
        .await
        .unwrap();
    f.store
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    let note = RawJson::new(r#"{"error":"503"}"#).unwrap();
    let end = End {
        how: Stopped::Failed,
        note: Some(note.clone()),
        events: None,
    };
    f.store.end(&f.scope, lease, &end).await.unwrap();
    let opened = f.open(&id).await;
    assert_eq!(texts(&opened.entries), ["one", "1"]);
    assert_eq!(
        (opened.unsettled, opened.thread.version),
        (None, Version(1))
    );
    // The journal has it all, for the run that adopts it.
    let journal = f.store.journal(&f.scope, lease.run).await.unwrap();
    assert_eq!(
        (journal.run.state, journal.run.note),
        (RunState::Failed, Some(note))
    );
    assert_eq!(texts(&journal.entries), ["two", "call a", "result a"]);
    let error = f
        .store
        .open(&f.scope, &At::Node(NodeRef::Run(lease.run)), 1)
        .await;
    assert!(matches!(error, Err(Error::NotFinal { .. })), "{error:?}");
    // A new run adopts what it did.
    let mut adopt = f.begin_at(head(&id, 1), "unused");
    adopt.input = (1..=3)
        .map(|no| NewItem::Repeat(crate::ItemRef { run: lease.run, no }))
        .collect();
    let lease = f.started(&adopt).await.lease;
    f.publish(lease, 0, "2").await;
    assert_eq!(
        f.texts(&id).await,
        ["one", "1", "two", "call a", "result a", "2"]
    );
}

pub(super) async fn a_cancelled_run_is_published_closed(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    f.store
        .step(&f.scope, lease, &step(0, &["a", "b"], CallState::Intent))
        .await
        .unwrap();
    f.store
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    let publish = Publish {
        results: vec![result(0, 1, "b")],
        ending: Ending::Cancelled,
        ..Publish::new(1, said_by_model("partial"))
    };
    let published = f.store.publish(&f.scope, lease, &publish).await.unwrap();
    assert!(published.moved);
    let opened = f.open(&id).await;
    assert_eq!(
        texts(&opened.entries),
        ["one", "call a+call b", "result a+result b", "partial"]
    );
    assert!(!opened.tip.unwrap().open);
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Cancelled);
}

pub(super) async fn a_run_without_items_ends_without_a_node(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut begin = f.begin_at(head(&id, 0), "unused");
    begin.input.clear();
    let lease = f.started(&begin).await.lease;
    let publish = Publish::new(0, Vec::new());
    let published = f.store.publish(&f.scope, lease, &publish).await.unwrap();
    assert_eq!((published.node, published.moved), (None, false));
    assert_eq!(published.version, Version(0));
    let opened = f.open(&id).await;
    assert_eq!((opened.tip, opened.unsettled), (None, None));
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!((run.state, run.published), (RunState::Committed, None));
}

pub(super) async fn bad_writes_lose_nothing(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    f.store
        .step(&f.scope, lease, &step(0, &["a"], CallState::Intent))
        .await
        .unwrap();
    // A result for a call that does not exist, together with a good one: none is stored.
    let both = [result(0, 0, "a"), result(0, 1, "b")];
    assert!(f.store.results(&f.scope, lease, &both).await.is_err());
    let journal = f.store.journal(&f.scope, lease.run).await.unwrap();
    assert_eq!(texts(&journal.entries), ["one", "call a"]);
    // An item said again that is nowhere.
    let nowhere = crate::ItemRef {
        run: f.store.ids().run(),
        no: 1,
    };
    let bad = Step {
        no: 1,
        items: vec![NewItem::Repeat(nowhere)],
        ..Step::default()
    };
    let error = f.store.step(&f.scope, lease, &bad).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // A second result for one call inside one publication.
    let publish = Publish {
        results: vec![result(0, 0, "a"), CallResult::new(0, 0, &model("other"))],
        ..Publish::new(1, said_by_model("x"))
    };
    assert!(f.store.publish(&f.scope, lease, &publish).await.is_err());
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!((run.state, run.next_step), (RunState::Running, 1));
    f.store
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    f.publish(lease, 1, "end").await;
    assert_eq!(f.texts(&id).await, ["one", "call a", "result a", "end"]);
    let unknown = ThreadId::new("unknown").unwrap();
    let begin = Begin::new(f.store.ids().run(), head(&unknown, 0), said_by_user("x"));
    let error = f.store.begin(&f.scope, &begin).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
