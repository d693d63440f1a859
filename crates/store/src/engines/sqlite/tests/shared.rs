//! What several processes, or several tasks of one, do to each other.

use std::sync::mpsc;
use std::task::{Context, Waker};

use super::{Fixture, block_on};
use crate::engines::sqlite::op_error::OpError;
use crate::trials::Op;
use crate::{
    Anchor, At, CallResult, CallState, Effect, End, Engine, Error, ItemRef, NewItem, NodeRef,
    PageToken, PlannedCall, Publish, RunFilter, RunId, RunState, Step, Stopped,
};
use throughline_model::{CallId, Message, Outcome, Output, Role, ToolCall};

#[test]
fn flags_of_another_process_survive_a_publication() {
    let f = Fixture::new();
    let id = f.thread("t");
    let lease = f.begin(&id, "one");
    let other = f.reopened();
    block_on(other.cancel(&f.scope, lease.run)).unwrap();
    f.publish(lease, 0, "1");
    let run = block_on(f.store.run(&f.scope, lease.run)).unwrap();
    assert!(run.cancelling);
    assert_eq!(run.state, RunState::Committed);
    let lease = f.begin(&id, "two");
    block_on(other.hide(&f.scope, lease.run)).unwrap();
    f.publish(lease, 0, "2");
    assert!(block_on(f.store.run(&f.scope, lease.run)).is_err());
    assert_eq!(f.texts(&id), ["one", "1", "two", "2"]);
}

#[test]
fn results_in_the_same_group_as_the_publication_are_in_the_node() {
    let f = Fixture::new();
    let id = f.thread("t");
    let lease = f.begin(&id, "one");
    let call = ToolCall::function(CallId::natural("c").unwrap(), "f", "{}");
    let step = Step {
        items: NewItem::of(&[Message::new(Role::Assistant, vec![call.clone().into()])]),
        calls: vec![PlannedCall {
            call: "c".into(),
            tool: "f".into(),
            effect: Effect::ReadOnly,
            state: CallState::Planned,
        }],
        ..Step::default()
    };
    block_on(f.store.step(&f.scope, lease, &step)).unwrap();
    let answer = call.answer(Outcome::Ok, Output::Text("r".into()));
    let result = CallResult::new(0, 0, &Message::new(Role::Tool, vec![answer.into()]));
    let results = [result];
    let publish = Publish::new(1, Vec::new());
    // Neither waits for the other.
    let mut first = Box::pin(f.store.results(&f.scope, lease, &results));
    let mut second = Box::pin(f.store.publish(&f.scope, lease, &publish));
    let mut context = Context::from_waker(Waker::noop());
    let _ = first.as_mut().poll(&mut context);
    let published = block_on(second.as_mut()).unwrap();
    assert_eq!(published.last, 3);
    let opened = block_on(f.store.open(&f.scope, &At::Thread(id), 10)).unwrap();
    assert_eq!((opened.entries.len(), opened.tip.unwrap().open), (3, false));
}

#[test]
fn a_lock_that_stays_is_said_once_for_the_whole_group() {
    let f = Fixture::new();
    f.thread("t");
    // The engine waits; the test need not.
    block_on(f.store.shared.write(Op::Other, |tx| {
        tx.conn
            .busy_timeout(std::time::Duration::ZERO)
            .map_err(OpError::from)
    }))
    .unwrap();
    let holder = f.raw();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = block_on(f.store.renew()).unwrap_err();
    assert!(matches!(error, Error::Locked), "{error:?}");
    // Readers never wait.
    assert_eq!(f.texts(&crate::ThreadId::new("t").unwrap()), [""; 0]);
    holder.execute_batch("COMMIT").unwrap();
    block_on(f.store.renew()).unwrap();
}

