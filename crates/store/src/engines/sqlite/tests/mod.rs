//! Tests of what lies behind the trait.

mod backups;
mod costs;
mod damage;
mod groups;
pub(super) mod plans;
mod redactions;
mod remote_calls;
mod shared;
mod streams;
mod versions;
mod writing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use throughline_model::{Content, Message, Role};

use super::{Sqlite, start};
use crate::{
    Anchor, At, Begin, Begun, Engine, Heartbeat, Ids, Lease, ManualClock, NewItem, NewThread,
    Options, Publish, Published, RunId, TenantScope, ThreadId, Version,
};

/// Run a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::park();
    }
}

/// A folder of one's own, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("throughline-sqlite-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store in a folder, with a clock that is set by hand.
struct Fixture {
    store: Sqlite,
    ids: Arc<Ids>,
    clock: Arc<ManualClock>,
    scope: TenantScope,
    dir: Dir,
}

impl Fixture {
    fn new() -> Self {
        let dir = Dir::new();
        let clock = Arc::new(ManualClock::at(1_790_000_000_000));
        let ids = Arc::new(Ids::new(Arc::<ManualClock>::clone(&clock)));
        let store = start(&dir.file("store.db"), options(&clock), &ids).unwrap();
        Self {
            store,
            ids,
            clock,
            scope: TenantScope::local(),
            dir,
        }
    }

    /// The same store after everything that was remembered is forgotten.
    fn reopened(&self) -> Sqlite {
        start(&self.dir.file("store.db"), options(&self.clock), &self.ids).unwrap()
    }

    fn thread(&self, name: &str) -> ThreadId {
        let id = ThreadId::new(name).unwrap();
        let new = NewThread::new(id.clone());
        block_on(self.store.open_or_create(&self.scope, &new, 0)).unwrap();
        id
    }

    fn begin(&self, thread: &ThreadId, text: &str) -> Lease {
        let at = At::Thread(thread.clone());
        let version = block_on(self.store.open(&self.scope, &at, 0))
            .unwrap()
            .thread
            .version;
        self.begin_at(
            Anchor::Head {
                thread: thread.clone(),
                expected: version,
            },
            text,
        )
    }

    fn begin_at(&self, at: Anchor, text: &str) -> Lease {
        let begin = Begin::new(self.ids.run(), at, NewItem::of(&[Message::user(text)]));
        match block_on(self.store.begin(&self.scope, &begin)).unwrap() {
            Begun::Started(started) => started.lease,
            Begun::Repeated(run) => panic!("{run:?}"),
        }
    }

    fn publish(&self, lease: Lease, step: u32, text: &str) -> Published {
        let publish = Publish::new(step, NewItem::of(&[said(text)]));
        block_on(self.store.publish(&self.scope, lease, &publish)).unwrap()
    }

    fn turn(&self, thread: &ThreadId, ask: &str, answer: &str) -> RunId {
        let lease = self.begin(thread, ask);
        self.publish(lease, 0, answer);
        lease.run
    }

    fn texts(&self, thread: &ThreadId) -> Vec<String> {
        texts(&self.store, &self.scope, thread).unwrap()
    }

    /// The file, past the engine.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.file("store.db")).unwrap()
    }
}

/// Something that the model said.
fn said(text: &str) -> Message {
    Message::new(Role::Assistant, vec![Content::text(text)])
}

fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::<ManualClock>::clone(clock),
        heartbeat: Heartbeat::Manual,
        ..Options::default()
    }
}

fn texts(store: &Sqlite, scope: &TenantScope, thread: &ThreadId) -> crate::Result<Vec<String>> {
    let opened = block_on(store.open(scope, &At::Thread(thread.clone()), 1000))?;
    let text = |entry: &crate::Entry| entry.message.text();
    Ok(opened.entries.iter().map(text).collect())
}

#[test]
fn urls_name_files_or_say_what_to_write() {
    let dir = Dir::new();
    let ids = Arc::new(Ids::new(Arc::new(crate::SystemClock)));
    let open = |rest: &str| block_on(super::open(rest, Options::default(), &ids)).map(drop);
    open(&format!("//{}", dir.file("a.db").display())).unwrap();
    assert!(dir.file("a.db").is_file());
    for rest in ["", "x.db", "/x.db", "//", ":memory:", "//:memory:"] {
        let error = open(rest).unwrap_err();
        assert!(
            matches!(error, crate::Error::Url { .. }),
            "{rest}: {error:?}"
        );
    }
    // A folder that is not there is said by name.
    let nowhere = format!("//{}", dir.file("no/such/folder.db").display());
    let error = open(&nowhere).unwrap_err().to_string();
    assert!(error.contains("no/such/folder.db"), "{error}");
}

