//! What handlers work with.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use throughline::{MemoryBudget, Metrics};
use throughline_store::{Durability, Profile, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::counters::HttpCounters;
use super::error::ServeError;
use super::stopping::Stopping;
use crate::config::{Config, LimitsConfig};
use crate::error::ApiError;
use crate::mcp::McpServers;
use crate::service::{Runs, SweepCounters};
use crate::trials::planted;
use crate::upstreams::Upstreams;

/// What handlers work with. Cheap to clone: every layer of every request has one.
#[derive(Clone)]
pub struct App(Arc<Parts>);

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The parts of a server.
pub struct Parts {
    /// What the server was told.
    pub config: Arc<Config>,
    /// Whom it asks.
    pub upstreams: Arc<Upstreams>,
    /// Tools that it runs itself.
    pub mcp: Arc<McpServers>,
    /// Where it keeps everything.
    pub store: Store,
    /// What agents and clients count.
    pub metrics: Metrics,
    /// The runs that it works on.
    pub(crate) runs: Arc<Runs>,
    /// What is counted of requests.
    pub http: Arc<HttpCounters>,
    /// What was erased because it was deleted or its time was over.
    pub swept: Arc<SweepCounters>,
    /// Whether and how far it is stopping.
    pub stopping: Stopping,
    /// What the store promises, as it was read back at the start.
    pub profile: Arc<Profile>,
    /// When it started, in seconds since 1970.
    pub started: u64,
    /// What bodies, answers and unread events may take of memory.
    pub(crate) memory: MemoryBudget,
    pub(super) streams: Arc<Semaphore>,
}

fn memory(limits: &LimitsConfig) -> MemoryBudget {
    MemoryBudget::new(match planted("server-memory-unbounded") {
        true => usize::MAX / 2,
        false => limits.working_memory(),
    })
}

impl App {
    /// Open the store and set up everything else. Nobody is listened to or asked yet.
    pub async fn open(config: Config) -> Result<Self, ServeError> {
        Self::with(config, None).await
    }

    /// The same, with a store that is open already if there is one.
    pub(super) async fn with(config: Config, store: Option<Store>) -> Result<Self, ServeError> {
        let metrics = Metrics::new();
        let memory = memory(&config.limits);
        let upstreams = Upstreams::watched(&config, &metrics, &memory)?;
        let store = match store {
            Some(store) => store,
            None => Store::open(&config.server.store).await?,
        };
        let profile = store.profile().await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self(Arc::new(Parts {
            upstreams: Arc::new(upstreams),
            mcp: Arc::new(McpServers::of(&config)),
            store,
            metrics,
            runs: Arc::new(Runs::new(&config.limits, &memory)),
            http: Arc::default(),
            swept: Arc::default(),
            stopping: Stopping::default(),
            profile: Arc::new(profile),
            started: now.unwrap_or(Duration::ZERO).as_secs(),
            streams: Arc::new(Semaphore::new(config.limits.streams)),
            memory,
            config: Arc::new(config),
        })))
    }

    /// The word for what an acknowledged write survives: `durable` or `relaxed`.
    pub fn durability(&self) -> &'static str {
        match self.profile.durability {
            Durability::Durable => "durable",
            Durability::Relaxed | Durability::Memory => "relaxed",
        }
    }

    /// A place among the open event streams; it is free again when it is dropped.
    pub fn stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.streams)
            .try_acquire_owned()
            .map_err(|_| overloaded("There are too many open event streams.", "too_many_streams"))
    }

    /// How many event streams are open.
    pub(super) fn open_streams(&self) -> usize {
        let most = self.config.limits.streams;
        most.saturating_sub(self.streams.available_permits())
    }
}

/// Too much at once: 503, and when to try again.
pub(super) fn overloaded(message: &str, code: &'static str) -> ApiError {
    let mut error = ApiError::new(503, "server_error", format!("{message} Try again soon."))
        .code(code)
        .retry(true);
    error.retry_after = Some(Duration::from_secs(1));
    error
}
