//! Spans and metrics of runs. Content is recorded only on request.
//!
//! Spans and their attributes follow OpenTelemetry's conventions for generative AI. They are plain
//! `tracing` spans, which the application's subscriber receives. The turn machine has no telemetry:
//! the driver calls one hook at the start of each run, model call and tool. Without a subscriber
//! and without metrics, a hook formats no text and allocates nothing.

mod call;
mod content;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod run;
mod tool;
mod watch_calls;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tokio::time::Instant;
use tracing::Span;

pub(crate) use call::{CallWatch, Streaming};
pub use metrics::{
    HistogramValue, Instrument, Metric, MetricSink, Metrics, MetricsSnapshot, Point, PointValue,
    Shape,
};
#[cfg(feature = "otel")]
pub use otel::OtelMetrics;
pub(crate) use run::{RunReport, name_run};
pub(crate) use tool::ToolEnd;
pub use watch_calls::WatchCalls;

/// Whether spans contain content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Recording {
    /// Names, numbers and kinds only.
    #[default]
    Bare,
    /// Also instructions, messages, arguments, results and error texts.
    Content,
}

/// The telemetry of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Telemetry {
    agent: Arc<str>,
    recording: Recording,
    metrics: Option<Metrics>,
}

impl Telemetry {
    pub(crate) fn of(agent: &str, recording: Recording, metrics: Option<Metrics>) -> Self {
        Self {
            agent: agent.into(),
            recording,
            metrics,
        }
    }

    /// The current time, if a metric or a span records the duration.
    fn began(&self, span: &Span) -> Option<Instant> {
        (self.metrics.is_some() || !span.is_disabled()).then(Instant::now)
    }

    /// Records a compaction.
    pub(crate) fn compacted(&self, before: u64, after: u64) {
        if let Some(metrics) = &self.metrics {
            metrics.compaction(&self.agent, before, after);
        }
    }

    fn records_content(&self, span: &Span) -> bool {
        self.recording == Recording::Content && !span.is_disabled()
    }
}

/// Marks a span as failed, with the error text if content is recorded.
fn failed(span: &Span, kind: &str, text: Option<&str>) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
    if let Some(text) = text {
        span.record("otel.status_description", text);
    }
}

/// Converts a number for spans: tracing-opentelemetry exports unsigned numbers as strings.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Token counts, as far as the vendor reported them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tokens {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl Tokens {
    fn record(self, span: &Span) {
        let record = |name, tokens: Option<u64>| {
            if let Some(tokens) = tokens {
                span.record(name, signed(tokens));
            }
        };
        record("gen_ai.usage.input_tokens", self.input);
        record("gen_ai.usage.output_tokens", self.output);
        record("gen_ai.usage.cache_read.input_tokens", self.cache_read);
        record("gen_ai.usage.cache_creation.input_tokens", self.cache_write);
        record("gen_ai.usage.reasoning.output_tokens", self.reasoning);
    }
}
