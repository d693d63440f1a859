//! The integration tests of this crate, in one executable.

mod behaviours;
mod examples;
#[cfg(feature = "mcp")]
mod mcp;
mod telemetry;
mod threads;
mod upstreams;

/// Counts, for the test of the bytes that histories hold.
#[global_allocator]
static ALLOCATOR: throughline_testkit::heap::CountingAllocator =
    throughline_testkit::heap::CountingAllocator;
