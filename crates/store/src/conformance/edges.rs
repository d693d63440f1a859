//! Corners of publications, forks, hidden runs, imports and limits.

use std::time::Duration;

use throughline_model::Message;

use super::fixture::{Fixture, result, said_by_user, step, texts};
use crate::{
    Anchor, Answer, ApprovalFilter, ApprovalState, At, Begin, Begun, CallRef, CallResult,
    CallState, Claim, Decision, Ending, Error, ErrorKind, Fork, Idempotency, Import, ImportItem,
    ImportNode, ItemContent, ItemKind, ItemRef, Lease, Leasing, Mode, NewApproval, NewItem,
    NewThread, NodeId, NodeRef, Publish, Published, Result, RunId, RunKind, RunState, Span,
    Started, Step, StepNode, Stopped, ThreadId, Through, Version, arguments_digest,
};

fn started(begun: Begun) -> Started {
    match begun {
        Begun::Started(started) => started,
        Begun::Repeated(run) => panic!("a repetition of {}", run.id),
    }
}

async fn begin(f: &Fixture<'_>, at: Anchor, mode: Mode, input: Vec<NewItem>) -> Started {
    let begin = Begin {
        mode,
        ..Begin::new(f.store.ids().run(), at, input)
    };
    f.started(&begin).await
}

async fn open_thread(f: &Fixture<'_>, name: &str, mode: Mode) -> (ThreadId, Lease) {
    let id = ThreadId::new(name).unwrap();
    let at = Anchor::New {
        thread: NewThread::new(id.clone()),
        leasing: Leasing::Thread,
    };
    let started = begin(f, at, mode, said_by_user("ask")).await;
    (id, started.lease)
}

/// A step that makes calls, as a node or not.
async fn call_in(
    f: &Fixture<'_>,
    lease: Lease,
    no: u32,
    ids: &[&str],
    node: bool,
) -> Option<Published> {
    let mut step = step(no, ids, CallState::Intent);
    step.node = node.then(StepNode::default);
    f.store.step(&f.scope, lease, &step).await.unwrap()
}

async fn results(f: &Fixture<'_>, lease: Lease, results: &[CallResult]) -> Result<()> {
    f.store.results(&f.scope, lease, results).await
}

async fn publish(f: &Fixture<'_>, lease: Lease, publish: &Publish) -> Published {
    f.store.publish(&f.scope, lease, publish).await.unwrap()
}

async fn fork(f: &Fixture<'_>, from: At, name: &str) -> ThreadId {
    let id = ThreadId::new(name).unwrap();
    let fork = Fork {
        from,
        thread: NewThread::new(id.clone()),
    };
    let made = f.store.fork(&f.scope, &fork).await.unwrap();
    // Sent again it is the same fork.
    assert_eq!(f.store.fork(&f.scope, &fork).await.unwrap(), made);
    id
}

async fn texts_at(f: &Fixture<'_>, at: At) -> Vec<String> {
    let page = f.store.read(&f.scope, &at, Span::Tail, 100).await;
    texts(&page.unwrap().entries)
}

async fn head(f: &Fixture<'_>, thread: &ThreadId) -> Anchor {
    Anchor::Head {
        thread: thread.clone(),
        expected: f.open(thread).await.thread.version,
    }
}

async fn sweep(f: &Fixture<'_>) {
    while f.store.purge(1).await.unwrap().more {}
}

async fn items_left(f: &Fixture<'_>) -> u64 {
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(checked.damage, []);
    checked.items
}

pub(super) async fn a_begin_with_a_new_thread_and_a_key_can_be_sent_again(f: &mut Fixture<'_>) {
    let id = ThreadId::new("t").unwrap();
    let begin = Begin {
        key: Some(Idempotency {
            key: "k".into(),
            request: [7; 16],
        }),
        ..Begin::new(
            f.store.ids().run(),
            Anchor::New {
                thread: NewThread::new(id.clone()),
                leasing: Leasing::Free,
            },
            said_by_user("ask"),
        )
    };
    let first = started(f.store.begin(&f.scope, &begin).await.unwrap());
    let second = started(f.store.begin(&f.scope, &begin).await.unwrap());
    assert_eq!(first, second);
    // Another process has the key answered, not the run given.
    let other = f.other().await;
    let answer = other.begin(&f.scope, &begin).await.unwrap();
    assert!(matches!(answer, Begun::Repeated(run) if run.id == begin.run));
    publish(f, first.lease, &Publish::new(0, Vec::new())).await;
    // Hiding the run ends the key.
    f.store.hide(&f.scope, begin.run).await.unwrap();
    f.store.hide(&f.scope, begin.run).await.unwrap();
    let again = Begin {
        run: f.store.ids().run(),
        at: head(f, &id).await,
        ..begin
    };
    started(f.store.begin(&f.scope, &again).await.unwrap());
}

