//! Counts of what was recorded and what could not be.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Placed;

type Labels = [(&'static str, &'static str); 1];

/// Counts of recorded requests.
#[derive(Debug, Default)]
pub(crate) struct RecordMetrics {
    recorded: Family<Labels, Counter>,
    failures: Family<Labels, Counter>,
}

impl RecordMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "throughline_recorded_requests",
            "Stateless requests that were recorded, by where they belong",
            metrics.recorded.clone(),
        );
        registry.register(
            "throughline_record_failures",
            "Stateless requests that could not be recorded, at their beginning or at their end",
            metrics.failures.clone(),
        );
        metrics
    }

    /// A request was recorded.
    pub(crate) fn recorded(&self, placed: Placed) {
        let labels = [("placed", placed.as_str())];
        self.recorded.get_or_create(&labels).inc();
    }

    /// A request could not be recorded; `at` is `begin` or `end`.
    pub(crate) fn failed(&self, at: &'static str) {
        self.failures.get_or_create(&[("at", at)]).inc();
    }
}
