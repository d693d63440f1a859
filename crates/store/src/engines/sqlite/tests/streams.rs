//! Events of live runs: what the log holds, what settling makes of it, what is left of it.

use std::time::Duration;

use super::groups::hold;
use super::{Dir, Fixture, block_on, options, said};
use crate::engines::sqlite::{Sqlite, restore, start};
use crate::{
    Anchor, Begin, Claim, End, Engine, Error, Flush, ItemRef, Lease, NewItem, Publish, RunState,
    Stopped, StoredEvent, ThreadId,
};

fn event(text: &str) -> StoredEvent {
    StoredEvent {
        kind: 7,
        body: text.as_bytes().to_vec(),
    }
}

fn flush(first: u64, words: &[&str]) -> Flush {
    let events: Vec<StoredEvent> = words.iter().map(|word| event(word)).collect();
    Flush::new(first, &events)
}

/// Store one event.
fn send(f: &Fixture, lease: Lease, no: u64, text: &str) -> crate::Result<()> {
    block_on(f.store.flush(&f.scope, lease, &flush(no, &[text])))
}

fn events(store: &Sqlite, f: &Fixture, lease: Lease) -> Vec<Flush> {
    block_on(store.events(&f.scope, lease.run, 0, usize::MAX)).unwrap()
}

fn number(f: &Fixture, sql: &str) -> i64 {
    f.raw().query_row(sql, [], |row| row.get(0)).unwrap()
}

fn sound(store: &Sqlite) {
    assert_eq!(block_on(store.check(&mut |_| {})).unwrap().damage, []);
}

/// Whether a word is in any file of the store.
fn is_on_disk(dir: &Dir, word: &str) -> bool {
    let files = std::fs::read_dir(&dir.0).unwrap();
    let mut files = files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.any(|bytes| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    })
}

