//! Runs without a worker: those whose process is gone, and those of this process whose end the store
//! did not take. They are claimed, and finished under their own ids.
//!
//! A run that stalls holds up no other: each has a task of its own, and a task that takes long gives
//! the place in which it began to the next run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline::{RunError, RunOptions, StopReason};
use throughline_store::{Error, ErrorKind, RunId, TenantScope};
use tokio::sync::Semaphore;

use crate::api::openai::responses::{fail, host, recipe};
use crate::error::ApiError;
use crate::net::App;
use crate::trials::planted;

/// How often somebody looks for runs that were left.
const LOOK: Duration = Duration::from_secs(2);

/// How many are listed at once.
const LISTED: usize = 256;

/// How many are begun at once.
const AT_ONCE: usize = 64;

/// After this time a run goes on without its place among those.
const PLACE: Duration = Duration::from_millis(500);

/// How long the tools and the upstream of a run may take to be found.
const PREPARED_WITHIN: Duration = Duration::from_secs(10);

/// A run that takes longer is let go of; it is tried again until its attempts are used up.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// The runs that are being settled.
struct Settling {
    app: App,
    at_work: Mutex<HashSet<RunId>>,
    places: Arc<Semaphore>,
}

/// Look for runs that were left, until the server stops.
pub(crate) async fn watch(app: App) {
    let settling = Arc::new(Settling {
        app: app.clone(),
        at_work: Mutex::default(),
        places: Arc::new(Semaphore::new(AT_ONCE)),
    });
    loop {
        settling.look().await;
        tokio::select! {
            () = app.stopping.draining() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

impl Settling {
    /// Begin with every run that was left and is not worked on.
    async fn look(self: &Arc<Self>) {
        let app = &self.app;
        let mut found = app.runs.to_settle();
        if let Ok(orphans) = app.store.orphans(LISTED).await {
            let orphans = orphans.into_iter();
            found.extend(orphans.map(|orphan| (orphan.run, orphan.scope)));
        }
        for (run, scope) in found {
            if app.stopping.is_draining() || !self.at_work().insert(run) {
                continue;
            }
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                return;
            };
            let settling = Arc::clone(self);
            let work = async move {
                let mut work = Box::pin(settling.settle(&scope, run));
                let holds_place = match planted("server-orphans-in-turn") {
                    true => DEADLINE,
                    false => PLACE,
                };
                let begun = tokio::time::timeout(holds_place, &mut work).await;
                // The next run may begin, whether or not this one has ended.
                drop(place);
                if begun.is_err() && tokio::time::timeout(DEADLINE, &mut work).await.is_err() {
                    tracing::warn!(%run, "a run that was left is let go of, it took too long");
                    settling.app.runs.leave_unsettled(&scope, run);
                }
                drop(work);
                settling.at_work().remove(&run);
            };
            app.stopping.work().spawn(work);
        }
    }

    fn at_work(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finish one, if that is possible now.
    async fn settle(&self, scope: &TenantScope, run: RunId) {
        match resume(&self.app, scope, run).await {
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
        let open = match self.app.store.run(scope, run).await {
            Ok(run) => !run.state.is_settled(),
            Err(Error::NotFound { .. }) => false,
            Err(_) => true,
        };
        if !open {
            self.app.runs.is_settled(run);
        }
    }
}

/// Go on with a run; `None` if it was not begun by a server, so that its agent is not known here.
pub(crate) async fn resume(
    app: &App,
    scope: &TenantScope,
    run: RunId,
) -> Result<Option<StopReason>, ApiError> {
    let journal = app.store.journal(scope, run).await;
    let journal = journal.map_err(|error| fail::store(&error))?;
    let Some(host) = host::Host::of(journal.request.as_ref())? else {
        return Ok(None);
    };
    let recipe = tokio::time::timeout(PREPARED_WITHIN, recipe::again(app, &host)).await;
    let recipe = recipe.map_err(|_| {
        let text = "The tools or the upstream of this response cannot be reached.";
        ApiError::new(503, "server_error", text)
    })??;
    let threads = app.runs.threads(&app.store, scope);
    let resumed = recipe.agent.resume_run(&threads, run).await;
    let resumed = resumed.map_err(|error| fail::store(&error))?;
    let options = RunOptions {
        run: Some(run),
        ..recipe.options
    };
    let resumed = resumed.options(&options);
    // One that was streamed stores its events, whoever reads it.
    match resumed.await {
        Ok(outcome) => Ok(Some(outcome.stop)),
        Err(failed) if failed.messages().is_empty() => Err(fail::refused(&failed.source, None)),
        Err(failed) if failed.is_recorded() => Ok(Some(StopReason::Failed)),
        Err(failed) => {
            let fenced = |error: &Error| error.kind() == ErrorKind::Fenced;
            if !matches!(&failed.source, RunError::Store(error) if fenced(error)) {
                // It is this process's run now, and no orphan of another.
                app.runs.leave_unsettled(scope, run);
            }
            Err(fail::outcome_unknown(run))
        }
    }
}
