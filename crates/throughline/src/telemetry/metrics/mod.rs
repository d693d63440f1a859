//! Counters, gauges and histograms of agents and clients.

mod family;
mod instrument;
#[cfg(feature = "prometheus")]
mod prometheus;
mod record;
mod snapshot;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use instrument::{Instrument, Shape};
pub(crate) use record::CallLabels;
pub use snapshot::{HistogramValue, Metric, MetricsSnapshot, Point, PointValue};

use family::Family;

/// Somewhere else that measurements go, besides what [`Metrics`] keeps itself. Must not block.
pub trait MetricSink: Send + Sync {
    /// Something was measured. Labels without a value are left out; there is no content in them.
    fn record(&self, instrument: Instrument, value: f64, labels: &[(&'static str, &str)]);
}

/// What agents and clients count and measure. Cloning it is cheap and gives the same metrics.
///
/// ```
/// use std::sync::Arc;
/// use throughline::client::{Breaker, BreakerPolicy, ClientExt, Retry};
/// use throughline::telemetry::Metrics;
/// use throughline::{Agent, Demo};
///
/// let metrics = Metrics::new();
/// let client = Demo::new()
///     .layer(Breaker::observed_by(BreakerPolicy::default(), Arc::new(metrics.clone())))
///     .layer(Retry::default().observed_by(Arc::new(metrics.clone())));
/// let agent = Agent::builder(client).metrics(metrics.clone()).build()?;
/// // … runs …
/// let snapshot = metrics.snapshot();
/// # assert_eq!(snapshot.metrics, []);
/// # Ok::<(), throughline::agent::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Metrics {
    families: Arc<[Family]>,
    sinks: Arc<[Arc<dyn MetricSink>]>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Self {
            families: Instrument::ALL.map(Family::new).into(),
            sinks: Arc::new([]),
        }
    }

    /// The same, and what is measured through it or its clones goes to a sink as well.
    #[must_use]
    pub fn and(mut self, sink: impl MetricSink + 'static) -> Self {
        let mut sinks = self.sinks.to_vec();
        sinks.push(Arc::new(sink));
        self.sinks = sinks.into();
        self
    }

    /// All values at this moment.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let metrics = Instrument::ALL.iter().zip(&*self.families);
        MetricsSnapshot {
            metrics: metrics
                .map(|(instrument, family)| Metric {
                    instrument: *instrument,
                    points: family.points(),
                })
                .filter(|metric| !metric.points.is_empty())
                .collect(),
        }
    }

    /// Take in a value, with one label value for each label of the instrument.
    fn record<const N: usize>(&self, instrument: Instrument, value: f64, labels: [&str; N]) {
        let names = instrument.labels();
        debug_assert_eq!(names.len(), N, "{instrument:?}");
        self.families[instrument.index()].record(value, &labels);
        if self.sinks.is_empty() {
            return;
        }
        let named = names.iter().zip(labels);
        let named: Vec<(&'static str, &str)> = named
            .filter(|(_, value)| !value.is_empty())
            .map(|(label, value)| (label.name, value))
            .collect();
        for sink in &*self.sinks {
            sink.record(instrument, value, &named);
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("sinks", &self.sinks.len())
            .finish_non_exhaustive()
    }
}
