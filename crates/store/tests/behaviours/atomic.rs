//! Appends that are repeated, and appends that fail.

use throughline_model::Message;
use throughline_store::{Append, Error, ItemRef, NewItem, RunId, Store, ThreadId};
use throughline_testkit::Scratch;
use throughline_testkit::disk::{Disk, DiskFault, Injection};
use throughline_testkit::record::{block_on, user};

use crate::behaviours::ground::{add, adding, each, keyed, local, numbered, said, thread};

#[test]
fn b137_an_append_key_is_used_once() {
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        add(&store, &id, &[user("before")]).await;
        let messages = numbered("message", 0..3);
        let first = keyed(adding(&store, &id, &messages), "key", 1);
        let published = store.append(&local(), &first).await.unwrap();
        assert_eq!((published.last, published.moved), (4, true));
        add(&store, &id, &[user("after")]).await;
        // Sent again, and asked for again under another run's id, also by another process.
        assert_eq!(store.append(&local(), &first).await.unwrap(), published);
        let other = ground.open().await;
        let again = keyed(adding(&other, &id, &messages), "key", 1);
        assert_eq!(other.append(&local(), &again).await.unwrap(), published);
        // Another request under the key, and other items under the run's id.
        let changed = keyed(adding(&store, &id, &[user("other")]), "key", 2);
        let error = store.append(&local(), &changed).await.unwrap_err();
        assert!(
            matches!(&error, Error::KeyReused { key, run } if key == "key" && *run == first.run),
            "{error}"
        );
        let mut changed = adding(&store, &id, &[user("other")]);
        changed.run = first.run;
        let error = store.append(&local(), &changed).await.unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
        assert_eq!(
            said(&store, &id).await,
            ["before", "message 0", "message 1", "message 2", "after"]
        );
    });
}

/// 250 messages of two kilobytes.
fn many() -> Vec<Message> {
    let long = "a tide table of no particular year ".repeat(60);
    let message = |n: usize| user(&format!("{n} {long}"));
    (0..250).map(message).collect()
}

#[test]
fn b138_an_append_that_fails_in_the_middle_shows_nothing_and_is_repeated_once() {
    // Every engine: the store refuses it at its 126th item, after it has looked at those before.
    // An engine in memory can fail in no other way.
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        add(&store, &id, &[user("before")]).await;
        let whole = keyed(adding(&store, &id, &many()), "key", 1);
        let mut broken = whole.clone();
        broken.items[125] = NewItem::Repeat(ItemRef {
            run: RunId::from_bytes([9; 16]),
            no: 1,
        });
        store.append(&local(), &broken).await.unwrap_err();
        assert_eq!(said(&store, &id).await, ["before"]);
        appended_once(&store, &id, &whole).await;
    });
    // Files: the disk is full or fails after so many bytes of it, or its power is cut there.
    let size: u64 = 250 * 2100;
    for place in [0, size / 8, size / 2, size * 3 / 4] {
        for fault in [
            Injection::always(DiskFault::Full { room: place }),
            Injection::once(DiskFault::Write).after(place / 4096),
        ] {
            let scratch = Scratch::in_memory("middle");
            let disk = Disk::below(scratch.path());
            block_on(async {
                let store = Store::open(&scratch.sqlite("store.db")).await.unwrap();
                let id = thread(&store, "t").await;
                add(&store, &id, &[user("before")]).await;
                let whole = keyed(adding(&store, &id, &many()), "key", 1);
                disk.inject(fault);
                let failed = store.append(&local(), &whole).await;
                assert!(failed.is_err(), "{fault:?} harmed nothing");
                disk.heal();
                assert_eq!(said(&store, &id).await, ["before"], "{fault:?}");
                appended_once(&store, &id, &whole).await;
            });
        }
        let scratch = Scratch::in_memory("cut");
        let disk = Disk::below(scratch.path());
        let whole = block_on(async {
            let store = Store::open(&scratch.sqlite("store.db")).await.unwrap();
            let id = thread(&store, "t").await;
            add(&store, &id, &[user("before")]).await;
            let whole = keyed(adding(&store, &id, &many()), "key", 1);
            disk.cut_at(1 + place / 4096, place);
            store.append(&local(), &whole).await.unwrap_err();
            whole
        });
        let image = Scratch::in_memory("image");
        disk.write_image(image.path()).unwrap();
        block_on(async {
            let store = Store::open(&image.sqlite("store.db")).await.unwrap();
            assert_eq!(said(&store, &whole.thread).await, ["before"], "{place}");
            appended_once(&store, &whole.thread, &whole).await;
        });
    }
}

/// Append twice under one key: everything is there once, behind the first message.
async fn appended_once(store: &Store, id: &ThreadId, whole: &Append) {
    let published = store.append(&local(), whole).await.unwrap();
    let again = Append {
        run: store.ids().run(),
        ..whole.clone()
    };
    assert_eq!(store.append(&local(), &again).await.unwrap(), published);
    assert_eq!(published.last, 251);
    let texts = said(store, id).await;
    let numbers: Vec<&str> = texts[1..]
        .iter()
        .map(|text| text.split_once(' ').unwrap().0)
        .collect();
    let expected: Vec<String> = (0..250).map(|n| n.to_string()).collect();
    assert_eq!(numbers, expected);
}
