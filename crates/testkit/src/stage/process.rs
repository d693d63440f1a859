use std::sync::Arc;
use std::time::Duration;

use throughline::Threads;
use throughline::store::{
    Heartbeat, Ids, ManualClock, Memory, Millis, Options, Store, TenantScope, ThreadId,
};

use crate::Scratch;
use crate::engines::{Counted, Fault, Faulty};

/// The initial time of the clock.
const NOW: Millis = 1_790_000_000_000;

/// How long a process counts as alive after a heartbeat.
const LEASE: Duration = Duration::from_secs(10);

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// In memory; each handle counts as a process.
    Memory,
    /// A SQLite file.
    Sqlite,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 2] = [Self::Memory, Self::Sqlite];
}

/// An empty store that several processes can open.
pub struct Stage {
    /// Which engine.
    pub engine: Engine,
    /// The clock of all processes.
    pub clock: Arc<ManualClock>,
    ids: Arc<Ids>,
    data: Data,
}

enum Data {
    Memory(Memory),
    File(Scratch),
}

/// A process with an open store.
pub struct Process {
    /// Its handle. Its calls are counted, and can be made to fail.
    pub store: Store,
    /// Makes its calls fail.
    pub faulty: Arc<Faulty>,
    /// Counts its calls.
    pub counted: Arc<Counted>,
    clock: Arc<ManualClock>,
}

/// The methods through which a process reaches the store.
const METHODS: [&str; 25] = [
    "open",
    "open_or_create",
    "read",
    "begin",
    "step",
    "intend",
    "ask",
    "results",
    "flush",
    "publish",
    "park",
    "end",
    "cancel",
    "claim",
    "join_wait_queue",
    "leave_wait_queue",
    "wait_queue",
    "run",
    "cancelling",
    "journal",
    "answer",
    "enqueue",
    "queue",
    "patch",
    "append",
];

impl Stage {
    /// An empty store of an engine.
    pub fn new(engine: Engine) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let ids = Arc::new(Ids::seeded(Arc::<ManualClock>::clone(&clock), 7));
        let data = match engine {
            Engine::Memory => Data::Memory(Memory::new(options(&clock), &ids)),
            Engine::Sqlite => Data::File(Scratch::in_memory("stage")),
        };
        Self {
            engine,
            clock,
            ids,
            data,
        }
    }

    /// Opens it as a separate process.
    ///
    /// # Panics
    ///
    /// When the file cannot be opened.
    pub async fn process(&self) -> Process {
        let store = match &self.data {
            Data::Memory(memory) => {
                let handle = memory.handle(options(&self.clock));
                Store::on(Arc::new(handle), Arc::clone(&self.ids))
            }
            Data::File(folder) => {
                let url = folder.sqlite("stage.db");
                let opened = Store::open_with(&url, options(&self.clock)).await;
                opened.expect("a store")
            }
        };
        store.renew().await.expect("a heartbeat");
        // Faults are nearer to the caller: a call that fails before it is done is not counted as
        // done.
        let (counted_store, counted) = Counted::over(&store);
        let (store, faulty) = Faulty::over(&counted_store);
        Process {
            store,
            faulty,
            counted,
            clock: Arc::clone(&self.clock),
        }
    }
}

fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::<ManualClock>::clone(clock),
        heartbeat: Heartbeat::Manual,
        lease: LEASE,
    }
}

impl Process {
    /// The threads of the store.
    pub fn threads(&self) -> Threads {
        Threads::of(&self.store)
    }

    /// Their tenant.
    pub fn scope(&self) -> TenantScope {
        TenantScope::local()
    }

    /// Plans the death of the process in the next call of a method: nothing it does later reaches
    /// the store. Wait for it with [`Process::died`].
    pub fn die_in(&self, method: &str, done: Fault) {
        self.faulty.next(method, done);
        self.faulty.always(method, Fault::HangBefore);
    }

    /// Waits until a call hangs, and then counts as dead.
    pub async fn died(&self) {
        self.faulty.hung(1).await;
        self.kill();
    }

    /// Counts as dead: nothing reaches the store any more, and its leases have expired.
    pub fn kill(&self) {
        for method in METHODS {
            self.faulty.always(method, Fault::HangBefore);
        }
        self.clock.advance(LEASE + Duration::from_secs(1));
    }

    /// Counts as dead, while another process lives on: the time of its leases passes in steps, so that
    /// those of the other process never lapse in between.
    ///
    /// # Panics
    ///
    /// When the store cannot be written.
    pub async fn die_beside(&self, other: &Self) {
        const STEPS: u32 = 3;
        for method in METHODS {
            self.faulty.always(method, Fault::HangBefore);
        }
        for _ in 0..=STEPS {
            self.clock.advance(LEASE / STEPS);
            other.live().await;
        }
    }

    /// Writes a heartbeat, which is needed after the clock was advanced.
    ///
    /// # Panics
    ///
    /// When the store cannot be written.
    pub async fn live(&self) {
        self.store.renew().await.expect("a heartbeat");
    }

    /// The thread's history in the store, in short form.
    ///
    /// # Panics
    ///
    /// When the thread cannot be read.
    pub async fn history(&self, thread: &ThreadId) -> String {
        let opened = self.threads().open(thread.clone()).await.expect("a thread");
        let history = opened.history();
        super::short(history.iter().map(|message| &**message))
    }
}
