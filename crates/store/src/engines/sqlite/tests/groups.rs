use std::sync::mpsc;

use super::{Fixture, block_on, said};
use crate::engines::sqlite::op_error::{OpError, OpResult};
use crate::engines::sqlite::rows::sql::run_sql;
use crate::trials::Op;
use crate::{Anchor, At, Begin, Engine, Error, NewItem, Publish, ThreadId, Version};
use throughline_model::Message;

/// Hold the writer until something is sent, so that what comes meanwhile is one group.
pub(super) fn hold(f: &Fixture) -> (mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (go, wait) = mpsc::channel::<()>();
    let (held, holding) = mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let shared = std::sync::Arc::clone(&f.store.shared);
    let thread = std::thread::spawn(move || {
        let held_up = shared.write(Op::Other, move |_| {
            held.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
            Ok(())
        });
        block_on(held_up).unwrap();
    });
    holding.recv().unwrap();
    (go, thread)
}

fn begin(f: &Fixture, thread: &ThreadId) -> Begin {
    let at = Anchor::Head {
        thread: thread.clone(),
        expected: Version(0),
    };
    Begin::new(f.ids.run(), at, NewItem::of(&[Message::user("one")]))
}

/// Poll futures once, so that their operations wait, then let the writer go.
macro_rules! in_one_group {
    ($f:expr, $($future:expr),* $(,)?) => {{
        let (go, held) = hold(&$f);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut futures = ($(Box::pin($future),)*);
        in_one_group!(@poll context, futures, 0 $(, $future)*);
        go.send(()).unwrap();
        held.join().unwrap();
        futures
    }};
    (@poll $context:ident, $futures:ident, 0, $a:expr, $b:expr, $c:expr) => {
        assert!($futures.0.as_mut().poll(&mut $context).is_pending());
        assert!($futures.1.as_mut().poll(&mut $context).is_pending());
        assert!($futures.2.as_mut().poll(&mut $context).is_pending());
    };
}

#[test]
fn a_broken_member_does_not_take_the_group_with_it() {
    let f = Fixture::new();
    let (a, b) = (f.thread("a"), f.thread("b"));
    let (begin_a, begin_b) = (begin(&f, &a), begin(&f, &b));
    let broken = f.store.shared.write(Op::Other, |tx| {
        // It breaks after it has written.
        run_sql(
            tx.conn,
            "INSERT INTO queue(thread, body) VALUES(1, '{}')",
            [],
        )?;
        Err::<(), _>(OpError::Broken(Error::Full))
    });
    let (first, middle, last) = in_one_group!(
        f,
        f.store.begin(&f.scope, &begin_a),
        broken,
        f.store.begin(&f.scope, &begin_b),
    );
    assert!(matches!(block_on(middle), Err(Error::Full)));
    block_on(first).unwrap();
    block_on(last).unwrap();
    for (thread, run) in [(&a, begin_a.run), (&b, begin_b.run)] {
        let opened = block_on(f.store.open(&f.scope, &At::Thread(thread.clone()), 1)).unwrap();
        assert_eq!(opened.unsettled.unwrap().id, run);
        assert_eq!(opened.queued, 0);
    }
    assert_eq!(block_on(f.store.check(&mut |_| {})).unwrap().damage, []);
}

#[test]
fn a_refused_member_leaves_the_others_alone() {
    let f = Fixture::new();
    let id = f.thread("t");
    let (first, second) = (begin(&f, &id), begin(&f, &id));
    let (one, late, two) = in_one_group!(
        f,
        f.store.begin(&f.scope, &first),
        // A refusal that comes too late is undone all the same.
        f.store.shared.write(Op::Other, |tx| {
            run_sql(
                tx.conn,
                "INSERT INTO queue(thread, body) VALUES(1, '{}')",
                [],
            )?;
            Err::<(), _>(OpError::Refused(Error::Locked))
        }),
        f.store.begin(&f.scope, &second),
    );
    block_on(one).unwrap();
    assert!(matches!(block_on(late), Err(Error::Locked)));
    let error = block_on(two).unwrap_err();
    assert!(
        matches!(error, Error::Busy { run, .. } if run == first.run),
        "{error:?}"
    );
    let opened = block_on(f.store.open(&f.scope, &At::Thread(id), 1)).unwrap();
    assert_eq!(opened.queued, 0);
}

