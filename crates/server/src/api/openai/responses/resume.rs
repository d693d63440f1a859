//! Going on with runs that were left.

use std::time::Duration;

use async_trait::async_trait;
use throughline::{RunError, RunOptions, StopReason};
use throughline_store::{Error, ErrorKind, RunId, TenantScope};

use super::{fail, host, recipe};
use crate::app::App;
use crate::error::ApiError;
use crate::service::ResumeRun;

/// How long the tools and the upstream of a run may take to be found.
const PREPARED_WITHIN: Duration = Duration::from_secs(10);

/// Goes on with runs that were begun by this API.
pub(crate) struct Resume(pub(crate) App);

#[async_trait]
impl ResumeRun for Resume {
    async fn resume(
        &self,
        scope: &TenantScope,
        run: RunId,
    ) -> Result<Option<StopReason>, ApiError> {
        resume(&self.0, scope, run).await
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
    let threads = app.runs.threads(scope);
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
