//! Spans and metrics of runs, and no content unless it is requested.

mod capture;
mod content;
#[cfg(feature = "http")]
mod history_forms;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod spans;
mod support;
