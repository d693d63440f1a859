//! How a view is made to fit: as little as is needed, in a fixed order.

use std::sync::Arc;

use super::bounds::Bounds;
use super::draft::{Draft, Outline};
use super::requests::ShortRequests;
use super::working::{self, WorkingFiles};
use super::{segments, shortening};
use crate::epoch::Block;
use crate::history::ToolHistory;
use crate::report::UnchangedReason;
use crate::trials::planted;
use crate::view;

/// Percent of what the budget leaves for the view that digests may have always: without them a model
/// does not know that anything came before.
const DIGESTS: u64 = 15;

/// A percentage that depends on the room: digests that are too short name too little.
struct Share {
    /// With [`SCARCE`] or less.
    small: u64,
    /// With [`AMPLE`] or more.
    large: u64,
}

/// Room in which files take away what digests need, and room in which they do not.
const SCARCE: u64 = 15_000;
const AMPLE: u64 = 25_000;

impl Share {
    fn percent(&self, room: u64) -> u64 {
        let missing = AMPLE - room.clamp(SCARCE, AMPLE);
        let all = AMPLE - SCARCE;
        (self.small * missing + self.large * (all - missing)) / all
    }
}

/// Percent of what the budget leaves beside pinned messages that files have which are being worked on.
const WORKING: Share = Share {
    small: 15,
    large: 30,
};

/// Percent of what is left of that for what one epoch adds: what it shows stays until the next ledger.
const WORKING_EACH: u64 = 60;

/// Percent of the low mark that blocks and tail have after a major epoch. What is left of it is for the
/// blocks of minor epochs: those leave the cached prefix alone.
const MAJOR: Share = Share {
    small: 100,
    large: 60,
};

/// The part of what the budget leaves that a new digest has at least.
const LEAST: u64 = 20;

/// Percent of what the budget leaves for the newest calls, beyond which their results are shortened.
const RESULTS: u64 = 50;

/// How often one way to make a view is tried, each time for the room that the last one was short of.
const MOST_ATTEMPTS: u32 = 3;

/// A view within a budget, or the smallest there is.
pub(super) fn fit(
    history: &ToolHistory,
    bounds: &Bounds,
    room: u64,
    over: bool,
) -> Result<Draft, UnchangedReason> {
    let before = history.view.size();
    // Whatever the policy, a view that is no smaller is not worth a cold cache.
    let worth = before * (100 - history.policy.min_gain.min(100)) / 100;
    let worth = match planted("compact-gain-unasked") {
        true => u64::MAX,
        false => worth.min(before.saturating_sub(1)),
    };
    let accept = worth.min(room);
    let mut best: Option<Draft> = None;
    let planner = Planner::new(history, bounds, room, ShortRequests::default());
    let six = planner.cut(bounds.furthest());
    let last = bounds.smallest().max(bounds.held);
    let steps = [
        (six, BudgetStep::Nothing),
        (six, BudgetStep::Results),
        (last, BudgetStep::Results),
        (last, BudgetStep::All),
    ];
    if let Some(draft) = planner.first_that_fits(&steps, accept, &mut best) {
        return Ok(draft);
    }
    // A view that fits but gains little is taken only if nothing gains more; requests give way to
    // the budget alone.
    if best.as_ref().is_none_or(|best| best.view.size() > room) {
        let short = ShortRequests::saving(history, bounds, planner.missing(last));
        let planner = Planner::new(history, bounds, room, short);
        let steps = [
            (six, BudgetStep::Results),
            (last, BudgetStep::Results),
            (last, BudgetStep::All),
            (last, BudgetStep::Rest),
            (last, BudgetStep::Smallest),
        ];
        if let Some(draft) = planner.first_that_fits(&steps, accept, &mut best) {
            return Ok(draft);
        }
    }
    match best {
        Some(best) if best.view.size() <= worth => Ok(best),
        Some(best) if over && best.view.size() < before => Ok(best),
        _ if bounds.only_open() => Err(UnchangedReason::OpenCall),
        _ => Err(UnchangedReason::SmallGain),
    }
}