#[test]
fn a_closed_store_takes_nothing_more() {
    let f = Fixture::new();
    let id = f.thread("t");
    let lease = f.begin(&id, "one");
    block_on(f.store.close()).unwrap();
    block_on(f.store.close()).unwrap();
    let publish = Publish::new(0, Vec::new());
    let error = block_on(f.store.publish(&f.scope, lease, &publish)).unwrap_err();
    assert!(matches!(error, crate::Error::Closed), "{error:?}");
    let error = block_on(f.store.run(&f.scope, lease.run)).unwrap_err();
    assert!(matches!(error, crate::Error::Closed), "{error:?}");
    // The run is still owned: only time or a claim ends a lease.
    let other = f.reopened();
    let run = block_on(other.run(&f.scope, lease.run)).unwrap();
    assert_eq!(run.state, crate::RunState::Running);
}

#[test]
fn a_thread_under_an_old_name_is_another_thread() {
    let f = Fixture::new();
    let id = f.thread("t");
    f.turn(&id, "one", "1");
    let other = f.reopened();
    block_on(other.delete(&f.scope, &id)).unwrap();
    block_on(other.open_or_create(&f.scope, &NewThread::new(id.clone()), 0)).unwrap();
    // This process still remembers the first one, at version 1.
    let begin = Begin::new(
        f.ids.run(),
        Anchor::Head {
            thread: id.clone(),
            expected: Version(1),
        },
        Vec::new(),
    );
    let error = block_on(f.store.begin(&f.scope, &begin)).unwrap_err();
    assert!(matches!(error, crate::Error::HeadMoved { .. }), "{error:?}");
    assert_eq!(f.texts(&id), [""; 0]);
}

#[test]
fn a_run_that_cannot_begin_leaves_no_thread() {
    let f = Fixture::new();
    let first = f.turn(&f.thread("t"), "one", "1");
    let new = NewThread::new(ThreadId::new("new").unwrap());
    let at = At::Thread(new.id.clone());
    let anchor = |leasing| Anchor::New {
        thread: new.clone(),
        leasing,
    };
    for leasing in [crate::Leasing::Free, crate::Leasing::Thread] {
        // The number of another run.
        let begin = Begin::new(first, anchor(leasing), Vec::new());
        let error = block_on(f.store.begin(&f.scope, &begin)).unwrap_err();
        assert!(
            matches!(error, crate::Error::Exists { what: "run", .. }),
            "{error:?}"
        );
        let error = block_on(f.store.open(&f.scope, &at, 0)).unwrap_err();
        assert!(matches!(error, crate::Error::NotFound { .. }), "{error:?}");
    }
    let begin = Begin::new(f.ids.run(), anchor(crate::Leasing::Free), Vec::new());
    let begun = block_on(f.store.begin(&f.scope, &begin)).unwrap();
    // Asked again after an answer that got lost.
    assert_eq!(block_on(f.store.begin(&f.scope, &begin)).unwrap(), begun);
    let begin = Begin::new(f.ids.run(), anchor(crate::Leasing::Free), Vec::new());
    let error = block_on(f.store.begin(&f.scope, &begin)).unwrap_err();
    assert!(
        matches!(error, crate::Error::Exists { what: "thread", .. }),
        "{error:?}"
    );
}

#[test]
fn a_run_that_was_begun_before_leaves_no_other_thread() {
    let f = Fixture::new();
    f.thread("t");
    let asked = |name: &str| {
        let at = Anchor::New {
            thread: NewThread::new(ThreadId::new(name).unwrap()),
            leasing: crate::Leasing::Free,
        };
        let mut begin = Begin::new(f.ids.run(), at, Vec::new());
        begin.key = Some(crate::Idempotency {
            key: "k".into(),
            request: [1; 16],
        });
        block_on(f.store.begin(&f.scope, &begin)).unwrap()
    };
    let Begun::Started(first) = asked("one") else {
        panic!()
    };
    let Begun::Repeated(again) = asked("other") else {
        panic!()
    };
    assert_eq!(again.id, first.lease.run);
    let other = At::Thread(ThreadId::new("other").unwrap());
    let error = block_on(f.store.open(&f.scope, &other, 0)).unwrap_err();
    assert!(matches!(error, crate::Error::NotFound { .. }), "{error:?}");
}
