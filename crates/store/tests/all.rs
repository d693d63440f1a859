//! The integration tests of this crate, in one executable.

mod behaviours;
mod line_protocol;
mod memory;
mod memory_smoke;
mod protocol;
mod sqlite;
mod transfer;