pub(super) async fn a_place_that_was_published_empty_stays_empty(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerCall).await;
    call_in(f, lease, 0, &["a", "b"], true).await;
    results(f, lease, &[result(0, 1, "b")]).await.unwrap();
    // The next call goes out without the first result: a gap, and the node stays open.
    let made = call_in(f, lease, 1, &["c"], true).await.unwrap();
    assert_eq!(made.last, 5);
    let error = results(f, lease, &[result(0, 0, "a")]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let at = At::Thread(thread.clone());
    let opened = f.store.open(&f.scope, &at, 10).await.unwrap();
    assert_eq!(
        texts(&opened.entries),
        ["ask", "call a+call b", "result b", "call c"]
    );
    assert!(opened.tip.unwrap().open);
    assert_eq!(opened.entries[2].first, 4);
    let node = NodeId {
        run: lease.run,
        step: 1,
    };
    let record = f.store.node(&f.scope, node, 0, 2).await.unwrap();
    let kinds: Vec<_> = record.items.iter().map(|item| item.kind).collect();
    assert_eq!(
        (kinds, record.more),
        (vec![ItemKind::Gap, ItemKind::Part], true)
    );
    let rest = f.store.node(&f.scope, node, 5, 2).await.unwrap();
    assert_eq!((rest.items.len(), rest.more), (1, false));
}

pub(super) async fn a_publication_goes_as_far_as_it_is_told(f: &mut Fixture<'_>) {
    let through = |through| Publish {
        through,
        ..Publish::new(1, Vec::new())
    };
    let whole = ["ask", "call a+call b", "result a+result b"];
    for (n, (through, seen, unsent)) in [
        (through(Through::Everything), 3, 0),
        (through(Through::LastStep), 2, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let (thread, lease) = open_thread(f, &format!("t{n}"), Mode::PerRun).await;
        call_in(f, lease, 0, &["a", "b"], false).await;
        let both = [result(0, 0, "a"), result(0, 1, "b")];
        results(f, lease, &both).await.unwrap();
        let published = publish(f, lease, &through).await;
        assert_eq!(publish(f, lease, &through).await, published);
        let at = At::Thread(thread);
        let opened = f.store.open(&f.scope, &at, 10).await.unwrap();
        assert_eq!(texts(&opened.entries), whole[..seen]);
        assert_eq!(opened.unsent.len(), unsent);
        assert_eq!(opened.tip.unwrap().unsent, unsent > 0);
        assert!(!opened.tip.unwrap().open);
    }
}

pub(super) async fn a_publication_to_the_last_step_of_a_run_without_steps_makes_no_node(
    f: &mut Fixture<'_>,
) {
    let (thread, lease) = open_thread(f, "no-steps", Mode::PerRun).await;
    let through = Publish {
        through: Through::LastStep,
        ending: Ending::Cancelled,
        ..Publish::new(0, Vec::new())
    };
    let published = publish(f, lease, &through).await;
    assert_eq!(publish(f, lease, &through).await, published);
    assert_eq!((published.node, published.moved), (None, false));
    let opened = f.open(&thread).await;
    assert!(opened.entries.is_empty() && opened.unsent.is_empty());
    assert!(opened.unsettled.is_none());
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Cancelled);
}

