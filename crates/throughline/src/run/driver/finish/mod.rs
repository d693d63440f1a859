//! Ending a run: publishing, parking, failing.

mod details;
mod settle;

pub(crate) use details::OutcomeDetails;
