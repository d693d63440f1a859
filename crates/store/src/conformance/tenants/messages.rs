//! Items that are added and removed by hand.

use super::twins::{KEY, Twins, alike};
use crate::conformance::fixture::{Fixture, said_by_user};
use crate::{Append, At, ErrorKind, ItemRef, NewItem, Published, RunId, ThreadId};

pub(in crate::conformance) async fn tenants_add_items_to_their_own_threads(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let ids = f.store.ids();
    let unmade = ids.run();
    let nowhere = ThreadId::new("nowhere").unwrap();
    // Both have a thread that is gone with the run that had a key.
    let gone = ThreadId::new("gone").unwrap();
    for (me, _) in twins.pairs() {
        me.f.thread(gone.as_str()).await;
        let append = Append {
            run: ids.run(),
            thread: gone.clone(),
            expected: None,
            items: said_by_user(me.word),
            state: None,
            key: Some(me.key("key-2")),
        };
        me.f.store.append(&me.f.scope, &append).await.unwrap();
    }
    for (me, _) in twins.pairs() {
        me.f.store.delete(&me.f.scope, &gone).await.unwrap();
    }
    let run = ids.run();
    // The second first: it finds the rows of the other before its own.
    for (me, other) in twins.pairs().into_iter().rev() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let append = |run: RunId, thread: &ThreadId| Append {
            run,
            thread: thread.clone(),
            expected: None,
            items: said_by_user(&format!("by hand of {}", me.word)),
            state: None,
            key: None,
        };
        alike("append", &other.own, &nowhere, async |id| {
            store.append(scope, &append(ids.run(), &id)).await
        })
        .await;
        alike("append", &other.run, &unmade, async |run| {
            let again = NewItem::Repeat(ItemRef { run, no: 1 });
            let append = Append {
                items: vec![again],
                ..append(ids.run(), &me.thread)
            };
            store.append(scope, &append).await
        })
        .await;
        // Names of the other's runs are free; one's own are taken.
        let answers = |published: Published, run: RunId| {
            assert_eq!(published.node.map(|node| node.run), Some(run));
            assert!(published.moved);
        };
        for run in [other.run, run] {
            for _ in 0..2 {
                let published = store.append(scope, &append(run, &me.thread)).await;
                answers(published.unwrap(), run);
            }
        }
        let taken = store.append(scope, &append(me.run, &me.thread)).await;
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::Conflict);
        // So is a key that a deleted thread had, one's own too.
        let keyed = |key: &str| Append {
            key: Some(me.key(key)),
            ..append(ids.run(), &me.thread)
        };
        let first = keyed("key-2");
        let published = store.append(scope, &first).await.unwrap();
        answers(published, first.run);
        // And one that is in use leads to the run that has it here.
        let known = format!("{:?}", store.append(scope, &keyed(KEY)).await);
        assert!(known.contains(&me.run.to_hex()), "{known}");
        let published = store.append(scope, &keyed("key-2")).await.unwrap();
        answers(published, first.run);
        let said = me.texts(&At::Thread(me.thread.clone())).await;
        let by_hand = said.iter().filter(|text| text.starts_with("by hand"));
        assert_eq!(by_hand.count(), 3);
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}

pub(in crate::conformance) async fn tenants_redact_their_own_items(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let unmade = f.store.ids().run();
    for (me, other) in twins.pairs() {
        let before = other.view().await;
        let (store, scope) = (&me.f.store, &me.f.scope);
        let lost = me.lost_work().await;
        for theirs in [other.run, other.own_run, other.own_lease.run, lost] {
            alike("redact", &theirs, &unmade, async |run| {
                store.redact(scope, ItemRef { run, no: 1 }, me.word).await
            })
            .await;
        }
        for run in [me.run, me.lease.run] {
            let item = ItemRef { run, no: 1 };
            store.redact(scope, item, me.word).await.unwrap();
        }
        let said = me.texts(&At::Thread(me.thread.clone())).await;
        let answer = format!("answer to {}", me.word);
        assert_eq!(said[..2], ["[redacted]".to_owned(), answer]);
        let journal = store.journal(scope, me.lease.run).await.unwrap();
        let by = journal.entries[0].redacted.as_ref().map(|one| &*one.by);
        assert_eq!(by, Some(me.word));
        other.still_sees(&before).await;
    }
    twins.are_apart().await;
}
