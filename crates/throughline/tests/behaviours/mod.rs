//! Tests of the library's behaviours; each name has the number and the content of a rule. They run
//! with whole and with streamed answers.

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
