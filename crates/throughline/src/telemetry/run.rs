//! The span of a run.

use std::error::Error;

use throughline_model::{Message, Role, Stop};
use throughline_store::{RunId, ThreadId};
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span, info_span};

use super::words::provider;
use super::{Telemetry, Tokens, content, failed};
use crate::client::Abilities;

/// The span and the metrics of a run.
pub(crate) struct RunWatch {
    telemetry: Telemetry,
    span: Span,
    began: Option<Instant>,
}

impl Telemetry {
    /// Starts the span of a run. Its parent is the current span, so this must be called by the task
    /// that starts the run, not by the run's own task.
    pub(crate) fn run(&self, abilities: &Abilities, thread: &ThreadId) -> RunWatch {
        let span = info_span!(
            target: "throughline",
            "invoke_agent",
            otel.name = format!("invoke_agent {}", self.agent),
            otel.kind = "internal",
            otel.status_code = Empty,
            otel.status_description = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.provider.name = provider(abilities),
            gen_ai.agent.name = &*self.agent,
            gen_ai.conversation.id = thread.as_str(),
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            throughline.run = Empty,
            throughline.stop_reason = Empty,
            error.type = Empty,
        );
        RunWatch {
            telemetry: self.clone(),
            began: self.began(&span),
            span,
        }
    }
}

/// Sets the run's id on the current span: it is known only when the thread is free.
pub(crate) fn name_run(run: RunId) {
    Span::current().record("throughline.run", display(run));
}

/// What telemetry records of a run that has ended.
pub(crate) struct RunReport<'a> {
    pub(crate) run: RunId,
    /// The stop reason, as a label.
    pub(crate) stop: &'static str,
    pub(crate) tokens: Tokens,
    /// The kind of the error, as a label, and the error.
    pub(crate) error: Option<(&'static str, &'a (dyn Error + 'static))>,
    /// The messages of the run, input first.
    pub(crate) messages: &'a [Message],
    /// The answer of the model, and why the model stopped.
    pub(crate) answer: Option<&'a Message>,
    pub(crate) finish: Option<&'a Stop>,
}

impl RunWatch {
    /// Polls the run inside its span, and records how it ended.
    pub(crate) async fn over<T>(
        self,
        run: impl Future<Output = T>,
        report: impl FnOnce(&T) -> RunReport<'_>,
    ) -> T {
        let result = run.instrument(self.span.clone()).await;
        if let Some(began) = self.began {
            self.ended(began, &report(&result));
        }
        result
    }

    fn ended(&self, began: Instant, report: &RunReport<'_>) {
        let kind = report.error.map(|(kind, _)| kind);
        if let Some(metrics) = &self.telemetry.metrics {
            metrics.run(&self.telemetry.agent, report.stop, kind, began.elapsed());
        }
        let span = &self.span;
        if span.is_disabled() {
            return;
        }
        span.record("throughline.run", display(report.run));
        span.record("throughline.stop_reason", report.stop);
        report.tokens.record(span);
        let with_content = self.telemetry.records_content(span);
        if let Some((kind, error)) = report.error {
            let text = with_content.then(|| content::error(error));
            failed(span, kind, text.as_deref());
        }
        if with_content {
            let is_input = |message: &&Message| message.role != Role::Assistant;
            let input = report.messages.iter().take_while(is_input);
            span.record("gen_ai.input.messages", content::input(input));
            if let Some(answer) = report.answer {
                let output = content::output(std::slice::from_ref(answer), report.finish);
                span.record("gen_ai.output.messages", output);
            }
        }
    }
}
