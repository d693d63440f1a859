//! Who may write to a run, and who may take it over.

use crate::trials;
use crate::{Claim, Error, Flush, Lease, Millis, Result, RunId, RunState, ThreadId};

/// The state of a run now, by its stored state.
pub(crate) fn state_now(stored: RunState, has_living_owner: bool) -> RunState {
    match stored {
        RunState::Running if !has_living_owner => RunState::Interrupted,
        state => state,
    }
}

/// For how long a run is worked on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkedTime {
    /// For how long it was worked on before its present owner had it.
    pub(crate) before: Millis,
    /// When its present owner began or claimed it.
    pub(crate) since: Millis,
}

impl WorkedTime {
    /// For how long it was worked on until a moment in the time of its present owner.
    pub(crate) fn until(self, moment: Millis) -> Millis {
        self.before + moment.saturating_sub(self.since)
    }
}

/// When the owner of a run that is claimed last worked on it: at the last write, or, if the owner was
/// lost, at its last heartbeat. `lost` is until when that one counted, and for how long one counts.
pub(crate) fn last_worked(progress: Millis, lost: Option<(Millis, Millis)>) -> Millis {
    lost.map_or(progress, |(until, lease)| {
        progress.max(until.saturating_sub(lease))
    })
}

/// A write carries the epoch that its run has.
pub(crate) fn fence(lease: Lease, current: u32) -> Result<()> {
    if trials::unless("no-fence", current != lease.epoch)
        && trials::unless("no-fence-no-state", true)
    {
        return Err(Error::Fenced {
            run: lease.run,
            mine: lease.epoch,
            current,
        });
    }
    Ok(())
}

/// A run that is written to is running. `stored` is its stored state.
pub(crate) fn running(run: RunId, stored: RunState) -> Result<()> {
    let idle = trials::unless("no-step-state", stored != RunState::Running);
    if !trials::unless("no-fence-no-state", idle) {
        return Ok(());
    }
    Err(Error::WrongState {
        run,
        state: stored,
        wanted: "it must be running",
    })
}

/// A step is the next one of its run.
pub(crate) fn next_step(run: RunId, expected: u32, found: u32) -> Result<()> {
    if trials::unless("step-order", found != expected) {
        return Err(Error::OutOfOrder {
            run,
            what: "step",
            expected: u64::from(expected),
            found: u64::from(found),
        });
    }
    Ok(())
}

/// Events are the next ones of their run.
pub(crate) fn next_events(run: RunId, expected: u64, events: Option<&Flush>) -> Result<()> {
    match events {
        Some(events) if trials::unless("event-order", events.first != expected) => {
            Err(Error::OutOfOrder {
                run,
                what: "event",
                expected,
                found: events.first,
            })
        }
        _ => Ok(()),
    }
}

/// A run that a process wants to take over.
pub(crate) struct ClaimedRun<'a> {
    pub(crate) run: RunId,
    pub(crate) thread: &'a ThreadId,
    /// Its state now: interrupted if its owner is gone.
    pub(crate) state: RunState,
    /// The claiming process owns it.
    pub(crate) is_own: bool,
}

/// A run may be claimed: its owner is gone or gives it up, and it is in a state for such a claim.
pub(crate) fn claim(of: &ClaimedRun<'_>, claim: Claim) -> Result<()> {
    let ClaimedRun { run, state, .. } = *of;
    let given_up = claim == Claim::Own && !trials::unless("claim-others", !of.is_own);
    if trials::unless("claim-living", state == RunState::Running && !given_up) {
        return Err(Error::Busy {
            thread: of.thread.clone(),
            run,
            state,
        });
    }
    let fits = match (claim, state) {
        (_, RunState::Running) => true,
        (Claim::Orphan | Claim::Own | Claim::Settle, RunState::Interrupted)
        | (Claim::Parked | Claim::Settle, RunState::Parked)
        | (Claim::Settle, RunState::Held | RunState::Unpublished) => true,
        (
            Claim::Orphan | Claim::Own | Claim::Parked | Claim::Settle,
            RunState::Interrupted
            | RunState::Parked
            | RunState::Held
            | RunState::Unpublished
            | RunState::Committed
            | RunState::Cancelled
            | RunState::Failed
            | RunState::Discarded,
        ) => false,
    };
    if fits {
        return Ok(());
    }
    let wanted = match claim {
        Claim::Orphan => "its owner must be gone",
        Claim::Own => "it must be running",
        Claim::Parked => "it must be parked",
        Claim::Settle => "it must not be finished",
    };
    Err(Error::WrongState { run, state, wanted })
}

/// Whether a claim needs the thread to be free: a leased run that was not published holds it again.
pub(crate) fn claim_needs_free_thread(state: RunState, is_leased: bool) -> bool {
    trials::unless("claim-busy", state == RunState::Unpublished && is_leased)
}

/// How many attempts a claim adds: a parked run was left by no worker.
pub(crate) fn attempts_of_claim(state: RunState) -> u32 {
    u32::from(state != RunState::Parked)
}

/// A claim names the epoch that its caller saw.
pub(crate) fn claimed_epoch(run: RunId, seen: u32, current: u32) -> Result<()> {
    if trials::unless("claim-epoch-seen", current != seen) {
        return Err(Error::Fenced {
            run,
            mine: seen,
            current,
        });
    }
    Ok(())
}