#[test]
fn an_operation_that_panics_fails_alone() {
    let f = Fixture::new();
    let (a, b) = (f.thread("a"), f.thread("b"));
    let (begin_a, begin_b) = (begin(&f, &a), begin(&f, &b));
    let panicking = f.store.shared.write(Op::Other, |tx| -> OpResult<()> {
        let sql = "INSERT INTO queue(thread, body) VALUES(1, '{}')";
        run_sql(tx.conn, sql, [])?;
        panic!("a planted panic");
    });
    let (first, middle, last) = in_one_group!(
        f,
        f.store.begin(&f.scope, &begin_a),
        panicking,
        f.store.begin(&f.scope, &begin_b),
    );
    let error = block_on(middle).unwrap_err();
    assert!(
        matches!(&error, Error::Panicked { message } if message == "a planted panic"),
        "{error:?}"
    );
    block_on(first).unwrap();
    block_on(last).unwrap();
    // The writer thread lives on, and nothing of the operation is left.
    let lease = f.begin(&f.thread("c"), "one");
    f.publish(lease, 0, "1");
    for thread in [a, b] {
        let opened = block_on(f.store.open(&f.scope, &At::Thread(thread), 1)).unwrap();
        assert_eq!((opened.unsettled.is_some(), opened.queued), (true, 0));
    }
    assert_eq!(block_on(f.store.check(&mut |_| {})).unwrap().damage, []);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a planted panic");
    }
}

#[test]
fn no_caller_waits_for_a_writer_thread_that_is_gone() {
    let f = Fixture::new();
    let id = f.thread("t");
    let begun = begin(&f, &id);
    let (go, held) = hold(&f);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let bomb = Bomb;
    let mut gone = Box::pin(f.store.shared.write(Op::Other, move |_| {
        let _ = &bomb;
        Ok(())
    }));
    assert!(gone.as_mut().poll(&mut context).is_pending());
    // Its caller has gone, so the writer thread drops it, outside of the operation.
    drop(gone);
    let mut next = Box::pin(f.store.begin(&f.scope, &begun));
    assert!(next.as_mut().poll(&mut context).is_pending());
    go.send(()).unwrap();
    held.join().unwrap();
    let error = block_on(next).unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
    let error = block_on(f.store.renew()).unwrap_err();
    assert!(matches!(error, Error::Closed), "{error:?}");
}

#[test]
fn a_write_that_nobody_waits_for_is_written() {
    let f = Fixture::new();
    let id = f.thread("t");
    let lease = f.begin(&id, "one");
    let publish = Publish::new(0, NewItem::of(&[said("1")]));
    let other = f.thread("u");
    let begun = begin(&f, &other);
    let (gone, _, _) = in_one_group!(
        f,
        f.store.publish(&f.scope, lease, &publish),
        f.store.renew(),
        f.store.begin(&f.scope, &begun),
    );
    drop(gone);
    // It is sent again by a caller that does not know, and answered as the first time.
    let again = block_on(f.store.publish(&f.scope, lease, &publish)).unwrap();
    assert!(again.moved);
    assert_eq!(f.texts(&id), ["one", "1"]);
}

#[test]
fn writers_of_two_processes_take_turns() {
    let f = Fixture::new();
    let other = f.reopened();
    let id = f.thread("t");
    std::thread::scope(|scope| {
        for store in [&f.store, &other] {
            let (id, f) = (&id, &f);
            scope.spawn(move || {
                for n in 0..50 {
                    let append = crate::Append {
                        run: f.ids.run(),
                        thread: id.clone(),
                        expected: None,
                        items: NewItem::of(&[Message::user(n.to_string())]),
                        state: None,
                        key: None,
                    };
                    block_on(store.append(&f.scope, &append)).unwrap();
                }
            });
        }
    });
    let opened = block_on(other.open(&f.scope, &At::Thread(id.clone()), 1000)).unwrap();
    assert_eq!(
        (opened.thread.version, opened.entries.len()),
        (Version(100), 100)
    );
    let checked = block_on(other.check(&mut |_| {})).unwrap();
    assert_eq!((checked.nodes, checked.damage), (100, vec![]));
}
