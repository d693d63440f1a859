//! What listings of threads ask of each thread, of its newest run and of its newest turn.

use throughline_model::json::RawJson;

use super::Transaction;
use super::schema::{Node, RunRow, ThreadRow};
use crate::rules::threads::{APPENDS, Listed};
use crate::{RunKind, ThreadFilter, rules};

impl Transaction<'_> {
    /// Whether a thread is one of those asked for, apart from when it was touched.
    pub(super) fn fits(&self, thread: &ThreadRow, filter: &ThreadFilter) -> bool {
        let kind = filter.alias_kind.as_ref();
        let meta = thread.meta.as_ref().map(RawJson::value);
        kind.is_none_or(|kind| thread.aliases.iter().any(|alias| alias.kind == *kind))
            && filter
                .created_from
                .is_none_or(|from| thread.created >= from)
            && filter
                .created_before
                .is_none_or(|before| thread.created < before)
            && rules::threads::has_title(thread.title.as_deref(), filter)
            && rules::threads::has_meta(meta.as_ref(), filter)
            && self.fits_state(thread, filter)
            && self.fits_turn(thread, filter)
    }

    fn fits_state(&self, thread: &ThreadRow, filter: &ThreadFilter) -> bool {
        if filter.states.is_empty() {
            return true;
        }
        let head = self.head_node(thread).map(|node| node.id.run);
        let head = head.and_then(|run| self.tables.runs.get(&run));
        // The head of a fork may be of a run of another thread, which is none of this one's.
        let head = head.filter(|run| run.thread == thread.row && !run.hidden);
        let newest = [self.off_branch(thread), head].into_iter().flatten();
        let newest = newest.max_by_key(|run| run.row);
        let state = newest.map(|run| self.shared.state(run, self.now));
        rules::threads::has_state(state, filter)
    }

    fn fits_turn(&self, thread: &ThreadRow, filter: &ThreadFilter) -> bool {
        if !filter.asks_for_turn() {
            return true;
        }
        let turns = [self.off_branch(thread), self.last_turn(thread)];
        let newest = turns.into_iter().flatten().max_by_key(|run| run.row);
        let request = newest.and_then(|run| run.request.as_ref());
        request.is_some_and(|request| Listed::of(&request.value()).fits(filter))
    }

    /// The newest run of a thread that is not settled or published nothing.
    fn off_branch(&self, thread: &ThreadRow) -> Option<&RunRow> {
        let mut runs = thread.runs.values().rev();
        runs.find_map(|run| {
            let run = self.tables.runs.get(run)?;
            let is_off = !run.state.is_settled() || run.nodes.is_empty();
            (is_off && !run.hidden).then_some(run)
        })
    }

    /// The last turn on the branch of a thread, as far as listings look back.
    fn last_turn(&self, thread: &ThreadRow) -> Option<&RunRow> {
        let head = thread.head?;
        let nodes = &self.tables.timelines.get(&head.timeline)?.nodes;
        let end = nodes.partition_point(|node| node.first <= head.first);
        let nodes = nodes[..end].iter().rev().take(APPENDS as usize);
        let runs = nodes.filter_map(|node| self.tables.runs.get(&node.id.run));
        runs.filter(|run| run.kind == RunKind::Turn)
            .max_by_key(|run| run.row)
    }

    fn head_node(&self, thread: &ThreadRow) -> Option<&Node> {
        self.tables.node(thread.head?).ok()
    }
}
