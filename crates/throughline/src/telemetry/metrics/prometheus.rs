//! The text that Prometheus reads. Names are those of OpenTelemetry by the usual rules: dots become
//! underscores, seconds and `total` are said at the end.

use std::fmt::{self, Write};

use super::instrument::{Instrument, Shape};
use super::snapshot::{HistogramValue, Metric, MetricsSnapshot, Point, PointValue};

impl MetricsSnapshot {
    /// The text that Prometheus reads, version 0.0.4.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        for metric in &self.metrics {
            // Writing to a string cannot fail.
            let _ = write_metric(&mut out, metric);
        }
        out
    }
}

fn write_metric(out: &mut String, metric: &Metric) -> fmt::Result {
    let name = name(metric.instrument);
    let kind = match metric.instrument.shape() {
        Shape::Counter => "counter",
        Shape::Gauge => "gauge",
        Shape::Histogram(_) => "histogram",
    };
    writeln!(out, "# HELP {name} {}", metric.instrument.help())?;
    writeln!(out, "# TYPE {name} {kind}")?;
    for point in &metric.points {
        match &point.value {
            PointValue::Counter(value) | PointValue::Gauge(value) => {
                sample(out, &name, point, None)?;
                writeln!(out, " {value}")?;
            }
            PointValue::Histogram(histogram) => buckets(out, &name, point, histogram)?,
        }
    }
    Ok(())
}

fn buckets(out: &mut String, name: &str, point: &Point, histogram: &HistogramValue) -> fmt::Result {
    let mut below = 0;
    let bucket = format!("{name}_bucket");
    for (at, count) in histogram.counts.iter().enumerate() {
        below += count;
        let bound = histogram.bounds.get(at).copied();
        sample(out, &bucket, point, Some(bound))?;
        writeln!(out, " {below}")?;
    }
    sample(out, &format!("{name}_sum"), point, None)?;
    writeln!(out, " {}", histogram.sum)?;
    sample(out, &format!("{name}_count"), point, None)?;
    writeln!(out, " {below}")
}

/// A name with its labels; the bound of a bucket is the last of them, none for the one above all.
fn sample(out: &mut String, name: &str, point: &Point, bound: Option<Option<f64>>) -> fmt::Result {
    out.push_str(name);
    let mut before = '{';
    for (label, value) in &point.labels {
        write!(out, "{before}{}=\"", underscored(label))?;
        for letter in value.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                letter => out.push(letter),
            }
        }
        out.push('"');
        before = ',';
    }
    match bound {
        None => {}
        Some(None) => write!(out, "{before}le=\"+Inf\"")?,
        Some(Some(bound)) => write!(out, "{before}le=\"{bound}\"")?,
    }
    if bound.is_some() || before == ',' {
        out.push('}');
    }
    Ok(())
}

fn name(instrument: Instrument) -> String {
    let mut name = underscored(instrument.name());
    if instrument.unit() == "s" {
        name.push_str("_seconds");
    }
    if instrument.shape() == Shape::Counter {
        name.push_str("_total");
    }
    name
}

fn underscored(name: &str) -> String {
    name.replace('.', "_")
}
