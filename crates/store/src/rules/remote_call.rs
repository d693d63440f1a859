//! When the handle of a remote call may be stored, and how long it counts.

use crate::{RemoteCall, Result, RunId, RunState, trials};

use super::lease;

/// A remote call is for the next step of a running run. `state` is the stored state.
pub(crate) fn check(run: RunId, state: RunState, next_step: u32, call: &RemoteCall) -> Result<()> {
    lease::running(run, state)?;
    lease::next_step(run, next_step, call.step)
}

/// The stored call, unless its step is stored too.
pub(crate) fn current(stored: RemoteCall, next_step: u32) -> Option<RemoteCall> {
    let is_over = trials::unless("remote-call-stale", stored.step != next_step);
    (!is_over).then_some(stored)
}