/// What is made smaller in the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetStep {
    Nothing,
    /// Results, oldest first, down to their share of the room.
    Results,
    /// Results, down to what the budget leaves beside the share of digests.
    All,
    /// The same, with as much of the digests as there is room for.
    Rest,
    /// Results as small as they get, and no digests: there is nothing smaller.
    Smallest,
}

impl BudgetStep {
    /// Whether it aims at the budget itself and not at the low mark.
    fn is_last(self) -> bool {
        match self {
            Self::Nothing | Self::Results => false,
            Self::All | Self::Rest | Self::Smallest => true,
        }
    }
}

struct Planner<'a> {
    history: &'a ToolHistory,
    bounds: &'a Bounds,
    /// Units that the budget leaves for the view.
    room: u64,
    short: ShortRequests,
}

/// One way to make a view.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    cut: usize,
    step: BudgetStep,
    major: bool,
    /// Units that the view is planned to have at most.
    room: u64,
}

impl<'a> Planner<'a> {
    fn new(history: &'a ToolHistory, bounds: &'a Bounds, room: u64, short: ShortRequests) -> Self {
        Self {
            history,
            bounds,
            room,
            short,
        }
    }

    /// The first view that is accepted; `best` becomes the smallest one of all.
    fn first_that_fits(
        &self,
        steps: &[(usize, BudgetStep)],
        accept: u64,
        best: &mut Option<Draft>,
    ) -> Option<Draft> {
        for (cut, step) in steps {
            for major in [false, true] {
                let mut attempt = Attempt {
                    cut: *cut,
                    step: *step,
                    major,
                    room: self.room,
                };
                for _ in 0..MOST_ATTEMPTS {
                    let Some(outline) = self.outline(attempt) else {
                        break;
                    };
                    let draft = Draft::of(self.history, self.bounds, outline);
                    let size = draft.view.size();
                    if size <= accept {
                        return Some(draft);
                    }
                    if best.as_ref().is_none_or(|best| size < best.view.size()) {
                        *best = Some(draft);
                    }
                    if size <= self.room || !step.is_last() {
                        break;
                    }
                    // Sizes are planned by group and made by message: what is over is left out too.
                    attempt.room = attempt.room.saturating_sub(size - self.room);
                }
            }
        }
        None
    }

    fn group_units(&self, at: usize) -> u64 {
        let record = &self.history.record;
        let unanswered = record.groups().get(at).map_or(0, |group| group.unanswered);
        record.group_units(at) + view::MISSING_RESULT * u64::from(unanswered)
    }

    /// Units of pinned groups before a cut.
    fn pinned(&self, cut: usize) -> u64 {
        let pinned = self.bounds.pinned.range(..cut);
        let units: u64 = pinned.map(|at| self.group_units(*at)).sum();
        units.saturating_sub(self.short.saved(0..self.history.record.begins(cut)))
    }

    /// Units of what old blocks show in full beside what is pinned.
    fn held_in_full(&self) -> u64 {
        let kept = self.history.frame.kept.difference(&self.bounds.pinned);
        let units = |at: &usize| working::units_of_held(self.history, *at, self.group_units(*at));
        kept.map(units).sum()
    }

    /// What remains beside pinned groups, and how much of it blocks and tail may have.
    fn aim(&self, cut: usize) -> (u64, u64) {
        let usable = self.room.saturating_sub(self.pinned(cut));
        let policy = &self.history.policy;
        (usable, usable * policy.low.min(100) / 100)
    }

    /// Files that are being worked on; `held` are the units of those that older blocks show.
    fn working(&self, attempt: Attempt, held: u64) -> WorkingFiles {
        if attempt.step.is_last() {
            return WorkingFiles::default();
        }
        let (usable, _) = self.aim(attempt.cut);
        let left = (usable * WORKING.percent(self.room) / 100).saturating_sub(held);
        let is_shown = |at: &usize| {
            let is_held = !attempt.major && self.history.frame.kept.contains(at);
            is_held || self.bounds.pinned.contains(at)
        };
        working::choose(
            self.history,
            attempt.cut,
            left * WORKING_EACH / 100,
            is_shown,
        )
    }