#[test]
fn an_erased_text_is_in_no_file() {
    let f = Fixture::new();
    let id = f.thread("t");
    let secret = "the word is tamarisk";
    let run = f.turn(&id, secret, "noted");
    let gone = f.thread("gone");
    f.turn(&gone, "tamarisk, again", "noted");
    let holds = || {
        let files = std::fs::read_dir(&f.dir.0).unwrap();
        let mut files = files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        files.any(|bytes| bytes.windows(8).any(|word| word == b"tamarisk"))
    };
    assert!(holds());
    block_on(f.store.redact(&f.scope, ItemRef { run, no: 1 }, "ada")).unwrap();
    block_on(f.store.delete(&f.scope, &gone)).unwrap();
    while block_on(f.store.purge(10)).unwrap().more {}
    block_on(f.store.close()).unwrap();
    assert!(!holds());
}

#[test]
fn the_runs_of_a_thread_are_listed_newest_first() {
    let f = Fixture::new();
    let id = f.thread("t");
    let other = f.thread("other");
    let mut begun: Vec<RunId> = Vec::new();
    for n in 0..12 {
        f.turn(&other, "not", "these");
        let lease = match n % 3 {
            // Along the branch, beside it, and nowhere.
            1 => {
                let node = NodeRef::Run(begun[n - 1]);
                f.begin_at(Anchor::Node(node), "beside")
            }
            _ => f.begin(&id, "along"),
        };
        begun.push(lease.run);
        match n % 3 {
            2 => {
                let end = End {
                    how: Stopped::Failed,
                    note: None,
                    events: None,
                };
                block_on(f.store.end(&f.scope, lease, &end)).unwrap();
            }
            _ => drop(f.publish(lease, 0, "said")),
        }
    }
    begun.push(f.begin(&id, "still going on").run);
    begun.reverse();
    let filter = RunFilter {
        thread: Some(id),
        states: Vec::new(),
    };
    for limit in [1, 4, 100] {
        let mut found: Vec<RunId> = Vec::new();
        let mut after: Option<PageToken> = None;
        loop {
            let page = block_on(f.store.runs(&f.scope, &filter, after, limit)).unwrap();
            assert!(page.found.len() <= limit);
            found.extend(page.found.iter().map(|run| run.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, begun, "pages of {limit}");
    }
    let all = RunFilter::default();
    let page = block_on(f.store.runs(&f.scope, &all, None, 100)).unwrap();
    assert_eq!(page.found.len(), 25);
    let failed = RunFilter {
        states: vec![RunState::Failed],
        ..all
    };
    let page = block_on(f.store.runs(&f.scope, &failed, None, 100)).unwrap();
    assert_eq!(page.found.len(), 4);
}

#[test]
fn the_writer_lets_the_file_go_last_and_leaves_no_log_beside_it() {
    let f = Fixture::new();
    let id = f.thread("t");
    f.turn(&id, "one", "1");
    let (go, wait) = mpsc::channel::<()>();
    let (held, holding) = mpsc::channel();
    std::thread::scope(|scope| {
        // The reader must not wait for ever if something here does not hold.
        let go = go;
        let readers = &f.store.readers;
        scope.spawn(move || {
            let held_up = readers.read(|_| {
                held.send(()).unwrap();
                wait.recv().unwrap();
                Ok(())
            });
            block_on(held_up).unwrap();
        });
        holding.recv().unwrap();
        let mut closing = Box::pin(f.store.close());
        let mut context = Context::from_waker(Waker::noop());
        assert!(closing.as_mut().poll(&mut context).is_pending());
        // A reader is at work, so the writer may not go yet.
        assert!(!f.store.shared.is_closed());
        go.send(()).unwrap();
        block_on(closing).unwrap();
    });
    assert!(f.store.shared.is_closed());
    for name in ["store.db-wal", "store.db-shm"] {
        assert!(!f.dir.file(name).exists(), "{name} is still there");
    }
}

#[test]
fn a_store_that_is_dropped_leaves_no_log_beside_the_file() {
    let Fixture { store, dir, .. } = {
        let f = Fixture::new();
        let id = f.thread("t");
        f.turn(&id, "one", "1");
        f
    };
    assert!(dir.file("store.db-wal").exists());
    drop(store);
    assert!(!dir.file("store.db-wal").exists());
}
