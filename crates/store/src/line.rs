//! The line of a thread: runs that wait until it is free, first come, first served.
//!
//! A place in the line is stored. It belongs to the process that took it and lapses with that
//! process's lease. Numbers are assigned in the transaction that takes the place, so no clock
//! decides the order.

use crate::{Claim, RunId};

/// The number of a place in a line. Numbers rise, and none is given twice.
pub type LineNo = u64;

/// A run that waits for its thread and has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The number of its place.
    pub no: LineNo,
    /// The id under which it waits, and under which it begins.
    pub run: RunId,
}

/// Take a run over in turn: refused unless the caller is the first in the thread's line or the line is
/// empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimInLine {
    /// The run to take over.
    pub run: RunId,
    /// Its epoch as the caller saw it.
    pub seen: u32,
    /// Which states it may be in.
    pub claim: Claim,
    /// The id under which the caller waits, or would wait.
    pub waiter: RunId,
    /// What becomes of the caller's place.
    pub place: Place,
}

/// What becomes of the place of a waiter that takes a run over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// It is given up: taking the run over is what the waiter waited for.
    Leave,
    /// It is kept, and taken if the line is empty: the waiter settles what was left and begins a run
    /// of its own next. Runs that line up meanwhile stand behind it.
    Keep,
}
