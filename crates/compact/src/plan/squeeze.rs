//! How a view is made to fit: as little as is needed, in a fixed order.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bounds::Bounds;
use super::draft::{Draft, Outline, Segment};
use super::shortening;
use crate::epoch::Block;
use crate::history::ToolHistory;
use crate::policy::Call;
use crate::report::Stayed;

/// A view within a budget, or the smallest there is.
pub(super) fn within(
    history: &ToolHistory,
    bounds: &Bounds,
    room: u64,
    over: bool,
) -> Result<Draft, Stayed> {
    let planner = Planner::new(history, bounds, room);
    let before = history.view.units;
    let worth = before * (100 - history.policy.min_gain.min(100)) / 100;
    let accept = worth.min(room);
    let mut best: Option<Draft> = None;
    let six = planner.cut(bounds.furthest());
    let last = bounds.smallest().max(bounds.held);
    for (cut, squeeze) in [
        (six, Squeeze::Nothing),
        (six, Squeeze::Results),
        (last, Squeeze::Results),
        (last, Squeeze::All),
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
        _ if bounds.open < bounds.recent => Err(Stayed::OpenCall),
        _ => Err(Stayed::SmallGain),
    }
}

/// What is made smaller in the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Squeeze {
    Nothing,
    /// Results, oldest first, down to what the low mark leaves.
    Results,
    /// Every result, and no digests beside: the smallest view.
    All,
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
    fn outline(&self, cut: usize, squeeze: Squeeze, major: bool) -> Option<Outline> {
        let held = self.history.epoch();
        let old: Vec<Arc<Block>> = match held {
            Some(epoch) if !major => epoch.blocks.clone(),
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
            Squeeze::Nothing => (Vec::new(), tail),
            Squeeze::Results => shortening::until(self.history, cut, tail, low * 6 / 10),
            Squeeze::All => {
                shortening::until(self.history, cut, tail, self.room.saturating_sub(pinned))
            }
        };
        if squeeze == Squeeze::Results && shortened.is_empty() && cut != self.bounds.smallest() {
            return None;
        }
        let want = low.saturating_sub(blocks + tail);
        let limit = usable * self.history.policy.block_share.min(100) / 100;
        if !major && squeeze != Squeeze::All && (want < least || blocks + least > limit) {
            return None;
        }
        let hard = self.room.saturating_sub(pinned + blocks + tail);
        let room = match squeeze {
            Squeeze::Nothing | Squeeze::Results => want.max(least).min(hard),
            Squeeze::All => hard.min(least),
        };
        let segments = self.segments(cut, if major { 0 } else { self.bounds.held });
        Some(Outline {
            cut,
            old,
            segments,
            shortened,
            room: Some(room),
            major,
        })
    }

    /// The groups from one to another in segments: a ledger of what was digested before, a block for what is
    /// new, the current input in its place.
    fn segments(&self, cut: usize, from: usize) -> Vec<Segment> {
        let mut segments = vec![Segment {
            ledger: from < self.bounds.held,
            ..Segment::default()
        }];
        let mut take = |at: usize, ledger: bool| {
            let input = self.bounds.input.contains(&at);
            let pinned = self.bounds.pinned.contains(&at);
            let Some(last) = segments.last_mut() else {
                return;
            };
            let full = !last.digested.is_empty();
            if full && (last.ledger != ledger || input) {
                segments.push(Segment {
                    ledger,
                    ..Segment::default()
                });
            } else if !full {
                last.ledger = ledger;
            }
            let Some(last) = segments.last_mut() else {
                return;
            };
            if pinned {
                last.kept.push(at);
            } else {
                // What is newer gets more room for each unit.
                let share = if ledger { 1 } else { 3 };
                last.weight += self.group_units(at) * share;
                last.digested.push(at);
            }
        };
        for at in self.late(from) {
            take(at, false);
        }
        for at in from..cut {
            take(at, at < self.bounds.held);
        }
        segments.retain(|segment| !segment.kept.is_empty() || !segment.digested.is_empty());
        segments
    }

    /// Groups before the part that is digested that have results the last epoch did not know, and groups that
    /// were pinned since.
    fn late(&self, from: usize) -> Vec<usize> {
        if from == 0 {
            return Vec::new();
        }
        let history = self.history;
        let known = &history.frame.kept;
        let late = history.late.iter().copied();
        let pinned = self.bounds.pinned.range(..from).copied();
        let all: BTreeSet<usize> = late
            .chain(pinned)
            .filter(|at| *at < from && !known.contains(at))
            .collect();
        all.into_iter().collect()
    }
}

/// A view in which tool history alone gave way: every text stays in full, in its place.
pub(super) fn tools_only(
    history: &ToolHistory,
    bounds: &Bounds,
    call: &Call,
) -> Result<Draft, Stayed> {
    let recent: u64 = history.policy.recent_calls.into();
    if bounds.calls <= recent {
        return Err(Stayed::FewCalls);
    }
    let furthest = bounds.furthest();
    if furthest <= bounds.held {
        return Err(if bounds.open <= bounds.held {
            Stayed::OpenCall
        } else {
            Stayed::NothingOlder
        });
    }
    let before = history.view.units;
    let worth = before * (100 - history.policy.min_gain.min(100)) / 100;
    // The current turn gives way only if earlier turns were not enough.
    let turn = bounds.turn.min(furthest);
    let mut drafts = Vec::new();
    for cut in [turn, furthest] {
        if cut <= bounds.held {
            continue;
        }
        let draft = Draft::of(history, bounds, tools_outline(history, bounds, cut));
        let enough = call.scale.tokens(draft.view.tool_units) <= history.policy.threshold;
        if enough && draft.view.units <= worth {
            return Ok(draft);
        }
        drafts.push(draft);
    }
    match drafts.pop() {
        Some(draft) if draft.view.units <= worth => Ok(draft),
        _ => Err(Stayed::SmallGain),
    }
}

fn tools_outline(history: &ToolHistory, bounds: &Bounds, cut: usize) -> Outline {
    let groups = history.record.groups();
    let old: Vec<Arc<Block>> = match history.epoch() {
        Some(epoch) => epoch.blocks.clone(),
        None => Vec::new(),
    };
    let mut segments = vec![Segment::default()];
    let new = groups.iter().enumerate().take(cut).skip(bounds.held);
    for (at, group) in new {
        let stays = !group.is_tools() || bounds.pinned.contains(&at);
        let begins = segments
            .last()
            .is_some_and(|last| !last.digested.is_empty());
        if stays && begins {
            segments.push(Segment::default());
        }
        if let Some(last) = segments.last_mut() {
            if stays {
                last.kept.push(at);
            } else {
                last.digested.push(at);
            }
        }
    }
    segments.retain(|segment| !segment.kept.is_empty() || !segment.digested.is_empty());
    Outline {
        cut,
        old,
        segments,
        shortened: Vec::new(),
        room: None,
        major: false,
    }
}
