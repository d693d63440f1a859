use throughline_model::json::RawJson;

use super::fixture::{Fixture, said_by_model, texts};
use crate::{
    Anchor, At, Begin, Begun, Error, ErrorKind, Expects, Fork, Leasing, Mode, MovedBy, NewThread,
    NodeId, NodeRef, Publish, ServiceId, State, Step, StepNode, Store, ThreadId, ThreadPatch,
    Version,
};

fn fork_of(from: At, id: &str) -> Fork {
    Fork {
        from,
        thread: NewThread::new(ThreadId::new(id).unwrap()),
    }
}

pub(super) async fn a_free_run_moves_the_head_or_branches(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    // Two runs from the same node, neither of which conflicts.
    let left = f.begin_at(Anchor::Node(NodeRef::Run(first)), "left");
    let right = f.begin_at(Anchor::Node(NodeRef::Run(first)), "right");
    let left = f.started(&left).await.lease;
    let right = f.started(&right).await.lease;
    assert_eq!(f.open(&id).await.unsettled, None);
    let winner = f.publish(right, 0, "r").await;
    assert_eq!((winner.moved, winner.version), (true, Version(2)));
    let loser = f.publish(left, 0, "l").await;
    assert_eq!((loser.moved, loser.version), (false, Version(2)));
    assert_eq!(f.texts(&id).await, ["one", "1", "right", "r"]);
    assert_eq!(
        f.texts_at(NodeRef::Run(left.run)).await,
        ["one", "1", "left", "l"]
    );
    assert_eq!((winner.last, loser.last), (4, 4));
    // A leased run that is going on keeps its base.
    let held = f.begin(&id, "held").await;
    let (_, free) = f.turn_at(NodeRef::Run(right.run), "free", "f").await;
    assert!(!free.moved);
    let published = f.publish(held.lease, 0, "h").await;
    assert!(published.moved);
    assert_eq!(f.texts(&id).await[4..], ["held", "h"]);
}

pub(super) async fn leased_threads_are_moved_by_leased_runs(f: &mut Fixture<'_>) {
    let new = NewThread {
        moved_by: MovedBy::LeasedRuns,
        ..NewThread::new(ThreadId::new("t").unwrap())
    };
    f.store.open_or_create(&f.scope, &new, 0).await.unwrap();
    let first = f.turn(&new.id, "one", "1").await;
    let (branch, published) = f.turn_at(NodeRef::Run(first), "free", "f").await;
    assert!(!published.moved);
    assert_eq!(f.texts(&new.id).await, ["one", "1"]);
    assert_eq!(f.texts_at(NodeRef::Run(branch)).await.len(), 4);
}

