//! The engine in memory, where the suite does not look: corners of repeated writes, publications,
//! hidden runs, shared rows and imports.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what helpers of tests cannot read is a failed test"
)]

use std::sync::Arc;
use std::time::Duration;

use throughline_model::{Body, CallId, Content, Message, Outcome, Output, Role, ToolCall};
use throughline_store::{
    Anchor, Answer, ApprovalFilter, ApprovalState, At, Begin, Begun, CallRef, CallResult,
    CallState, Claim, Decision, Effect, Engine, Entry, Error, ErrorKind, Fork, Heartbeat,
    Idempotency, Ids, Import, ImportItem, ImportNode, ItemKind, ItemRef, Lease, Leasing,
    ManualClock, Memory, Mode, NewApproval, NewItem, NewThread, NodeId, NodeRef, Options,
    PlannedCall, Publish, Published, RunId, RunKind, RunState, Span, Started, Step, StepNode,
    Stopped, TenantScope, ThreadId, Through, Version, shown,
};

struct Case {
    memory: Memory,
    ids: Arc<Ids>,
    clock: Arc<ManualClock>,
    scope: TenantScope,
}

impl Case {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let ids = Arc::new(Ids::new(Arc::<ManualClock>::clone(&clock)));
        Self {
            memory: Memory::new(options(&clock), &ids),
            ids,
            clock,
            scope: TenantScope::local(),
        }
    }

    async fn begin(&self, at: Anchor, mode: Mode, input: Vec<NewItem>) -> Started {
        let begin = Begin {
            mode,
            ..Begin::new(self.ids.run(), at, input)
        };
        started(self.memory.begin(&self.scope, &begin).await.unwrap())
    }

    async fn open_thread(&self, name: &str, mode: Mode) -> (ThreadId, Lease) {
        let id = ThreadId::new(name).unwrap();
        let at = Anchor::New {
            thread: NewThread::new(id.clone()),
            leasing: Leasing::Thread,
        };
        let started = self.begin(at, mode, user("ask")).await;
        (id, started.lease)
    }

    /// A step that makes calls, as a node or not.
    async fn call(&self, lease: Lease, no: u32, ids: &[&str], node: bool) -> Option<Published> {
        let mut step = calling(no, ids, CallState::Intent);
        step.node = node.then(StepNode::default);
        self.memory.step(&self.scope, lease, &step).await.unwrap()
    }

    async fn results(&self, lease: Lease, results: &[CallResult]) -> Result<(), Error> {
        self.memory.results(&self.scope, lease, results).await
    }

    async fn publish(&self, lease: Lease, publish: &Publish) -> Published {
        self.memory
            .publish(&self.scope, lease, publish)
            .await
            .unwrap()
    }

    async fn fork(&self, from: At, name: &str) -> ThreadId {
        let id = ThreadId::new(name).unwrap();
        let fork = Fork {
            from,
            thread: NewThread::new(id.clone()),
        };
        let made = self.memory.fork(&self.scope, &fork).await.unwrap();
        // Sent again it is the same fork.
        assert_eq!(self.memory.fork(&self.scope, &fork).await.unwrap(), made);
        id
    }

    async fn texts(&self, at: At) -> Vec<String> {
        let page = self.memory.read(&self.scope, &at, Span::Tail, 100).await;
        texts(&page.unwrap().entries)
    }

    async fn head(&self, thread: &ThreadId) -> Anchor {
        let at = At::Thread(thread.clone());
        let opened = self.memory.open(&self.scope, &at, 0).await.unwrap();
        Anchor::Head {
            thread: thread.clone(),
            expected: opened.thread.version,
        }
    }

    async fn sweep(&self) {
        while self.memory.purge(1).await.unwrap().more {}
    }

    async fn items_left(&self) -> u64 {
        let checked = self.memory.check(&mut |_| {}).await.unwrap();
        assert_eq!(checked.damage, []);
        checked.items
    }
}

fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::<ManualClock>::clone(clock),
        heartbeat: Heartbeat::Manual,
        lease: Duration::from_secs(10),
    }
}

fn started(begun: Begun) -> Started {
    match begun {
        Begun::Started(started) => started,
        Begun::Repeated(run) => panic!("a repetition of {}", run.id),
    }
}

fn user(text: &str) -> Vec<NewItem> {
    NewItem::of(&[Message::user(text)])
}

fn call(id: &str) -> ToolCall {
    ToolCall::function(CallId::natural(id).unwrap(), "get_tide", "{}")
}

fn calling(no: u32, ids: &[&str], state: CallState) -> Step {
    let contents = ids.iter().map(|id| call(id).into()).collect();
    let planned = |id: &&str| PlannedCall {
        call: (*id).to_owned(),
        tool: "get_tide".to_owned(),
        effect: Effect::Once,
        state,
    };
    Step {
        no,
        items: NewItem::of(&[Message::new(Role::Assistant, contents)]),
        calls: ids.iter().map(planned).collect(),
        ..Step::default()
    }
}

fn result(step: u32, position: u32, id: &str) -> CallResult {
    let answer = call(id).answer(Outcome::Ok, Output::Text(id.to_owned()));
    let message = Message::new(Role::Tool, vec![answer.into()]);
    CallResult::new(step, position, &message)
}

fn texts(entries: &[Entry]) -> Vec<String> {
    let word = |content: &Content| match &content.body {
        Body::Text(text) => text.text.clone(),
        Body::ToolCall(call) => format!("call {}", call.call.value()),
        Body::ToolResult(result) => format!("result {}", result.call().value()),
        other => format!("{other:?}"),
    };
    let short = |entry: &Entry| {
        let words: Vec<_> = entry.message.contents.iter().map(word).collect();
        words.join("+")
    };
    entries.iter().map(short).collect()
}

#[tokio::test]
async fn a_begin_with_a_new_thread_and_a_key_can_be_sent_again() {
    let case = Case::new();
    let id = ThreadId::new("t").unwrap();
    let begin = Begin {
        key: Some(Idempotency {
            key: "k".into(),
            request: [7; 16],
        }),
        ..Begin::new(
            case.ids.run(),
            Anchor::New {
                thread: NewThread::new(id.clone()),
                leasing: Leasing::Free,
            },
            user("ask"),
        )
    };
    let first = started(case.memory.begin(&case.scope, &begin).await.unwrap());
    let second = started(case.memory.begin(&case.scope, &begin).await.unwrap());
    assert_eq!(first, second);
    // Another process has the key answered, not the run given.
    let other = case.memory.handle(options(&case.clock));
    let answer = other.begin(&case.scope, &begin).await.unwrap();
    assert!(matches!(answer, Begun::Repeated(run) if run.id == begin.run));
    case.publish(first.lease, &Publish::new(0, Vec::new()))
        .await;
    // Hiding the run ends the key.
    case.memory.hide(&case.scope, begin.run).await.unwrap();
    case.memory.hide(&case.scope, begin.run).await.unwrap();
    let again = Begin {
        run: case.ids.run(),
        at: case.head(&id).await,
        ..begin
    };
    started(case.memory.begin(&case.scope, &again).await.unwrap());
}

#[tokio::test]
async fn a_place_that_was_published_empty_stays_empty() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerCall).await;
    case.call(lease, 0, &["a", "b"], true).await;
    case.results(lease, &[result(0, 1, "b")]).await.unwrap();
    // The next call goes out without the first result: a gap, and the node stays open.
    let made = case.call(lease, 1, &["c"], true).await.unwrap();
    assert_eq!(made.last, 5);
    let error = case.results(lease, &[result(0, 0, "a")]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let at = At::Thread(thread.clone());
    let opened = case.memory.open(&case.scope, &at, 10).await.unwrap();
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
    let record = case.memory.node(&case.scope, node, 0, 2).await.unwrap();
    let kinds: Vec<_> = record.items.iter().map(|item| item.kind).collect();
    assert_eq!(
        (kinds, record.more),
        (vec![ItemKind::Gap, ItemKind::Part], true)
    );
    let rest = case.memory.node(&case.scope, node, 5, 2).await.unwrap();
    assert_eq!((rest.items.len(), rest.more), (1, false));
}

