//! What is seen of runs: spans, metrics, and no content unless it was asked for.

mod capture;
mod content;
#[cfg(feature = "http")]
mod forms;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod spans;
mod support;
