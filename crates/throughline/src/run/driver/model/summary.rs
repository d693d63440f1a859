//! A summary of compacted messages that a model writes in a background task.
//!
//! The run does not wait for it. It takes a finished summary before its next model call and before it
//! is published; a summary that is finished later is taken by the next run.

use std::sync::Arc;
use std::time::Duration;

use throughline_compact::{NarrativeOutcome, NarrativeRejection, NarrativeRequest};
use throughline_model::{Message, Response, Settings, Stop, ToolChoice, ToolDef};
use tracing::Instrument;

use crate::client::{ChatClient, ChatRequest, HistoryOwner};
use crate::prompt::{PendingSummary, SummaryResult, SummaryWriter, View};
use crate::run::driver::Driver;
use crate::run::event::RunEvent;
use crate::run::setup::AgentSetup;
use crate::telemetry::Streaming;

/// How long the model may take.
const LONGEST: Duration = Duration::from_secs(120);

/// Tokens of reasoning that the model may use before it writes.
const REASONING: u64 = 4_096;

/// The model call that writes a summary. It outlives the run.
struct SummaryCall {
    client: Arc<dyn ChatClient>,
    model: Option<String>,
    instructions: Option<String>,
    view: View,
    tools: Vec<ToolDef>,
    settings: Settings,
}

impl Driver {
    /// Have a model write a summary, unless one is being written.
    pub(crate) fn request_summary(
        &mut self,
        wanted: NarrativeRequest,
        instructions: Option<&str>,
        offered: &[ToolDef],
    ) {
        if self.model.view.is_writing_summary() {
            return;
        }
        let most = REASONING + 2 * wanted.part.most;
        let settings = &self.plan.settings;
        let settings = Settings {
            max_output_tokens: Some(settings.max_output_tokens.unwrap_or(most).min(most)),
            // A summary is prose, also in a run with a typed answer.
            answer: None,
            stop: Vec::new(),
            ..settings.clone()
        };
        let (client, model, tools) = match &self.context.agent.narrator {
            Some(narrator) => (narrator, None, Vec::new()),
            // The same model and the same prefix, tools included, hit the prompt cache of the vendor.
            None => (&self.plan.client, self.plan.model.clone(), offered.to_vec()),
        };
        let call = SummaryCall {
            client: Arc::clone(client),
            model,
            instructions: instructions.map(str::to_owned),
            view: View::new(wanted.messages),
            tools,
            settings,
        };
        let (pending, writer) = PendingSummary::begin(wanted.part);
        self.model.view.await_summary(pending);
        let agent = Arc::clone(&self.context.agent);
        let written = write(agent, call, writer).in_current_span();
        self.context.agent.narratives.spawn(written);
    }

    /// Take a finished summary before the run is published.
    pub(crate) fn take_summary(&mut self) {
        let Some((narrated, changed)) = self.model.view.take_summary() else {
            return;
        };
        if let Some(changed) = changed {
            self.state.current.set_compaction(Some(changed));
        }
        self.report_summary(narrated);
    }

    /// Publish what became of a summary, and note it for the outcome.
    pub(crate) fn report_summary(&mut self, narrated: NarrativeOutcome) {
        tracing::debug!(
            run = %self.run,
            epoch = narrated.epoch,
            refused = narrated.refused.map(NarrativeRejection::word),
            input_tokens = narrated.input,
            output_tokens = narrated.output,
            "a model was asked for a summary"
        );
        self.log.publish(|| RunEvent::Narrated { narrated });
        if let Some(report) = &mut self.details.compaction {
            report.narrative = Some(narrated);
        }
    }
}

async fn write(agent: Arc<AgentSetup>, call: SummaryCall, writer: SummaryWriter) {
    let unwanted = writer.unwanted.clone();
    let written = tokio::select! {
        biased;
        () = unwanted.cancelled() => return,
        written = tokio::time::timeout(LONGEST, call.send(&agent)) => written,
    };
    writer.done(written.unwrap_or(SummaryResult {
        said: Err(NarrativeRejection::Late),
        billed: (0, 0),
    }));
}

impl SummaryCall {
    async fn send(&self, agent: &AgentSetup) -> SummaryResult {
        let model = self.model.as_deref();
        let request = ChatRequest {
            model,
            instructions: self.instructions.as_deref(),
            view: &self.view,
            tools: &self.tools,
            choice: &ToolChoice::Auto,
            settings: &self.settings,
            history_owner: HistoryOwner::Caller,
            persist: None,
            losses: None,
        };
        let client = &self.client;
        let watch = agent
            .telemetry
            .call(client.abilities(), &request, model, Streaming::Whole);
        let answer = client.respond(&request).instrument(watch.span()).await;
        match answer {
            Ok(response) => {
                watch.answered(&response);
                wrote(&response)
            }
            Err(error) => {
                watch.failed(&error);
                SummaryResult {
                    said: Err(NarrativeRejection::Failed),
                    billed: (0, 0),
                }
            }
        }
    }
}

/// What the model wrote, and what was billed for it. Calls that it makes are not run.
fn wrote(response: &Response) -> SummaryResult {
    let usage = response.usage.as_ref();
    let billed = |tokens: Option<u64>| tokens.unwrap_or_default();
    let said = match response.stop {
        Stop::Done | Stop::ToolCalls | Stop::Paused | Stop::Other(_) => Ok(response
            .messages
            .first()
            .map(Message::text)
            .unwrap_or_default()),
        // It was cut off because it was too long.
        Stop::Length => Err(NarrativeRejection::Larger),
        Stop::Cut
        | Stop::InProgress
        | Stop::Failed
        | Stop::Cancelled
        | Stop::ContentFilter
        | Stop::Refusal => Err(NarrativeRejection::Failed),
    };
    SummaryResult {
        said,
        billed: (
            billed(usage.and_then(|usage| usage.input)),
            billed(usage.and_then(|usage| usage.output)),
        ),
    }
}
