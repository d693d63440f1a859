//! The integration tests of this crate, in one executable.

mod behaviours;
mod line_protocol;
mod memory;
mod protocol;
mod sqlite;
mod transfer;
