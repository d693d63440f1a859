use super::fixture::{Fixture, said_by_model, said_by_user};
use crate::{
    Anchor, Begin, End, ErrorKind, Fingerprint, FingerprintDigest, FingerprintMatch, ItemNo,
    ItemRef, Leasing, MATCHES_PER_DIGEST, NewItem, NewThread, NodeRef, Publish, RunId, RunState,
    Stopped, ThreadId,
};

const ASKED: FingerprintDigest = [1; 16];
const ANSWERED: FingerprintDigest = [2; 16];
const UNKNOWN: FingerprintDigest = [3; 16];

fn finding(item: ItemNo, digest: FingerprintDigest) -> Vec<Fingerprint> {
    vec![Fingerprint { item, digest }]
}

/// A run that opens a thread; its input is found by [`ASKED`].
fn opening(f: &Fixture<'_>, thread: &str) -> Begin {
    let at = Anchor::New {
        thread: NewThread::new(ThreadId::new(thread).unwrap()),
        leasing: Leasing::Free,
    };
    Begin {
        fingerprints: finding(1, ASKED),
        ..f.begin_at(at, "a question")
    }
}

/// Its answer, which is found by [`ANSWERED`].
fn answer() -> Publish {
    Publish {
        fingerprints: finding(2, ANSWERED),
        ..Publish::new(0, said_by_model("an answer"))
    }
}

/// A thread with one turn.
async fn turn(f: &Fixture<'_>, thread: &str) -> RunId {
    let begin = opening(f, thread);
    let lease = f.started(&begin).await.lease;
    f.store.publish(&f.scope, lease, &answer()).await.unwrap();
    begin.run
}

async fn find(f: &Fixture<'_>, digests: &[FingerprintDigest]) -> Vec<FingerprintMatch> {
    f.store.find_fingerprints(&f.scope, digests).await.unwrap()
}

/// What is found, in short.
fn short(found: &[FingerprintMatch]) -> Vec<(FingerprintDigest, RunId, ItemNo)> {
    let short = |one: &FingerprintMatch| (one.digest, one.run.id, one.item);
    found.iter().map(short).collect()
}

pub(super) async fn items_are_found_by_their_fingerprints(f: &mut Fixture<'_>) {
    assert_eq!(find(f, &[ASKED]).await, []);
    let begin = opening(f, "t");
    // It may be sent again.
    f.started(&begin).await;
    let lease = f.started(&begin).await.lease;
    let running = find(f, &[ASKED, ANSWERED]).await;
    assert_eq!(short(&running), [(ASKED, begin.run, 1)]);
    assert_eq!(
        (running[0].run.state, running[0].head, running[0].is_head()),
        (RunState::Running, None, false)
    );
    for _ in 0..2 {
        f.store.publish(&f.scope, lease, &answer()).await.unwrap();
    }
    let digests = [UNKNOWN, ANSWERED, ASKED];
    let expected = [(ANSWERED, begin.run, 2), (ASKED, begin.run, 1)];
    let found = find(f, &digests).await;
    assert_eq!(short(&found), expected);
    let run = f.store.run(&f.scope, begin.run).await.unwrap();
    assert!(found.iter().all(|one| one.run == run && one.is_head()));
    // Another process finds the same.
    let other = f.other().await;
    let elsewhere = other.find_fingerprints(&f.scope, &digests).await.unwrap();
    assert_eq!(elsewhere, found);
    // The head moves on; a run that failed is found as it is.
    let (next, _) = f.turn_at(NodeRef::Run(begin.run), "more", "more").await;
    let found = find(f, &[ANSWERED]).await;
    assert_eq!(found[0].head.map(|head| head.run), Some(next));
    assert!(!found[0].is_head());
    let failing = opening(f, "fails");
    let lease = f.started(&failing).await.lease;
    let end = End {
        how: Stopped::Failed,
        note: None,
        events: None,
    };
    f.store.end(&f.scope, lease, &end).await.unwrap();
    let found = find(f, &[ASKED]).await;
    assert_eq!(
        short(&found),
        [(ASKED, failing.run, 1), (ASKED, begin.run, 1)]
    );
    assert_eq!(found[0].run.state, RunState::Failed);
}

pub(super) async fn the_newest_items_of_a_fingerprint_are_found(f: &mut Fixture<'_>) {
    let mut runs = Vec::new();
    for n in 0..MATCHES_PER_DIGEST + 2 {
        runs.push(turn(f, &format!("t{n}")).await);
    }
    let newest = runs.iter().rev().take(MATCHES_PER_DIGEST);
    let expected: Vec<_> = newest.map(|run| (ASKED, *run, 1)).collect();
    assert_eq!(short(&find(f, &[ASKED]).await), expected);
}

pub(super) async fn a_fingerprint_needs_its_item(f: &mut Fixture<'_>) {
    let begin = opening(f, "t");
    for item in [0, 2] {
        let wrong = Begin {
            fingerprints: finding(item, ASKED),
            ..begin.clone()
        };
        let error = f.store.begin(&f.scope, &wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(find(f, &[ASKED]).await, []);
    let lease = f.started(&begin).await.lease;
    let wrong = Publish {
        fingerprints: finding(3, ANSWERED),
        ..answer()
    };
    let error = f.store.publish(&f.scope, lease, &wrong).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(find(f, &[ANSWERED]).await, []);
    f.store.publish(&f.scope, lease, &answer()).await.unwrap();
}

pub(super) async fn fingerprints_go_with_their_items(f: &mut Fixture<'_>) {
    let digests = [ANSWERED, ASKED];
    let first = turn(f, "first").await;
    // A second thread says the question of the first one again, and adds nothing to be found by.
    let again = NewItem::Repeat(ItemRef { run: first, no: 1 });
    let second = Begin {
        input: vec![again],
        fingerprints: Vec::new(),
        ..opening(f, "second")
    };
    let lease = f.started(&second).await.lease;
    let plain = Publish::new(0, said_by_model("another answer"));
    f.store.publish(&f.scope, lease, &plain).await.unwrap();
    assert_eq!(find(f, &digests).await.len(), 2);
    f.store
        .delete(&f.scope, &ThreadId::new("first").unwrap())
        .await
        .unwrap();
    assert_eq!(find(f, &digests).await, []);
    while f.store.purge(1).await.unwrap().more {}
    assert_eq!(find(f, &digests).await, []);
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(checked.damage, []);
    let texts = f.texts(&ThreadId::new("second").unwrap()).await;
    assert_eq!(texts, ["a question", "another answer"]);
    // A hidden run is not found, and one whose item was redacted is.
    let hidden = turn(f, "hidden").await;
    f.store.hide(&f.scope, hidden).await.unwrap();
    assert_eq!(find(f, &digests).await, []);
    let redacted = turn(f, "redacted").await;
    let item = ItemRef {
        run: redacted,
        no: 1,
    };
    f.store.redact(&f.scope, item, "ada").await.unwrap();
    let expected = [(ANSWERED, redacted, 2), (ASKED, redacted, 1)];
    assert_eq!(short(&find(f, &digests).await), expected);
    let node = NodeRef::Run(redacted);
    let begin = Begin {
        input: said_by_user("go on"),
        ..Begin::new(f.store.ids().run(), Anchor::Node(node), Vec::new())
    };
    f.started(&begin).await;
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!(checked.damage, []);
}
