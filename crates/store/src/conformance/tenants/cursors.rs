//! Following threads of the same name.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::twins::{Twins, alike};
use crate::conformance::fixture::{Fixture, texts};
use crate::{Cursor, ErrorKind, ThreadId, Version};

pub(in crate::conformance) async fn tenants_follow_their_own_threads(f: &mut Fixture<'_>) {
    let twins = Twins::new(f).await;
    let nowhere = ThreadId::new("nowhere").unwrap();
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        let last = me.f.texts(&me.thread).await.len();
        let theirs = other
            .f
            .store
            .increment(&other.f.scope, &other.thread, None, 1);
        let theirs = theirs.await.unwrap().next;
        let chosen = other.f.store.cursor(&other.f.scope, &other.thread, 2);
        let chosen = chosen.await.unwrap();
        let start = other.f.store.cursor(&other.f.scope, &other.thread, 0);
        let start = start.await.unwrap();
        // One that no store has made.
        let forged: Cursor = "cur_1_1_0123456789abcdef".parse().unwrap();
        for cursor in [theirs, chosen, start] {
            alike("increment", &cursor, &forged, async |cursor| {
                store.increment(scope, &me.thread, Some(&cursor), 10).await
            })
            .await;
        }
        let mine = store.cursor(scope, &me.thread, 1).await.unwrap();
        let page = store.increment(scope, &me.thread, Some(&mine), 10).await;
        let page = page.unwrap();
        assert_eq!(page.entries.len(), last - 1);
        assert_eq!(texts(&page.entries)[0], format!("answer to {}", me.word));
        alike("increment", &other.own, &nowhere, async |id| {
            store.increment(scope, &id, None, 10).await
        })
        .await;
        alike("cursor", &other.own, &nowhere, async |id| {
            store.cursor(scope, &id, 1).await
        })
        .await;
        // As far as its own thread goes: that of the other may be longer.
        let beyond = store.cursor(scope, &me.thread, last as u64 + 1).await;
        assert_eq!(beyond.unwrap_err().kind(), ErrorKind::Invalid);
        let sealed = store.seal(scope, "parcel", b"bytes");
        assert_ne!(
            other.f.store.seal(&other.f.scope, "parcel", b"bytes"),
            sealed
        );
    }
    for (me, other) in twins.pairs() {
        let (store, scope) = (&me.f.store, &me.f.scope);
        alike("changed", &other.own, &nowhere, async |id| {
            store.changed(scope, &id, Version(99)).await
        })
        .await;
        let seen = me.f.open(&me.thread).await.thread.version;
        let before = store.changed(scope, &me.thread, Version(99)).await;
        assert_eq!(before.unwrap(), seen);
        // A change of the other's thread is none of this one.
        let mut waiting = pin!(store.changed(scope, &me.thread, seen));
        for _ in 0..2 {
            let now = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
            assert!(now.is_pending(), "{} was woken: {now:?}", me.word);
            other.turn(&other.thread).await;
        }
        me.turn(&me.thread).await;
        assert_eq!(waiting.await.unwrap(), Version(seen.0 + 1));
    }
    twins.are_apart().await;
}