/// Hand flushes over while the writer is held, so that they are one group.
fn together(f: &Fixture, flushes: &[(Lease, Flush)]) -> Vec<crate::Result<()>> {
    let (go, held) = hold(f);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let flush = |(lease, events): &(Lease, Flush)| {
        let (lease, events) = (*lease, events.clone());
        Box::pin(async move { f.store.flush(&f.scope, lease, &events).await })
    };
    let mut waiting: Vec<_> = flushes.iter().map(flush).collect();
    for future in &mut waiting {
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    go.send(()).unwrap();
    held.join().unwrap();
    waiting.into_iter().map(block_on).collect()
}

fn runs(f: &Fixture, count: usize) -> Vec<Lease> {
    let begin = |n: usize| f.begin(&f.thread(&format!("t{n}")), "ask");
    (0..count).map(begin).collect()
}

#[test]
fn flushes_of_a_group_share_a_page_and_settle_in_any_order() {
    let f = Fixture::new();
    let leases = runs(&f, 3);
    let word = |run: usize, no: u64| format!("word {no} of {run}");
    for no in 0..4 {
        let group: Vec<_> = (0..3)
            .map(|run| (leases[run], flush(no, &[&word(run, no)])))
            .collect();
        for stored in together(&f, &group) {
            stored.unwrap();
        }
    }
    assert_eq!(number(&f, "SELECT count(*) FROM event_log"), 1);
    assert_eq!(number(&f, "SELECT count(*) FROM run_event"), 0);
    sound(&f.store);
    let said_by =
        |run: usize| -> Vec<Flush> { (0..4).map(|no| flush(no, &[&word(run, no)])).collect() };
    // The last one first, and one of them without publishing.
    f.publish(leases[2], 0, "answer");
    let end = End {
        how: Stopped::Failed,
        note: None,
        events: Some(flush(4, &["last"])),
    };
    block_on(f.store.end(&f.scope, leases[0], &end)).unwrap();
    assert_eq!(events(&f.store, &f, leases[2]), said_by(2));
    assert_eq!(events(&f.store, &f, leases[1]), said_by(1));
    let mut all = said_by(0);
    all.push(flush(4, &["last"]));
    assert_eq!(events(&f.store, &f, leases[0]), all);
    // One row for each settled run, however often it flushed.
    assert_eq!(number(&f, "SELECT count(*) FROM run_event"), 2);
    sound(&f.store);
    f.publish(leases[1], 0, "answer");
    assert_eq!(events(&f.store, &f, leases[1]), said_by(1));
    // No run needs the page now: the next run writes over it.
    let next = f.begin(&f.thread("next"), "ask");
    send(&f, next, 0, "over").unwrap();
    assert_eq!(number(&f, "SELECT count(*) FROM event_log"), 1);
    assert_eq!(events(&f.store, &f, next), [flush(0, &["over"])]);
    f.publish(next, 0, "answer");
    sound(&f.store);
    block_on(f.store.close()).unwrap();
    assert_eq!(number(&f, "SELECT count(*) FROM event_log"), 0);
}

#[test]
fn two_flushes_of_one_run_in_a_group_are_in_order() {
    let f = Fixture::new();
    let lease = runs(&f, 1)[0];
    let group = [
        (lease, flush(0, &["a", "b"])),
        (lease, flush(2, &["c"])),
        // Sent again, and one that leaves a hole.
        (lease, flush(0, &["a", "b"])),
        (lease, flush(9, &["late"])),
    ];
    let stored = together(&f, &group);
    assert!(stored[..3].iter().all(Result::is_ok), "{stored:?}");
    assert!(matches!(
        stored[3],
        Err(Error::OutOfOrder {
            expected: 3,
            found: 9,
            ..
        })
    ));
    let all = [flush(0, &["a", "b"]), flush(2, &["c"])];
    assert_eq!(events(&f.store, &f, lease), all);
    f.publish(lease, 0, "answer");
    assert_eq!(events(&f.store, &f, lease), all);
    sound(&f.store);
}

#[test]
fn a_flush_sent_again_is_stored_once_and_a_changed_one_is_refused() {
    let f = Fixture::new();
    let lease = runs(&f, 1)[0];
    for store in [&f.store, &f.reopened()] {
        let put = |events: &Flush| block_on(store.flush(&f.scope, lease, events));
        put(&flush(0, &["a", "b"])).unwrap();
        put(&flush(2, &["c"])).unwrap();
        put(&flush(0, &["a", "b"])).unwrap();
        // Another text, other bounds.
        for other in [flush(0, &["a", "x"]), flush(0, &["a"])] {
            let error = put(&other).unwrap_err();
            assert!(
                matches!(error, Error::OutOfOrder { expected: 3, .. }),
                "{error:?}"
            );
        }
    }
    let run = block_on(f.store.run(&f.scope, lease.run)).unwrap();
    assert_eq!(run.next_event, 3);
    f.publish(lease, 0, "answer");
    let all = [flush(0, &["a", "b"]), flush(2, &["c"])];
    assert_eq!(events(&f.store, &f, lease), all);
    sound(&f.store);
}

#[test]
fn another_process_reads_a_live_run_and_claims_it_when_its_owner_died() {
    let f = Fixture::new();
    let leases = runs(&f, 2);
    let other = f.reopened();
    let mut all = Vec::new();
    for no in 0..5 {
        let text = format!("word {no}");
        for lease in &leases {
            send(&f, *lease, no, &text).unwrap();
        }
        all.push(flush(no, &[&text]));
        assert_eq!(events(&other, &f, leases[0]), all);
        let run = block_on(other.run(&f.scope, leases[0].run)).unwrap();
        assert_eq!(run.next_event, no + 1);
    }
    // From the middle on.
    let tail = block_on(other.events(&f.scope, leases[0].run, 3, 1)).unwrap();
    assert_eq!(tail, all[3..4]);
    f.clock.advance(Duration::from_secs(3600));
    let claimed = block_on(other.claim(&f.scope, leases[0].run, 1, Claim::Orphan)).unwrap();
    assert_eq!(events(&other, &f, claimed.lease), all);
    // The one before is shut out, though nothing has told it.
    let error = send(&f, leases[0], 5, "late").unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error:?}");
    let more = flush(5, &["more"]);
    block_on(other.flush(&f.scope, claimed.lease, &more)).unwrap();
    all.push(more);
    let publish = Publish::new(0, NewItem::of(&[said("answer")]));
    block_on(other.publish(&f.scope, claimed.lease, &publish)).unwrap();
    assert_eq!(events(&f.store, &f, claimed.lease), all);
    // The second run still needs the dead process's page.
    assert_eq!(events(&other, &f, leases[1]), all[..5]);
    let second = block_on(other.claim(&f.scope, leases[1].run, 1, Claim::Orphan)).unwrap();
    assert_eq!(events(&other, &f, second.lease), all[..5]);
    sound(&other);
    block_on(other.close()).unwrap();
    // The page went with the last run that was claimed.
    assert_eq!(number(&f, "SELECT count(*) FROM event_log"), 0);
}

#[test]
fn a_lease_that_two_processes_use_keeps_its_events_in_order() {
    let f = Fixture::new();
    let lease = runs(&f, 1)[0];
    let other = f.reopened();
    let mut all = Vec::new();
    for no in 0..6 {
        let events = flush(no, &[&format!("word {no}")]);
        let store = if no % 2 == 0 { &f.store } else { &other };
        block_on(store.flush(&f.scope, lease, &events)).unwrap();
        all.push(events);
    }
    let stale = block_on(f.store.flush(&f.scope, lease, &flush(5, &["other"])));
    assert!(matches!(stale, Err(Error::OutOfOrder { .. })), "{stale:?}");
    assert_eq!(events(&f.store, &f, lease), all);
    f.publish(lease, 0, "answer");
    assert_eq!(events(&f.store, &f, lease), all);
    sound(&f.store);
}

