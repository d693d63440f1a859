//! Runs whose workers are gone: they are claimed, and finished under their own ids.

use std::time::Duration;

use throughline::{RunOptions, StopReason};
use throughline_store::{Orphan, RunId, TenantScope};

use crate::error::ApiError;
use crate::http::App;
use crate::responses::{fail, host, recipe};

/// How often somebody looks for runs that were left.
const LOOK: Duration = Duration::from_secs(2);

/// How many are finished at once.
const AT_ONCE: usize = 32;

/// Look for runs that were left, until the server stops.
pub(crate) async fn watch(app: App) {
    loop {
        while let Ok(found) = app.store.orphans(AT_ONCE).await {
            if found.is_empty() || app.stopping.is_draining() {
                break;
            }
            let seen = found.len();
            let work = found.into_iter().map(|orphan| one(&app, orphan));
            let done = futures_util::future::join_all(work).await;
            // What cannot be finished here stays where it is: look again later.
            if seen < AT_ONCE || !done.contains(&true) {
                break;
            }
        }
        tokio::select! {
            () = app.stopping.draining() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Finish one; whether it is settled.
async fn one(app: &App, orphan: Orphan) -> bool {
    match resume(app, &orphan.scope, orphan.run).await {
        Ok(Some(stop)) => {
            tracing::info!(run = %orphan.run, stop = stop.as_str(), "a run that was left is finished");
            true
        }
        Ok(None) => false,
        Err(error) => {
            tracing::warn!(run = %orphan.run, error = error.message, "a run that was left cannot be finished now");
            false
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
    let recipe = recipe::again(app, &host).await?;
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
        Err(_) => Ok(Some(StopReason::Failed)),
    }
}