pub(super) async fn a_parked_run_goes_on_elsewhere_after_its_approval(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerRun).await;
    let approval = f.store.ids().approval();
    let step = Step {
        approvals: vec![NewApproval {
            id: approval,
            step: 0,
            position: 1,
            shown: arguments_digest("get_tide", "{}"),
            expires: None,
            detail: None,
        }],
        ..step(0, &["a", "b"], CallState::Approval)
    };
    let without_call = Step {
        approvals: vec![NewApproval {
            position: 2,
            ..step.approvals[0].clone()
        }],
        ..step.clone()
    };
    let error = f.store.step(&f.scope, lease, &without_call).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    f.store.step(&f.scope, lease, &step).await.unwrap();
    f.store.park(&f.scope, lease, None).await.unwrap();
    let answer = Answer {
        approval,
        shown: arguments_digest("get_tide", "{}"),
        decision: Decision::Approved,
        by: "ada".into(),
        reason: None,
    };
    let first = f.store.answer(&f.scope, &answer).await.unwrap();
    let second = f.store.answer(&f.scope, &answer).await.unwrap();
    assert_eq!(first, second);
    let other = f.other().await;
    let claimed = other
        .claim(&f.scope, lease.run, 1, Claim::Parked)
        .await
        .unwrap();
    // The other call waits for an approval that was not asked for.
    let error = other.intend(&f.scope, claimed.lease, 0, &[0, 1]).await;
    assert!(
        matches!(error, Err(Error::WrongCall { position: 0, .. })),
        "{error:?}"
    );
    other
        .intend(&f.scope, claimed.lease, 0, &[1])
        .await
        .unwrap();
    let filter = ApprovalFilter {
        thread: Some(thread.clone()),
        waiting: false,
    };
    let list = other.approvals(&f.scope, &filter, None, 10).await.unwrap();
    assert_eq!(list.found[0].state, ApprovalState::Used);
    // A process that took a run over does not take an older intent for its own.
    f.clock.advance(Duration::from_secs(11));
    let third = f
        .store
        .claim(&f.scope, lease.run, 2, Claim::Settle)
        .await
        .unwrap();
    let error = f.store.intend(&f.scope, third.lease, 0, &[1]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let end = Publish {
        results: vec![result(0, 0, "a"), result(0, 1, "b")],
        ..Publish::new(1, Vec::new())
    };
    assert!(publish(f, third.lease, &end).await.moved);
}

pub(super) async fn an_unpublished_run_is_too_late_for_a_head_that_moved(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerRun).await;
    let end = crate::End {
        how: Stopped::Unpublished,
        note: None,
        events: None,
    };
    f.store.end(&f.scope, lease, &end).await.unwrap();
    let head = head(f, &thread).await;
    let next = begin(f, head, Mode::PerRun, said_by_user("other"))
        .await
        .lease;
    publish(f, next, &Publish::new(0, Vec::new())).await;
    let claimed = f
        .store
        .claim(&f.scope, lease.run, 1, Claim::Settle)
        .await
        .unwrap();
    let publish = Publish::new(0, Vec::new());
    let error = f.store.publish(&f.scope, claimed.lease, &publish).await;
    assert!(matches!(error, Err(Error::HeadMoved { .. })), "{error:?}");
    let run = f.store.run(&f.scope, lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Running);
}

pub(super) async fn an_empty_publication_answers_with_the_node_before(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerCall).await;
    let made = call_in(f, lease, 0, &["a"], true).await.unwrap();
    let through = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    let published = publish(f, lease, &through).await;
    assert_eq!(published, made);
    let head = head(f, &thread).await;
    let next = begin(f, head, Mode::PerRun, Vec::new()).await.lease;
    let published = publish(f, next, &Publish::new(0, Vec::new())).await;
    assert_eq!((published.node, published.last), (made.node, 2));
    assert_eq!((published.moved, published.version), (true, Version(1)));
}

