//! The pure core of the Responses API against the published descriptions, captured clients and the
//! grammar of streams.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and the test command shows the counts"
)]

mod captures;
mod grammar;
mod property;
mod runs;
pub(crate) mod schemas;
pub(crate) mod support;
mod vendors;
