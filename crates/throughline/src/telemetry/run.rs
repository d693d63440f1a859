//! The span of a run.

use throughline_model::{Message, Role};
use throughline_store::{RunId, ThreadId};
use tokio::time::Instant;
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span, info_span};

use super::words::provider;
use super::{Telemetry, Tokens, content, failed};
use crate::client::Abilities;
use crate::run::{Outcome, RunError, RunFailed};

/// A run that is being watched.
pub(crate) struct RunWatch {
    telemetry: Telemetry,
    span: Span,
    began: Option<Instant>,
}

impl Telemetry {
    /// Watch a run. The span that is entered now becomes its parent, so this must be called by
    /// the task that starts the run, not by the run's own task.
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

/// Name the run whose span is entered: its id is known only when its thread is free.
pub(crate) fn name_run(run: RunId) {
    Span::current().record("throughline.run", display(run));
}

impl RunWatch {
    /// Run inside the span, and tell how it ended.
    pub(crate) async fn over(
        self,
        run: impl Future<Output = Result<Outcome, RunFailed>>,
    ) -> Result<Outcome, RunFailed> {
        let result = run.instrument(self.span.clone()).await;
        match &result {
            Ok(outcome) => self.ended(outcome, None),
            Err(error) => self.ended(error.outcome(), Some(&error.source)),
        }
        result
    }

    fn ended(&self, outcome: &Outcome, error: Option<&RunError>) {
        let Some(began) = self.began else {
            return;
        };
        let kind = error.map(kind);
        if let Some(metrics) = &self.telemetry.metrics {
            metrics.run(&self.telemetry.agent, outcome.stop, kind, began.elapsed());
        }
        let span = &self.span;
        if span.is_disabled() {
            return;
        }
        span.record("throughline.run", display(outcome.run));
        span.record("throughline.stop_reason", outcome.stop.as_str());
        let usage = &outcome.usage;
        let tokens = Tokens {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
        };
        tokens.record(span);
        let with_content = self.telemetry.records_content(span);
        if let (Some(error), Some(kind)) = (error, kind) {
            let text = with_content.then(|| content::error(error));
            failed(span, kind, text.as_deref());
        }
        if with_content {
            let said = |message: &&Message| message.role != Role::Assistant;
            let input = outcome.messages.iter().take_while(said);
            span.record("gen_ai.input.messages", content::input(input));
            if let Some(answer) = outcome.answer() {
                let output = content::output(std::slice::from_ref(answer), outcome.finish.as_ref());
                span.record("gen_ai.output.messages", output);
            }
        }
    }
}

fn kind(error: &RunError) -> &'static str {
    match error {
        RunError::Client(error) => error.kind().as_str(),
        RunError::Tools(_) => "tools",
        RunError::Providers(_) => "providers",
        RunError::Limits(_) => "limits",
        RunError::NothingToResume { .. } => "nothing_to_resume",
        RunError::NotPending { .. } => "not_pending",
        RunError::Store(_) => "store",
        RunError::Journal { .. } => "journal",
        RunError::Interrupted { .. } => "interrupted",
        RunError::OpenCalls { .. } => "open_calls",
        RunError::Parked { .. } => "parked",
        RunError::Repeated { .. } => "repeated",
        RunError::Budget(_) => "budget",
        RunError::Cancelled => "cancelled",
        RunError::Unasked { .. } => "unasked",
        RunError::AlreadyAnswered { .. } => "already_answered",
        RunError::ServiceKeepsHistory { .. } => "service_keeps_history",
        RunError::NoServiceId { .. } => "no_service_id",
        RunError::OtherServiceId { .. } => "other_service_id",
        RunError::KeptElsewhere { .. } => "kept_elsewhere",
        RunError::UnknownMessageStore { .. } => "unknown_message_store",
        RunError::MessageStore { .. } => "message_store",
        RunError::Provider { .. } => "provider",
    }
}
