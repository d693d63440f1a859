//! Imports under the same names, and looking after a store with two tenants.

use std::time::Duration;

use super::twins::{Twin, Twins, alike};
use crate::conformance::fixture::{Fixture, LEASE};
use crate::{
    At, Import, ImportItem, ImportNode, ItemContent, Mode, NewThread, NodeId, NodeRef, RunKind,
    RunState, ThreadId,
};
use throughline_model::Message;

/// A node of one item.
fn node(node: NodeId, parent: Option<NodeId>, item: ItemContent) -> Box<ImportNode> {
    Box::new(ImportNode {
        node,
        parent,
        items: vec![ImportItem::Content(item)],
        open: false,
        state: None,
        created: 1_000,
        kind: RunKind::Turn,
        mode: Mode::PerRun,
        ended: RunState::Committed,
        begun: 900,
        note: None,
        hidden: false,
    })
}

fn finish(thread: ThreadId, head: Option<NodeId>) -> Import {
    Import::Finish {
        thread,
        head,
        touched: 2_000,
    }
}

fn said(me: &Twin<'_>) -> ItemContent {
    let text = format!("imported by {}", me.word);
    ItemContent::of(&Message::user(text)).remove(0)
}

pub(in crate::conformance) async fn tenants_import_under_the_same_names(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let unmade = NodeId {
        run: ids.run(),
        step: 0,
    };
    let nowhere = ThreadId::new("nowhere").unwrap();
    let moved = ThreadId::new("moved").unwrap();
    // Both import the same thread at the same time, from the same place: under the same ids.
    let same = NodeId {
        run: ids.run(),
        step: 0,
    };
    let open = |me: &Twin<'_>, id: &ThreadId| Import::Open {
        thread: NewThread {
            title: Some(format!("title of {}", me.word)),
            ..NewThread::new(id.clone())
        },
        created: 500,
    };
    for (me, _) in twins.pairs() {
        let import = async |import: Import| me.f.store.import(&me.f.scope, &import).await;
        import(open(me, &moved)).await.unwrap();
        let thread = moved.clone();
        let node = node(same, None, said(me));
        import(Import::Node { thread, node }).await.unwrap();
    }
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let import = async |import: Import| store.import(scope, &import).await;
        // What the other imports by itself is no import of this one.
        let theirs = ThreadId::new(&format!("import-{}", other.own)).unwrap();
        let opened = open(other, &theirs);
        other.f.store.import(&other.f.scope, &opened).await.unwrap();
        alike("import", &theirs, &nowhere, async |thread| {
            let node = node(other.node, None, said(me));
            import(Import::Node { thread, node }).await
        })
        .await;
        alike("import", &theirs, &nowhere, async |thread| {
            import(finish(thread, None)).await
        })
        .await;
        alike("import", &theirs, &nowhere, async |thread| {
            import(Import::Abort { thread }).await
        })
        .await;
        // Nor are its nodes parents or heads.
        alike("import", &other.node, &unmade, async |parent| {
            let thread = moved.clone();
            let new = NodeId {
                run: ids.run(),
                step: 0,
            };
            let node = node(new, Some(parent), said(me));
            import(Import::Node { thread, node }).await
        })
        .await;
        alike("import", &other.node, &unmade, async |head| {
            import(finish(moved.clone(), Some(head))).await
        })
        .await;
        // A node under the name that one of the other has.
        let thread = moved.clone();
        let more = node(other.node, Some(same), said(me));
        import(Import::Node { thread, node: more }).await.unwrap();
        let finished = finish(moved.clone(), Some(other.node));
        import(finished).await.unwrap();
        for at in [
            At::Thread(moved.clone()),
            At::Node(NodeRef::Node(other.node)),
        ] {
            let text = format!("imported by {}", me.word);
            assert_eq!(me.texts(&at).await, [text.clone(), text]);
        }
        // Its import goes on.
        let thread = theirs.clone();
        let abort = Import::Abort { thread };
        other.f.store.import(&other.f.scope, &abort).await.unwrap();
        other.still_sees(&before).await;
        // A name that the other has for a thread.
        import(open(me, &other.own)).await.unwrap();
        let abort = Import::Abort {
            thread: other.own.clone(),
        };
        import(abort).await.unwrap();
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}

/// Sweeps up; how many threads are gone for good.
async fn swept(f: &Fixture<'_>) -> u64 {
    let mut threads = 0;
    loop {
        let purged = f.store.purge(3).await.unwrap();
        threads += purged.threads;
        if !purged.more {
            return threads;
        }
    }
}

pub(in crate::conformance) async fn tenants_are_looked_after_apart(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let checked = f.store.check(&mut |_| {}).await.unwrap();
    assert_eq!((checked.threads, checked.damage), (6, vec![]));
    assert_eq!(f.store.orphans(10).await.unwrap(), []);
    f.clock.advance(LEASE + Duration::from_secs(1));
    let found = f.store.orphans(10).await.unwrap();
    let mut found: Vec<_> = found
        .iter()
        .map(|orphan| (orphan.scope.tenant().as_str().to_owned(), orphan.run))
        .collect();
    found.sort();
    let mut expected = Vec::new();
    for (me, _) in twins.pairs() {
        for lease in [me.own_lease, me.lease] {
            expected.push((me.word.to_owned(), lease.run));
        }
    }
    expected.sort();
    assert_eq!(found, expected);
    // A thread that outlives its time is one of its tenant; another of the same name stays.
    f.clock.advance(LEASE);
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        let short = NewThread {
            keep: Some(1_000),
            ..NewThread::new(ThreadId::new("short").unwrap())
        };
        let opened = store.open_or_create(scope, &short, 0).await.unwrap();
        assert_eq!(opened.thread.keep, Some(1_000));
        me.turn(&short.id).await;
        let long = NewThread {
            keep: None,
            ..short.clone()
        };
        let scope = &other.f.scope;
        other.f.store.open_or_create(scope, &long, 0).await.unwrap();
        other.turn(&short.id).await;
        let before = other.view().await;
        f.clock.advance(Duration::from_secs(2));
        assert_eq!(swept(f).await, 1);
        other.still_sees(&before).await;
        other.f.store.delete(scope, &short.id).await.unwrap();
        assert_eq!(swept(f).await, 1);
    }
    twins.are_apart().await;
}
