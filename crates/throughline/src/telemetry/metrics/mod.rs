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

/// Receives measurements, in addition to [`Metrics`]. Must not block.
pub trait MetricSink: Send + Sync {
    /// Receives one measurement. Labels without a value are omitted; labels contain no content.
    fn record(&self, instrument: Instrument, value: f64, labels: &[(&'static str, &str)]);
}

/// The metrics of agents and clients. Clones share their values.
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
    /// Metrics without values.
    pub fn new() -> Self {
        Self {
            families: Instrument::ALL.map(Family::new).into(),
            sinks: Arc::new([]),
        }
    }

    /// Also sends every measurement of this value and its clones to a sink.
    #[must_use]
    pub fn and(mut self, sink: impl MetricSink + 'static) -> Self {
        let mut sinks = self.sinks.to_vec();
        sinks.push(Arc::new(sink));
        self.sinks = sinks.into();
        self
    }

    /// All current values.
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

    /// Records a value, with one label value for each label of the instrument.
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