    /// Units of a tail.
    fn tail(&self, cut: usize) -> u64 {
        let record = &self.history.record;
        let from = record.begins(cut);
        let entries = record.entries()[from..].iter();
        let units: u64 = entries.map(|entry| u64::from(entry.units)).sum();
        let groups = record.groups()[cut.min(record.groups().len())..].iter();
        let unanswered: u64 = groups.map(|group| u64::from(group.unanswered)).sum();
        let units = units + view::MISSING_RESULT * unanswered;
        units.saturating_sub(self.short.saved(from..record.len()))
    }

    /// Units of digests that a view is not made without, of groups from one to another.
    fn share(&self, from: usize, cut: usize) -> u64 {
        if planted("compact-digests-give-way") {
            return 0;
        }
        let digested = (from..cut).filter(|at| !self.bounds.pinned.contains(at));
        let digested: u64 = digested.map(|at| self.group_units(at)).sum();
        (self.room * DIGESTS / 100).min(digested)
    }

    /// Units by which the smallest view with digests is larger than the room.
    fn missing(&self, cut: usize) -> u64 {
        let (_, tail) = shortening::until(self.history, cut, self.tail(cut), 0);
        let wanted = self.pinned(cut) + tail + self.share(0, cut);
        wanted.saturating_sub(self.room)
    }

    /// The earliest cut whose tail is small enough, but none after the furthest.
    fn cut(&self, furthest: usize) -> usize {
        let furthest = furthest.max(self.bounds.held);
        let (_, low) = self.aim(furthest);
        let low = low * MAJOR.percent(self.room) / 100;
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
    fn outline(&self, attempt: Attempt) -> Option<Outline> {
        let Attempt {
            cut,
            step,
            major,
            room,
        } = attempt;
        let held = self.history.epoch();
        let old: Vec<Arc<Block>> = match held {
            Some(epoch) if !major && !planted("compact-blocks-forgotten") => epoch.blocks.clone(),
            _ => Vec::new(),
        };
        if major && held.is_none() {
            return None;
        }
        if !major && working::hides_pinned(self.history, &self.bounds.pinned) {
            return None;
        }
        let (usable, most) = self.aim(cut);
        let low = most * MAJOR.percent(self.room) / 100;
        let blocks: u64 = old.iter().map(|block| block.units).sum();
        let held_in_full = if major { 0 } else { self.held_in_full() };
        let from = if major { 0 } else { self.bounds.held };
        let working = self.working(attempt, held_in_full);
        let full = self.pinned(cut) + held_in_full + working.units;
        let share = self.share(from, cut).saturating_sub(blocks);
        let tail = self.tail(cut);
        let least = usable / LEAST;
        let target = match step {
            BudgetStep::Nothing => tail,
            BudgetStep::Results => usable * RESULTS / 100,
            BudgetStep::All | BudgetStep::Rest => room.saturating_sub(full + blocks + share),
            BudgetStep::Smallest => 0,
        };
        let (shortened, tail) = shortening::until(self.history, cut, tail, target);
        if step == BudgetStep::Results
            && shortened.is_empty()
            && self.short.shortened.is_empty()
            && cut != self.bounds.smallest()
        {
            return None;
        }
        let want = low.saturating_sub(blocks + tail);
        let limit = usable * self.history.policy.block_share.min(100) / 100;
        let is_full = held.is_some() && (blocks + tail + least > most || blocks + least > limit);
        if !major && !step.is_last() && is_full {
            return None;
        }
        let hard = room.saturating_sub(full + blocks + tail);
        let room = match step {
            // Results give way before digests do: those are all that is left of what they are about.
            BudgetStep::Nothing | BudgetStep::Results if hard < least.max(share) => return None,
            BudgetStep::All if hard < share => return None,
            BudgetStep::Nothing | BudgetStep::Results => want.max(least).max(share).min(hard),
            BudgetStep::All => hard.min(least.max(share)),
            BudgetStep::Rest => hard.min(share),
            BudgetStep::Smallest => 0,
        };
        Some(Outline {
            cut,
            old,
            segments: segments::merged(self.history, self.bounds, working, from, cut),
            shortened,
            shortened_requests: self.short.shortened.clone(),
            room: Some(room),
            major,
        })
    }
}
