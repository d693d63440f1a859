//! Runs without a worker: those whose process is gone, and those of this process whose end the store
//! did not take. They are claimed, and finished under their own ids.
//!
//! A run that stalls holds up no other: each has a task of its own, and a task that takes long gives
//! the place in which it began to the next run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use throughline::StopReason;
use throughline_store::{Error, RunId, TenantScope};
use tokio::sync::Semaphore;

use super::Runs;
use super::record::close_left;
use crate::error::ApiError;
use crate::trials::planted;

/// How often the sweeper looks for orphaned runs.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How many are listed at once.
const PAGE: usize = 256;

/// How many are begun at once.
const STARTED_AT_ONCE: usize = 64;

/// After this time a run continues without its place among those.
const PLACE_TIMEOUT: Duration = Duration::from_millis(500);

/// A run that takes longer is let go of; it is tried again until its attempts are used up.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// Finishes runs that were left, with the agents of the API that began them.
///
/// Going on with a run twice at once is safe: the store lets one owner write. Dropping the future
/// leaves the run as it is recorded, to be resumed again.
#[async_trait]
pub(crate) trait ResumeRun: Send + Sync {
    /// Go on with a run until its end; `None` if its agent is not known here.
    async fn resume(&self, scope: &TenantScope, run: RunId)
    -> Result<Option<StopReason>, ApiError>;
}

/// The runs that are being settled.
struct OrphanSweeper {
    runs: Arc<Runs>,
    resume: Arc<dyn ResumeRun>,
    at_work: Mutex<HashSet<RunId>>,
    places: Arc<Semaphore>,
}

/// Look for runs that were left, until the server stops.
pub(crate) async fn sweep_orphans(runs: Arc<Runs>, resume: Arc<dyn ResumeRun>) {
    let sweeper = Arc::new(OrphanSweeper {
        runs: Arc::clone(&runs),
        resume,
        at_work: Mutex::default(),
        places: Arc::new(Semaphore::new(STARTED_AT_ONCE)),
    });
    loop {
        sweeper.poll().await;
        tokio::select! {
            () = runs.stopping.draining() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

impl OrphanSweeper {
    /// Begin with every run that was left and is not worked on.
    async fn poll(self: &Arc<Self>) {
        let runs = &self.runs;
        let mut found = runs.to_settle();
        if let Ok(orphans) = runs.store.orphans(PAGE).await {
            let orphans = orphans.into_iter();
            found.extend(orphans.map(|orphan| (orphan.run, orphan.scope)));
        }
        for (run, scope) in found {
            if runs.stopping.is_draining() || !self.at_work().insert(run) {
                continue;
            }
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                return;
            };
            let sweeper = Arc::clone(self);
            let work = async move {
                let mut work = Box::pin(sweeper.settle(&scope, run));
                let holds_place = match planted("server-orphans-in-turn") {
                    true => DEADLINE,
                    false => PLACE_TIMEOUT,
                };
                let begun = tokio::time::timeout(holds_place, &mut work).await;
                // The next run may begin, whether or not this one has ended.
                drop(place);
                if begun.is_err() && tokio::time::timeout(DEADLINE, &mut work).await.is_err() {
                    tracing::warn!(%run, "a run that was left is let go of, it took too long");
                    sweeper.runs.leave_unsettled(&scope, run);
                }
                drop(work);
                sweeper.at_work().remove(&run);
            };
            runs.stopping.work().spawn(work);
        }
    }

    fn at_work(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finish one, if that is possible now.
    async fn settle(&self, scope: &TenantScope, run: RunId) {
        // A store that cannot say what the run is will not let it be resumed either.
        let closed = close_left(&self.runs.store, scope, run).await;
        let finished = match closed.unwrap_or_default() {
            Some(stop) => Ok(Some(stop)),
            None => self.resume.resume(scope, run).await,
        };
        match finished {
            Ok(Some(stop)) => {
                tracing::info!(%run, stop = stop.as_str(), "a run that was left is finished");
            }
            // What was not begun by a server stays where it is.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%run, error = error.message, "a run that was left cannot be finished now");
            }
        }
        // The record knows whether there is more to do.
        let open = match self.runs.store.run(scope, run).await {
            Ok(run) => !run.state.is_settled(),
            Err(Error::NotFound { .. }) => false,
            Err(_) => true,
        };
        if !open {
            self.runs.mark_settled(run);
        }
    }
}
