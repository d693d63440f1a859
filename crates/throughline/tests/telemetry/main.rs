//! What is seen of runs: spans, metrics, and no content unless it was asked for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod capture;
mod content;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod spans;
mod support;
