//! Metrics for Prometheus. Names are OpenTelemetry's, converted by the usual rules: dots become
//! underscores, and durations end in `_seconds`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::{Instrument, Metrics, PointValue, Shape};

impl Metrics {
    /// All current values, as OpenMetrics text.
    ///
    /// A program with its own registry can register the metrics there instead:
    ///
    /// ```
    /// use prometheus_client::registry::Registry;
    /// use throughline::telemetry::Metrics;
    ///
    /// let metrics = Metrics::new();
    /// let mut registry = Registry::default();
    /// registry.register_collector(Box::new(metrics.clone()));
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &registry);
        out
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in self.snapshot().metrics {
            let instrument = metric.instrument;
            let kind = match instrument.shape() {
                Shape::Counter => MetricType::Counter,
                Shape::Gauge => MetricType::Gauge,
                Shape::Histogram(_) => MetricType::Histogram,
            };
            let name = name(instrument);
            let mut family = encoder.encode_descriptor(&name, instrument.help(), None, kind)?;
            for point in &metric.points {
                let labels = point.labels.iter();
                let labels: Vec<(String, &str)> = labels
                    .map(|(name, value)| (name.replace('.', "_"), value.as_str()))
                    .collect();
                let mut sample = family.encode_family(&labels)?;
                match &point.value {
                    PointValue::Counter(value) => {
                        sample.encode_counter::<NoLabelSet, _, u64>(value, None)?;
                    }
                    PointValue::Gauge(value) => sample.encode_gauge(value)?,
                    PointValue::Histogram(histogram) => {
                        let bounds = histogram.bounds.iter().copied().chain([f64::INFINITY]);
                        let buckets: Vec<(f64, u64)> =
                            bounds.zip(histogram.counts.iter().copied()).collect();
                        let (sum, count) = (histogram.sum, histogram.count());
                        sample.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn name(instrument: Instrument) -> String {
    let name = instrument.name().replace('.', "_");
    match instrument.unit() {
        "s" => name + "_seconds",
        _ => name,
    }
}
