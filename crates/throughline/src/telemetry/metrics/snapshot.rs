use super::instrument::Instrument;

/// All metrics at one moment, as plain values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsSnapshot {
    /// One for each instrument that has something to tell.
    pub metrics: Vec<Metric>,
}

/// What an instrument has measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The instrument.
    pub instrument: Instrument,
    /// One for each combination of label values, sorted by these.
    pub points: Vec<Point>,
}

/// A value and its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name and value of each label that has one.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: PointValue,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    /// Of a counter.
    Counter(u64),
    /// Of a gauge.
    Gauge(u64),
    /// Of a histogram.
    Histogram(HistogramValue),
}

/// How often values fell into which bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramValue {
    /// The upper bounds of the buckets, themselves included.
    pub bounds: &'static [f64],
    /// How many values fell between a bound and the one below; the last is above all bounds.
    pub counts: Vec<u64>,
    /// The sum of the values.
    pub sum: f64,
}

impl HistogramValue {
    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl MetricsSnapshot {
    /// The points of an instrument that have these labels, and perhaps others.
    pub fn points<'s>(
        &'s self,
        instrument: Instrument,
        labels: &'s [(&'s str, &'s str)],
    ) -> impl Iterator<Item = &'s Point> {
        let of = self.metrics.iter();
        of.filter(move |metric| metric.instrument == instrument)
            .flat_map(|metric| &metric.points)
            .filter(move |point| labels.iter().all(|label| point.has(label)))
    }

    /// The number of those: of counters and gauges the sum of the values, of histograms how many
    /// values there were.
    ///
    /// ```
    /// use throughline::telemetry::{Instrument, Metrics};
    ///
    /// let snapshot = Metrics::new().snapshot();
    /// let failed = [("throughline.stop_reason", "failed")];
    /// assert_eq!(snapshot.count(Instrument::Runs, &failed), 0);
    /// ```
    pub fn count(&self, instrument: Instrument, labels: &[(&str, &str)]) -> u64 {
        let points = self.points(instrument, labels);
        points
            .map(|point| match &point.value {
                PointValue::Counter(value) | PointValue::Gauge(value) => *value,
                PointValue::Histogram(histogram) => histogram.count(),
            })
            .sum()
    }

    /// The sum of all values that histograms with these labels took in: tokens, or seconds.
    pub fn sum(&self, instrument: Instrument, labels: &[(&str, &str)]) -> f64 {
        let points = self.points(instrument, labels);
        points
            .map(|point| match &point.value {
                PointValue::Counter(value) | PointValue::Gauge(value) => *value as f64,
                PointValue::Histogram(histogram) => histogram.sum,
            })
            // Not `sum`, which gives -0 for nothing.
            .fold(0.0, |sum, value| sum + value)
    }
}

impl Point {
    fn has(&self, (name, value): &(&str, &str)) -> bool {
        let mut labels = self.labels.iter();
        labels.any(|(has, is)| has == name && is == value)
    }
}
