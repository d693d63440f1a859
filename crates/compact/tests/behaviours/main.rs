//! What compaction does in its corners, line by line.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod groups;
mod limits;
mod remains;
mod stable;
mod told;
