//! Order, and pages from the end.

use std::sync::Arc;

use throughline_model::Message;
use throughline_store::{ManualClock, Span, Store};
use throughline_testkit::Scratch;
use throughline_testkit::disk::Disk;
use throughline_testkit::record::{block_on, shorts, user};

use crate::behaviours::ground::{NOW, add, at, each, history, local, numbered, thread};

#[test]
fn b136_messages_of_one_timestamp_come_back_in_the_order_of_appending() {
    each(async |ground| {
        let hour = 3_600_000;
        let clocks = [NOW + hour, NOW, NOW - hour].map(|now| Arc::new(ManualClock::at(now)));
        let mut stores = Vec::new();
        for clock in &clocks {
            stores.push(ground.open_at(clock).await);
        }
        let id = thread(&stores[0], "t").await;
        let mut expected = Vec::new();
        // Some one by one, some together, by each of them in turn.
        for n in 0.. {
            let count = [1, 1, 7][n % 3].min(1000 - expected.len());
            let texts: Vec<String> = (0..count)
                .map(|more| format!("message {}", expected.len() + more))
                .collect();
            let message = |text: &String| Message {
                created: Some(NOW),
                ..user(text)
            };
            let messages: Vec<Message> = texts.iter().map(message).collect();
            add(&stores[n % 3], &id, &messages).await;
            expected.extend(texts);
            if expected.len() == 1000 {
                break;
            }
        }
        for store in &stores {
            let entries = history(store, &id).await.unwrap();
            assert_eq!(shorts(&entries), expected);
            let positions: Vec<u64> = entries.iter().map(|entry| entry.first).collect();
            assert_eq!(positions, (1..=1000).collect::<Vec<u64>>());
        }
    });
}

#[test]
fn b142_the_last_of_many_are_the_newest_and_stand_in_order() {
    each(async |ground| {
        let store = ground.open().await;
        let id = thread(&store, "t").await;
        for from in (0..10_000).step_by(1000) {
            add(&store, &id, &numbered("message", from..from + 1000)).await;
        }
        let newest = |count: usize| shorts_of(10_000 - count..10_000);
        let page = store
            .read(&local(), &at(&id), Span::Tail, 50)
            .await
            .unwrap();
        assert_eq!(shorts(&page.entries), newest(50));
        assert_eq!(
            (page.entries[0].first, page.last, page.more),
            (9_951, 10_000, true)
        );
        // Opening a thread reads the same; whatever the size of a page, its end is the newest.
        for window in [1, 50, 999, 10_000] {
            let opened = store.open(&local(), &at(&id), window).await.unwrap();
            assert_eq!(shorts(&opened.entries), newest(window), "{window}");
            let page = store.read(&local(), &at(&id), Span::Tail, window).await;
            assert_eq!(page.unwrap().entries, opened.entries, "{window}");
        }
    });
    the_last_of_many_are_one_range();
}

fn shorts_of(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| format!("message {n}")).collect()
}

/// In a file, the last of many are one range: they take no more reads than those of few.
fn the_last_of_many_are_one_range() {
    let reads = |count: usize| {
        let scratch = Scratch::in_memory("tail");
        let disk = Disk::below(scratch.path());
        let url = scratch.sqlite("store.db");
        block_on(async {
            let store = Store::open(&url).await.unwrap();
            let id = thread(&store, "t").await;
            for from in (0..count).step_by(100) {
                add(&store, &id, &numbered("message", from..from + 100)).await;
            }
            store.close().await.unwrap();
            // Nothing is in a cache.
            let store = Store::open(&url).await.unwrap();
            let before = disk.counts().reads;
            let page = store
                .read(&local(), &at(&id), Span::Tail, 50)
                .await
                .unwrap();
            assert_eq!(page.entries.len(), 50);
            disk.counts().reads - before
        })
    };
    let (few, many) = (reads(200), reads(10_000));
    // Trees are a page or two deeper; fifty times as many rows are not read.
    assert!(many <= few + 12, "{few} reads of few, {many} of many");
}
