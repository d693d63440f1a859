//! The integration tests of this crate, in one executable.

mod behaviours;
mod examples;
#[cfg(feature = "mcp")]
mod mcp;
mod telemetry;
mod threads;
mod upstreams;
