//! Consumers that read what is new.

use throughline_store::{Authority, Cursor, Error, ErrorKind, Increment, NewThread, Tenant};
use throughline_testkit::record::{shorts, user};

use crate::behaviours::ground::{add, each, history, local, numbered, thread, turn};

#[test]
fn b139_increments_of_twenty_give_the_whole_history_and_then_nothing() {
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        add(&store, &id, &numbered("message", 0..45)).await;
        let mut cursor: Option<Cursor> = None;
        let mut pages: Vec<Increment> = Vec::new();
        for _ in 0..5 {
            let page = store.increment(&local(), &id, cursor.as_ref(), 20).await;
            let page = page.unwrap();
            cursor = Some(page.next);
            pages.push(page);
        }
        let sizes: Vec<_> = pages.iter().map(|page| page.entries.len()).collect();
        assert_eq!(sizes, [20, 20, 5, 0, 0]);
        let more: Vec<_> = pages.iter().map(|page| page.more).collect();
        assert_eq!(more, [true, true, false, false, false]);
        assert_eq!(pages[3].next, pages[2].next);
        assert_eq!(pages[4].next, pages[2].next);
        let whole: Vec<_> = pages.into_iter().flat_map(|page| page.entries).collect();
        assert_eq!(whole, history(&store, &id).await.unwrap());
    });
}

#[test]
fn b140_a_consumer_that_died_reads_the_same_again_and_nothing_twice() {
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        add(&store, &id, &numbered("message", 0..3)).await;
        let kept = store.increment(&local(), &id, None, 2).await.unwrap().next;
        // What is kept of a cursor is its text.
        let kept: Cursor = kept.to_string().parse().unwrap();
        let read = store
            .increment(&local(), &id, Some(&kept), 10)
            .await
            .unwrap();
        assert_eq!(shorts(&read.entries), ["message 2"]);
        drop(store);
        let store = ground.open().await;
        let again = store.increment(&local(), &id, Some(&kept), 10).await;
        assert_eq!(again.unwrap(), read);
        add(&store, &id, &[user("later")]).await;
        let new = store.increment(&local(), &id, Some(&read.next), 10).await;
        let new = new.unwrap();
        assert_eq!(shorts(&new.entries), ["later"]);
        let none = store.increment(&local(), &id, Some(&new.next), 10).await;
        assert_eq!(none.unwrap().entries, []);
        // From the old cursor on it comes once too.
        let all = store.increment(&local(), &id, Some(&kept), 10).await;
        assert_eq!(shorts(&all.unwrap().entries), ["message 2", "later"]);
    });
}

#[test]
fn b141_a_cursor_of_elsewhere_is_an_error_and_no_start_from_the_beginning() {
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        let other = thread(&store, "other").await;
        for thread in [&id, &other] {
            turn(&store, thread, "one").await;
            turn(&store, thread, "two").await;
        }
        let cursor = store.increment(&local(), &id, None, 2).await.unwrap().next;
        let bad = |result: Result<Increment, Error>| match result {
            Err(error @ Error::BadCursor { .. }) => assert_eq!(error.kind(), ErrorKind::Invalid),
            other => panic!("{other:?}"),
        };
        bad(store.increment(&local(), &other, Some(&cursor), 10).await);
        // The same thread of another tenant.
        let stranger = Authority::assume().scope(Tenant::new("stranger").unwrap());
        let new = NewThread::new(id.clone());
        store.open_or_create(&stranger, &new, 0).await.unwrap();
        bad(store.increment(&stranger, &id, Some(&cursor), 10).await);
        // One that was made up, and texts that are none.
        let text = cursor.to_string();
        let (rest, _) = text.rsplit_once('_').unwrap();
        let forged: Cursor = format!("{rest}_0123456789abcdef").parse().unwrap();
        bad(store.increment(&local(), &id, Some(&forged), 10).await);
        for garbage in [
            "",
            "0",
            "cur_",
            "cur_1_2",
            "' OR 1=1",
            &text[1..],
            &text.to_uppercase(),
        ] {
            assert!(garbage.parse::<Cursor>().is_err(), "{garbage:?}");
        }
    });
}
