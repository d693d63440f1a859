//! Runs that are being worked on: their readers, retries of their requests, and orphans. Nothing here
//! knows HTTP or the format of an API; an API brings a [`Projection`] and a [`ResumeRun`].

mod deliveries;
mod detach_on_drop;
mod live;
mod orphans;
mod pieces;
mod projection;
pub(crate) mod record;
mod repeats;
mod sweep;
mod work;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use throughline::client::MemoryBudget;
use throughline::thread::HistoryCache;
use throughline::{Agent, Threads};
use throughline_store::{RunId, Store, TenantScope};
use tokio::sync::Notify;

use crate::config::LimitsConfig;
use crate::rate::RateMeter;
use crate::stopping::Stopping;

pub(crate) use deliveries::{Deliveries, note_deliveries};
pub(crate) use detach_on_drop::DetachOnDrop;
use live::ProcessRuns;
pub(crate) use live::{
    Answer, Lagged, LiveRun, LiveRuns, Reader, ReaderEvent, RunPhase, Unfinished,
};
pub(crate) use orphans::{ResumeRun, sweep_orphans};
pub(crate) use pieces::{Pieces, SharedTexts, held_bytes};
pub(crate) use projection::Projection;
use repeats::ProcessRepeats;
pub(crate) use repeats::{ClientConnection, Delivery, Repeats, begun_at, body_of, key};
pub use sweep::SweepCounters;
pub(crate) use sweep::sweep;
pub(crate) use work::{EventLog, work};

/// The runs that this process works on.
pub(crate) struct Runs {
    pub(crate) store: Store,
    pub(crate) stopping: Stopping,
    /// What the sweeper has removed.
    pub(crate) swept: Arc<SweepCounters>,
    live: Box<dyn LiveRuns>,
    agents: Mutex<HashMap<String, Agent>>,
    pub(crate) histories: HistoryCache,
    /// How long readers may read nothing.
    stall: Duration,
    memory: MemoryBudget,
    /// Runs that this process began and whose end it could not store.
    unsettled: Mutex<HashMap<RunId, TenantScope>>,
    /// Requests that may be sent again.
    pub(crate) repeats: Box<dyn Repeats>,
    /// Deliveries that are still to be noted in the store.
    pub(crate) deliveries: Arc<Deliveries>,
    begun: RateMeter,
    /// Notified whenever this process stops working on a run.
    pub(crate) ended: Notify,
}

impl Runs {
    pub(crate) fn new(
        limits: &LimitsConfig,
        memory: &MemoryBudget,
        store: &Store,
        stopping: &Stopping,
    ) -> Self {
        let deliveries = Arc::<Deliveries>::default();
        Self {
            store: store.clone(),
            stopping: stopping.clone(),
            swept: Arc::default(),
            live: Box::<ProcessRuns>::default(),
            agents: Mutex::default(),
            histories: HistoryCache::new(limits.history_bytes),
            stall: limits.stall,
            memory: memory.clone(),
            unsettled: Mutex::default(),
            repeats: Box::new(ProcessRepeats::new(store.clone(), Arc::clone(&deliveries))),
            deliveries,
            begun: RateMeter::default(),
            ended: Notify::new(),
        }
    }

    /// The threads of a tenant.
    pub(crate) fn threads(&self, scope: &TenantScope) -> Threads {
        Threads::scoped(&self.store, scope.clone()).with_history_cache(self.histories.clone())
    }

    /// A run that this process begins. It is forgotten when it is over.
    pub(crate) fn begin(
        self: &Arc<Self>,
        scope: &TenantScope,
        run: RunId,
        streamed: bool,
        recorded: bool,
    ) -> ActiveRun {
        let live = Arc::new(LiveRun::new(
            run,
            (streamed, recorded),
            self.stall,
            &self.memory,
        ));
        self.live.insert(Arc::clone(&live));
        self.begun.count();
        ActiveRun {
            runs: Arc::clone(self),
            live,
            scope: scope.clone(),
            is_stored: recorded,
        }
    }

    /// How many runs this process works on.
    pub(crate) fn at_work(&self) -> usize {
        self.live.count()
    }

    /// How many runs this process began in the last minute.
    pub(crate) fn begun_in_last_minute(&self) -> u64 {
        self.begun.last_minute()
    }

    fn unsettled(&self) -> MutexGuard<'_, HashMap<RunId, TenantScope>> {
        self.unsettled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The runs that this process has to settle when the store takes writes again.
    fn to_settle(&self) -> Vec<(RunId, TenantScope)> {
        let unsettled = self.unsettled();
        let runs = unsettled.iter();
        runs.map(|(run, scope)| (*run, scope.clone())).collect()
    }

    /// A run of this process is left before its end.
    pub(crate) fn leave_unsettled(&self, scope: &TenantScope, run: RunId) {
        self.unsettled().insert(run, scope.clone());
    }

    /// A run is settled, or another process settles it.
    fn mark_settled(&self, run: RunId) {
        self.unsettled().remove(&run);
    }

    /// A run that this process works on.
    pub(crate) async fn find(&self, run: RunId) -> Option<Arc<LiveRun>> {
        self.live.find(run).await
    }

    /// The agent for an upstream, made when it is first needed.
    pub(crate) fn agent<E>(
        &self,
        upstream: &str,
        make: impl FnOnce() -> Result<Agent, E>,
    ) -> Result<Agent, E> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(upstream) {
            return Ok(agent.clone());
        }
        let agent = make()?;
        agents.insert(upstream.to_owned(), agent.clone());
        Ok(agent)
    }
}

/// A run that this process works on, as long as it does.
pub(crate) struct ActiveRun {
    runs: Arc<Runs>,
    pub(crate) live: Arc<LiveRun>,
    scope: TenantScope,
    is_stored: bool,
}

impl ActiveRun {
    /// Stop working on it before it is over.
    pub(crate) fn leave(&self, left: Unfinished) {
        if left == Unfinished::NotStored && self.is_stored {
            self.runs.leave_unsettled(&self.scope, self.live.run);
        }
        self.live.leave(left);
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        // The work broke down in the middle.
        if self.live.answer().is_none() {
            self.leave(Unfinished::NotStored);
        }
        self.runs.live.remove(self.live.run);
        self.runs.ended.notify_one();
    }
}
