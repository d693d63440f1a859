use super::instrument::Instrument;

/// All metrics at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsSnapshot {
    /// One per instrument with values.
    pub metrics: Vec<Metric>,
}

/// The values of an instrument.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The instrument.
    pub instrument: Instrument,
    /// One per combination of label values, sorted by these.
    pub points: Vec<Point>,
}

/// A value and its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name and value of each label that has a value.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: PointValue,
}

/// The value of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    /// The value of a counter.
    Counter(u64),
    /// The value of a gauge.
    Gauge(u64),
    /// The value of a histogram.
    Histogram(HistogramValue),
}

/// The counts and the sum of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramValue {
    /// The inclusive upper bounds of the buckets.
    pub bounds: &'static [f64],
    /// How many values are in each bucket; the last bucket is above all bounds.
    pub counts: Vec<u64>,
    /// The sum of the values.
    pub sum: f64,
}

impl HistogramValue {
    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl MetricsSnapshot {
    /// The points of an instrument that have these labels, and possibly others.
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

    /// The total of these points: the sum of counters and gauges, or the number of values in
    /// histograms.
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

    /// The sum of all values in histograms with these labels: tokens, or seconds.
    pub fn sum(&self, instrument: Instrument, labels: &[(&str, &str)]) -> f64 {
        let points = self.points(instrument, labels);
        points
            .map(|point| match &point.value {
                PointValue::Counter(value) | PointValue::Gauge(value) => *value as f64,
                PointValue::Histogram(histogram) => histogram.sum,
            })
            // Not `sum`, which returns -0 for an empty iterator.
            .fold(0.0, |sum, value| sum + value)
    }
}

impl Point {
    fn has(&self, (name, value): &(&str, &str)) -> bool {
        let mut labels = self.labels.iter();
        labels.any(|(has, is)| has == name && is == value)
    }
}
