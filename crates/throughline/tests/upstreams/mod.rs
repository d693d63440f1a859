//! Every client against a strict server of its vendor, on real sockets: conversations, faults, and
//! a service that fails for a long time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

pub(crate) mod common;
mod conversations;
mod failure;
mod faults;
mod history_forms;
mod log_capture;
mod out_of_turn;
mod service_histories;
mod settings;
mod stored_conversations;
mod truncated_calls;
