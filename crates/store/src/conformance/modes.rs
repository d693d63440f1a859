use super::fixture::{Fixture, result, said_by_model, said_by_user, step, texts};
use crate::{
    Anchor, At, CallState, Claim, End, Error, Mode, NewItem, NodeId, NodeRef, Publish, RunState,
    Span, Step, StepNode, Stopped, Through, Version,
};

pub(super) async fn per_run_shows_none_or_all(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    f.turn(&id, "zero", "0").await;
    let lease = f.begin(&id, "one").await.lease;
    let before = f.open(&id).await;
    let same = async |f: &Fixture<'_>| {
        let now = f.open(&id).await;
        assert_eq!((&now.entries, now.tip), (&before.entries, before.tip));
        assert_eq!(now.thread.version, before.thread.version);
        let page = f
            .store
            .read(&f.scope, &At::Thread(id.clone()), Span::Tail, 100)
            .await;
        assert_eq!(page.unwrap().entries, before.entries);
        let tree = f.store.tree(&f.scope, &id, None, 100).await.unwrap();
        assert_eq!(tree.len(), 1);
    };
    same(f).await;
    f.store
        .step(&f.scope, lease, &step(0, &["a", "b"], CallState::Planned))
        .await
        .unwrap();
    same(f).await;
    f.store.intend(&f.scope, lease, 0, &[0, 1]).await.unwrap();
    same(f).await;
    f.store
        .results(&f.scope, lease, &[result(0, 1, "b")])
        .await
        .unwrap();
    same(f).await;
    f.store
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    same(f).await;
    f.publish(lease, 1, "end").await;
    let after = f.open(&id).await;
    let expected = [
        "zero",
        "0",
        "one",
        "call a+call b",
        "result a+result b",
        "end",
    ];
    assert_eq!(texts(&after.entries), expected);
    assert_eq!(after.thread.version, Version(2));
    let places: Vec<_> = after.entries.iter().map(|e| (e.first, e.last)).collect();
    assert_eq!(places, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 7)]);
    assert_eq!(
        f.store.tree(&f.scope, &id, None, 100).await.unwrap().len(),
        2
    );
}

fn with_node(step: Step) -> Step {
    Step {
        node: Some(StepNode::default()),
        ..step
    }
}

pub(super) async fn per_call_shows_each_call(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin_in(&id, "one", Mode::PerCall).await.lease;
    let first = with_node(step(0, &["a", "b"], CallState::Intent));
    let made = f
        .store
        .step(&f.scope, lease, &first)
        .await
        .unwrap()
        .unwrap();
    let node = NodeId {
        run: lease.run,
        step: 0,
    };
    assert_eq!((made.node, made.last, made.moved), (Some(node), 2, true));
    let opened = f.open(&id).await;
    assert_eq!(texts(&opened.entries), ["one", "call a+call b"]);
    assert!(opened.tip.unwrap().open);
    assert_eq!(opened.unsettled.unwrap().state, RunState::Running);
    let both = [result(0, 1, "b"), result(0, 0, "a")];
    f.store.results(&f.scope, lease, &both).await.unwrap();
    assert_eq!(f.texts(&id).await, ["one", "call a+call b"]);
    let second = with_node(step(1, &["c"], CallState::Intent));
    let made = f
        .store
        .step(&f.scope, lease, &second)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((made.last, made.version), (5, Version(2)));
    let expected = ["one", "call a+call b", "result a+result b", "call c"];
    assert_eq!(f.texts(&id).await, expected);
    f.store
        .results(&f.scope, lease, &[result(1, 0, "c")])
        .await
        .unwrap();
    let published = f.publish(lease, 2, "end").await;
    assert_eq!((published.last, published.version), (7, Version(3)));
    let opened = f.open(&id).await;
    assert_eq!(texts(&opened.entries)[4..], ["result c", "end"]);
    let tip = opened.tip.unwrap();
    assert_eq!((tip.open, tip.unsent), (false, false));
    // Inner nodes have names of their own; the run's id names the last one.
    assert_eq!(f.texts_at(NodeRef::Node(node)).await, expected[..2]);
    assert_eq!(f.texts_at(NodeRef::Run(lease.run)).await.len(), 6);
    let journal = f.store.journal(&f.scope, lease.run).await.unwrap();
    let nodes: Vec<_> = journal.steps.iter().map(|step| step.node).collect();
    assert_eq!(
        nodes[..2],
        [
            Some(node),
            Some(NodeId {
                run: lease.run,
                step: 1
            })
        ]
    );
}