#[tokio::test]
async fn a_publication_goes_as_far_as_it_is_told() {
    let case = Case::new();
    let through = |through| Publish {
        through,
        ..Publish::new(1, Vec::new())
    };
    let whole = ["ask", "call a+call b", "result a+result b"];
    for (n, (through, seen, unsent)) in [
        (through(Through::Everything), 3, 0),
        (through(Through::LastStep), 2, 1),
        (through(Through::Item(1)), 1, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let (thread, lease) = case.open_thread(&format!("t{n}"), Mode::PerRun).await;
        case.call(lease, 0, &["a", "b"], false).await;
        let both = [result(0, 0, "a"), result(0, 1, "b")];
        case.results(lease, &both).await.unwrap();
        let published = case.publish(lease, &through).await;
        assert_eq!(case.publish(lease, &through).await, published);
        let at = At::Thread(thread);
        let opened = case.memory.open(&case.scope, &at, 10).await.unwrap();
        assert_eq!(texts(&opened.entries), whole[..seen]);
        assert_eq!(opened.unsent.len(), unsent);
        assert_eq!(opened.tip.unwrap().unsent, unsent > 0);
        assert!(!opened.tip.unwrap().open);
    }
}

#[tokio::test]
async fn a_parked_run_goes_on_elsewhere_after_its_approval() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerRun).await;
    let approval = case.ids.approval();
    let step = Step {
        approvals: vec![NewApproval {
            id: approval,
            step: 0,
            position: 1,
            shown: shown("get_tide", "{}"),
            expires: None,
            detail: None,
        }],
        ..calling(0, &["a", "b"], CallState::Approval)
    };
    let nobody_waits = Step {
        approvals: vec![NewApproval {
            position: 2,
            ..step.approvals[0].clone()
        }],
        ..step.clone()
    };
    let error = case.memory.step(&case.scope, lease, &nobody_waits).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    case.memory.step(&case.scope, lease, &step).await.unwrap();
    case.memory.park(&case.scope, lease, None).await.unwrap();
    let answer = Answer {
        approval,
        shown: shown("get_tide", "{}"),
        decision: Decision::Approved,
        by: "ada".into(),
        reason: None,
    };
    let first = case.memory.answer(&case.scope, &answer).await.unwrap();
    let second = case.memory.answer(&case.scope, &answer).await.unwrap();
    assert_eq!(first, second);
    let other = case.memory.handle(options(&case.clock));
    let claimed = other
        .claim(&case.scope, lease.run, 1, Claim::Parked)
        .await
        .unwrap();
    // The other call waits for an approval that nobody asked for.
    let error = other.intend(&case.scope, claimed.lease, 0, &[0, 1]).await;
    assert!(
        matches!(error, Err(Error::WrongCall { position: 0, .. })),
        "{error:?}"
    );
    other
        .intend(&case.scope, claimed.lease, 0, &[1])
        .await
        .unwrap();
    let filter = ApprovalFilter {
        thread: Some(thread.clone()),
        waiting: false,
    };
    let list = other
        .approvals(&case.scope, &filter, None, 10)
        .await
        .unwrap();
    assert_eq!(list.found[0].state, ApprovalState::Used);
    // Who took a run over does not take an older intent for its own.
    case.clock.advance(Duration::from_secs(11));
    let third = case
        .memory
        .claim(&case.scope, lease.run, 2, Claim::Settle)
        .await
        .unwrap();
    let error = case.memory.intend(&case.scope, third.lease, 0, &[1]).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    let publish = Publish {
        results: vec![result(0, 0, "a"), result(0, 1, "b")],
        ..Publish::new(1, Vec::new())
    };
    assert!(case.publish(third.lease, &publish).await.moved);
}

