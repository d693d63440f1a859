//! What a turn takes: pages of the log, numbers, bytes.

use rusqlite::Connection;
use throughline_model::json::RawJson;
use throughline_model::{Content, Form, Message, Role, Vendor, Wire};

use super::{Dir, Fixture, block_on};
use crate::engines::sqlite::schema::{MIGRATIONS, migrate};
use crate::{Anchor, At, Begin, Begun, Engine, ItemRef, NewItem, NodeRef, Publish, RunId, State};

/// Pages that were written to the log so far.
fn logged(f: &Fixture) -> u64 {
    let size = std::fs::metadata(f.dir.file("store.db-wal")).unwrap().len();
    size.saturating_sub(32) / (8192 + 24)
}

/// A turn as a server has it: without a lease, after a run, with a request and a note.
fn turn(f: &Fixture, after: RunId) -> RunId {
    let at = NodeRef::Run(after);
    block_on(f.store.open(&f.scope, &At::Node(at), 0)).unwrap();
    let run = f.ids.run();
    let now = Some(1_790_000_000_000);
    let ask = Message {
        id: Some(ItemRef { run, no: 1 }.message_id()),
        created: now,
        ..Message::user("a".repeat(1024))
    };
    let mut begin = Begin::new(run, Anchor::Node(at), NewItem::of(&[ask]));
    begin.request = Some(RawJson::new(r#"{"model":"m"}"#).unwrap());
    let Begun::Started(started) = block_on(f.store.begin(&f.scope, &begin)).unwrap() else {
        panic!()
    };
    let envelope = RawJson::new(r#"{"role":"assistant","content":""}"#).unwrap();
    let vendor = Vendor::form(Wire::OpenAiChat, Form::Bare).with_envelope(envelope);
    let said = Content {
        vendor: Some(Box::new(vendor)),
        ..Content::text("b".repeat(1024))
    };
    let answer = Message {
        id: Some(ItemRef { run, no: 2 }.message_id()),
        created: now,
        ..Message::new(Role::Assistant, vec![said])
    };
    let mut publish = Publish::new(0, NewItem::of(&[answer]));
    publish.note = Some(RawJson::new(r#"{"error":"done"}"#).unwrap());
    block_on(f.store.publish(&f.scope, started.lease, &publish)).unwrap();
    run
}

#[test]
fn a_turn_writes_few_pages_to_the_log() {
    const TURNS: u64 = 50;
    let f = Fixture::new();
    let id = f.thread("t");
    let first = f.turn(&id, "one", "1");
    let mut last = turn(&f, first);
    let before = logged(&f);
    for _ in 0..TURNS {
        last = turn(&f, last);
    }
    let chain = logged(&f) - before;
    for _ in 0..TURNS {
        turn(&f, first);
    }
    let branches = logged(&f) - before - chain;
    println!("{TURNS} turns of a chain wrote {chain} pages, as many branches {branches}");
    // The heartbeat of each write is one, because these tests have one for each.
    assert!(chain <= 15 * TURNS, "{chain}");
    assert!(branches <= 17 * TURNS, "{branches}");
}

#[test]
fn a_turn_of_two_kilobytes_takes_little_more() {
    const TURNS: u64 = 700;
    let f = Fixture::new();
    let id = f.thread("t");
    let mut last = f.turn(&id, "one", "1");
    let pages = |f: &Fixture| -> u32 {
        let sql = "SELECT page_count FROM pragma_page_count";
        f.raw().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    for _ in 0..20 {
        last = turn(&f, last);
    }
    let before = pages(&f);
    for _ in 0..TURNS {
        last = turn(&f, last);
    }
    let bytes = u64::from(pages(&f) - before) * 8192;
    println!("{TURNS} turns took {bytes} bytes, {} each", bytes / TURNS);
    assert!(bytes * 10 <= TURNS * 2048 * 13, "{bytes}");
}

#[test]
fn a_number_of_a_timeline_is_never_given_twice() {
    let f = Fixture::new();
    let last = |f: &Fixture| -> i64 {
        let sql = "SELECT max(tl) FROM timeline";
        f.raw().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    f.turn(&f.thread("stays"), "one", "1");
    let mut given = last(&f);
    for round in 0..5 {
        let id = f.thread(&format!("goes {round}").replace(' ', "-"));
        let run = f.turn(&id, "one", "1");
        turn(&f, run);
        turn(&f, run);
        let newest = last(&f);
        assert_eq!(newest, given + 2, "a thread and a branch of it");
        given = newest;
        block_on(f.store.delete(&f.scope, &id)).unwrap();
        while block_on(f.store.purge(100)).unwrap().more {}
        assert_eq!(last(&f), 1);
    }
}

#[test]
fn numbers_of_timelines_go_on_after_the_move_to_a_new_table() {
    let dir = Dir::new();
    let conn = Connection::open(dir.file("store.db")).unwrap();
    migrate(&conn, &MIGRATIONS[..2], &mut |_| {}).unwrap();
    conn.execute_batch(
        "INSERT INTO timeline(thread, parent_tl, fork) VALUES(7, NULL, 0), (7, 1, 4), (8, 2, 6);
         DELETE FROM timeline WHERE tl=3;",
    )
    .unwrap();
    migrate(&conn, MIGRATIONS, &mut |_| {}).unwrap();
    let number = |sql: &str| -> i64 { conn.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(number("SELECT last FROM given WHERE name='timeline'"), 3);
    assert_eq!(number("SELECT count(*) FROM timeline"), 2);
    assert_eq!(
        number("SELECT parent_tl*100+fork FROM timeline WHERE tl=2"),
        104
    );
    let indexes = "SELECT count(*) FROM sqlite_schema WHERE type='index' AND tbl_name='timeline'";
    assert_eq!(number(indexes), 2);
}

/// A thread whose state was set, by how many digests it has.
fn with_state(f: &Fixture, name: &str, digests: usize) -> At {
    let id = f.thread(name);
    let kept: Vec<String> = (0..digests)
        .map(|one| format!("\"digest {one}\""))
        .collect();
    let kept = RawJson::new(&format!("[{}]", kept.join(","))).unwrap();
    let mut state = State::default();
    state.set_compaction(Some(kept));
    let lease = f.begin(&id, "one");
    let mut publish = Publish::new(0, NewItem::of(&[super::said("1")]));
    publish.state = Some(state);
    block_on(f.store.publish(&f.scope, lease, &publish)).unwrap();
    At::Thread(id)
}

#[test]
fn a_long_state_is_read_once_and_then_shared() {
    let f = Fixture::new();
    for (digests, is_shared) in [(10, false), (1_000, true)] {
        let at = with_state(&f, &format!("t{digests}"), digests);
        let read = || block_on(f.store.open(&f.scope, &at, 0)).unwrap().state;
        let (first, again) = (read(), read());
        assert_eq!(first, again);
        let [first, again] = [&first, &again].map(|state| state.compaction().unwrap());
        assert_eq!(std::ptr::eq(first, again), is_shared, "{digests}");
        let elsewhere = block_on(f.reopened().open(&f.scope, &at, 0)).unwrap().state;
        assert_eq!(elsewhere.compaction(), Some(first));
    }
}
