//! What holds for every view, whatever was said.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod again;
mod chained;
mod check;
mod conversation;
mod cuts;
mod failures;
mod hostile;
mod recorded;
