//! What goes with the body of an item, and what stays.

use throughline_model::json::RawJson;
use throughline_model::{Body, Content, Message, Output};

use super::fixture::{Fixture, model, result, said_by_model, step};
use super::threads::raw;
use crate::{
    Anchor, ApprovalFilter, At, Begin, CallState, Error, Fork, ItemRef, NewApproval, NewItem,
    NewThread, NodeRef, Publish, RunId, State, Step, ThreadId, Version, arguments_digest,
};

const CANARY: &str = "canary";

impl Fixture<'_> {
    async fn redact(&self, run: RunId, no: u32) {
        let item = ItemRef { run, no };
        self.store.redact(&self.scope, item, "ada").await.unwrap();
    }

    async fn assert_sound(&self, redacted: u64) {
        let checked = self.store.check(&mut |_| {}).await.unwrap();
        assert_eq!((checked.redacted, checked.damage), (redacted, vec![]));
    }
}

/// What calls and results say, in short.
fn said(messages: &[Message]) -> Vec<String> {
    let contents = messages.iter().flat_map(|message| &message.contents);
    let word = |content: &Content| match &content.body {
        Body::ToolCall(call) => format!("{} {:?}", call.call.value(), call.arguments),
        Body::ToolResult(result) => match &result.output {
            Output::Text(text) => format!("{} {text}", result.call().value()),
            other => format!("{} {other:?}", result.call().value()),
        },
        _ => content.as_text().unwrap_or_default().to_owned(),
    };
    contents.map(word).collect()
}

pub(super) async fn what_is_left_pairs_calls_with_results(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let lease = f.begin(&id, "ask").await.lease;
    let planned = step(0, &["a", "b"], CallState::Planned);
    f.store.step(&f.scope, lease, &planned).await.unwrap();
    f.store.intend(&f.scope, lease, 0, &[0, 1]).await.unwrap();
    let results = [result(0, 0, "a"), result(0, 1, "b")];
    f.store.results(&f.scope, lease, &results).await.unwrap();
    f.publish(lease, 1, "answer").await;
    // Items: input, call, two results, answer.
    let tree = f.store.tree(&f.scope, &id, None, 10).await.unwrap();
    assert_eq!((tree[0].last, tree[0].messages), (5, 4));
    let read = async || {
        let entries = f.open(&id).await.entries;
        let messages: Vec<Message> = entries.iter().map(|one| one.message.clone()).collect();
        (entries, messages)
    };
    let (before, _) = read().await;
    for no in [2, 4] {
        f.redact(lease.run, no).await;
    }
    let (entries, messages) = read().await;
    let a = r#"a Text("{}")"#;
    let b = r#"b Text("{}")"#;
    assert_eq!(
        said(&messages),
        ["ask", a, b, "a result a", "b [redacted]", "answer"]
    );
    let marked: Vec<bool> = entries.iter().map(|one| one.redacted.is_some()).collect();
    assert_eq!(marked, [false, true, true, false]);
    // Roles, sources, ids, counts and positions stay.
    for (one, other) in entries.iter().zip(&before) {
        assert_eq!(one.message.role, other.message.role);
        assert_eq!(one.message.source, other.message.source);
        assert_eq!(one.message.id, other.message.id);
        assert_eq!(
            (one.first, one.last, one.tokens),
            (other.first, other.last, other.tokens)
        );
    }
    f.assert_sound(2).await;
    // All of it, twice.
    for no in [1, 2, 3, 4, 5, 1] {
        f.redact(lease.run, no).await;
    }
    let (_, messages) = read().await;
    let mark = "[redacted]";
    assert_eq!(
        said(&messages),
        [mark, a, b, "a [redacted]", "b [redacted]", mark]
    );
    f.assert_sound(5).await;
    // A turn goes on from there.
    f.turn(&id, "more", "said").await;
    assert_eq!(f.open(&id).await.thread.head.unwrap().last, 7);
}

/// A state with something of the library's, of a provider, and of a service.
fn state(word: &str) -> State {
    let text = |text: &str| RawJson::new(&format!("{{\"said\":\"{text}\"}}")).unwrap();
    let mut state = State::default();
    state.set_compaction(Some(text(word)));
    state.set_provider("throughline.epoch", Some(text(word)));
    state.set_provider("memory", Some(text("the application's")));
    state
}

