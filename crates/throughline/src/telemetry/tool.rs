//! The span of a tool execution.

use throughline_model::{Outcome, Output, ToolCall};
use throughline_store::{Effect, RunId};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

use super::{Telemetry, content, failed};

/// How an execution ended.
pub(crate) struct ToolEnd<'a> {
    pub(crate) outcome: Outcome,
    /// The kind of the error, if there was one.
    pub(crate) error: Option<&'static str>,
    /// The result of the tool.
    pub(crate) output: Option<&'a Output>,
    /// The text of the error, formatted only if content is recorded.
    pub(crate) text: &'a dyn Fn() -> Option<String>,
}

/// The span and the metrics of a tool execution. If it is dropped before the end, the execution is
/// recorded as cut off.
pub(crate) struct ToolWatch {
    telemetry: Telemetry,
    span: Span,
    /// The name, if there are metrics.
    tool: Option<Box<str>>,
    effect: Effect,
    began: Option<Instant>,
    ended: bool,
}

impl Telemetry {
    /// Starts the span of a tool execution, as a child of the current run's span.
    pub(crate) fn tool(
        &self,
        run: RunId,
        call: &ToolCall,
        arguments: &str,
        effect: Effect,
    ) -> ToolWatch {
        let span = info_span!(
            target: "throughline",
            "execute_tool",
            otel.name = format!("execute_tool {}", call.name),
            otel.kind = "internal",
            otel.status_code = Empty,
            otel.status_description = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.agent.name = &*self.agent,
            gen_ai.tool.name = &*call.name,
            gen_ai.tool.type = "function",
            gen_ai.tool.call.id = call.call.value(),
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
            throughline.run = %run,
            throughline.outcome = Empty,
            error.type = Empty,
        );
        if self.records_content(&span) {
            span.record("gen_ai.tool.call.arguments", arguments);
        }
        ToolWatch {
            telemetry: self.clone(),
            tool: self.metrics.as_ref().map(|_| call.name.as_str().into()),
            effect,
            began: self.began(&span),
            ended: false,
            span,
        }
    }
}

impl ToolWatch {
    /// Polls the tool inside its span, so that spans of the tool are children, and records how it
    /// ended.
    pub(crate) async fn over<T>(
        mut self,
        work: impl Future<Output = T>,
        read: impl FnOnce(&T, &mut dyn FnMut(ToolEnd<'_>)),
    ) -> T {
        let done = work.instrument(self.span.clone()).await;
        read(&done, &mut |end| self.end(&end));
        done
    }

    /// Whether there is neither a subscriber nor a metric.
    #[cfg(test)]
    pub(super) fn notes_nothing(&self) -> bool {
        self.span.is_disabled() && self.began.is_none() && self.tool.is_none()
    }

    fn end(&mut self, end: &ToolEnd<'_>) {
        self.ended = true;
        let Some(began) = self.began else {
            return;
        };
        let ToolEnd { outcome, error, .. } = *end;
        if let (Some(metrics), Some(tool)) = (&self.telemetry.metrics, &self.tool) {
            let names = [&*self.telemetry.agent, &**tool];
            metrics.tool(names, outcome, error, began.elapsed());
        }
        let span = &self.span;
        if span.is_disabled() {
            return;
        }
        span.record("throughline.outcome", outcome.as_str());
        let with_content = self.telemetry.records_content(span);
        if let Some(error) = error {
            let text = if with_content { (end.text)() } else { None };
            failed(span, error, text.as_deref());
        }
        if let (true, Some(output)) = (with_content, end.output) {
            span.record("gen_ai.tool.call.result", content::result(output));
        }
    }
}

impl Drop for ToolWatch {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The same outcome as the run records for a call that was cut off while it ran, or that
        // panicked.
        let (outcome, error) = match (std::thread::panicking(), self.effect) {
            (true, _) => (Outcome::Error, "panic"),
            (false, Effect::ReadOnly) => (Outcome::Cancelled, "cancelled"),
            (
                false,
                Effect::Idempotent
                | Effect::Keyed
                | Effect::Probe
                | Effect::Transactional
                | Effect::Once,
            ) => (Outcome::Unknown, "cancelled"),
        };
        self.end(&ToolEnd {
            outcome,
            error: Some(error),
            output: None,
            text: &|| None,
        });
    }
}
