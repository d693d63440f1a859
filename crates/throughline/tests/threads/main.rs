//! One test for each line of the library's behaviours that has to do with what is kept: its name is
//! the line's number and content. Each runs on every engine, whole and streamed.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod crashes;
mod filters;
mod identity;
mod json;
mod providers;
mod sources;
