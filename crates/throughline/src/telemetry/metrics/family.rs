use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::instrument::{Instrument, Label, Shape, Values};
use super::snapshot::{HistogramValue, Point, PointValue};

/// How many combinations of label values an instrument distinguishes. In later combinations, open
/// labels become [`OTHER`], so that values from outside cannot exhaust the memory.
pub(super) const MOST: usize = 256;

/// The value that replaces values of open labels.
pub(super) const OTHER: &str = "other";

/// The longest label value, in bytes.
const LONGEST: usize = 128;

/// One instrument with all its label values.
pub(super) struct Family {
    instrument: Instrument,
    /// Sorted by label values: lookups allocate no key, and snapshots are in order.
    cells: RwLock<Vec<(Key, Arc<Cell>)>>,
}

type Key = Box<[Box<str>]>;

enum Cell {
    Counter(AtomicU64),
    Gauge(AtomicU64),
    Histogram(Histogram),
}

struct Histogram {
    bounds: &'static [f64],
    /// One per bound, and one above all bounds.
    counts: Box<[AtomicU64]>,
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl Family {
    pub(super) fn new(instrument: Instrument) -> Self {
        Self {
            instrument,
            cells: RwLock::default(),
        }
    }

    /// Records a value; there is one label value for each label of the instrument.
    pub(super) fn record(&self, value: f64, labels: &[&str]) {
        self.cell(labels).record(value);
    }

    fn cell(&self, labels: &[&str]) -> Arc<Cell> {
        let cells = self.cells.read().unwrap_or_else(PoisonError::into_inner);
        if let Ok(at) = find(&cells, labels) {
            return Arc::clone(&cells[at].1);
        }
        drop(cells);
        let mut cells = self.cells.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have inserted it meanwhile.
        match find(&cells, labels) {
            Ok(at) => Arc::clone(&cells[at].1),
            Err(at) if cells.len() < MOST => self.insert(&mut cells, at, labels),
            Err(_) => {
                let others = others(self.instrument.labels(), labels);
                match find(&cells, &others) {
                    Ok(at) => Arc::clone(&cells[at].1),
                    Err(at) => self.insert(&mut cells, at, &others),
                }
            }
        }
    }

    fn insert(&self, cells: &mut Vec<(Key, Arc<Cell>)>, at: usize, labels: &[&str]) -> Arc<Cell> {
        let key = labels.iter().map(|label| short(label).into()).collect();
        let cell = Arc::new(Cell::new(self.instrument.shape()));
        cells.insert(at, (key, Arc::clone(&cell)));
        cell
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let cells = self.cells.read().unwrap_or_else(PoisonError::into_inner);
        let names = self.instrument.labels();
        let points = cells.iter().map(|(key, cell)| Point {
            labels: names
                .iter()
                .zip(key)
                .filter(|(_, value)| !value.is_empty())
                .map(|(label, value)| (label.name, String::from(&**value)))
                .collect(),
            value: cell.value(),
        });
        points.collect()
    }
}

fn find(cells: &[(Key, Arc<Cell>)], labels: &[&str]) -> Result<usize, usize> {
    cells.binary_search_by(|(key, _)| compare(key, labels))
}

fn compare(key: &[Box<str>], labels: &[&str]) -> Order {
    let key = key.iter().map(|value| &**value);
    key.cmp(labels.iter().map(|label| short(label)))
}

/// Replaces the values of open labels. Closed labels keep theirs: there are few values, so the
/// number of combinations is bounded.
fn others<'l>(names: &[Label], labels: &[&'l str]) -> Vec<&'l str> {
    let values = names.iter().zip(labels);
    values
        .map(|(name, value)| match name.values {
            Values::Closed => *value,
            Values::Open if value.is_empty() => *value,
            Values::Open => OTHER,
        })
        .collect()
}

fn short(value: &str) -> &str {
    let mut end = value.len().min(LONGEST);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    &value[..end]
}

impl Cell {
    fn new(shape: Shape) -> Self {
        match shape {
            Shape::Counter => Self::Counter(AtomicU64::new(0)),
            Shape::Gauge => Self::Gauge(AtomicU64::new(0)),
            Shape::Histogram(bounds) => Self::Histogram(Histogram {
                bounds,
                counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
                sum: AtomicU64::new(0.0_f64.to_bits()),
            }),
        }
    }

    fn record(&self, value: f64) {
        match self {
            Self::Counter(count) => {
                count.fetch_add(value as u64, Ordering::Relaxed);
            }
            Self::Gauge(gauge) => gauge.store(value as u64, Ordering::Relaxed),
            Self::Histogram(histogram) => histogram.record(value),
        }
    }

    fn value(&self) -> PointValue {
        match self {
            Self::Counter(count) => PointValue::Counter(count.load(Ordering::Relaxed)),
            Self::Gauge(gauge) => PointValue::Gauge(gauge.load(Ordering::Relaxed)),
            Self::Histogram(histogram) => PointValue::Histogram(HistogramValue {
                bounds: histogram.bounds,
                counts: histogram
                    .counts
                    .iter()
                    .map(|count| count.load(Ordering::Relaxed))
                    .collect(),
                sum: f64::from_bits(histogram.sum.load(Ordering::Relaxed)),
            }),
        }
    }
}

impl Histogram {
    fn record(&self, value: f64) {
        // A bound belongs to the bucket below it, as in OpenTelemetry and Prometheus.
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // This cannot fail, because the closure always returns a value.
        let _ = self
            .sum
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}
