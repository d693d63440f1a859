//! Removing what an item says, and what was derived from it.

use std::collections::HashSet;
use std::sync::Arc;

use throughline_model::json::RawJson;

use super::Transaction;
use super::schema::{NodePlace, Row, StateRow, StoredContent, TenantTables, missing_row};
use crate::{ItemRef, Position, Redaction, Result, RunId, digest, rules};

impl Transaction<'_> {
    pub(super) fn redact(&mut self, at: ItemRef, by: &str) -> Result<()> {
        let first = self.original(at)?;
        let run = self.tables.runs.get(&first.run);
        let run = run.ok_or_else(|| missing_row(first.run))?;
        let item = self.tables.item_view(run, first.no)?;
        if item.body.is_err() {
            // The first redaction stays.
            return Ok(());
        }
        let message = item.message();
        let message = message.map_err(|error| crate::Error::corrupt(first, error.to_string()))?;
        let left = rules::redact::left(&message).to_json();
        let redaction = Redaction {
            by: by.to_owned(),
            at: self.now,
            left: RawJson::new(&left).ok(),
        };
        let item = self
            .tables
            .item_mut(first)
            .ok_or_else(|| missing_row("an item"))?;
        if let StoredContent::Present(said) = &item.what {
            item.what = StoredContent::Redacted(said.clone().emptied(), redaction);
        }
        self.redact_run(first.run)?;
        self.tables.forget_derived(first)?;
        self.tables.redactions += 1;
        Ok(())
    }

    /// What else of a run may have the words of one of its items.
    fn redact_run(&mut self, id: RunId) -> Result<()> {
        for approval in self.tables.approvals.values_mut() {
            if approval.call.run == id {
                approval.detail = None;
                approval.reason = None;
            }
        }
        let run = self.run_mut(id)?;
        for flush in &mut run.flushes {
            *flush = flush.emptied();
        }
        run.remote = None;
        let request = run.request.as_deref().and_then(rules::redact::request);
        if let Some(left) = request {
            let left = self.tables.shared_request(left);
            let before = self.run_mut(id)?.request.replace(left);
            // The only run that had it.
            if let Some(before) = before.filter(|before| Arc::strong_count(before) == 2) {
                let digest = digest::request(before.get());
                self.tables.requests.remove(&digest);
            }
        }
        Ok(())
    }
}

impl TenantTables {
    /// Take out of the states on all branches what was derived from an item, wherever it is said.
    fn forget_derived(&mut self, first: ItemRef) -> Result<()> {
        let mut places: Vec<(NodePlace, Option<(RunId, u32)>)> = Vec::new();
        for run in self.runs.values() {
            for (no, slot) in (1..).zip(&run.items) {
                let Some(item) = slot else { continue };
                let at = ItemRef { run: run.id, no };
                let says = match item.what {
                    StoredContent::Repeat(of) => of == first,
                    StoredContent::Present(_)
                    | StoredContent::Gap
                    | StoredContent::Redacted(..) => at == first,
                };
                let held =
                    |node: &&super::schema::RunNode| node.first_item <= no && no <= node.last_item;
                if let (true, Some(node)) = (says, run.nodes.iter().find(held)) {
                    places.push((node.at, self.state_before(node.at)?));
                }
            }
        }
        for (place, before) in places {
            let mut after = vec![(place.timeline, place.first)];
            let mut seen: HashSet<Row> = HashSet::new();
            while let Some((row, from)) = after.pop() {
                if !seen.insert(row) {
                    continue;
                }
                self.forget_derived_after(row, from, before);
                let branches = self.timelines.iter().filter(|(_, timeline)| {
                    timeline.parent.is_some_and(|parent| parent.timeline == row)
                        && timeline.fork >= from
                });
                after.extend(branches.map(|(row, _)| (*row, 0)));
            }
        }
        Ok(())
    }

    /// The state that the node before a node has, by the node that set it.
    fn state_before(&self, at: NodePlace) -> Result<Option<(RunId, u32)>> {
        let timeline = self.timeline(at.timeline)?;
        let before = timeline.parent_of(at.timeline, at.first);
        let before = before.map(|before| self.node(before)).transpose()?;
        let state = before.and_then(|node| node.state.as_ref());
        Ok(state.map(|state| (state.at.run, state.at.step)))
    }

    fn forget_derived_after(&mut self, row: Row, from: Position, before: Option<(RunId, u32)>) {
        let tenant = self.tenant.clone();
        let Some(timeline) = self.timelines.get_mut(&row) else {
            return;
        };
        for node in timeline.nodes.iter_mut().filter(|node| node.first >= from) {
            let Some(state) = &node.state else { continue };
            let at = state.at;
            let left = state.state.clone().without_derived();
            if before == Some((at.run, at.step)) || left == state.state {
                continue;
            }
            let digest_left = digest::state(&tenant, at.run, at.step, &left.to_json());
            node.state = Some(Arc::new(StateRow {
                at,
                state: left,
                digest: state.digest,
                left: Some(digest_left),
            }));
        }
    }
}
