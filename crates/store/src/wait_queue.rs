//! The wait queue of a thread: runs that wait until the thread is free, first come, first served.
//!
//! A place in the queue is stored. It belongs to the process that took it and lapses with that
//! process's lease. Numbers are assigned in the transaction that takes the place, so no clock
//! decides the order.

use crate::{Claim, RunId};

/// The number of a place in a wait queue. Numbers rise, and none is given twice.
pub type WaiterNo = u64;

/// A run that waits for its thread and has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The number of its place.
    pub no: WaiterNo,
    /// The id under which it waits, and under which it begins.
    pub run: RunId,
}

/// Take a run over in turn: refused unless the caller is the first in the thread's wait queue or the
/// queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimInTurn {
    /// The run to take over.
    pub run: RunId,
    /// Its epoch as the caller saw it.
    pub seen: u32,
    /// Which states it may be in.
    pub claim: Claim,
    /// The id under which the caller waits, or would wait.
    pub waiter: RunId,
    /// What becomes of the caller's place.
    pub after: AfterTurn,
}

/// What becomes of the place of a waiter whose turn it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterTurn {
    /// It is given up: taking the run over is what the waiter waited for.
    Leave,
    /// It is kept, and taken if the queue is empty: the waiter settles what was left and begins a run
    /// of its own next. Runs that join the queue meanwhile stand behind it.
    Keep,
}
