//! Metrics for OpenTelemetry. Each measurement is recorded as it is made, so that the views of the
//! SDK can aggregate single values.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

use super::metrics::{Instrument, MetricSink, Shape};

/// A sink that records into instruments of an OpenTelemetry meter, under the names of the semantic
/// conventions.
///
/// ```
/// use throughline::telemetry::{Metrics, OtelMetrics};
///
/// let meter = opentelemetry::global::meter("throughline");
/// let metrics = Metrics::new().and(OtelMetrics::new(&meter));
/// ```
pub struct OtelMetrics {
    instruments: Vec<Made>,
}

enum Made {
    Counter(Counter<u64>),
    Gauge(Gauge<u64>),
    Histogram(Histogram<f64>),
}

impl OtelMetrics {
    /// Creates the instruments.
    pub fn new(meter: &Meter) -> Self {
        Self {
            instruments: Instrument::ALL
                .iter()
                .map(|one| Made::by(meter, *one))
                .collect(),
        }
    }
}

impl Made {
    fn by(meter: &Meter, instrument: Instrument) -> Self {
        let (name, unit, help) = (instrument.name(), instrument.unit(), instrument.help());
        match instrument.shape() {
            Shape::Counter => {
                let counter = meter.u64_counter(name).with_unit(unit);
                Self::Counter(counter.with_description(help).build())
            }
            Shape::Gauge => {
                let gauge = meter.u64_gauge(name).with_unit(unit);
                Self::Gauge(gauge.with_description(help).build())
            }
            Shape::Histogram(bounds) => {
                let histogram = meter.f64_histogram(name).with_unit(unit);
                let histogram = histogram.with_description(help);
                Self::Histogram(histogram.with_boundaries(bounds.to_vec()).build())
            }
        }
    }
}

impl MetricSink for OtelMetrics {
    fn record(&self, instrument: Instrument, value: f64, labels: &[(&'static str, &str)]) {
        let labels = labels.iter();
        let labels: Vec<KeyValue> = labels
            .map(|(name, value)| KeyValue::new(*name, (*value).to_owned()))
            .collect();
        match &self.instruments[instrument.index()] {
            Made::Counter(counter) => counter.add(value as u64, &labels),
            Made::Gauge(gauge) => gauge.record(value as u64, &labels),
            Made::Histogram(histogram) => histogram.record(value, &labels),
        }
    }
}

impl std::fmt::Debug for OtelMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OtelMetrics")
    }
}
