//! What the behaviours stand on: the engines, and short words for threads and messages.

use std::sync::Arc;
use std::time::Duration;

use throughline_model::Message;
use throughline_store::{
    Anchor, Append, At, Begin, Entry, Heartbeat, Idempotency, Ids, ManualClock, Memory, Millis,
    NewItem, NewThread, Options, Publish, Published, Result, RunId, Span, Started, Store,
    TenantScope, ThreadId, Version,
};
use throughline_testkit::Scratch;
use throughline_testkit::record::{assistant, begin, block_on, shorts, user};

/// What the clocks show at first.
pub(crate) const NOW: Millis = 1_790_000_000_000;

/// The engines; a new one is one more line.
const ENGINES: [fn() -> Ground; 2] = [Ground::memory, Ground::sqlite];

/// An empty store that can be opened by several processes, each with a clock of its own.
pub(crate) struct Ground {
    data: Data,
    /// The clock of [`Ground::open`].
    pub(crate) clock: Arc<ManualClock>,
}

enum Data {
    /// Handles stand for processes.
    Memory(Memory),
    /// Each opens the file.
    File(Scratch),
}

/// Run a test on every engine.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a test is written where it is called"
)]
pub(crate) fn each(test: impl AsyncFn(&Ground)) {
    for ground in grounds() {
        block_on(test(&ground));
    }
}

/// An empty store of every engine.
pub(crate) fn grounds() -> impl Iterator<Item = Ground> {
    ENGINES.iter().map(|engine| engine())
}

fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::<ManualClock>::clone(clock),
        heartbeat: Heartbeat::Manual,
        lease: Duration::from_secs(10),
    }
}

impl Ground {
    fn new(data: Data) -> Self {
        Self {
            data,
            clock: Arc::new(ManualClock::at(NOW)),
        }
    }

    fn memory() -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let ids = Arc::new(Ids::new(Arc::<ManualClock>::clone(&clock)));
        Self::new(Data::Memory(Memory::new(options(&clock), &ids)))
    }

    fn sqlite() -> Self {
        Self::new(Data::File(Scratch::in_memory("behaviours")))
    }

    /// Where its files are, if it has any.
    pub(crate) fn files(&self) -> Option<&Scratch> {
        match &self.data {
            Data::Memory(_) => None,
            Data::File(scratch) => Some(scratch),
        }
    }

    /// Open it as one more process.
    pub(crate) async fn open(&self) -> Store {
        self.open_at(&self.clock).await
    }

    /// Open it as a process with another clock.
    pub(crate) async fn open_at(&self, clock: &Arc<ManualClock>) -> Store {
        let options = options(clock);
        match &self.data {
            Data::Memory(memory) => {
                let ids = Arc::new(Ids::new(Arc::clone(&options.clock)));
                Store::on(Arc::new(memory.handle(options)), ids)
            }
            Data::File(scratch) => {
                let url = scratch.sqlite("store.db");
                Store::open_with(&url, options).await.unwrap()
            }
        }
    }
}

pub(crate) fn local() -> TenantScope {
    TenantScope::local()
}

pub(crate) fn named(name: &str) -> ThreadId {
    ThreadId::new(name).unwrap()
}

pub(crate) fn at(thread: &ThreadId) -> At {
    At::Thread(thread.clone())
}

/// A new thread of the local tenant.
pub(crate) async fn thread(store: &Store, name: &str) -> ThreadId {
    let new = NewThread::new(named(name));
    store.open_or_create(&local(), &new, 0).await.unwrap();
    new.id
}

/// Messages of a user: a word and the numbers of a range.
pub(crate) fn numbered(word: &str, numbers: std::ops::Range<usize>) -> Vec<Message> {
    numbers.map(|n| user(&format!("{word} {n}"))).collect()
}

/// The value that adds messages to whatever the head is.
pub(crate) fn adding(store: &Store, thread: &ThreadId, messages: &[Message]) -> Append {
    Append {
        run: store.ids().run(),
        thread: thread.clone(),
        expected: None,
        items: NewItem::of(messages),
        state: None,
        key: None,
    }
}

/// The same under a key.
pub(crate) fn keyed(append: Append, key: &str, request: u8) -> Append {
    Append {
        key: Some(Idempotency {
            key: key.to_owned(),
            request: [request; 16],
        }),
        ..append
    }
}

/// Add messages by hand.
pub(crate) async fn add(store: &Store, thread: &ThreadId, messages: &[Message]) -> Published {
    let append = adding(store, thread, messages);
    store.append(&local(), &append).await.unwrap()
}

/// Everything of a thread from its beginning, in pages of a few.
pub(crate) async fn history(store: &Store, thread: &ThreadId) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = Span::After(entries.last().map_or(0, |entry| entry.last));
        let page = store.read(&local(), &at(thread), after, 700).await?;
        entries.extend(page.entries);
        if !page.more {
            return Ok(entries);
        }
    }
}

/// The same in short.
pub(crate) async fn said(store: &Store, thread: &ThreadId) -> Vec<String> {
    shorts(&history(store, thread).await.unwrap())
}

/// The version of a thread.
pub(crate) async fn version(store: &Store, thread: &ThreadId) -> Version {
    let opened = store.open(&local(), &at(thread), 0).await.unwrap();
    opened.thread.version
}

/// Begin a run with the thread's lease.
pub(crate) async fn ask(
    store: &Store,
    thread: &ThreadId,
    seen: Version,
    text: &str,
) -> Result<Started> {
    let at = Anchor::Head {
        thread: thread.clone(),
        expected: seen,
    };
    let value = Begin::new(store.ids().run(), at, NewItem::of(&[user(text)]));
    begin(store, &local(), &value).await
}

/// End it with an answer.
pub(crate) async fn reply(store: &Store, started: Started, text: &str) -> Result<Published> {
    let publish = Publish::new(0, NewItem::of(&[assistant(text)]));
    store.publish(&local(), started.lease, &publish).await
}

/// A plain turn.
pub(crate) async fn turn(store: &Store, thread: &ThreadId, text: &str) -> RunId {
    let seen = version(store, thread).await;
    let started = ask(store, thread, seen, text).await.unwrap();
    let answer = format!("re: {text}");
    assert!(reply(store, started, &answer).await.unwrap().moved);
    started.lease.run
}
