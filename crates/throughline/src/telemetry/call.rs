//! The span of a model call.

use std::sync::OnceLock;
use std::time::Duration;

use throughline_model::{Response, Usage};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::metrics::CallLabels;
use super::words::{self, provider};
use super::{Telemetry, Tokens, content, failed};
use crate::client::{Abilities, ChatRequest, ClientError};

/// Whether an answer is requested as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streaming {
    Whole,
    Streamed,
}

/// The span and the metrics of a model call.
pub(crate) struct CallWatch<'a> {
    telemetry: &'a Telemetry,
    provider: &'a str,
    model: Option<&'a str>,
    span: CallSpan,
}

/// The span of a model call and its times.
pub(crate) struct CallSpan {
    span: Span,
    began: Option<Instant>,
    first: OnceLock<Duration>,
}

impl CallSpan {
    /// Records an event of a streamed answer.
    pub(super) fn event(&self) {
        let Some(began) = self.began else {
            return;
        };
        self.first.get_or_init(|| {
            let time = began.elapsed();
            let seconds = time.as_secs_f64();
            self.span
                .record("gen_ai.response.time_to_first_chunk", seconds);
            time
        });
    }
}

impl Telemetry {
    /// Starts the span of a model call, as a child of the current run's span.
    pub(crate) fn call<'a>(
        &'a self,
        abilities: &'a Abilities,
        request: &ChatRequest<'_>,
        model: Option<&'a str>,
        streaming: Streaming,
    ) -> CallWatch<'a> {
        let model = model.or(abilities.model.as_deref());
        let provider = provider(abilities);
        let span = info_span!(
            target: "throughline",
            "chat",
            otel.name = words::name("chat", model),
            otel.kind = "client",
            otel.status_code = Empty,
            otel.status_description = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider,
            gen_ai.request.model = model,
            gen_ai.request.stream = streaming == Streaming::Streamed,
            gen_ai.response.model = Empty,
            gen_ai.response.id = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.response.time_to_first_chunk = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            gen_ai.system_instructions = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            throughline.upstream = &*abilities.upstream,
            throughline.tool_history = Empty,
            throughline.stop_reason = Empty,
            error.type = Empty,
        );
        if self.records_content(&span) {
            if let Some(instructions) = request.instructions {
                let instructions = content::instructions(instructions);
                span.record("gen_ai.system_instructions", instructions);
            }
            let messages = request.messages();
            span.record("gen_ai.input.messages", content::input(messages));
        }
        CallWatch {
            telemetry: self,
            provider,
            model,
            span: CallSpan {
                began: self.began(&span),
                span,
                first: OnceLock::new(),
            },
        }
    }
}

impl<'a> CallWatch<'a> {
    /// A call whose span outlives what it was begun with.
    pub(super) fn of(
        telemetry: &'a Telemetry,
        (provider, model): (&'a str, Option<&'a str>),
        span: CallSpan,
    ) -> Self {
        Self {
            telemetry,
            provider,
            model,
            span,
        }
    }

    /// The span alone, without what it was begun with.
    pub(super) fn into_span(self) -> CallSpan {
        self.span
    }
}

impl CallWatch<'_> {
    /// The span in which the call is made.
    pub(crate) fn span(&self) -> Span {
        self.span.span.clone()
    }

    /// Records an event of a streamed answer.
    pub(crate) fn event(&self) {
        self.span.event();
    }

    /// Records the answer.
    pub(crate) fn answered(&self, response: &Response) {
        let Some(began) = self.span.began else {
            return;
        };
        let labels = self.labels(response.model.as_deref());
        self.measure(labels, began, None);
        if let (Some(metrics), Some(usage)) = (&self.telemetry.metrics, &response.usage) {
            metrics.tokens(labels, usage);
        }
        let span = &self.span.span;
        if span.is_disabled() {
            return;
        }
        span.record("gen_ai.response.model", response.model.as_deref());
        span.record("gen_ai.response.id", response.id.as_deref());
        let reasons = words::finish_reasons(response);
        span.record("gen_ai.response.finish_reasons", reasons);
        if let Some(usage) = &response.usage {
            tokens(usage).record(span);
        }
        if self.telemetry.records_content(span) {
            let output = content::output(&response.messages, Some(&response.stop));
            span.record("gen_ai.output.messages", output);
        }
    }

    /// Records that the call failed after all retries.
    pub(crate) fn failed(&self, error: &ClientError) {
        let Some(began) = self.span.began else {
            return;
        };
        let labels = self.labels(None);
        self.measure(labels, began, Some(error.kind().as_str()));
        if let Some(metrics) = &self.telemetry.metrics {
            metrics.model_error(labels, error.kind());
        }
        let text = self.telemetry.records_content(&self.span.span);
        let text = text.then(|| content::error(error));
        failed(&self.span.span, error.kind().as_str(), text.as_deref());
    }

    /// Records that the run was cut off before the answer was complete. The service did not fail,
    /// so the span is not marked as failed; the duration is recorded separately from that of
    /// complete answers.
    pub(crate) fn cut(&self, stop: &'static str) {
        let Some(began) = self.span.began else {
            return;
        };
        self.measure(self.labels(None), began, Some(stop));
        self.span.span.record("throughline.stop_reason", stop);
        self.span.span.record("error.type", stop);
    }

    fn labels<'s>(&'s self, answered: Option<&'s str>) -> CallLabels<'s> {
        CallLabels {
            provider: self.provider,
            request_model: self.model.unwrap_or_default(),
            response_model: answered.unwrap_or_default(),
        }
    }

    fn measure(&self, labels: CallLabels<'_>, began: Instant, error: Option<&str>) {
        let Some(metrics) = &self.telemetry.metrics else {
            return;
        };
        metrics.model_call(labels, began.elapsed(), error);
        if let Some(first) = self.span.first.get() {
            metrics.first_event(labels, *first);
        }
    }
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        reasoning: usage.reasoning,
    }
}
