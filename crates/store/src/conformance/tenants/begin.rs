//! Runs that begin under the same names.

use super::twins::{KEY, PLANNED, Twin, Twins, WAITING, alike};
use crate::conformance::fixture::{Fixture, said_by_user};
use crate::{
    Anchor, Answer, At, Begin, Begun, CallRef, CallState, Decision, Expects, ItemRef, Leasing,
    NewItem, NewThread, NodeRef, Publish, RunId, ThreadId, Version, arguments_digest,
};

/// Begins a run and wants it begun.
async fn started(me: &Twin<'_>, begin: &Begin) -> Version {
    let started = me.f.started(begin).await;
    assert_eq!(started.lease.run, begin.run);
    started.version
}

/// Both have a run under a key on a thread, and delete the thread.
async fn delete_a_thread_with_a_keyed_run(twins: &Twins<'_>, gone: &ThreadId) {
    for (me, _) in twins.pairs() {
        me.f.thread(gone.as_str()).await;
        let at = Anchor::Head {
            thread: gone.clone(),
            expected: Version(0),
        };
        let run = me.f.store.ids().run();
        started(me, &me.keyed_begin(run, at, "key-2")).await;
    }
    for (me, _) in twins.pairs() {
        me.f.store.delete(&me.f.scope, gone).await.unwrap();
    }
}