#[test]
fn a_deleted_thread_takes_no_more_events_and_leaves_none() {
    let f = Fixture::new();
    let (gone, stays) = (f.thread("gone"), f.thread("stays"));
    let leases = [f.begin(&gone, "ask"), f.begin(&stays, "ask")];
    let secret = "tamarisk";
    for (lease, word) in leases.iter().zip([secret, "other"]) {
        for no in 0..3 {
            send(&f, *lease, no, word).unwrap();
        }
    }
    assert!(is_on_disk(&f.dir, secret));
    block_on(f.store.delete(&f.scope, &gone)).unwrap();
    let error = send(&f, leases[0], 3, secret).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    while block_on(f.store.purge(10)).unwrap().more {}
    sound(&f.store);
    // The page's writer must not put back what it remembers.
    send(&f, leases[1], 3, "other").unwrap();
    block_on(f.store.renew()).unwrap();
    assert_eq!(number(&f, "SELECT count(*) FROM run_event WHERE run=1"), 0);
    let others: Vec<Flush> = (0..4).map(|no| flush(no, &["other"])).collect();
    assert_eq!(events(&f.store, &f, leases[1]), others);
    sound(&f.store);
    block_on(f.store.close()).unwrap();
    assert!(!is_on_disk(&f.dir, secret));
}

#[test]
fn another_process_erases_from_pages_that_are_in_use() {
    let f = Fixture::new();
    let (gone, stays) = (f.thread("gone"), f.thread("stays"));
    let leases = [f.begin(&gone, "ask"), f.begin(&stays, "ask")];
    let secret = "tamarisk";
    send(&f, leases[0], 0, secret).unwrap();
    send(&f, leases[1], 0, "other").unwrap();
    f.publish(leases[0], 0, "answer");
    let other = f.reopened();
    block_on(other.delete(&f.scope, &gone)).unwrap();
    while block_on(other.purge(10)).unwrap().more {}
    // A run that gets the number of the one that is gone has nothing of it.
    send(&f, leases[1], 1, "other").unwrap();
    f.publish(leases[1], 0, "answer");
    let all = [flush(0, &["other"]), flush(1, &["other"])];
    assert_eq!(events(&other, &f, leases[1]), all);
    sound(&other);
    block_on(f.store.close()).unwrap();
    block_on(other.purge(10)).unwrap();
    block_on(other.close()).unwrap();
    assert_eq!(number(&f, "SELECT count(*) FROM event_log"), 0);
    assert!(!is_on_disk(&f.dir, secret));
}

#[test]
fn redacting_an_item_takes_its_run_out_of_the_log() {
    let f = Fixture::new();
    let leases = runs(&f, 2);
    for lease in &leases {
        send(&f, *lease, 0, "word").unwrap();
    }
    let item = ItemRef {
        run: leases[0].run,
        no: 1,
    };
    // Another process does it: the owner still thinks that the log has them.
    let other = f.reopened();
    block_on(other.redact(&f.scope, item, "ada")).unwrap();
    assert_eq!(number(&f, "SELECT count(*) FROM run_event"), 1);
    // What was said until then is gone from the events of its run, and of no other.
    for (lease, said) in leases.into_iter().zip(["", "word"]) {
        send(&f, lease, 1, "more").unwrap();
        f.publish(lease, 0, "answer");
        let all = [flush(0, &[said]), flush(1, &["more"])];
        assert_eq!(events(&f.store, &f, lease), all);
    }
    sound(&f.store);
}

#[test]
fn long_runs_and_large_flushes_go_to_rows_of_their_own() {
    let f = Fixture::new();
    let lease = runs(&f, 1)[0];
    let mut all = Vec::new();
    for no in 0..40 {
        let size = if no % 10 == 9 { 20_000 } else { 3000 };
        let text = format!("{no} ").repeat(size / 3);
        send(&f, lease, no, &text).unwrap();
        all.push(flush(no, &[&text]));
        assert_eq!(events(&f.store, &f, lease).len(), all.len());
    }
    assert!(number(&f, "SELECT count(*) FROM run_event") >= 4);
    let run = block_on(f.store.run(&f.scope, lease.run)).unwrap();
    assert_eq!(run.next_event, 40);
    assert_eq!(events(&f.store, &f, lease), all);
    sound(&f.store);
    f.publish(lease, 0, "answer");
    assert_eq!(events(&f.store, &f, lease), all);
    // In pages too.
    let page = block_on(f.store.events(&f.scope, lease.run, 17, 5)).unwrap();
    assert_eq!(page, all[17..22]);
    sound(&f.store);
}