pub(super) async fn what_a_fork_says_again_outlives_its_origin(f: &mut Fixture<'_>) {
    let (origin, lease) = open_thread(f, "t", Mode::PerCall).await;
    call_in(f, lease, 0, &["a", "b"], true).await;
    let both = [result(0, 0, "a"), result(0, 1, "b")];
    results(f, lease, &both).await.unwrap();
    let through = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    publish(f, lease, &through).await;
    let fork = fork(f, At::Thread(origin.clone()), "fork").await;
    let opened = f
        .store
        .open(&f.scope, &At::Thread(fork.clone()), 0)
        .await
        .unwrap();
    assert_eq!(texts(&opened.unsent), ["result a+result b"]);
    // The results are in no node of the origin, only in its journal.
    let run = lease.run;
    let again = [3, 4].map(|no| NewItem::Repeat(ItemRef { run, no }));
    let head = head(f, &fork).await;
    let next = begin(f, head, Mode::PerRun, again.to_vec()).await.lease;
    publish(f, next, &Publish::new(0, said_by_user("next"))).await;
    f.store.delete(&f.scope, &origin).await.unwrap();
    sweep(f).await;
    let expected = ["ask", "call a+call b", "result a+result b", "next"];
    assert_eq!(texts_at(f, At::Thread(fork.clone())).await, expected);
    assert_eq!(items_left(f).await, 2 + 2 + 3);
    // What is shared can still be exported and redacted; the run has no name any more.
    let node = NodeId { run, step: 0 };
    assert!(f.store.node(&f.scope, node, 0, 10).await.is_ok());
    let error = f.store.run(&f.scope, run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    f.store
        .redact(&f.scope, ItemRef { run, no: 1 }, "ada")
        .await
        .unwrap();
    let shown = texts_at(f, At::Thread(fork.clone())).await;
    assert_eq!(shown[0], "[redacted]");
    f.store.delete(&f.scope, &fork).await.unwrap();
    // Nothing reaches it from now on, whether it is swept or not.
    let error = f.store.node(&f.scope, node, 0, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = f
        .store
        .redact(&f.scope, ItemRef { run, no: 2 }, "ada")
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    sweep(f).await;
    assert_eq!(items_left(f).await, 0);
}

pub(super) async fn unsent_results_stay_with_a_fork_that_has_not_sent_them(f: &mut Fixture<'_>) {
    let (origin, lease) = open_thread(f, "t", Mode::PerCall).await;
    call_in(f, lease, 0, &["a", "b"], true).await;
    results(f, lease, &[result(0, 1, "b")]).await.unwrap();
    let through = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    publish(f, lease, &through).await;
    let fork = fork(f, At::Thread(origin.clone()), "fork").await;
    f.store.delete(&f.scope, &origin).await.unwrap();
    sweep(f).await;
    let at = At::Thread(fork.clone());
    let opened = f.store.open(&f.scope, &at, 10).await.unwrap();
    assert_eq!(texts(&opened.unsent), ["result b"]);
    let again = NewItem::Repeat(opened.unsent[0].at);
    let head = head(f, &fork).await;
    let next = begin(f, head, Mode::PerRun, vec![again]).await.lease;
    publish(f, next, &Publish::new(0, said_by_user("next"))).await;
    let expected = ["ask", "call a+call b", "result b", "next"];
    assert_eq!(texts_at(f, at).await, expected);
    f.store.delete(&f.scope, &fork).await.unwrap();
    sweep(f).await;
    assert_eq!(items_left(f).await, 0);
}

pub(super) async fn a_cursor_of_a_thread_that_was_made_anew_has_moved(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerRun).await;
    publish(f, lease, &Publish::new(0, Vec::new())).await;
    let old = f
        .store
        .increment(&f.scope, &thread, None, 10)
        .await
        .unwrap()
        .next;
    f.store.delete(&f.scope, &thread).await.unwrap();
    let (_, lease) = open_thread(f, "t", Mode::PerRun).await;
    for _ in 0..2 {
        let error = f.store.increment(&f.scope, &thread, Some(&old), 10).await;
        assert!(
            matches!(error, Err(Error::CursorMoved { common: 0, .. })),
            "{error:?}"
        );
        sweep(f).await;
    }
    publish(f, lease, &Publish::new(0, Vec::new())).await;
    let start = f.store.cursor(&f.scope, &thread, 0).await.unwrap();
    let page = f
        .store
        .increment(&f.scope, &thread, Some(&start), 10)
        .await
        .unwrap();
    assert_eq!(texts(&page.entries), ["ask"]);
}

pub(super) async fn a_hidden_run_can_still_be_ended_by_its_owner(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerRun).await;
    f.store.hide(&f.scope, lease.run).await.unwrap();
    let error = f.store.journal(&f.scope, lease.run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    f.clock.advance(Duration::from_secs(11));
    let orphans = f.store.orphans(10).await.unwrap();
    assert_eq!(orphans.len(), 1);
    let other = f.other().await;
    let claimed = other
        .claim(&f.scope, lease.run, 1, Claim::Orphan)
        .await
        .unwrap();
    publish(f, claimed.lease, &Publish::new(0, Vec::new())).await;
    assert_eq!(texts_at(f, At::Thread(thread)).await, ["ask"]);
}

pub(super) async fn calls_are_taken_with_their_run_or_not_at_all(f: &mut Fixture<'_>) {
    let (_, lease) = open_thread(f, "t", Mode::PerRun).await;
    let step = step(0, &["a", "b"], CallState::Client);
    f.store.step(&f.scope, lease, &step).await.unwrap();
    results(f, lease, &[result(0, 0, "a")]).await.unwrap();
    publish(f, lease, &Publish::new(1, Vec::new())).await;
    let at = |position| CallRef {
        run: lease.run,
        step: 0,
        position,
    };
    // The first has its result: neither is taken.
    let mut begin = Begin::new(
        f.store.ids().run(),
        Anchor::Node(NodeRef::Run(lease.run)),
        said_by_user("next"),
    );
    begin.takes = vec![at(1), at(0)];
    let error = f.store.begin(&f.scope, &begin).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    begin.takes = vec![at(1)];
    let first = f.store.begin(&f.scope, &begin).await.unwrap();
    assert_eq!(f.store.begin(&f.scope, &begin).await.unwrap(), first);
}

fn import_node(run: u8, step: u32, parent: Option<NodeId>, items: Vec<ImportItem>) -> ImportNode {
    ImportNode {
        node: NodeId {
            run: RunId::from_bytes([run; 16]),
            step,
        },
        parent,
        items,
        open: false,
        state: None,
        created: 1_000,
        kind: RunKind::Turn,
        mode: Mode::PerCall,
        ended: RunState::Committed,
        begun: 900,
        note: None,
        hidden: false,
    }
}

pub(super) async fn imports_can_be_sent_again(f: &mut Fixture<'_>) {
    let thread = ThreadId::new("t").unwrap();
    let import = async |import: &Import| {
        f.store.import(&f.scope, import).await?;
        f.store.import(&f.scope, import).await
    };
    let open = Import::Open {
        thread: NewThread::new(thread.clone()),
        created: 500,
    };
    import(&open).await.unwrap();
    let said = |text: &str| ImportItem::Content(ItemContent::of(&Message::user(text)).remove(0));
    let add = |node: &ImportNode| Import::Node {
        thread: thread.clone(),
        node: Box::new(node.clone()),
    };
    let first = import_node(1, 0, None, vec![said("one"), ImportItem::Gap]);
    let second = import_node(1, 2, Some(first.node), vec![said("two")]);
    let head = second.node;
    // Also one that is not the last of its run.
    for node in [&first, &second, &first] {
        import(&add(node)).await.unwrap();
    }
    // With other items, out of order, on a foreign branch, unfinished: refused.
    let bad = [
        import_node(1, 0, None, vec![said("two"), ImportItem::Gap]),
        import_node(1, 2, Some(first.node), vec![said("two"), said("x")]),
        import_node(1, 1, Some(head), vec![said("x")]),
        import_node(1, 3, Some(first.node), vec![said("x")]),
        import_node(2, 0, Some(head), Vec::new()),
        ImportNode {
            ended: RunState::Running,
            ..import_node(2, 0, Some(head), vec![said("x")])
        },
    ];
    for node in bad {
        assert!(f.store.import(&f.scope, &add(&node)).await.is_err());
    }
    // An opening that is sent again after a node is another import of the same name.
    let error = f.store.import(&f.scope, &open).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    // Its name is taken, though it is not visible.
    let new = NewThread::new(thread.clone());
    let error = f.store.open_or_create(&f.scope, &new, 0).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    let finish = Import::Finish {
        thread: thread.clone(),
        head: Some(head),
        touched: 2_000,
    };
    import(&finish).await.unwrap();
    assert_eq!(
        texts_at(f, At::Thread(thread.clone())).await,
        ["one", "two"]
    );
    assert_eq!(items_left(f).await, 3);
    let abort = Import::Abort { thread };
    let error = f.store.import(&f.scope, &abort).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    // One that is not there was aborted before.
    let thread = ThreadId::new("unknown").unwrap();
    import(&Import::Abort { thread }).await.unwrap();
}

pub(super) async fn limits_of_any_size_are_fine(f: &mut Fixture<'_>) {
    let (thread, lease) = open_thread(f, "t", Mode::PerRun).await;
    publish(f, lease, &Publish::new(0, said_by_user("two"))).await;
    let at = At::Thread(thread.clone());
    for limit in [0, 1, usize::MAX] {
        let seen = limit.min(2);
        for span in [Span::Tail, Span::After(0), Span::Before(u64::MAX)] {
            let page = f.store.read(&f.scope, &at, span, limit).await.unwrap();
            assert_eq!(
                (page.entries.len(), page.more),
                (seen, seen < 2),
                "{span:?}"
            );
        }
        for span in [Span::After(u64::MAX), Span::Before(0)] {
            let page = f.store.read(&f.scope, &at, span, limit).await.unwrap();
            assert_eq!((page.entries.len(), page.more), (0, false), "{span:?}");
        }
        let page = f
            .store
            .increment(&f.scope, &thread, None, limit)
            .await
            .unwrap();
        assert_eq!(page.entries.len(), seen);
        let tree = f.store.tree(&f.scope, &thread, None, limit).await.unwrap();
        assert_eq!(tree.len(), limit.min(1));
    }
}
