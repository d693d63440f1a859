//! Starting a run: the order is checked, the thread is waited for and opened, and the run begins.

mod begin;
mod enter;
mod open_calls;
mod plan;
mod queue;

pub(in crate::run::driver) use begin::{Adopted, Entered, Parts, RunInput, begin};
pub(in crate::run::driver) use enter::{Busy, START_ATTEMPTS, StartPoint, driven, waiting};
pub(in crate::run::driver) use open_calls::{OpenCallAnswers, TakenCall};
pub(in crate::run::driver) use plan::{Plan, joined};
pub(in crate::run::driver) use queue::QueuePlace;