#[test]
fn a_quiet_run_does_not_hold_the_log_open() {
    let f = Fixture::new();
    let quiet = f.begin(&f.thread("quiet"), "ask");
    send(&f, quiet, 0, "word").unwrap();
    let text = "x".repeat(7000);
    // Some forty pages at a time, until there are more than the log may hold.
    for n in 0..5 {
        let leases: Vec<Lease> = (0..10)
            .map(|run| f.begin(&f.thread(&format!("t{n}-{run}")), "ask"))
            .collect();
        for no in 0..4 {
            for lease in &leases {
                send(&f, *lease, no, &text).unwrap();
            }
        }
    }
    assert!(number(&f, "SELECT count(*) FROM event_log") < 140);
    // The oldest were moved out.
    assert!(number(&f, "SELECT count(*) FROM run_event WHERE run=1") == 1);
    send(&f, quiet, 1, "more").unwrap();
    f.publish(quiet, 0, "answer");
    let all = [flush(0, &["word"]), flush(1, &["more"])];
    assert_eq!(events(&f.store, &f, quiet), all);
    sound(&f.store);
}

#[test]
fn a_restored_run_has_the_events_of_the_backup() {
    let f = Fixture::new();
    let lease = runs(&f, 1)[0];
    send(&f, lease, 0, "a").unwrap();
    send(&f, lease, 1, "b").unwrap();
    let backups = f.store.backups().unwrap();
    let (backup, to) = (f.dir.file("backup"), f.dir.file("restored.db"));
    block_on(backups.backup(&backup, &mut |_| {})).unwrap();
    send(&f, lease, 2, "after").unwrap();
    assert_eq!(restore(&backup, &to).unwrap().held, 1);
    let restored = start(&to, options(&f.clock), &f.ids).unwrap();
    let all = [flush(0, &["a"]), flush(1, &["b"])];
    assert_eq!(events(&restored, &f, lease), all);
    let run = block_on(restored.run(&f.scope, lease.run)).unwrap();
    assert_eq!((run.state, run.next_event), (RunState::Held, 2));
    sound(&restored);
}

#[test]
fn damage_in_the_log_is_found() {
    let f = Fixture::new();
    let lease = runs(&f, 1)[0];
    send(&f, lease, 0, "a").unwrap();
    let raw = f.raw();
    raw.execute("UPDATE event_log SET payload=x'01FFFF'", [])
        .unwrap();
    let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert!(damage[0].place.contains("event log"), "{damage:?}");
    let error = block_on(f.store.events(&f.scope, lease.run, 0, 9)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    // Run 9 is nowhere.
    raw.execute("UPDATE event_log SET payload=x'090001020700'", [])
        .unwrap();
    let damage = block_on(f.store.check(&mut |_| {})).unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert!(damage[0].detail.contains("missing"), "{damage:?}");
}

#[test]
fn events_with_begin_and_step_are_in_line_with_flushes() {
    let f = Fixture::new();
    let id: ThreadId = f.thread("t");
    let at = Anchor::Head {
        thread: id,
        expected: crate::Version(0),
    };
    let mut begin = Begin::new(f.ids.run(), at, Vec::new());
    begin.events = Some(flush(0, &["begun"]));
    let crate::Begun::Started(started) = block_on(f.store.begin(&f.scope, &begin)).unwrap() else {
        panic!()
    };
    let lease = started.lease;
    send(&f, lease, 1, "a").unwrap();
    let step = crate::Step {
        items: NewItem::of(&[said("hm")]),
        events: Some(flush(2, &["step"])),
        ..crate::Step::default()
    };
    block_on(f.store.step(&f.scope, lease, &step)).unwrap();
    send(&f, lease, 3, "b").unwrap();
    // It stops and goes on, in the same process.
    block_on(f.store.park(&f.scope, lease, Some(&flush(4, &["parked"])))).unwrap();
    let lease = block_on(f.store.claim(&f.scope, lease.run, 1, Claim::Parked))
        .unwrap()
        .lease;
    send(&f, lease, 5, "c").unwrap();
    send(&f, lease, 6, "d").unwrap();
    let mut publish = Publish::new(1, NewItem::of(&[said("answer")]));
    publish.events = Some(flush(7, &["end"]));
    block_on(f.store.publish(&f.scope, lease, &publish)).unwrap();
    let words = ["begun", "a", "step", "b", "parked", "c", "d", "end"];
    let all: Vec<Flush> = (0..)
        .zip(words)
        .map(|(no, word)| flush(no, &[word]))
        .collect();
    assert_eq!(events(&f.store, &f, lease), all);
    sound(&f.store);
}