pub(in crate::conformance) async fn tenants_begin_runs_under_the_same_names(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let nowhere = ThreadId::new("nowhere").unwrap();
    let unmade = ids.run();
    let run = ids.run();
    let gone = ThreadId::new("gone").unwrap();
    delete_a_thread_with_a_keyed_run(&twins, &gone).await;
    // The second first: it finds the rows of the other before its own.
    for (me, other) in twins.pairs().into_iter().rev() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let begin = |run: RunId, at: Anchor| {
            Begin::new(run, at, said_by_user(&format!("more of {}", me.word)))
        };
        let new = |thread: &ThreadId| Anchor::New {
            thread: me.new_thread(thread, &other.own_alias),
            leasing: Leasing::Thread,
        };
        alike("begin", &other.own, &nowhere, async |thread| {
            let expected = Version(1);
            let at = Anchor::Head { thread, expected };
            store.begin(scope, &begin(ids.run(), at)).await
        })
        .await;
        for theirs in [other.run, other.own_lease.run] {
            alike("begin", &theirs, &unmade, async |run| {
                let at = Anchor::Node(NodeRef::Run(run));
                store.begin(scope, &begin(ids.run(), at)).await
            })
            .await;
        }
        let found = store.run_by_key(scope, &me.key(KEY)).await.unwrap();
        assert_eq!(found.map(|run| run.id), Some(me.run));
        // A key that both have in use answers with one's own run, whether or not the thread would
        // have other names; that of a deleted thread is free.
        let keyed = |key, at| me.keyed_begin(ids.run(), at, key);
        let plain = Anchor::New {
            thread: NewThread::new(other.own.clone()),
            leasing: Leasing::Thread,
        };
        for at in [plain, new(&other.own)] {
            match store.begin(scope, &keyed(KEY, at)).await.unwrap() {
                Begun::Repeated(known) => {
                    assert_eq!((known.id, &known.thread), (me.run, &me.thread));
                }
                Begun::Started(started) => panic!("{started:?}"),
            }
        }
        // The name of a thread that the other has, with an alias that it has, under an id that one
        // of its runs has.
        let first = Begin {
            run: other.own_run,
            ..keyed("key-2", new(&other.own))
        };
        for _ in 0..2 {
            started(me, &first).await;
        }
        other.still_sees(&before).await;
        // At a node, by what is remembered of it. The versions of the two threads differ.
        for run in [me.run, me.own_run] {
            let at = At::Node(NodeRef::Run(run));
            let opened = store.open(scope, &at, 1).await.unwrap();
            let at = Anchor::Node(NodeRef::Run(run));
            let version = started(me, &begin(ids.run(), at)).await;
            assert_eq!(version, opened.thread.version);
        }
        // The same id in both, which neither has so far.
        let at = Anchor::Node(NodeRef::Run(me.own_run));
        let second = Begin {
            expects: Some(Expects {
                settings: Some(me.json()),
            }),
            ..begin(run, at)
        };
        for _ in 0..2 {
            started(me, &second).await;
        }
        // The queue of the other's thread is not that of one's own.
        let quiet = me.f.thread("quiet").await;
        let at = Anchor::Head {
            thread: quiet.clone(),
            expected: Version(0),
        };
        let third = Begin {
            expects: Some(Expects { settings: None }),
            ..begin(ids.run(), at)
        };
        started(me, &third).await;
        me.enqueue(&quiet).await;
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_take_their_own_calls_and_messages(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let unmade = ids.run();
    for (me, _) in twins.pairs() {
        // An open node: the calls wait for the run that takes them.
        let publish = Publish::new(1, Vec::new());
        let published = me.f.store.publish(&me.f.scope, me.lease, &publish).await;
        published.unwrap();
    }
    // The second first: it finds the rows of the other before its own.
    for (me, other) in twins.pairs().into_iter().rev() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        let answer = Answer {
            approval: me.approval,
            shown: arguments_digest("get_tide", "{}"),
            decision: Decision::Approved,
            by: me.word.into(),
            reason: None,
        };
        store.answer(scope, &answer).await.unwrap();
        let before = other.view().await;
        let at = || Anchor::Node(NodeRef::Run(me.lease.run));
        let begin = || me.f.begin_at(at(), &format!("goes on for {}", me.word));
        let call = |run: RunId, position: u32| CallRef {
            run,
            step: 0,
            position,
        };
        // What was one's own is gone too, although others have threads.
        let lost = me.lost_work().await;
        for theirs in [other.own_lease.run, lost] {
            for position in [PLANNED, WAITING] {
                alike("begin", &theirs, &unmade, async |run| {
                    let takes = vec![call(run, position)];
                    store.begin(scope, &Begin { takes, ..begin() }).await
                })
                .await;
            }
        }
        for at in [
            at(),
            Anchor::New {
                thread: me.new_thread(&other.own, &other.own_alias),
                leasing: Leasing::Free,
            },
        ] {
            for theirs in [other.run, lost] {
                alike("begin", &theirs, &unmade, async |run| {
                    let begin = Begin {
                        at: at.clone(),
                        input: vec![NewItem::Repeat(ItemRef { run, no: 1 })],
                        ..begin()
                    };
                    store.begin(scope, &begin).await
                })
                .await;
            }
        }
        let taking = Begin {
            takes: vec![call(me.lease.run, WAITING)],
            ..begin()
        };
        started(me, &taking).await;
        other.still_sees(&before).await;
        let journal = store.journal(scope, me.lease.run).await.unwrap();
        let waiting = &journal.calls[WAITING as usize];
        assert_eq!(
            (waiting.state, waiting.taken_by),
            (CallState::Taken, Some(taking.run))
        );
        // Numbers of the other's queue stand for nothing here, one's own for one's own.
        let said = said_by_user(&format!("delivered to {}", me.word));
        let expected = me.f.open(&me.thread).await.thread.version;
        let at = Anchor::Head {
            thread: me.thread.clone(),
            expected,
        };
        let kept = me.enqueue(&me.thread).await;
        let mut dequeue = vec![other.queued, me.queued];
        dequeue.retain(|no| *no != kept);
        let taking = Begin {
            dequeue,
            ..Begin::new(ids.run(), at, said)
        };
        started(me, &taking).await;
        let left = store.queue(scope, &me.thread).await.unwrap();
        assert_eq!(left.iter().map(|one| one.no).collect::<Vec<_>>(), [kept]);
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}
