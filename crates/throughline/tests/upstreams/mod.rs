//! Every client against a strict server of its vendor, on real sockets: conversations, faults, and
//! a service that fails for long.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;
mod cut;
mod failure;
mod faults;
mod forms;
mod keep;
mod out_of_turn;
mod settings;
mod talk;
mod watch;
