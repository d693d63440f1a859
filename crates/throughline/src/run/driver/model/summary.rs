//! A summary in a model's words, written while the run goes on.
//!
//! Nothing waits for it. What comes of it is looked at before the next model call, and before the
//! run is published; what comes later is found by the next run.

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

/// How long a model may take.
const LONGEST: Duration = Duration::from_secs(120);

/// Tokens that a model may think before it writes.
const THOUGHT: u64 = 4_096;

/// What a model is sent, whatever becomes of the run.
struct SummaryCall {
    client: Arc<dyn ChatClient>,
    model: Option<String>,
    instructions: Option<String>,
    view: View,
    tools: Vec<ToolDef>,
    settings: Settings,
}

impl Driver {
    /// Ask for a summary, unless one is being written.
    pub(in crate::run::driver) fn ask_for_summary(
        &mut self,
        asking: NarrativeRequest,
        instructions: Option<&str>,
        offered: &[ToolDef],
    ) {
        if self.prompt.is_writing() {
            return;
        }
        let most = THOUGHT + 2 * asking.part.most;
        let settings = &self.plan.settings;
        let settings = Settings {
            max_output_tokens: Some(settings.max_output_tokens.unwrap_or(most).min(most)),
            // It is prose, whatever shape the answer of the run has.
            answer: None,
            stop: Vec::new(),
            ..settings.clone()
        };
        let (client, model, tools) = match &self.agent.narrator {
            Some(narrator) => (narrator, None, Vec::new()),
            // The same model and the same beginning, tools included: its vendor's cache has it.
            None => (&self.plan.client, self.plan.model.clone(), offered.to_vec()),
        };
        let letter = SummaryCall {
            client: Arc::clone(client),
            model,
            instructions: instructions.map(str::to_owned),
            view: View::new(asking.messages),
            tools,
            settings,
        };
        let (writing, hand) = PendingSummary::begin(asking.part);
        self.prompt.waits_for(writing);
        let agent = Arc::clone(&self.agent);
        let written = write(agent, letter, hand).in_current_span();
        self.agent.narratives.spawn(written);
    }

    /// Look whether a summary was written, before the run is published.
    pub(in crate::run::driver) fn look_for_summary(&mut self) {
        let Some((narrated, kept)) = self.prompt.look_for_summary() else {
            return;
        };
        if let Some(kept) = kept {
            self.state.set_compaction(Some(kept));
        }
        self.tell_summary(narrated);
    }

    /// Say what came of a summary, and keep it for whoever gets the outcome.
    pub(in crate::run::driver) fn tell_summary(&mut self, narrated: NarrativeOutcome) {
        tracing::debug!(
            run = %self.run,
            epoch = narrated.epoch,
            refused = narrated.refused.map(NarrativeRejection::word),
            input_tokens = narrated.input,
            output_tokens = narrated.output,
            "a model was asked for a summary"
        );
        let publisher = &mut self.publisher;
        publisher.say(&mut self.recorder, || RunEvent::Narrated { narrated });
        if let Some(report) = &mut self.compaction {
            report.narrative = Some(narrated);
        }
    }
}

async fn write(agent: Arc<AgentSetup>, letter: SummaryCall, hand: SummaryWriter) {
    let unwanted = hand.unwanted.clone();
    let wrote = tokio::select! {
        biased;
        () = unwanted.cancelled() => return,
        wrote = tokio::time::timeout(LONGEST, letter.send(&agent)) => wrote,
    };
    hand.done(wrote.unwrap_or(SummaryResult {
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

/// What a model wrote, and what was billed for it. Calls that it makes are nobody's to run.
fn wrote(response: &Response) -> SummaryResult {
    let usage = response.usage.as_ref();
    let billed = |tokens: Option<u64>| tokens.unwrap_or_default();
    let said = match response.stop {
        Stop::Done | Stop::ToolCalls | Stop::Paused | Stop::Other(_) => Ok(response
            .messages
            .first()
            .map(Message::text)
            .unwrap_or_default()),
        // It was cut off where it was longer than it may be.
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
