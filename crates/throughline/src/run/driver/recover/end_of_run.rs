//! Waiting for a run that another task works on, and reading its outcome.

use std::time::Duration;

use throughline_store::{Error, Run, RunState};

use crate::run::driver::RunContext;
use crate::run::outcome::{Outcome, RunError, RunFailed};
use crate::run::usage::RunUsage;
use crate::thread::StopReason;
use crate::thread::journal::{Calls, ended, losses_of, pending_of};

/// How often a run of another task is read while this one waits for it.
const POLL: Duration = Duration::from_millis(20);

/// Wait until no worker works on a run.
pub(crate) async fn wait_until_idle(context: &RunContext, mut run: Run) -> Result<Run, RunFailed> {
    let home = &context.thread.home;
    while run.state == RunState::Running {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                return Err(context.refuse(run.id, RunError::Cancelled));
            }
            () = tokio::time::sleep(POLL) => {}
        }
        let read = home.store.run(&home.scope, run.id).await;
        run = read.map_err(|error| context.refuse(run.id, error))?;
    }
    Ok(run)
}

/// The outcome of a run of another task, once it has stopped.
pub(crate) async fn outcome(context: &RunContext, run: Run) -> Result<Outcome, RunFailed> {
    let home = &context.thread.home;
    let run = wait_until_idle(context, run).await?;
    let refuse = |error: Error| context.refuse(run.id, error);
    let journal = home.store.journal(&home.scope, run.id).await;
    let journal = journal.map_err(refuse)?;
    let (stop, finish) = ended(run.note.as_ref());
    let stop = stop.unwrap_or(match run.state {
        RunState::Parked => StopReason::Parked,
        RunState::Cancelled | RunState::Discarded => StopReason::Cancelled,
        RunState::Failed | RunState::Interrupted | RunState::Held => StopReason::Failed,
        RunState::Running | RunState::Committed | RunState::Unpublished => StopReason::Done,
    });
    let mut usage = RunUsage::default();
    for entry in &journal.entries {
        if let Some(reported) = &entry.message.usage {
            usage.add(Some(reported));
        }
    }
    context.publish_end(stop);
    let pending = match run.state {
        RunState::Parked => {
            let calls = Calls::of(home, &journal).await.map_err(refuse)?;
            pending_of(&journal, &calls)
        }
        _ => Vec::new(),
    };
    let messages = journal.entries.into_iter().map(|entry| entry.message);
    Ok(Outcome {
        run: run.id,
        thread: run.thread,
        stop,
        messages: messages.collect(),
        usage,
        pending,
        finish,
        compaction: None,
        losses: losses_of(run.note.as_ref()),
        steps: Vec::new(),
        cut_off: Vec::new(),
    })
}
