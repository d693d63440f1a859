//! Threads under the same names.

use super::twins::{Twins, alike};
use crate::conformance::fixture::{Fixture, texts};
use crate::{
    Alias, At, ErrorKind, Fork, NewThread, NodeId, NodeRef, Span, ThreadFilter, ThreadId,
    ThreadPatch, Version,
};

fn nowhere() -> ThreadId {
    ThreadId::new("nowhere").unwrap()
}

pub(in crate::conformance) async fn tenants_open_their_own_threads(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let unmade = f.store.ids().run();
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        let first = [
            format!("asked by {}", me.word),
            format!("answer to {}", me.word),
        ];
        for at in [At::Thread(me.thread.clone()), At::Alias(me.alias.clone())] {
            assert_eq!(me.texts(&at).await[..2], first);
            let page = store.read(scope, &at, Span::After(0), 2).await.unwrap();
            assert_eq!(texts(&page.entries), first);
        }
        for node in [NodeRef::Run(me.run), NodeRef::Node(me.node)] {
            let opened = store.open(scope, &At::Node(node), 10).await.unwrap();
            assert_eq!(texts(&opened.entries), first);
            assert_eq!(opened.thread.id, me.thread);
        }
        let open = async |at: At| store.open(scope, &at, 10).await;
        let read = async |at: At| store.read(scope, &at, Span::Tail, 10).await;
        alike("open", &other.own, &nowhere(), async |id| {
            open(At::Thread(id)).await
        })
        .await;
        alike("read", &other.own, &nowhere(), async |id| {
            read(At::Thread(id)).await
        })
        .await;
        let (theirs, absent) = (other.own_alias.name.clone(), "nowhere".to_owned());
        let alias = |name: String| At::Alias(Alias::new(&other.own_alias.kind, name));
        alike("open", &theirs, &absent, async |name| {
            open(alias(name)).await
        })
        .await;
        alike("read", &theirs, &absent, async |name| {
            read(alias(name)).await
        })
        .await;
        // What is published, and what is not.
        for theirs in [other.run, other.own_run, other.own_lease.run] {
            alike("open", &theirs, &unmade, async |run| {
                open(At::Node(NodeRef::Run(run))).await
            })
            .await;
            alike("read", &theirs, &unmade, async |run| {
                read(At::Node(NodeRef::Run(run))).await
            })
            .await;
            alike("open", &theirs, &unmade, async |run| {
                open(At::Node(NodeRef::Node(NodeId { run, step: 0 }))).await
            })
            .await;
        }
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_make_threads_of_the_same_names(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let unmade = f.store.ids().run();
    let (empty, copy) = (
        ThreadId::new("empty").unwrap(),
        ThreadId::new("copy").unwrap(),
    );
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        // Names that only the other has are free.
        me.make(&other.own, &other.own_alias).await;
        me.turn(&other.own).await;
        let at = At::Alias(other.own_alias.clone());
        assert_eq!(me.texts(&at).await.len(), 2);
        // A thread that is there is opened, also with names that the other has elsewhere.
        let new = NewThread {
            aliases: vec![other.own_alias.clone()],
            ..NewThread::new(other.own.clone())
        };
        let again = store.open_or_create(scope, &new, 10).await.unwrap();
        assert_eq!(again.thread.version, Version(1));
        other.still_sees(&before).await;
    }
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let fork = |from: At, id: &str| Fork {
            from,
            thread: NewThread::new(ThreadId::new(id).unwrap()),
        };
        for theirs in [other.run, other.own_run] {
            alike("fork", &theirs, &unmade, async |run| {
                let from = At::Node(NodeRef::Run(run));
                store.fork(scope, &fork(from, "fork")).await
            })
            .await;
        }
        // The other may have a fork of this name, of its own node or of none.
        let from = At::Alias(me.alias.clone());
        let made = store.fork(scope, &fork(from, "fork")).await.unwrap();
        let texts = me.texts(&At::Thread(made.id.clone())).await;
        assert_eq!(texts[0], format!("asked by {}", me.word));
        me.f.thread(empty.as_str()).await;
        let from = At::Thread(empty.clone());
        for _ in 0..2 {
            let made = store
                .fork(scope, &fork(from.clone(), "copy"))
                .await
                .unwrap();
            assert_eq!((made.id, made.head), (copy.clone(), None));
        }
        me.turn(&copy).await;
        assert_eq!(me.texts(&At::Thread(copy.clone())).await.len(), 2);
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_change_their_own_threads(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let patch = ThreadPatch {
            title: Some(Some(format!("new title of {}", me.word))),
            keep: Some(Some(1_000_000)),
            remove_aliases: vec![me.alias.clone(), other.own_alias.clone()],
            ..ThreadPatch::default()
        };
        alike("patch", &other.own, &nowhere(), async |id| {
            store.patch(scope, &id, &patch).await
        })
        .await;
        let after = store.patch(scope, &me.thread, &patch).await.unwrap();
        assert_eq!(after.title, Some(format!("new title of {}", me.word)));
        assert_eq!(after.aliases, []);
        let gone = store.open(scope, &At::Alias(me.alias.clone()), 1).await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
        // A name that the other has is free; once it is given, no other thread gives it away.
        let add = ThreadPatch {
            add_aliases: vec![other.own_alias.clone()],
            ..ThreadPatch::default()
        };
        let after = store.patch(scope, &me.thread, &add).await.unwrap();
        assert_eq!(after.aliases, add.add_aliases);
        store.patch(scope, &me.own, &patch).await.unwrap();
        let at = At::Alias(other.own_alias.clone());
        let kept = store.open(scope, &at, 1).await.unwrap();
        assert_eq!(kept.thread.id, me.thread);
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_list_their_own_threads(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let unmade = f.store.ids().run();
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        let list = async |filter: ThreadFilter, after| {
            let page = store.threads(scope, &filter, after, 10).await.unwrap();
            let mut names = Vec::new();
            for thread in page.found {
                if thread.id != me.work {
                    assert_eq!(thread.title, Some(format!("title of {}", me.word)));
                }
                names.push(thread.id);
            }
            names.sort();
            names
        };
        let all = [me.own.clone(), me.thread.clone(), me.work.clone()];
        assert_eq!(list(ThreadFilter::default(), None).await, all);
        let kind = ThreadFilter {
            alias_kind: Some(me.own_alias.kind.clone()),
            ..ThreadFilter::default()
        };
        assert_eq!(list(kind, None).await, all[..1]);
        for (word, expected) in [(me.word, &all[..2]), (other.word, &[])] {
            let meta = ThreadFilter {
                meta: vec![("who".into(), word.into())],
                ..ThreadFilter::default()
            };
            assert_eq!(list(meta, None).await, expected);
        }
        // Where a page of the other ended is a place like any other.
        let filter = ThreadFilter::default();
        for limit in 1..3 {
            let theirs = other.f.store.threads(&other.f.scope, &filter, None, limit);
            let after = theirs.await.unwrap().next;
            let rest = list(ThreadFilter::default(), after).await;
            assert!(rest.iter().all(|id| all.contains(id)), "{rest:?}");
        }

        let tree = async |thread: &ThreadId, after| {
            let nodes = store.tree(scope, thread, after, 10).await?;
            Ok(nodes.iter().map(|node| node.node).collect::<Vec<_>>())
        };
        let nodes = tree(&me.thread, None).await.unwrap();
        assert_eq!(nodes[0], me.node);
        assert_eq!(tree(&me.thread, Some(me.node)).await.unwrap(), nodes[1..]);
        alike("tree", &other.own, &nowhere(), async |id| {
            tree(&id, None).await
        })
        .await;
        let absent = NodeId {
            run: unmade,
            step: 0,
        };
        alike("tree", &other.node, &absent, async |node| {
            tree(&me.thread, Some(node)).await
        })
        .await;
        let record = store.node(scope, me.node, 1, 10).await.unwrap();
        assert_eq!(record.items.len(), 2);
        assert!(record.items.iter().all(|item| item.at.run == me.run));
        alike("node", &other.node, &absent, async |node| {
            store.node(scope, node, 1, 10).await
        })
        .await;
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_delete_their_own_threads(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        alike("delete", &other.own, &nowhere(), async |id| {
            store.delete(scope, &id).await
        })
        .await;
        other.still_sees(&before).await;
        // A node lives as long as a thread of its tenant reaches it.
        let fork = Fork {
            from: At::Node(NodeRef::Run(me.run)),
            thread: NewThread::new(ThreadId::new("fork").unwrap()),
        };
        let fork = store.fork(scope, &fork).await.unwrap().id;
        me.turn(&fork).await;
        store.delete(scope, &me.thread).await.unwrap();
        assert!(store.node(scope, me.node, 1, 10).await.is_ok());
        store.delete(scope, &fork).await.unwrap();
        let gone = store.node(scope, me.node, 1, 10).await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
        for thread in [&me.thread, &me.work] {
            store.delete(scope, thread).await.unwrap();
            let gone = store.open(scope, &At::Thread(thread.clone()), 1).await;
            assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
        }
        let alias = store.open(scope, &At::Alias(me.alias.clone()), 1).await;
        assert_eq!(alias.unwrap_err().kind(), ErrorKind::NotFound);
        other.still_sees(&before).await;
        while store.purge(3).await.unwrap().more {}
        other.still_sees(&before).await;
        // The names are free for their tenant, and the other's lead where they led.
        me.make(&me.thread, &me.alias).await;
        me.turn(&me.thread).await;
        me.f.thread(me.work.as_str()).await;
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}
