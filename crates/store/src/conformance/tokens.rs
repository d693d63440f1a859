use throughline_model::{Message, Role, tokens};

use super::fixture::{Fixture, answered, call, result, said_by_user, step};
use crate::{
    Append, At, CallState, Claim, Fork, Import, ImportItem, ImportNode, ItemContent, ItemRef, Mode,
    NewItem, NewThread, NodeId, NodeRef, Publish, Redaction, RunId, RunKind, RunState, Span,
    StepNode, ThreadFilter, ThreadId, Through,
};

/// The total of a branch, after comparing it with what its messages count as, one by one.
async fn total(f: &Fixture<'_>, at: &At) -> u64 {
    let opened = f.store.open(&f.scope, at, 0).await.unwrap();
    let page = f
        .store
        .read(&f.scope, at, Span::After(0), 1000)
        .await
        .unwrap();
    assert!(!page.more);
    let mut sum = 0;
    for entry in &page.entries {
        if entry.redacted.is_none() {
            assert_eq!(entry.tokens, tokens::units(&entry.message), "{entry:?}");
        }
        sum += u64::from(entry.tokens);
    }
    assert_eq!(opened.tip.map_or(0, |tip| tip.tokens), sum, "{at:?}");
    sum
}

/// The same of a thread, which listings tell too.
async fn total_of(f: &Fixture<'_>, thread: &ThreadId) -> u64 {
    let sum = total(f, &At::Thread(thread.clone())).await;
    let filter = ThreadFilter::default();
    let listed = f.store.threads(&f.scope, &filter, None, 100).await.unwrap();
    let listed = listed.found.iter().find(|listed| listed.id == *thread);
    assert_eq!(listed.unwrap().tokens(), sum);
    sum
}

/// What a text of the fixture counts as, said by either side.
fn text(text: &str) -> u64 {
    u64::from(tokens::units(&Message::user(text)))
}

/// What a message with calls counts as.
fn asked(ids: &[&str]) -> u64 {
    let contents = ids.iter().map(|id| call(id).into()).collect();
    u64::from(tokens::units(&Message::new(Role::Assistant, contents)))
}

/// What the tool message with these results counts as.
fn answers(ids: &[&str]) -> u64 {
    u64::from(tokens::units(&round(ids)))
}

fn round(ids: &[&str]) -> Message {
    let mut messages = ids.iter().map(|id| answered(id));
    let mut round = messages.next().unwrap();
    round.contents.extend(messages.flat_map(|one| one.contents));
    round
}

fn adding(f: &Fixture<'_>, thread: &ThreadId, items: Vec<NewItem>) -> Append {
    Append {
        run: f.store.ids().run(),
        thread: thread.clone(),
        expected: None,
        items,
        state: None,
        key: None,
    }
}

pub(super) async fn every_item_is_counted_when_it_enters(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    assert_eq!(total_of(f, &id).await, 0);
    f.turn(&id, "when is high water?", "at four").await;
    let mut expected = text("when is high water?") + text("at four");
    assert_eq!(total_of(f, &id).await, expected);

    // A round whose results come one by one, and are taken over by another process.
    let lease = f.begin(&id, "and low water?").await.lease;
    let calls = step(0, &["a", "b", "c"], CallState::Intent);
    f.store.step(&f.scope, lease, &calls).await.unwrap();
    let first = [result(0, 1, "b")];
    f.store.results(&f.scope, lease, &first).await.unwrap();
    assert_eq!(total_of(f, &id).await, expected, "nothing is published");
    f.clock.advance(super::fixture::LEASE * 2);
    let other = f.other().await;
    let claimed = other.claim(&f.scope, lease.run, 1, Claim::Orphan).await;
    let publish = Publish {
        results: vec![result(0, 0, "a"), result(0, 2, "c")],
        ..Publish::new(1, said_by_user("at ten"))
    };
    let lease = claimed.unwrap().lease;
    other.publish(&f.scope, lease, &publish).await.unwrap();
    expected += text("and low water?") + asked(&["a", "b", "c"]);
    expected += answers(&["a", "b", "c"]) + text("at ten");
    assert_eq!(total_of(f, &id).await, expected);

    // Added by hand, a whole round at once.
    let append = adding(f, &id, NewItem::of(&[round(&["d", "e"])]));
    f.store.append(&f.scope, &append).await.unwrap();
    expected += answers(&["d", "e"]);
    assert_eq!(total_of(f, &id).await, expected);

    // A body that is removed keeps its count: the node has it in its total.
    let said = ItemRef {
        run: append.run,
        no: 1,
    };
    f.store.redact(&f.scope, said, "ada").await.unwrap();
    assert_eq!(total_of(f, &id).await, expected);
    assert_eq!(f.store.check(&mut |_| {}).await.unwrap().damage, []);
}

