//! The writer thread, and when the log is copied to the database.

use std::thread;

use rusqlite::Connection;

use super::{Fixture, block_on};
use crate::engines::sqlite::rows::sql::run_sql;
use crate::engines::sqlite::write::job::Tx;
use crate::trials::Op;
use crate::{Anchor, At, Begin, Engine, Leasing, NewItem, NewThread};
use throughline_model::Message;

/// Wait until the writer thread has nothing to do.
fn rest(f: &Fixture) {
    while !f.store.shared.is_asleep() {
        thread::yield_now();
    }
}

#[test]
fn a_file_that_another_process_has_is_waited_for_by_the_writer_thread() {
    let f = Fixture::new();
    f.thread("t");
    rest(&f);
    let other = Connection::open(f.dir.file("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let shared = &f.store.shared;
    let mut written = Box::pin(shared.write(Op::Flush, |_| Ok(thread::current().id())));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(written.as_mut().poll(&mut context).is_pending());
    other.execute_batch("COMMIT").unwrap();
    assert_ne!(block_on(written).unwrap(), thread::current().id());
}

#[test]
fn another_process_finds_a_run_that_was_begun_and_its_owner_alive() {
    let f = Fixture::new();
    rest(&f);
    let thread = crate::ThreadId::new("t").unwrap();
    let at = Anchor::New {
        thread: NewThread::new(thread.clone()),
        leasing: Leasing::Free,
    };
    let begin = Begin::new(f.ids.run(), at, NewItem::of(&[Message::user("one")]));
    block_on(f.store.begin(&f.scope, &begin)).unwrap();
    let other = f.reopened();
    let opened = block_on(other.open(&f.scope, &At::Thread(thread), 10)).unwrap();
    assert_eq!(opened.entries.len(), 0);
    assert_eq!(
        block_on(other.run(&f.scope, begin.run)).unwrap().id,
        begin.run
    );
    assert_eq!(block_on(other.orphans(10)).unwrap().len(), 0);
}

const MEGABYTE: u64 = 1 << 20;

/// A megabyte is written.
const LONG: &str = "INSERT INTO queue(thread, body) VALUES(1, hex(zeroblob(1 << 19)))";

/// Whether 48 of them were copied to the file in time.
fn is_copied(f: &Fixture) -> bool {
    rest(f);
    let size = |name: &str| std::fs::metadata(f.dir.file(name)).unwrap().len();
    let (file, log) = (size("store.db"), size("store.db-wal"));
    println!("file={file} log={log}");
    // The log had 2,000 pages, and what the last of them came with.
    log < 18 * MEGABYTE && file > 30 * MEGABYTE
}

#[test]
fn a_log_that_has_become_long_is_copied_to_the_file() {
    let f = Fixture::new();
    f.thread("t");
    for _ in 0..48 {
        let long = f
            .store
            .shared
            .write(Op::Other, |tx| run_sql(tx.conn, LONG, []));
        block_on(long).unwrap();
    }
    assert!(is_copied(&f));
}

#[test]
fn a_log_that_has_become_long_by_events_is_copied_too() {
    let f = Fixture::new();
    f.thread("t");
    for _ in 0..48 {
        let long = |tx: &mut Tx<'_>| run_sql(tx.conn, LONG, []);
        block_on(f.store.shared.write(Op::Flush, long)).unwrap();
    }
    assert!(is_copied(&f));
}