#[tokio::test]
async fn an_unpublished_run_is_too_late_for_a_head_that_moved() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerRun).await;
    let end = throughline_store::End {
        how: Stopped::Unpublished,
        note: None,
        events: None,
    };
    case.memory.end(&case.scope, lease, &end).await.unwrap();
    let head = case.head(&thread).await;
    let next = case.begin(head, Mode::PerRun, user("other")).await.lease;
    case.publish(next, &Publish::new(0, Vec::new())).await;
    let claimed = case
        .memory
        .claim(&case.scope, lease.run, 1, Claim::Settle)
        .await
        .unwrap();
    let publish = Publish::new(0, Vec::new());
    let error = case
        .memory
        .publish(&case.scope, claimed.lease, &publish)
        .await;
    assert!(matches!(error, Err(Error::HeadMoved { .. })), "{error:?}");
    let run = case.memory.run(&case.scope, lease.run).await.unwrap();
    assert_eq!(run.state, RunState::Running);
}

#[tokio::test]
async fn an_empty_publication_answers_with_the_node_before() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerCall).await;
    let made = case.call(lease, 0, &["a"], true).await.unwrap();
    let through = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    let published = case.publish(lease, &through).await;
    assert_eq!(published, made);
    let head = case.head(&thread).await;
    let next = case.begin(head, Mode::PerRun, Vec::new()).await.lease;
    let published = case.publish(next, &Publish::new(0, Vec::new())).await;
    assert_eq!((published.node, published.last), (made.node, 2));
    assert_eq!((published.moved, published.version), (true, Version(1)));
}

#[tokio::test]
async fn what_a_fork_says_again_outlives_its_origin() {
    let case = Case::new();
    let (origin, lease) = case.open_thread("t", Mode::PerCall).await;
    case.call(lease, 0, &["a", "b"], true).await;
    let both = [result(0, 0, "a"), result(0, 1, "b")];
    case.results(lease, &both).await.unwrap();
    let through = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    case.publish(lease, &through).await;
    let fork = case.fork(At::Thread(origin.clone()), "fork").await;
    let opened = case
        .memory
        .open(&case.scope, &At::Thread(fork.clone()), 0)
        .await
        .unwrap();
    assert_eq!(texts(&opened.unsent), ["result a+result b"]);
    // The results are in no node of the origin, only in its journal.
    let run = lease.run;
    let again = [3, 4].map(|no| NewItem::Again(ItemRef { run, no }));
    let head = case.head(&fork).await;
    let next = case.begin(head, Mode::PerRun, again.to_vec()).await.lease;
    case.publish(next, &Publish::new(0, user("next"))).await;
    case.memory.delete(&case.scope, &origin).await.unwrap();
    case.sweep().await;
    let expected = ["ask", "call a+call b", "result a+result b", "next"];
    assert_eq!(case.texts(At::Thread(fork.clone())).await, expected);
    assert_eq!(case.items_left().await, 2 + 2 + 3);
    // What is shared can still be exported and redacted; the run has no name any more.
    let node = NodeId { run, step: 0 };
    assert!(case.memory.node(&case.scope, node, 0, 10).await.is_ok());
    let error = case.memory.run(&case.scope, run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    case.memory
        .redact(&case.scope, ItemRef { run, no: 1 }, "ada")
        .await
        .unwrap();
    assert_eq!(case.texts(At::Thread(fork.clone())).await[0], "");
    case.memory.delete(&case.scope, &fork).await.unwrap();
    // Nobody reaches it from now on, whether it is swept or not.
    let error = case
        .memory
        .node(&case.scope, node, 0, 10)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = case
        .memory
        .redact(&case.scope, ItemRef { run, no: 2 }, "ada")
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    case.sweep().await;
    assert_eq!(case.items_left().await, 0);
}

#[tokio::test]
async fn unsent_results_stay_with_a_fork_that_has_not_sent_them() {
    let case = Case::new();
    let (origin, lease) = case.open_thread("t", Mode::PerCall).await;
    case.call(lease, 0, &["a", "b"], true).await;
    case.results(lease, &[result(0, 1, "b")]).await.unwrap();
    let through = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    case.publish(lease, &through).await;
    let fork = case.fork(At::Thread(origin.clone()), "fork").await;
    case.memory.delete(&case.scope, &origin).await.unwrap();
    case.sweep().await;
    let at = At::Thread(fork.clone());
    let opened = case.memory.open(&case.scope, &at, 10).await.unwrap();
    assert_eq!(texts(&opened.unsent), ["result b"]);
    let again = NewItem::Again(opened.unsent[0].at);
    let head = case.head(&fork).await;
    let next = case.begin(head, Mode::PerRun, vec![again]).await.lease;
    case.publish(next, &Publish::new(0, user("next"))).await;
    let expected = ["ask", "call a+call b", "result b", "next"];
    assert_eq!(case.texts(at).await, expected);
    case.memory.delete(&case.scope, &fork).await.unwrap();
    case.sweep().await;
    assert_eq!(case.items_left().await, 0);
}

#[tokio::test]
async fn a_cursor_of_a_thread_that_was_made_anew_has_moved() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerRun).await;
    case.publish(lease, &Publish::new(0, Vec::new())).await;
    let old = case
        .memory
        .increment(&case.scope, &thread, None, 10)
        .await
        .unwrap()
        .next;
    case.memory.delete(&case.scope, &thread).await.unwrap();
    let (_, lease) = case.open_thread("t", Mode::PerRun).await;
    for _ in 0..2 {
        let error = case
            .memory
            .increment(&case.scope, &thread, Some(&old), 10)
            .await;
        assert!(
            matches!(error, Err(Error::CursorMoved { common: 0, .. })),
            "{error:?}"
        );
        case.sweep().await;
    }
    case.publish(lease, &Publish::new(0, Vec::new())).await;
    let start = case.memory.cursor(&case.scope, &thread, 0).await.unwrap();
    let page = case
        .memory
        .increment(&case.scope, &thread, Some(&start), 10)
        .await
        .unwrap();
    assert_eq!(texts(&page.entries), ["ask"]);
}