pub(super) async fn unsent_results_go_with_the_next_run(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin_in(&id, "one", Mode::PerCall).await.lease;
    let first = with_node(step(0, &["a", "b"], CallState::Intent));
    f.store.step(&f.scope, lease, &first).await.unwrap();
    let both = [result(0, 0, "a"), result(0, 1, "b")];
    f.store.results(&f.scope, lease, &both).await.unwrap();
    // The loop ends here: the results were never sent.
    let publish = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    let published = f.store.publish(&f.scope, lease, &publish).await.unwrap();
    assert_eq!(published.last, 2);
    let opened = f.open(&id).await;
    assert_eq!(texts(&opened.entries), ["one", "call a+call b"]);
    let tip = opened.tip.unwrap();
    assert!(tip.unsent);
    assert_eq!(texts(&opened.unsent), ["result a+result b"]);
    assert_eq!(opened.unsettled, None);
    // The next run says them first, by reference.
    let mut begin = f.begin_at(
        Anchor::Head {
            thread: id.clone(),
            expected: opened.thread.version,
        },
        "two",
    );
    let again = (3..=4).map(|no| NewItem::Repeat(crate::ItemRef { run: lease.run, no }));
    begin.input = again.chain(said_by_user("two")).collect();
    let next = f.started(&begin).await.lease;
    f.publish(next, 0, "end").await;
    let opened = f.open(&id).await;
    let expected = ["one", "call a+call b", "result a+result b", "two", "end"];
    assert_eq!(texts(&opened.entries), expected);
    assert_eq!(opened.unsent, []);
    // A branch from the same node has them too.
    let node = At::Node(NodeRef::Run(lease.run));
    let branch = f.store.open(&f.scope, &node, 10).await.unwrap();
    assert_eq!(texts(&branch.unsent), ["result a+result b"]);
}

pub(super) async fn results_come_in_any_order(f: &mut Fixture<'_>) {
    let ids = ["a", "b", "c"];
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (n, order) in orders.into_iter().enumerate() {
        let id = f.thread(&format!("t{n}")).await;
        let lease = f.begin(&id, "one").await.lease;
        f.store
            .step(&f.scope, lease, &step(0, &ids, CallState::Intent))
            .await
            .unwrap();
        for position in order {
            let one = result(0, position, ids[position as usize]);
            f.store.results(&f.scope, lease, &[one]).await.unwrap();
        }
        f.publish(lease, 1, "end").await;
        let expected = [
            "one",
            "call a+call b+call c",
            "result a+result b+result c",
            "end",
        ];
        assert_eq!(f.texts(&id).await, expected, "{order:?}");
    }
}

pub(super) async fn a_missing_result_leaves_a_gap(f: &mut Fixture<'_>) {
    for missing in 0..3u32 {
        let id = f.thread(&format!("t{missing}")).await;
        let lease = f.begin(&id, "one").await.lease;
        let ids = ["a", "b", "c"];
        f.store
            .step(&f.scope, lease, &step(0, &ids, CallState::Client))
            .await
            .unwrap();
        let come: Vec<_> = (0..3).filter(|position| *position != missing).collect();
        let results: Vec<_> = come
            .iter()
            .map(|position| result(0, *position, ids[*position as usize]))
            .collect();
        f.store.results(&f.scope, lease, &results).await.unwrap();
        let publish = Publish::new(1, Vec::new());
        f.store.publish(&f.scope, lease, &publish).await.unwrap();
        let opened = f.open(&id).await;
        let mut words: Vec<String> = Vec::new();
        for position in come {
            words.push(format!("result {}", ids[position as usize]));
        }
        let expected = ["one", "call a+call b+call c", &words.join("+")];
        assert_eq!(texts(&opened.entries), expected, "without {missing}");
        let tip = opened.tip.unwrap();
        assert!(tip.open);
        // A place at the end is not part of the node; one before it is.
        assert_eq!(tip.last, if missing == 2 { 4 } else { 5 });
        // The answer comes with the next run.
        let mut begin = f.begin_at(
            Anchor::Head {
                thread: id.clone(),
                expected: opened.thread.version,
            },
            "unused",
        );
        let late = super::fixture::answered(ids[missing as usize]);
        begin.input = NewItem::of(&[late]);
        let lease = f.started(&begin).await.lease;
        f.publish(lease, 0, "end").await;
        let opened = f.open(&id).await;
        assert_eq!(opened.entries.len(), 5);
        assert!(!opened.tip.unwrap().open);
        // Page by page it is the same.
        let mut paged = Vec::new();
        let mut after = 0;
        loop {
            let at = At::Thread(id.clone());
            let page = f
                .store
                .read(&f.scope, &at, Span::After(after), 1)
                .await
                .unwrap();
            let Some(last) = page.entries.last() else {
                break;
            };
            after = last.last;
            paged.extend(page.entries);
        }
        assert_eq!(paged, opened.entries);
    }
}

