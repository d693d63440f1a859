//! What can be watched of runs: spans and metrics. Content only when asked for.
//!
//! Spans and their attributes follow OpenTelemetry's conventions for generative AI; they are plain
//! `tracing` spans, so the application's subscriber decides where they go. The pure turn machine knows
//! nothing of this: the driver has one hook where a run, a model call and a tool begin. Without a
//! subscriber and without metrics a hook makes no text and allocates nothing.

mod call;
mod content;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod run;
mod tool;
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

/// Whether spans hold what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Recording {
    /// No content, only names, numbers and kinds.
    #[default]
    Bare,
    /// Instructions, messages, arguments, results and error texts.
    Content,
}

/// How an agent is watched.
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

    /// The time now, if a metric or a span records how long something takes.
    fn began(&self, span: &Span) -> Option<Instant> {
        (self.metrics.is_some() || !span.is_disabled()).then(Instant::now)
    }

    /// What a model is shown became smaller.
    pub(crate) fn compacted(&self, before: u64, after: u64) {
        if let Some(metrics) = &self.metrics {
            metrics.compaction(&self.agent, before, after);
        }
    }

    fn records_content(&self, span: &Span) -> bool {
        self.recording == Recording::Content && !span.is_disabled()
    }
}

/// Say on a span that it ended in an error, and the text of it if content is recorded.
fn failed(span: &Span, kind: &str, text: Option<&str>) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
    if let Some(text) = text {
        span.record("otel.status_description", text);
    }
}

/// Whole numbers go into spans with a sign: tracing-opentelemetry makes texts of the others.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Tokens, as far as they were reported.
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
