//! Settling a run that was left on the thread, so that a new one can begin.

use std::sync::Arc;

use throughline_store::{AfterTurn, CallState, Error, Run, RunState};

use super::enter::{Blocked, MAX_ATTEMPTS};
use super::plan::Plan;
use super::queue::QueuePlace;
use crate::run::driver::RunContext;
use crate::run::driver::recover::{Restoring, restore, take_over};
use crate::run::options::RunOptions;
use crate::run::outcome::RunError;
use crate::thread::{Loaded, OnInterrupt, OnOpenCalls};
use crate::trials::planted;

/// What came of settling a run.
pub(super) enum Settled {
    /// The thread has changed and is to be read again.
    Reload,
    /// Another worker works on the run.
    Busy(Box<Loaded>),
}

/// Settle a run that was left on the thread, as the policy says.
pub(super) async fn settle(
    context: &RunContext,
    plan: &Plan,
    loaded: Loaded,
    run: &Run,
    line: &mut QueuePlace,
) -> Result<Settled, Blocked> {
    let restoring = match run.state {
        RunState::Parked => {
            let home = &context.thread.home;
            let journal = home.store.journal(&home.scope, run.id).await?;
            let pending = restore::waiting_calls(&journal);
            if pending.is_empty() {
                on_interrupt(plan, run)?
            } else if plan.policy.on_open_calls == OnOpenCalls::Reject {
                context.thread.put_back(loaded);
                let waiting = journal.calls.iter();
                let waiting = waiting.filter(|call| call.state == CallState::Approval);
                return Err(Blocked::Refused(RunError::OpenCalls {
                    run: run.id,
                    pending,
                    approvals: waiting.filter_map(|call| call.approval).collect(),
                }));
            } else {
                Restoring::Withdraw
            }
        }
        // A run from a backup is only resumed on request.
        RunState::Held => Restoring::Close,
        _ => on_interrupt(plan, run)?,
    };
    // The host of a run keeps its options, and this run may have others.
    let mut made = (Arc::clone(&context.agent), RunOptions::default());
    if let (Some(host), Restoring::Resume) = (&plan.left_runs, &restoring) {
        match host.resumed(run.id).await {
            Some(resumed) => made = resumed.into_setup(),
            None => {
                context.thread.put_back(loaded);
                return Err(RunError::Interrupted { run: run.id }.into());
            }
        }
    }
    let (agent, options) = made;
    // Claiming takes a place in line: runs that line up meanwhile stand behind this one.
    let had_place = line.has_place();
    line.expect_place();
    let claimed = take_over::claim(context, run, Some((line.run(), AfterTurn::Keep))).await;
    if let Err(Error::Busy { .. } | Error::Fenced { .. } | Error::WrongState { .. }) = &claimed
        && !had_place
    {
        line.forget_place();
    }
    let claimed = match claimed {
        Ok(claimed) => claimed,
        Err(Error::Busy { .. }) => return Ok(Settled::Busy(Box::new(loaded))),
        Err(error) => {
            context.thread.put_back(loaded);
            return match error {
                // Another worker has settled it.
                Error::Fenced { .. } | Error::WrongState { .. } => Ok(Settled::Reload),
                error => Err(error.into()),
            };
        }
    };
    // Its events are not those of the run that waits for it.
    let context = RunContext {
        agent,
        cancel: context.cancel.child_token(),
        events: None,
        stores_events: true,
        ..context.clone()
    };
    let how = (restoring, options);
    // Boxed, because this run may have to settle another one first.
    let worked = Box::pin(take_over::work(context, loaded, run, claimed, how, &[]));
    match worked.await {
        Ok(_) => Ok(Settled::Reload),
        // The failure is stored as the end of that run, so its client reads it there; this run may begin.
        Err(failed) if plan.left_runs.is_some() && failed.is_recorded() => Ok(Settled::Reload),
        Err(failed) => Err(Blocked::Failed(Box::new(failed))),
    }
}

fn on_interrupt(plan: &Plan, run: &Run) -> Result<Restoring, RunError> {
    match plan.policy.on_interrupt {
        OnInterrupt::Resume if run.attempt + 1 >= MAX_ATTEMPTS && !planted("loop-never-sealed") => {
            Ok(Restoring::Seal)
        }
        OnInterrupt::Resume => Ok(Restoring::Resume),
        OnInterrupt::Close => Ok(Restoring::Close),
        OnInterrupt::Reject => Err(RunError::Interrupted { run: run.id }),
    }
}
