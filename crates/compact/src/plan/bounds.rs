//! Which groups may be digested and which must stay.

use std::collections::BTreeSet;

use crate::group::GroupKind;
use crate::history::ToolHistory;
use crate::policy::Call;
use crate::trials::planted;

/// Where a view of a history can be cut. Groups and cuts are by index.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// The first group of the tail now.
    pub(crate) held: usize,
    /// The first group that must stay so that enough calls are shown in full.
    pub(crate) recent: usize,
    /// The first group of the current turn.
    pub(crate) turn: usize,
    /// The first group of the last round, which always stays.
    pub(crate) last_round: usize,
    /// The first group that waits, and everything after it.
    pub(crate) open: usize,
    /// Groups that are shown in full wherever they stand: system text, the first request, pins, and the input
    /// of the current turn.
    pub(crate) pinned: BTreeSet<usize>,
    /// The input of the current turn.
    pub(crate) input: BTreeSet<usize>,
    /// Calls in the record.
    pub(crate) calls: u64,
}

impl Bounds {
    pub(crate) fn of(history: &ToolHistory, call: &Call) -> Self {
        let record = &history.record;
        let groups = record.groups();
        let end = groups.len();
        let held = record.group_from(history.frame.cut);
        let mut recent = end;
        let mut counted = 0;
        while recent > 0 && counted < history.policy.recent_calls {
            recent -= 1;
            counted += groups[recent].calls;
        }
        if counted < history.policy.recent_calls {
            recent = 0;
        }
        let is_user = |at: usize| {
            groups
                .get(at)
                .is_some_and(|group| group.kind == GroupKind::User)
        };
        // The current turn begins with the newest input; several messages of it may follow each other.
        let newest = (0..end).rev().find(|at| is_user(*at));
        let mut input = BTreeSet::new();
        let mut turn = end;
        if let Some(newest) = newest {
            turn = newest;
            while turn > 0 && is_user(turn - 1) {
                turn -= 1;
            }
            input.extend(turn..=newest);
        }
        let rounds = (turn.min(end)..end).rev();
        let last_round = rounds
            .into_iter()
            .find(|at| groups[*at].is_tools())
            .unwrap_or(turn.min(end));
        let waits = |seq: &u64| {
            let place = record.exactly(*seq)?;
            record.groups_of(place).into_iter().min()
        };
        let open = call.open.iter().filter_map(waits).min();
        let open = open.filter(|_| !planted("compact-open-digested"));
        let open = open.unwrap_or(end);
        // A call of the current turn without a result is still being run.
        let unanswered = (turn.min(end)..end).find(|at| groups[*at].unanswered > 0);
        let open = unanswered.map_or(open, |at| at.min(open));
        let mut pinned: BTreeSet<usize> = input.clone();
        let system = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| group.kind == GroupKind::System);
        pinned.extend(system.map(|(at, _)| at));
        let first = (0..end).find(|at| is_user(*at));
        pinned.extend(first.filter(|_| !planted("compact-intent-digested")));
        for seq in &history.pins {
            if let Some(place) = record.exactly(*seq) {
                pinned.extend(record.groups_of(place));
            }
        }
        Self {
            held,
            recent,
            turn: turn.min(end),
            last_round,
            open,
            pinned,
            input,
            calls: groups.iter().map(|group| u64::from(group.calls)).sum(),
        }
    }

    /// The furthest cut that keeps enough calls and everything that waits.
    pub(crate) fn furthest(&self) -> usize {
        self.recent.min(self.open).min(self.last_round)
    }

    /// The furthest cut of all.
    pub(crate) fn smallest(&self) -> usize {
        self.last_round.min(self.open)
    }
}