pub(super) async fn a_gap_that_was_published_stays(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin_in(&id, "one", Mode::PerCall).await.lease;
    let mut first = step(0, &["a", "b"], CallState::Planned);
    first.node = Some(StepNode::default());
    f.store.step(&f.scope, lease, &first).await.unwrap();
    f.store
        .results(&f.scope, lease, &[result(0, 1, "b")])
        .await
        .unwrap();
    let mut second = step(1, &["c"], CallState::Planned);
    second.node = Some(StepNode::default());
    f.store.step(&f.scope, lease, &second).await.unwrap();
    let before = f.texts(&id).await;
    // The place of the first result is in a node now; nodes do not change.
    let error = f.store.results(&f.scope, lease, &[result(0, 0, "a")]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    assert_eq!(f.texts(&id).await, before);
}

pub(super) async fn a_call_has_one_result(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    f.store
        .step(&f.scope, lease, &step(0, &["a", "b"], CallState::Planned))
        .await
        .unwrap();
    f.store.intend(&f.scope, lease, 0, &[0]).await.unwrap();
    // An intent that is there already may have had its effect: only a repetition is accepted,
    // and it says the same again, so no caller learns from it that it may dispatch.
    f.store
        .results(&f.scope, lease, &[result(0, 0, "a")])
        .await
        .unwrap();
    let other = crate::CallResult::new(0, 0, &super::fixture::answered("x"));
    let error = f.store.results(&f.scope, lease, &[other]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let error = f.store.intend(&f.scope, lease, 0, &[0]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let error = f.store.intend(&f.scope, lease, 0, &[1, 7]).await;
    assert!(error.is_err());
    let twice = [result(0, 1, "b"), result(0, 1, "b")];
    let error = f.store.results(&f.scope, lease, &twice).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let journal = f.store.journal(&f.scope, lease.run).await.unwrap();
    let states: Vec<_> = journal.calls.iter().map(|call| call.state).collect();
    assert_eq!(states, [CallState::Done, CallState::Planned]);
    let keys: Vec<_> = journal.calls.iter().map(|call| call.key.clone()).collect();
    assert_ne!(keys[0], keys[1]);
    assert!(keys[0].starts_with("idem_"));
}

pub(super) async fn unpublished_runs_are_published_or_discarded(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut runs = Vec::new();
    for text in ["one", "two"] {
        let lease = f.begin(&id, text).await.lease;
        let said = Step {
            items: said_by_model("said"),
            ..Step::default()
        };
        f.store.step(&f.scope, lease, &said).await.unwrap();
        let end = End {
            how: Stopped::Unpublished,
            note: None,
            events: None,
        };
        f.store.end(&f.scope, lease, &end).await.unwrap();
        runs.push(lease);
    }
    let opened = f.open(&id).await;
    assert_eq!((opened.tip, opened.unsettled), (None, None));
    let claimed = f
        .store
        .claim(&f.scope, runs[0].run, runs[0].epoch, Claim::Settle)
        .await
        .unwrap();
    // While one is taken up again the other has to wait.
    let error = f
        .store
        .claim(&f.scope, runs[1].run, runs[1].epoch, Claim::Settle)
        .await;
    assert!(matches!(error, Err(Error::Busy { .. })), "{error:?}");
    let publish = Publish::new(1, Vec::new());
    f.store
        .publish(&f.scope, claimed.lease, &publish)
        .await
        .unwrap();
    assert_eq!(f.texts(&id).await, ["one", "said"]);
    let claimed = f
        .store
        .claim(&f.scope, runs[1].run, runs[1].epoch, Claim::Settle)
        .await
        .unwrap();
    let end = End {
        how: Stopped::Discarded,
        note: None,
        events: None,
    };
    f.store.end(&f.scope, claimed.lease, &end).await.unwrap();
    let run = f.store.run(&f.scope, runs[1].run).await.unwrap();
    assert_eq!(run.state, RunState::Discarded);
    let error = f
        .store
        .claim(&f.scope, run.id, run.epoch, Claim::Settle)
        .await;
    assert!(matches!(error, Err(Error::WrongState { .. })), "{error:?}");
    assert_eq!(f.texts(&id).await, ["one", "said"]);
}
