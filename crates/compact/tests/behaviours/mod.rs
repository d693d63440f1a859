//! What compaction does in its corners, line by line.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod claims;
mod groups;
mod limits;
mod outcomes;
mod pressure;
mod remains;
mod stable;
mod told;
