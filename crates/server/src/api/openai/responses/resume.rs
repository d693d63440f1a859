//! Going on with runs that were left.

use std::time::Duration;

use async_trait::async_trait;
use throughline::StopReason;
use throughline::agent::{LeftRuns, Run, RunError, RunOptions, order};
use throughline_store::{Error, ErrorKind, RunId, TenantScope};

use super::stored_request::StoredRequest;
use super::{errors, resolve_target};
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

/// Whether a run that failed for its worker waits for a store of the application.
fn waits(error: &RunError) -> bool {
    matches!(error, RunError::MessageStore { .. })
}

/// A run with the agent and the options of its request; `None` if it was not begun by a server, so that its
/// agent is not known here.
async fn made_again(
    app: &App,
    scope: &TenantScope,
    run: RunId,
) -> Result<Option<Run<order::Resume>>, ApiError> {
    let journal = app.store.journal(scope, run).await;
    let journal = journal.map_err(|error| errors::store(&error))?;
    let Some(host) = StoredRequest::of(journal.request.as_ref())? else {
        return Ok(None);
    };
    let target =
        tokio::time::timeout(PREPARED_WITHIN, resolve_target::resolve_stored(app, &host)).await;
    let target = target.map_err(|_| {
        let text = "The tools or the upstream of this response cannot be reached.";
        ApiError::new(503, "server_error", text)
    })??;
    let threads = app.runs.threads(scope);
    let resumed = target.agent.resume_run(&threads, run).await;
    let resumed = resumed.map_err(|error| errors::store(&error))?;
    let options = RunOptions {
        run: Some(run),
        ..target.options
    };
    Ok(Some(resumed.options(&options)))
}

/// Makes runs again that the next turn of a conversation finds there.
pub(super) struct LeftOnConversation {
    pub(super) app: App,
    pub(super) scope: TenantScope,
}

#[async_trait]
impl LeftRuns for LeftOnConversation {
    async fn resumed(&self, run: RunId) -> Option<Run<order::Resume>> {
        match made_again(&self.app, &self.scope, run).await {
            Ok(resumed) => resumed,
            Err(error) => {
                tracing::info!(%run, error = error.message, "a run that was left cannot be resumed now");
                None
            }
        }
    }
}

/// Go on with a run; `None` if it was not begun by a server, so that its agent is not known here.
pub(crate) async fn resume(
    app: &App,
    scope: &TenantScope,
    run: RunId,
) -> Result<Option<StopReason>, ApiError> {
    let Some(resumed) = made_again(app, scope, run).await? else {
        return Ok(None);
    };
    // A run that was begun as a stream stores its events, with or without readers.
    match resumed.await {
        Ok(outcome) => Ok(Some(outcome.stop)),
        Err(failed) if failed.messages().is_empty() => {
            Err(errors::refused(&failed.source, None, None))
        }
        Err(failed) if failed.is_recorded() && !waits(&failed.source) => {
            Ok(Some(StopReason::Failed))
        }
        Err(failed) => {
            let fenced = |error: &Error| error.kind() == ErrorKind::Fenced;
            if !matches!(&failed.source, RunError::Store(error) if fenced(error)) {
                // It is this process's run now, and no orphan of another.
                app.runs.leave_unsettled(scope, run);
            }
            Err(errors::outcome_unknown(run))
        }
    }
}
