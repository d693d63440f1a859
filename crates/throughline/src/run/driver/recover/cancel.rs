//! Cancelling the run that is left on a thread, or works on it.

use throughline_store::{Error, Run, RunFilter, RunKind, RunState};

use super::end_of_run::{self, wait_until_idle};
use super::restore::Restoring;
use super::take_over::{claim, work};
use crate::run::driver::RunContext;
use crate::run::options::RunOptions;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::thread::live;
use crate::trials::planted;

/// Cancel the unsettled run of the thread. A run that ended before that is left as it is, and its
/// outcome is the answer.
pub(crate) async fn cancel(context: RunContext, options: RunOptions) -> Result<Outcome, RunFailed> {
    let fresh = context.agent.ids.run();
    let home = context.thread.home.clone();
    // The run that was to be cancelled when this began.
    let mut target: Option<Run> = None;
    loop {
        context.thread.distrust();
        let loaded = context.thread.load().await;
        let loaded = loaded.map_err(|error| context.refuse(fresh, error))?;
        let unsettled = loaded.found.as_ref().and_then(|one| one.unsettled.clone());
        let Some(run) = unsettled else {
            context.thread.put_back(loaded);
            let ended = match target {
                Some(target) => home.store.run(&home.scope, target.id).await.map(Some),
                None => last_ended(&context).await,
            };
            return match ended {
                Ok(Some(run)) => end_of_run::outcome(&context, run).await,
                Ok(None) => {
                    let thread = context.thread_id().clone();
                    Err(context.refuse(fresh, RunError::NothingToResume { thread }))
                }
                Err(error) => Err(context.refuse(fresh, error)),
            };
        };
        // A run without a worker is closed here. This process may have had the last one.
        let error = match claim(&context, &run, None).await {
            Ok(claimed) => {
                let how = (Restoring::Cancel, options);
                return work(context, loaded, &run, claimed, how, &[]).await;
            }
            Err(error) => error,
        };
        context.thread.put_back(loaded);
        match error {
            Error::Busy { .. } => {
                let asked = home.store.cancel(&home.scope, run.id).await;
                asked.map_err(|error| context.refuse(run.id, error))?;
                live::cancel(&home.store, run.id);
                let stopped = wait_until_idle(&context, run.clone()).await?;
                if stopped.state.is_settled() {
                    return end_of_run::outcome(&context, stopped).await;
                }
                // It parked before it saw the request, or its process died: then it is closed here.
            }
            // Another worker took it over, or it ended since it was read: look again.
            Error::Fenced { .. } | Error::WrongState { .. } => {}
            error => return Err(context.refuse(run.id, error)),
        }
        target = Some(run);
    }
}

/// The newest run at the head of the thread, if it ended by itself or was cancelled.
async fn last_ended(context: &RunContext) -> throughline_store::Result<Option<Run>> {
    let home = &context.thread.home;
    let filter = RunFilter {
        thread: Some(context.thread_id().clone()),
        states: Vec::new(),
    };
    let mut after = None;
    loop {
        let page = home.store.runs(&home.scope, &filter, after, 50).await?;
        let mut runs = page.found.into_iter();
        // Runs of branches, and messages that were added by hand, do not count.
        let last = runs.find(|run| run.leased && run.kind == RunKind::Turn);
        if let Some(run) = last {
            let ended = match run.state {
                RunState::Committed => !planted("loop-cancel-late"),
                state => state == RunState::Cancelled,
            };
            return Ok(ended.then_some(run));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(None),
        }
    }
}
