//! One test for each line of the library's behaviours: its name is the line's number and content.
//! Each runs whole and streamed.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod calling;
mod cancelled;
mod changing;
mod errors;
mod foreign;
mod injected;
mod limits;
mod order;
mod outside;
mod streams;
mod support;
mod usage;
