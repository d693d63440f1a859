//! Every client against a strict server of its vendor, on real sockets: conversations, faults, and
//! a service that fails for long.

mod common;
mod failure;
mod faults;
mod talk;
mod watch;
