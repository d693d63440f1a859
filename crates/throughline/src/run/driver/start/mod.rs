//! Starting a run: the options are checked, the run waits for the thread, and begins.

mod begin;
mod enter;
mod open_calls;
mod plan;
mod queue;
mod settle;

pub(crate) use begin::{BeginResult, Leftover, RunInput, SentToService, begin};
pub(crate) use enter::{BlockingRun, MAX_ATTEMPTS, StartPoint, execute, queued_messages};
pub(crate) use open_calls::{OpenCallAnswers, TakenCall};
pub(crate) use plan::{Plan, joined};
pub(crate) use queue::QueuePlace;
