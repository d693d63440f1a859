//! The state of all handlers.

mod error;
mod message_stores;

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::FromRef;
use prometheus_client::registry::Registry;
use throughline::client::MemoryBudget;
use throughline::telemetry::Metrics;
use throughline::thread::HistoryCache;
use throughline_store::{Durability, Profile, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::{Auth, Config, ConfigError, LimitsConfig, Origin};
use crate::error::ApiError;
use crate::mcp::McpServers;
use crate::net::{HttpMetrics, NetState, register_gauge};
use crate::service::record::RecordMetrics;
use crate::service::{Runs, SweepCounters};
use crate::stopping::Stopping;
use crate::trials::planted;
use crate::upstreams::{self, Upstreams};
use crate::webhooks::Webhooks;

pub use error::ServeError;
pub(crate) use message_stores::MessageStores;

/// The state of all handlers. Cheap to clone: every layer of every request has one.
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
    /// The configuration.
    pub config: Arc<Config>,
    /// Routes models to vendors.
    pub upstreams: Arc<Upstreams>,
    /// Where the application keeps histories itself.
    pub(crate) message_stores: MessageStores,
    /// Tools that it runs itself.
    pub mcp: Arc<McpServers>,
    /// The store.
    pub store: Store,
    /// What agents and clients count.
    pub metrics: Metrics,
    /// All metrics, those of agents and clients too.
    pub(crate) registry: Registry,
    /// The runs that it works on.
    pub(crate) runs: Arc<Runs>,
    /// What is counted of recorded requests.
    pub(crate) recorded: RecordMetrics,
    /// Where the ends of background responses are posted.
    pub(crate) webhooks: Option<Arc<Webhooks>>,
    /// What is counted of requests.
    pub http: Arc<HttpMetrics>,
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
    pub(crate) net: Arc<NetState>,
    streams: Arc<Semaphore>,
}

fn memory(limits: &LimitsConfig) -> MemoryBudget {
    MemoryBudget::new(match planted("server-memory-unbounded") {
        true => usize::MAX / 2,
        false => limits.working_memory(),
    })
}

impl App {
    /// Open the store, if it is not open already, and set up everything else, without listening or
    /// calling upstreams.
    pub(crate) async fn open(
        config: Config,
        store: Option<Store>,
        message_stores: MessageStores,
    ) -> Result<Self, ServeError> {
        message_stores.check(&config.agents)?;
        let metrics = Metrics::new();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(metrics.clone()));
        let memory = memory(&config.limits);
        let upstreams = Upstreams::with_metrics(&config, &metrics, &memory)?;
        let store = match store {
            Some(store) => store,
            None => Store::open(&config.server.store).await?,
        };
        let profile = store.profile().await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let stopping = Stopping::default();
        let net = Arc::new(NetState {
            limits: config.limits.clone(),
            metrics: Arc::new(HttpMetrics::register(&mut registry)),
            stopping: stopping.clone(),
            memory: memory.clone(),
            store: store.clone(),
            is_relaxed: durability(&profile) == "relaxed",
        });
        let runs = Arc::new(Runs::new(&config.limits, &memory, &store, &stopping));
        runs.swept.register(&mut registry);
        let recorded = RecordMetrics::register(&mut registry);
        let streams = Arc::new(Semaphore::new(config.limits.streams));
        register_gauges(
            &mut registry,
            &config.limits,
            &streams,
            &memory,
            &runs.histories,
        );
        Ok(Self(Arc::new(Parts {
            recorded,
            webhooks: webhooks(&config, &store)?.map(Arc::new),
            upstreams: Arc::new(upstreams),
            message_stores,
            mcp: Arc::new(McpServers::of(&config)),
            store,
            metrics,
            registry,
            swept: Arc::clone(&runs.swept),
            runs,
            http: Arc::clone(&net.metrics),
            net,
            stopping,
            profile: Arc::new(profile),
            started: now.unwrap_or(Duration::ZERO).as_secs(),
            streams,
            memory,
            config: Arc::new(config),
        })))
    }

    /// The word for what an acknowledged write survives: `durable` or `relaxed`.
    pub fn durability(&self) -> &'static str {
        durability(&self.profile)
    }

    /// A place among the open event streams; it is free again when it is dropped.
    pub fn stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            ApiError::overloaded("There are too many open event streams.", "too_many_streams")
        })
    }
}

/// The webhooks of a configuration, if it has some.
fn webhooks(config: &Config, store: &Store) -> Result<Option<Webhooks>, ServeError> {
    if config.webhooks.is_empty() {
        return Ok(None);
    }
    let transport = upstreams::transport("webhook")?;
    let webhooks = Webhooks::new(&config.webhooks, store, transport);
    let webhooks = webhooks.map_err(|error| ConfigError::Wrong {
        origin: Origin::Default,
        key: "webhook".to_owned(),
        problem: error.to_string(),
    })?;
    Ok(Some(webhooks))
}

/// Register the gauges that are computed at each scrape.
fn register_gauges(
    registry: &mut Registry,
    limits: &LimitsConfig,
    streams: &Arc<Semaphore>,
    memory: &MemoryBudget,
    histories: &HistoryCache,
) {
    let (most_streams, streams) = (limits.streams, Arc::clone(streams));
    let (most_memory, memory) = (memory.most(), memory.clone());
    let (most_history, histories) = (histories.most_bytes(), histories.clone());
    let gauges: [(_, _, Box<dyn Fn() -> usize + Send + Sync>); 5] = [
        (
            "throughline_http_streams",
            "Open event streams.",
            Box::new(move || most_streams.saturating_sub(streams.available_permits())),
        ),
        (
            "throughline_memory_held_bytes",
            "Memory that is counted for requests and answers at work.",
            Box::new(move || memory.held()),
        ),
        (
            "throughline_memory_limit_bytes",
            "Memory that requests and answers at work may take.",
            Box::new(move || most_memory),
        ),
        (
            "throughline_history_bytes",
            "Memory of histories that are kept between turns.",
            Box::new(move || histories.held_bytes()),
        ),
        (
            "throughline_history_limit_bytes",
            "Memory that histories may take between turns (limits.history_bytes).",
            Box::new(move || most_history),
        ),
    ];
    for (name, help, read) in gauges {
        register_gauge(registry, name, help, read);
    }
}

fn durability(profile: &Profile) -> &'static str {
    match profile.durability {
        Durability::Durable => "durable",
        Durability::Relaxed | Durability::Memory => "relaxed",
    }
}

impl FromRef<App> for Arc<NetState> {
    fn from_ref(app: &App) -> Self {
        Self::clone(&app.net)
    }
}

impl FromRef<App> for Auth {
    fn from_ref(app: &App) -> Self {
        app.config.server.auth
    }
}