pub(super) async fn results_that_are_sent_later_are_counted_once_on_each_branch(
    f: &mut Fixture<'_>,
) {
    let id = f.thread("t").await;
    let lease = f.begin_in(&id, "one", Mode::PerCall).await.lease;
    let calls = crate::Step {
        node: Some(StepNode::default()),
        ..step(0, &["a", "b"], CallState::Intent)
    };
    f.store.step(&f.scope, lease, &calls).await.unwrap();
    let results = [result(0, 0, "a"), result(0, 1, "b")];
    f.store.results(&f.scope, lease, &results).await.unwrap();
    let publish = Publish {
        through: Through::LastStep,
        ..Publish::new(1, Vec::new())
    };
    f.store.publish(&f.scope, lease, &publish).await.unwrap();
    let shown = text("one") + asked(&["a", "b"]);
    assert_eq!(total_of(f, &id).await, shown);

    let mut input: Vec<NewItem> = (3..=4)
        .map(|no| NewItem::Repeat(ItemRef { run: lease.run, no }))
        .collect();
    input.extend(said_by_user("two"));
    let begin = crate::Begin {
        input,
        ..f.begin_at(crate::Anchor::Node(NodeRef::Run(lease.run)), "")
    };
    let next = f.started(&begin).await.lease;
    f.publish(next, 0, "2").await;
    let expected = shown + answers(&["a", "b"]) + text("two") + text("2");
    assert_eq!(total(f, &At::Node(NodeRef::Run(next.run))).await, expected);
    assert_eq!(total(f, &At::Node(NodeRef::Run(lease.run))).await, shown);
    assert_eq!(f.store.check(&mut |_| {}).await.unwrap().damage, []);
}

pub(super) async fn a_fork_counts_what_it_shares(f: &mut Fixture<'_>) {
    let id = f.thread("t").await;
    let first = f.turn(&id, "one", "1").await;
    f.turn(&id, "two", "2").await;
    let fork = Fork {
        from: At::Node(NodeRef::Run(first)),
        thread: NewThread::new(ThreadId::new("fork").unwrap()),
    };
    let fork = f.store.fork(&f.scope, &fork).await.unwrap();
    let shared = text("one") + text("1");
    assert_eq!(fork.tokens(), shared);
    assert_eq!(total_of(f, &fork.id).await, shared);
    f.turn(&fork.id, "three", "3").await;
    let expected = shared + text("three") + text("3");
    assert_eq!(total_of(f, &fork.id).await, expected);
    let (branch, _) = f.turn_at(NodeRef::Run(first), "four", "4").await;
    let branch = total(f, &At::Node(NodeRef::Run(branch))).await;
    assert_eq!(branch, shared + text("four") + text("4"));
    assert_eq!(total_of(f, &id).await, shared + text("two") + text("2"));

    // What it shares stays in it when the origin is gone.
    f.store.delete(&f.scope, &id).await.unwrap();
    while f.store.purge(7).await.unwrap().more {}
    f.turn(&fork.id, "five", "5").await;
    let expected = expected + text("five") + text("5");
    assert_eq!(total_of(f, &fork.id).await, expected);
    assert_eq!(f.store.check(&mut |_| {}).await.unwrap().damage, []);
}

pub(super) async fn an_imported_item_keeps_its_count(f: &mut Fixture<'_>) {
    let id = ThreadId::new("t").unwrap();
    let node = NodeId {
        run: RunId::from_bytes([1; 16]),
        step: 0,
    };
    let said = |text: &str| ItemContent::of(&Message::user(text)).remove(0);
    let redaction = Redaction {
        by: "ada".to_owned(),
        at: 1,
        left: None,
    };
    let import = ImportNode {
        node,
        parent: None,
        items: vec![
            ImportItem::Content(said("one")),
            ImportItem::Redacted(said("a secret").emptied(), redaction),
            ImportItem::Gap,
        ],
        open: false,
        state: None,
        created: 1_000,
        kind: RunKind::Turn,
        mode: Mode::PerRun,
        ended: RunState::Committed,
        begun: 900,
        note: None,
        hidden: false,
    };
    let thread = || id.clone();
    for import in [
        Import::Open {
            thread: NewThread::new(thread()),
            created: 500,
        },
        Import::Node {
            thread: thread(),
            node: Box::new(import),
        },
        Import::Finish {
            thread: thread(),
            head: Some(node),
            touched: 2_000,
        },
    ] {
        f.store.import(&f.scope, &import).await.unwrap();
    }
    let expected = text("one") + text("a secret");
    assert_eq!(total_of(f, &id).await, expected);
    f.turn(&id, "two", "2").await;
    assert_eq!(total_of(f, &id).await, expected + text("two") + text("2"));
    assert_eq!(f.store.check(&mut |_| {}).await.unwrap().damage, []);
}