pub(super) async fn a_remembered_thread_must_be_as_it_was(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    let settings = |text: &str| Some(RawJson::new(text).unwrap());
    // By the process that made the node and by one that has never seen it.
    let stores = [f.store.clone(), f.other().await];
    let expecting = |settings: Option<RawJson>| Begin {
        expects: Some(Expects { settings }),
        ..f.begin_at(Anchor::Node(NodeRef::Run(first)), "go on")
    };
    let refused = async |store: &Store, expected: Option<RawJson>| {
        let begin = expecting(expected);
        let error = store.begin(&f.scope, &begin).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let Error::Changed { thread } = error else {
            panic!("{error}");
        };
        assert_eq!(thread, id);
        // Nothing came of it.
        let run = store.run(&f.scope, begin.run).await;
        assert_eq!(run.unwrap_err().kind(), ErrorKind::NotFound);
    };
    let begins = async |store: &Store, expected: Option<RawJson>| {
        let begun = store.begin(&f.scope, &expecting(expected)).await;
        assert!(matches!(begun, Ok(Begun::Started(_))), "{begun:?}");
    };
    for store in &stores {
        begins(store, None).await;
        refused(store, settings(r#"{"a":1}"#)).await;
    }
    let patch = ThreadPatch {
        settings: Some(settings(r#"{"a":1}"#)),
        ..ThreadPatch::default()
    };
    stores[1].patch(&f.scope, &id, &patch).await.unwrap();
    for store in &stores {
        refused(store, None).await;
        refused(store, settings(r#"{"a":2}"#)).await;
        begins(store, settings(r#"{"a":1}"#)).await;
    }
    // What waits in the queue is for the next run, so that one has to know.
    let queued = RawJson::new("{}").unwrap();
    let no = stores[1].enqueue(&f.scope, &id, &queued).await.unwrap();
    for store in &stores {
        refused(store, settings(r#"{"a":1}"#)).await;
    }
    let mut takes = f.begin_at(Anchor::Node(NodeRef::Run(first)), "takes it");
    takes.dequeue = vec![no];
    f.started(&takes).await;
    for store in &stores {
        begins(store, settings(r#"{"a":1}"#)).await;
    }
    // The head is looked at in the same way.
    let opened = f.open(&id).await;
    let at = Anchor::Head {
        thread: id.clone(),
        expected: opened.thread.version,
    };
    let head = |settings: Option<RawJson>| Begin {
        expects: Some(Expects { settings }),
        ..f.begin_at(at.clone(), "at the head")
    };
    for store in &stores {
        let error = store.begin(&f.scope, &head(None)).await.unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
    }
    f.started(&head(settings(r#"{"a":1}"#))).await;
}

pub(super) async fn any_node_can_be_continued(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let mut runs = Vec::new();
    for n in 0..5 {
        runs.push(
            f.turn(&id, &format!("ask {n}"), &format!("answer {n}"))
                .await,
        );
    }
    let whole = f.texts(&id).await;
    for (n, run) in runs.iter().enumerate() {
        let (branch, _) = f.turn_at(NodeRef::Run(*run), "other", "way").await;
        let mut expected = whole[..2 * (n + 1)].to_vec();
        expected.extend(["other".to_owned(), "way".to_owned()]);
        assert_eq!(f.texts_at(NodeRef::Run(branch)).await, expected);
        // And a branch of the branch.
        let (twig, _) = f.turn_at(NodeRef::Run(branch), "further", "on").await;
        assert_eq!(
            f.texts_at(NodeRef::Run(twig)).await.len(),
            expected.len() + 2
        );
        assert_eq!(f.texts_at(NodeRef::Run(branch)).await, expected);
    }
    for (n, run) in runs.iter().enumerate() {
        assert_eq!(f.texts_at(NodeRef::Run(*run)).await, whole[..2 * (n + 1)]);
    }
}

pub(super) async fn a_fork_shares_its_past(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    f.turn(&id, "two", "2").await;
    let from = At::Node(NodeRef::Run(first));
    let fork = fork_of(from.clone(), "fork");
    let made = f.store.fork(&f.scope, &fork).await.unwrap();
    assert_eq!((made.version, made.head.unwrap().last), (Version(0), 2));
    assert_eq!(f.texts(&made.id).await, ["one", "1"]);
    f.turn(&made.id, "other", "way").await;
    f.turn(&id, "three", "3").await;
    assert_eq!(f.texts(&made.id).await, ["one", "1", "other", "way"]);
    assert_eq!(f.texts(&id).await, ["one", "1", "two", "2", "three", "3"]);
    // A fork of the head, also under the head's next move.
    let fork = fork_of(At::Thread(id.clone()), "second");
    let second = f.store.fork(&f.scope, &fork).await.unwrap();
    f.turn(&second.id, "four", "4").await;
    f.turn(&id, "five", "5").await;
    assert_eq!(f.texts(&second.id).await[6..], ["four", "4"]);
    assert_eq!(f.texts(&id).await[6..], ["five", "5"]);
    let error = f.store.fork(&f.scope, &fork_of(from, "t")).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    let nothing = fork_of(At::Thread(ThreadId::new("unknown").unwrap()), "third");
    let error = f.store.fork(&f.scope, &nothing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // A fork of a thread that has said nothing yet is an empty thread.
    let empty = f.thread("empty").await;
    let fork = f
        .store
        .fork(&f.scope, &fork_of(At::Thread(empty), "fourth"))
        .await
        .unwrap();
    assert_eq!(fork.head, None);
    f.turn(&fork.id, "a", "b").await;
    assert_eq!(f.texts(&fork.id).await, ["a", "b"]);
}

pub(super) async fn forks_of_forks(f: &mut Fixture<'_>) {
    let mut thread = f.thread("f0").await;
    let mut expected = Vec::new();
    for n in 0..40 {
        f.turn(&thread, &format!("ask {n}"), &format!("answer {n}"))
            .await;
        expected.push(format!("ask {n}"));
        expected.push(format!("answer {n}"));
        let fork = fork_of(At::Thread(thread), &format!("f{}", n + 1));
        thread = f.store.fork(&f.scope, &fork).await.unwrap().id;
    }
    assert_eq!(f.texts(&thread).await, expected);
    let at = At::Thread(thread);
    let tail = f.store.open(&f.scope, &at, 7).await.unwrap();
    assert_eq!(texts(&tail.entries), expected[73..]);
    assert_eq!(tail.entries[0].first, 74);
}

pub(super) async fn the_tree_lists_parents_first(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let a = f.turn(&id, "a", "1").await;
    let b = f.turn(&id, "b", "2").await;
    let (c, _) = f.turn_at(NodeRef::Run(a), "c", "3").await;
    let (d, _) = f.turn_at(NodeRef::Run(c), "d", "4").await;
    let begin = f.begin_at(
        Anchor::New {
            thread: NewThread::new(ThreadId::new("other").unwrap()),
            leasing: Leasing::Free,
        },
        "x",
    );
    f.started(&begin).await;
    for limit in [1, 2, 3, 10] {
        let mut nodes = Vec::new();
        let mut after = None;
        loop {
            let page = f.store.tree(&f.scope, &id, after, limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.node);
            nodes.extend(page);
        }
        assert_eq!(nodes.len(), 4, "pages of {limit}");
        let parent = |run| {
            let node = nodes.iter().find(|node| node.node.run == run).unwrap();
            (node.parent.map(|node| node.run), node.first, node.last)
        };
        assert_eq!(parent(a), (None, 1, 2));
        assert_eq!(parent(b), (Some(a), 3, 4));
        assert_eq!(parent(c), (Some(a), 3, 4));
        assert_eq!(parent(d), (Some(c), 5, 6));
        for (place, node) in nodes.iter().enumerate() {
            assert_eq!(node.messages, 2);
            if let Some(parent) = node.parent {
                assert!(nodes[..place].iter().any(|earlier| earlier.node == parent));
            }
        }
    }
    // A fork lists what it shares on the way to its head, and its own.
    let fork = fork_of(At::Node(NodeRef::Run(c)), "fork");
    let fork = f.store.fork(&f.scope, &fork).await.unwrap().id;
    let e = f.turn(&fork, "e", "5").await;
    let nodes = f.store.tree(&f.scope, &fork, None, 10).await.unwrap();
    let runs: Vec<_> = nodes.iter().map(|node| node.node.run).collect();
    assert_eq!(runs, [a, c, e]);
}

pub(super) async fn an_unpublished_run_cannot_be_continued(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "one").await.lease;
    let begin = f.begin_at(Anchor::Node(NodeRef::Run(lease.run)), "too early");
    let error = f.store.begin(&f.scope, &begin).await;
    assert!(matches!(error, Err(Error::NotFinal { .. })), "{error:?}");
    let unknown = NodeRef::Node(NodeId {
        run: lease.run,
        step: 7,
    });
    let error = f.store.open(&f.scope, &At::Node(unknown), 1).await;
    assert!(error.is_err());
    f.publish(lease, 0, "1").await;
    let error = f
        .store
        .open(&f.scope, &At::Node(unknown), 1)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

pub(super) async fn what_was_opened_is_looked_at_again(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    let other = f.other().await;
    let node = |run| At::Node(NodeRef::Run(run));
    let begin = |run| f.begin_at(Anchor::Node(NodeRef::Run(run)), "on");
    let opened = f.store.open(&f.scope, &node(first), 5).await.unwrap();
    assert_eq!(texts(&opened.entries), ["one", "1"]);
    // Two that begin there at the same time, here and in another process.
    let seen = other.open(&f.scope, &node(first), 0).await.unwrap();
    assert_eq!(seen.tip, opened.tip);
    let mine = f.started(&begin(first)).await;
    let theirs = begin(first);
    let Begun::Started(theirs) = other.begin(&f.scope, &theirs).await.unwrap() else {
        panic!("it was not begun before");
    };
    let again = f.started(&begin(first)).await;
    for started in [mine, theirs, again] {
        assert_eq!((started.base, started.version), (2, Version(1)));
    }
    let publish = Publish::new(0, said_by_model("2"));
    let published = other.publish(&f.scope, theirs.lease, &publish).await;
    assert_eq!(published.unwrap().version, Version(2));
    let branch = f.publish(mine.lease, 0, "3").await;
    assert_eq!((branch.moved, branch.version), (false, Version(2)));
    let branch = f.publish(again.lease, 0, "4").await;
    assert_eq!((branch.moved, branch.version), (false, Version(2)));
    assert_eq!(f.texts(&id).await, ["one", "1", "on", "2"]);
    // A run that has gone on since is begun at where it is now.
    let lease = f.begin_in(&id, "many", Mode::PerCall).await.lease;
    for no in 0..2 {
        let step = Step {
            no,
            items: said_by_model("part"),
            node: Some(StepNode::default()),
            ..Step::default()
        };
        f.store.step(&f.scope, lease, &step).await.unwrap();
        let started = f.started(&begin(lease.run)).await;
        assert_eq!(started.base, u64::from(6 + no));
        f.store.open(&f.scope, &node(lease.run), 0).await.unwrap();
    }
    f.publish(lease, 2, "end").await;
    // Each of its nodes by its name, also where only the last is remembered.
    f.store.open(&f.scope, &node(lease.run), 0).await.unwrap();
    for step in [0, 2, 1, 2] {
        let run = lease.run;
        let named = Anchor::Node(NodeRef::Node(NodeId { run, step }));
        let started = f.started(&f.begin_at(named, "on")).await;
        assert_eq!(started.base, u64::from(6 + step));
    }
    // What was hidden or deleted by another process is not there to begin at.
    let missing = async |run| {
        let error = f.store.begin(&f.scope, &begin(run)).await.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    };
    f.store.open(&f.scope, &node(first), 0).await.unwrap();
    other.hide(&f.scope, first).await.unwrap();
    missing(first).await;
    f.store.open(&f.scope, &node(lease.run), 0).await.unwrap();
    other.delete(&f.scope, &id).await.unwrap();
    missing(lease.run).await;
}

pub(super) async fn state_is_kept_per_node(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let state = |n: u32| {
        let mut state = State::default();
        state.set_service(ServiceId {
            upstream: "openai".into(),
            agent: String::new(),
            id: format!("resp_{n}"),
        });
        let memory = RawJson::new(&format!(r#"{{"facts":{n}}}"#)).unwrap();
        state.set_provider("memory", Some(memory));
        state
    };
    let mut runs = Vec::new();
    for n in 0..4 {
        let lease = f.begin(&id, "ask").await.lease;
        let publish = Publish {
            // Every second turn changes it.
            state: (n % 2 == 0).then(|| state(n)),
            ..Publish::new(0, said_by_model("answer"))
        };
        f.store.publish(&f.scope, lease, &publish).await.unwrap();
        runs.push(lease.run);
    }
    for (n, expected) in [(0, 0), (1, 0), (2, 2), (3, 2)] {
        let at = At::Node(NodeRef::Run(runs[n]));
        let opened = f.store.open(&f.scope, &at, 0).await.unwrap();
        assert_eq!(opened.state, state(expected), "turn {n}");
    }
    let fork = fork_of(At::Node(NodeRef::Run(runs[1])), "fork");
    let fork = f.store.fork(&f.scope, &fork).await.unwrap().id;
    assert_eq!(f.open(&fork).await.state, state(0));
    f.turn(&fork, "x", "y").await;
    assert_eq!(f.open(&fork).await.state, state(0));
    assert_eq!(f.open(&id).await.state, state(2));
}

pub(super) async fn a_hidden_run_keeps_its_content(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    let second = f.turn(&id, "two", "2").await;
    f.store.hide(&f.scope, first).await.unwrap();
    let at = At::Node(NodeRef::Run(first));
    let error = f.store.open(&f.scope, &at, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let begin = f.begin_at(Anchor::Node(NodeRef::Run(first)), "again");
    let error = f.store.begin(&f.scope, &begin).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = f.store.run(&f.scope, first).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        f.texts_at(NodeRef::Run(second)).await,
        ["one", "1", "two", "2"]
    );
    assert_eq!(f.texts(&id).await.len(), 4);
}
