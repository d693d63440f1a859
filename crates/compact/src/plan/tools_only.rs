//! Without a budget: tool history alone gives way.

use std::sync::Arc;

use super::bounds::Bounds;
use super::draft::{Draft, Outline};
use super::segments;
use super::working::WorkingFiles;
use crate::epoch::Block;
use crate::history::ToolHistory;
use crate::policy::Call;
use crate::report::UnchangedReason;

/// Units below which blocks are never made into a ledger: it would have to forget.
const SMALLEST: u64 = 2_000;

/// A view in which every text stays in full, in its place, and calls older than the newest ones are digested.
pub(super) fn tools_only(
    history: &ToolHistory,
    bounds: &Bounds,
    call: &Call,
) -> Result<Draft, UnchangedReason> {
    let recent: u64 = history.policy.recent_calls.into();
    if bounds.calls <= recent {
        return Err(UnchangedReason::FewCalls);
    }
    let furthest = bounds.furthest();
    if furthest <= bounds.held {
        return Err(UnchangedReason::NothingOlder);
    }
    let groups = history.record.groups();
    let mut bounds = bounds.clone();
    let texts = groups.iter().enumerate();
    let texts = texts.filter(|(_, group)| !group.is_tools());
    bounds.pinned.extend(texts.map(|(at, _)| at));
    let before = history.view.size();
    // Whatever the policy, a view that is no smaller is not worth a cold cache.
    let worth = before * (100 - history.policy.min_gain.min(100)) / 100;
    let worth = worth.min(before.saturating_sub(1));
    // The current turn gives way only if earlier turns were not enough.
    let turn = bounds.turn.min(furthest);
    let mut last = None;
    for cut in [turn, furthest] {
        if cut <= bounds.held {
            continue;
        }
        let draft = Draft::of(history, &bounds, outline(history, &bounds, call, cut));
        let enough = call.scale.tokens(draft.view.tool_units) <= history.policy.threshold;
        if enough && draft.view.size() <= worth {
            return Ok(draft);
        }
        last = Some(draft);
    }
    match last {
        Some(draft) if draft.view.size() <= worth => Ok(draft),
        _ if bounds.only_open() => Err(UnchangedReason::OpenCall),
        _ => Err(UnchangedReason::SmallGain),
    }
}

fn outline(history: &ToolHistory, bounds: &Bounds, call: &Call, cut: usize) -> Outline {
    let old: Vec<Arc<Block>> = match history.epoch() {
        Some(epoch) => epoch.blocks.clone(),
        None => Vec::new(),
    };
    let digested: u64 = old.iter().map(|block| block.units).sum();
    let policy = &history.policy;
    let share = call.scale.units(policy.threshold) * policy.block_share.min(100) / 100;
    let share = share.max(SMALLEST);
    // Digests that fill the threshold by themselves would be in each other's way.
    if digested > share {
        return Outline {
            cut,
            old: Vec::new(),
            segments: segments::merged(history, bounds, WorkingFiles::default(), 0, cut),
            shortened: Vec::new(),
            shortened_requests: Vec::new(),
            room: Some(share / 2),
            major: true,
        };
    }
    Outline {
        cut,
        old,
        segments: segments::in_order(history, bounds, bounds.held, cut),
        shortened: Vec::new(),
        shortened_requests: Vec::new(),
        room: None,
        major: false,
    }
}