#[tokio::test]
async fn a_hidden_run_can_still_be_ended_by_whoever_has_it() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerRun).await;
    case.memory.hide(&case.scope, lease.run).await.unwrap();
    let error = case
        .memory
        .journal(&case.scope, lease.run)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    case.clock.advance(Duration::from_secs(11));
    let orphans = case.memory.orphans(10).await.unwrap();
    assert_eq!(orphans.len(), 1);
    let claimed = case
        .memory
        .claim(&case.scope, lease.run, 1, Claim::Orphan)
        .await
        .unwrap();
    case.publish(claimed.lease, &Publish::new(0, Vec::new()))
        .await;
    assert_eq!(case.texts(At::Thread(thread)).await, ["ask"]);
}

#[tokio::test]
async fn calls_are_taken_with_their_run_or_not_at_all() {
    let case = Case::new();
    let (_, lease) = case.open_thread("t", Mode::PerRun).await;
    let step = calling(0, &["a", "b"], CallState::Client);
    case.memory.step(&case.scope, lease, &step).await.unwrap();
    case.results(lease, &[result(0, 0, "a")]).await.unwrap();
    case.publish(lease, &Publish::new(1, Vec::new())).await;
    let at = |position| CallRef {
        run: lease.run,
        step: 0,
        position,
    };
    // The first has its result: neither is taken.
    let mut begin = Begin::new(
        case.ids.run(),
        Anchor::Node(NodeRef::Run(lease.run)),
        user("next"),
    );
    begin.takes = vec![at(1), at(0)];
    let error = case.memory.begin(&case.scope, &begin).await;
    assert!(matches!(error, Err(Error::WrongCall { .. })), "{error:?}");
    begin.takes = vec![at(1)];
    let first = case.memory.begin(&case.scope, &begin).await.unwrap();
    assert_eq!(case.memory.begin(&case.scope, &begin).await.unwrap(), first);
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

#[tokio::test]
async fn imports_can_be_sent_again_and_say_things_again() {
    let case = Case::new();
    let thread = ThreadId::new("t").unwrap();
    let import = async |import: &Import| {
        case.memory.import(&case.scope, import).await?;
        case.memory.import(&case.scope, import).await
    };
    let open = Import::Open {
        thread: NewThread::new(thread.clone()),
        created: 500,
    };
    import(&open).await.unwrap();
    let said = |text: &str| ImportItem::Said(user(text).remove(0));
    let again = |run: u8, no| {
        let run = RunId::from_bytes([run; 16]);
        ImportItem::Said(NewItem::Again(ItemRef { run, no }))
    };
    let first = import_node(1, 0, None, vec![said("one"), again(1, 1), again(1, 2)]);
    let second = import_node(1, 2, Some(first.node), vec![again(1, 3), said("two")]);
    let head = second.node;
    for node in [first.clone(), second] {
        let step = Import::Node {
            thread: thread.clone(),
            node: Box::new(node),
        };
        import(&step).await.unwrap();
    }
    // Out of order, on a foreign branch, with what is not there, unfinished: refused.
    let bad = [
        import_node(1, 1, Some(head), vec![said("x")]),
        import_node(1, 3, Some(first.node), vec![said("x")]),
        import_node(2, 0, Some(head), vec![again(2, 2), said("x")]),
        import_node(2, 0, Some(head), Vec::new()),
        ImportNode {
            ended: RunState::Running,
            ..import_node(2, 0, Some(head), vec![said("x")])
        },
    ];
    for node in bad {
        let step = Import::Node {
            thread: thread.clone(),
            node: Box::new(node),
        };
        assert!(case.memory.import(&case.scope, &step).await.is_err());
    }
    // Its name is taken, though nobody sees it.
    let new = NewThread::new(thread.clone());
    let error = case.memory.open_or_create(&case.scope, &new, 0).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
    let finish = Import::Finish {
        thread: thread.clone(),
        head: Some(head),
        touched: 2_000,
    };
    import(&finish).await.unwrap();
    let expected = ["one", "one", "one", "one", "two"];
    assert_eq!(case.texts(At::Thread(thread.clone())).await, expected);
    assert_eq!(case.items_left().await, 5);
    let abort = Import::Abort { thread };
    let error = case.memory.import(&case.scope, &abort).await;
    assert!(matches!(error, Err(Error::Exists { .. })), "{error:?}");
}

#[tokio::test]
async fn limits_of_any_size_are_fine() {
    let case = Case::new();
    let (thread, lease) = case.open_thread("t", Mode::PerRun).await;
    case.publish(lease, &Publish::new(0, user("two"))).await;
    let at = At::Thread(thread.clone());
    for limit in [0, 1, usize::MAX] {
        let seen = limit.min(2);
        for span in [Span::Tail, Span::After(0), Span::Before(u64::MAX)] {
            let page = case
                .memory
                .read(&case.scope, &at, span, limit)
                .await
                .unwrap();
            assert_eq!(
                (page.entries.len(), page.more),
                (seen, seen < 2),
                "{span:?}"
            );
        }
        for span in [Span::After(u64::MAX), Span::Before(0)] {
            let page = case
                .memory
                .read(&case.scope, &at, span, limit)
                .await
                .unwrap();
            assert_eq!((page.entries.len(), page.more), (0, false), "{span:?}");
        }
        let page = case
            .memory
            .increment(&case.scope, &thread, None, limit)
            .await
            .unwrap();
        assert_eq!(page.entries.len(), seen);
        let tree = case
            .memory
            .tree(&case.scope, &thread, None, limit)
            .await
            .unwrap();
        assert_eq!(tree.len(), limit.min(1));
    }
}
