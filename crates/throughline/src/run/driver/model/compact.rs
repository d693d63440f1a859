//! What of a long conversation a model call is given.

use throughline_compact::{Annotations, Report, UnchangedReason};
use throughline_model::{Response, ToolDef};
use throughline_store::{Effect, State};

use super::prompt_view::{Sending, Sent};
use crate::client::overhead;
use crate::prompt::Compaction;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::outcome::RunError;
use crate::tool::ToolSet;

impl Driver {
    /// Decide, before a model call, what of the conversation it is given. What was decided is state
    /// of the thread, and published with the rest.
    pub(in crate::run::driver) fn compact(
        &mut self,
        step: u32,
        instructions: Option<&str>,
        offered: &[ToolDef],
    ) -> Result<(), DriverError> {
        let Compaction::On(policy) = &self.plan.compaction else {
            return Ok(());
        };
        if !self.prompt.is_ours() {
            self.compaction = Some(Report {
                stayed: Some(match self.owner.is_external() {
                    true => UnchangedReason::External,
                    false => UnchangedReason::Service,
                }),
                ..Report::default()
            });
            return Ok(());
        }
        let abilities = self.plan.client.abilities();
        let model = self.plan.model.as_deref().or(abilities.model.as_deref());
        let set = self.tools.set();
        let sent = self.prompt.compact(&Sending {
            policy,
            wishes: &self.plan.wishes,
            kept: self.state.compaction(),
            tools: &|| annotations(&set),
            upstream: &abilities.upstream,
            model: model.unwrap_or_default(),
            overhead: &|| overhead(instructions, offered),
        });
        let Some(sent) = sent.map_err(|error| DriverError::Run(RunError::Budget(error)))? else {
            return Ok(());
        };
        let Sent {
            mut report,
            kept,
            narrated,
            asking,
        } = sent;
        if let Some(kept) = kept {
            self.state.set_compaction(Some(kept));
        }
        if let Some(narrated) = narrated {
            self.tell_summary(narrated);
        }
        let before = self.compaction.take().and_then(|before| before.narrative);
        report.narrative = narrated.or(before);
        if report.stayed.is_none() {
            crate::trials::pass("compact.write");
            tracing::debug!(
                run = %self.run,
                epoch = report.epoch,
                tokens_before = report.tokens_before,
                tokens_after = report.tokens_after,
                "what the model is shown became smaller"
            );
            self.agent
                .telemetry
                .compacted(report.tokens_before, report.tokens_after);
            let (publisher, recorder) = (&mut self.publisher, &mut self.recorder);
            publisher.say(recorder, || RunEvent::Compacted {
                step,
                report: report.clone(),
            });
        }
        self.compaction = Some(report);
        if let Some(asking) = asking {
            self.ask_for_summary(asking, instructions, offered);
        }
        Ok(())
    }

    /// What was folded is about to hold: whatever is published next has it.
    pub(in crate::run::driver) fn swaps_view(&self) {
        let none = State::default();
        if !self.state.shows_as(self.held.as_ref().unwrap_or(&none)) {
            crate::trials::pass("compact.swap");
        }
    }

    /// Learn what was billed for what was sent.
    pub(in crate::run::driver) fn billed(&mut self, response: &Response) {
        let Some(tokens) = response.usage.as_ref().and_then(|usage| usage.input) else {
            return;
        };
        let abilities = self.plan.client.abilities();
        let model = self.plan.model.as_deref().or(abilities.model.as_deref());
        self.prompt
            .billed(&abilities.upstream, model.unwrap_or_default(), tokens);
    }
}

/// What is known of tools that decides how their calls are digested.
fn annotations(tools: &ToolSet) -> Vec<Annotations> {
    let specs = tools.specs();
    let known = specs.filter(|spec| spec.effect == Effect::ReadOnly);
    known
        .map(|spec| Annotations {
            name: spec.name.clone(),
            read_only: Some(true),
            ..Annotations::default()
        })
        .collect()
}
