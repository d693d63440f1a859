//! Decides how much of a long conversation a model call is given.

use throughline_compact::{Annotations, Report, UnchangedReason};
use throughline_model::{Response, ToolDef};
use throughline_store::Effect;

use super::prompt_view::{CompactionInput, CompactionResult};
use crate::client::overhead;
use crate::prompt::Compaction;
use crate::run::driver::{Driver, DriverError};
use crate::run::event::RunEvent;
use crate::run::outcome::RunError;
use crate::thread::external_epoch;
use crate::tool::ToolSet;

impl Driver {
    /// Compact the conversation before a model call, if the policy says so. The new view is part of
    /// the state of the thread, and published with it.
    pub(crate) fn compact(
        &mut self,
        step: u32,
        instructions: Option<&str>,
        offered: &[ToolDef],
    ) -> Result<(), DriverError> {
        let Compaction::On(policy) = &self.plan.compaction else {
            return Ok(());
        };
        if !self.model.view.is_whole() {
            self.details.compaction = Some(Report {
                stayed: Some(UnchangedReason::Service),
                ..Report::default()
            });
            return Ok(());
        }
        let abilities = self.plan.client.abilities();
        let model = self.plan.model.as_deref().or(abilities.model.as_deref());
        let set = self.tools.set();
        let is_external = self.model.view.is_external();
        let state = &self.state.current;
        let external = match is_external {
            true => external_epoch::read(state, self.model.view.shown_history()),
            false => None,
        };
        let compacted = self.model.view.compact(&CompactionInput {
            policy,
            view_settings: &self.plan.view_settings,
            stored: match is_external {
                true => external.as_ref(),
                false => state.compaction(),
            },
            tools: &|| annotations(&set),
            upstream: &abilities.upstream,
            model: model.unwrap_or_default(),
            overhead: &|| overhead(instructions, offered),
        });
        let Some(compacted) = compacted.map_err(RunError::Budget)? else {
            return Ok(());
        };
        let CompactionResult {
            mut report,
            changed,
            narrated,
            wanted,
        } = compacted;
        match changed {
            Some(changed) if is_external => {
                let record = self.model.view.record();
                external_epoch::write(&mut self.state.current, &record, &changed);
            }
            Some(changed) => self.state.current.set_compaction(Some(changed)),
            None => {}
        }
        if let Some(narrated) = narrated {
            self.report_summary(narrated);
        }
        let before = self.details.compaction.take();
        report.narrative = narrated.or(before.and_then(|before| before.narrative));
        if report.stayed.is_none() {
            crate::trials::pass("compact.write");
            tracing::debug!(
                run = %self.run,
                epoch = report.epoch,
                tokens_before = report.tokens_before,
                tokens_after = report.tokens_after,
                "what the model is shown became smaller"
            );
            let telemetry = &self.context.agent.telemetry;
            telemetry.compacted(report.tokens_before, report.tokens_after);
            self.log.publish(|| RunEvent::Compacted {
                step,
                report: report.clone(),
            });
        }
        self.details.compaction = Some(report);
        if let Some(wanted) = wanted {
            self.request_summary(wanted, instructions, offered);
        }
        Ok(())
    }

    /// Pass the fault point of a publication that changes what models are shown.
    pub(crate) fn pass_view_change(&self) {
        if self.state.changes_view() {
            crate::trials::pass("compact.swap");
        }
    }

    /// Compare the token estimate with what the vendor billed for the last model call.
    pub(crate) fn billed(&mut self, response: &Response) {
        let Some(tokens) = response.usage.as_ref().and_then(|usage| usage.input) else {
            return;
        };
        let abilities = self.plan.client.abilities();
        let model = self.plan.model.as_deref().or(abilities.model.as_deref());
        self.model
            .view
            .billed(&abilities.upstream, model.unwrap_or_default(), tokens);
    }
}

/// What tools declare that decides how their calls are digested.
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
