//! How a view is made to fit: as little as is needed, in a fixed order.

use std::sync::Arc;

use super::bounds::Bounds;
use super::draft::{Draft, Outline};
use super::{segments, shortening};
use crate::epoch::Block;
use crate::history::ToolHistory;
use crate::report::UnchangedReason;
use crate::trials::planted;

/// A view within a budget, or the smallest there is.
pub(super) fn fit(
    history: &ToolHistory,
    bounds: &Bounds,
    room: u64,
    over: bool,
) -> Result<Draft, UnchangedReason> {
    let planner = Planner::new(history, bounds, room);
    let before = history.view.units;
    // Whatever the policy, a view that is no smaller is not worth a cold cache.
    let worth = before * (100 - history.policy.min_gain.min(100)) / 100;
    let worth = match planted("compact-gain-unasked") {
        true => u64::MAX,
        false => worth.min(before.saturating_sub(1)),
    };
    let accept = worth.min(room);
    let mut best: Option<Draft> = None;
    let six = planner.cut(bounds.furthest());
    let last = bounds.smallest().max(bounds.held);
    for (cut, squeeze) in [
        (six, BudgetStep::Nothing),
        (six, BudgetStep::Results),
        (last, BudgetStep::Results),
        (last, BudgetStep::All),
        (last, BudgetStep::Smallest),
    ] {
        for major in [false, true] {
            let Some(outline) = planner.outline(cut, squeeze, major) else {
                continue;
            };
            let draft = Draft::of(history, bounds, outline);
            let fits = draft.view.units <= accept;
            let better = best
                .as_ref()
                .is_none_or(|best| draft.view.units < best.view.units);
            if fits {
                return Ok(draft);
            }
            if better {
                best = Some(draft);
            }
        }
        // A view that fits but gains little is taken only if nothing gains more.
    }
    match best {
        Some(best) if best.view.units <= worth => Ok(best),
        Some(best) if over && best.view.units < before => Ok(best),
        _ if bounds.open < bounds.recent => Err(UnchangedReason::OpenCall),
        _ => Err(UnchangedReason::SmallGain),
    }
}

/// What is made smaller in the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetStep {
    Nothing,
    /// Results, oldest first, down to what the low mark leaves.
    Results,
    /// Results, down to what the budget leaves, and digests with what is left after that.
    All,
    /// The same without digests: there is nothing smaller.
    Smallest,
}

struct Planner<'a> {
    history: &'a ToolHistory,
    bounds: &'a Bounds,
    room: u64,
}

impl<'a> Planner<'a> {
    fn new(history: &'a ToolHistory, bounds: &'a Bounds, room: u64) -> Self {
        Self {
            history,
            bounds,
            room,
        }
    }

    fn group_units(&self, at: usize) -> u64 {
        self.history.record.group_units(at)
    }

    /// Units of pinned groups before a cut.
    fn pinned(&self, cut: usize) -> u64 {
        let pinned = self.bounds.pinned.range(..cut);
        pinned.map(|at| self.group_units(*at)).sum()
    }

    /// What remains beside pinned groups, and how much of it an epoch aims at.
    fn aim(&self, cut: usize) -> (u64, u64) {
        let usable = self.room.saturating_sub(self.pinned(cut));
        let policy = &self.history.policy;
        (usable, usable * policy.low.min(100) / 100)
    }

    /// Units of a tail.
    fn tail(&self, cut: usize) -> u64 {
        let record = &self.history.record;
        let from = record.begins(cut);
        let entries = record.entries()[from..].iter();
        entries.map(|entry| u64::from(entry.units)).sum()
    }

    /// The earliest cut whose tail is small enough, but none after the furthest.
    fn cut(&self, furthest: usize) -> usize {
        let furthest = furthest.max(self.bounds.held);
        let (_, low) = self.aim(furthest);
        let target = low * self.history.policy.tail_share.min(100) / 100;
        let mut cut = furthest;
        let mut units = self.tail(cut);
        while cut > self.bounds.held {
            let more = self.group_units(cut - 1);
            if units + more > target {
                break;
            }
            units += more;
            cut -= 1;
        }
        cut
    }

    /// What an epoch with this cut is made of; none if it would be like another.
    fn outline(&self, cut: usize, squeeze: BudgetStep, major: bool) -> Option<Outline> {
        let held = self.history.epoch();
        let old: Vec<Arc<Block>> = match held {
            Some(epoch) if !major && !planted("compact-blocks-forgotten") => epoch.blocks.clone(),
            _ => Vec::new(),
        };
        if major && held.is_none() {
            return None;
        }
        let (usable, low) = self.aim(cut);
        let blocks: u64 = old.iter().map(|block| block.units).sum();
        let tail = self.tail(cut);
        let least = usable / 12;
        let pinned = self.pinned(cut);
        let (shortened, tail) = match squeeze {
            BudgetStep::Nothing => (Vec::new(), tail),
            BudgetStep::Results => shortening::until(self.history, cut, tail, low * 6 / 10),
            BudgetStep::All | BudgetStep::Smallest => {
                shortening::until(self.history, cut, tail, self.room.saturating_sub(pinned))
            }
        };
        if squeeze == BudgetStep::Results && shortened.is_empty() && cut != self.bounds.smallest() {
            return None;
        }
        let want = low.saturating_sub(blocks + tail);
        let limit = usable * self.history.policy.block_share.min(100) / 100;
        let last = matches!(squeeze, BudgetStep::All | BudgetStep::Smallest);
        if !major && !last && (want < least || blocks + least > limit) {
            return None;
        }
        let hard = self.room.saturating_sub(pinned + blocks + tail);
        if !last && hard < least {
            // Results give way before digests do: those are all that is left of what they are about.
            return None;
        }
        let room = match squeeze {
            BudgetStep::Nothing | BudgetStep::Results => want.max(least).min(hard),
            BudgetStep::All => hard.min(least),
            BudgetStep::Smallest => 0,
        };
        let from = if major { 0 } else { self.bounds.held };
        let segments = segments::merged(self.history, self.bounds, from, cut);
        Some(Outline {
            cut,
            old,
            segments,
            shortened,
            room: Some(room),
            major,
        })
    }
}