pub(super) async fn what_was_derived_goes_with_the_message(f: &mut Fixture<'_>) {
    let turn = async |at: Anchor, say: &str, state: Option<State>| {
        let begin = Begin::new(f.store.ids().run(), at, NewItem::of(&[Message::user(say)]));
        let lease = f.started(&begin).await.lease;
        let publish = Publish {
            state,
            ..Publish::new(0, said_by_model("answer"))
        };
        f.store.publish(&f.scope, lease, &publish).await.unwrap();
        lease.run
    };
    let opens = Anchor::New {
        thread: NewThread::new(ThreadId::new("t").unwrap()),
        leasing: crate::Leasing::Free,
    };
    let on = |run: RunId| Anchor::Node(NodeRef::Run(run));
    let first = turn(opens, "one", Some(state("before"))).await;
    let sibling = turn(on(first), "other", Some(state("beside"))).await;
    let secret = turn(on(first), CANARY, None).await;
    let later = turn(on(secret), "two", Some(state(CANARY))).await;
    let last = turn(on(later), "three", None).await;
    let branch = turn(on(secret), "four", Some(state(CANARY))).await;
    let fork = Fork {
        from: At::Node(NodeRef::Run(later)),
        thread: NewThread::new(ThreadId::new("fork").unwrap()),
    };
    f.store.fork(&f.scope, &fork).await.unwrap();
    let at = Anchor::Head {
        thread: fork.thread.id.clone(),
        expected: Version(0),
    };
    let forked = turn(at, "five", Some(state(CANARY))).await;
    // What says the message again, elsewhere.
    f.thread("again").await;
    let again = crate::Append {
        run: f.store.ids().run(),
        thread: ThreadId::new("again").unwrap(),
        expected: None,
        items: vec![NewItem::Repeat(ItemRef { run: secret, no: 1 })],
        state: Some(state(CANARY)),
        key: None,
    };
    f.store.append(&f.scope, &again).await.unwrap();
    let runs = [
        first, sibling, secret, later, last, branch, forked, again.run,
    ];
    let read = async |store: &crate::Store| {
        let mut states = Vec::new();
        for run in runs {
            let at = At::Node(NodeRef::Run(run));
            states.push(store.open(&f.scope, &at, 0).await.unwrap().state);
        }
        states
    };
    // So that both processes remember what they have read.
    let other = f.other().await;
    assert_eq!(read(&f.store).await, read(&other).await);
    f.redact(secret, 1).await;
    let mut left = State::default();
    left.set_provider("memory", state("").provider("memory").cloned());
    let (before, beside) = (state("before"), state("beside"));
    let expected = [&before, &beside, &before, &left, &left, &left, &left, &left];
    for store in [&f.store, &other] {
        let found = read(store).await;
        assert!(found.iter().eq(expected), "{found:?}");
    }
    f.assert_sound(1).await;
    // What comes after it has a state again, and another redaction takes that out.
    let next = turn(on(last), "six", Some(state(CANARY))).await;
    f.redact(secret, 2).await;
    let at = At::Node(NodeRef::Run(next));
    assert_eq!(f.store.open(&f.scope, &at, 0).await.unwrap().state, left);
    f.assert_sound(2).await;
}

pub(super) async fn approvals_and_requests_say_nothing_more(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let request = |later: bool| {
        let later = if later { r#","later":["canary"]"# } else { "" };
        Some(raw(&format!(r#"{{"v":1,"host":{{"n":1.50}}{later}}}"#)))
    };
    let mut runs = Vec::new();
    for n in 0..2 {
        let at = Anchor::Head {
            thread: id.clone(),
            expected: Version(n),
        };
        let mut begin = f.begin_at(at, "ask");
        begin.request = request(true);
        let lease = f.started(&begin).await.lease;
        let asked = Step {
            approvals: vec![NewApproval {
                id: f.store.ids().approval(),
                step: 0,
                position: 0,
                shown: arguments_digest("get_tide", "{}"),
                expires: None,
                detail: Some(raw(r#"{"arguments":"canary"}"#)),
            }],
            ..step(0, &["a"], CallState::Approval)
        };
        f.store.step(&f.scope, lease, &asked).await.unwrap();
        let publish = Publish {
            results: vec![result(0, 0, "a")],
            ..Publish::new(1, NewItem::of(&[model("done")]))
        };
        f.store.publish(&f.scope, lease, &publish).await.unwrap();
        runs.push(lease.run);
    }
    f.redact(runs[0], 2).await;
    for store in [f.store.clone(), f.other().await] {
        for (run, is_redacted) in [(runs[0], true), (runs[1], false)] {
            let journal = store.journal(&f.scope, run).await.unwrap();
            assert_eq!(journal.request, request(!is_redacted));
            let filter = ApprovalFilter::default();
            let listed = store.approvals(&f.scope, &filter, None, 10).await.unwrap();
            let of_run = listed.found.iter().find(|one| one.call.run == run).unwrap();
            assert_eq!(of_run.detail.is_none(), is_redacted);
        }
    }
    // The second one had the request to itself by then.
    f.redact(runs[1], 2).await;
    for run in runs {
        let journal = f.store.journal(&f.scope, run).await.unwrap();
        assert_eq!(journal.request, request(false));
    }
    f.assert_sound(2).await;
}

pub(super) async fn a_run_does_not_go_on_from_what_was_removed(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let run = f.turn(&id, "one", "1").await;
    let other = f.thread("other").await;
    let aside = f.turn(&other, "aside", "2").await;
    let before = f.open(&id).await.redactions;
    assert_eq!(f.open(&other).await.redactions, before);
    let begin = |anchor: Anchor, seen: u64| {
        let mut begin = f.begin_at(anchor, "go on");
        begin.redactions = Some(seen);
        begin
    };
    let head = |version| Anchor::Head {
        thread: id.clone(),
        expected: Version(version),
    };
    let node = Anchor::Node(NodeRef::Run(run));
    let started = f.started(&begin(head(1), before)).await;
    f.publish(started.lease, 0, "said").await;
    // Anywhere in the tenant: forks share messages.
    f.redact(aside, 1).await;
    let processes = [f.store.clone(), f.other().await];
    for store in &processes {
        for anchor in [head(2), node.clone()] {
            let stale = begin(anchor, before);
            let error = store.begin(&f.scope, &stale).await.unwrap_err();
            assert!(
                matches!(&error, Error::Changed { thread } if *thread == id),
                "{error:?}"
            );
        }
    }
    // Once more is no redaction, and another tenant has had none.
    f.redact(aside, 1).await;
    let after = f.open(&id).await.redactions;
    assert_eq!(after, before + 1);
    let fresh = begin(head(2), after);
    let started = f.started(&fresh).await;
    // The same begin sent again is answered as it was, whatever was redacted meanwhile.
    f.redact(aside, 2).await;
    assert_eq!(f.started(&fresh).await, started);
    f.publish(started.lease, 0, "said").await;
    assert_eq!(f.open(&id).await.redactions, after + 1);
}
