//! Which groups become which block.

use std::collections::BTreeSet;

use super::bounds::Bounds;
use super::draft::Segment;
use super::working::WorkingFiles;
use crate::history::ToolHistory;

/// How much more room each unit gets that is digested for the first time.
const NEWER: u64 = 3;

/// The groups from one to another: a ledger of what was digested before, a block for what is new, the current
/// input in its place. Groups that show files that are
/// being worked on stand behind all that.
pub(super) fn merged(
    history: &ToolHistory,
    bounds: &Bounds,
    working: WorkingFiles,
    from: usize,
    cut: usize,
) -> Vec<Segment> {
    let mut segments = vec![Segment::default()];
    let mut take = |at: usize, ledger: bool| {
        let input = bounds.input.contains(&at);
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
        if bounds.pinned.contains(&at) {
            last.kept.push(at);
        } else {
            let share = if ledger { 1 } else { NEWER };
            last.weight += history.record.group_units(at) * share;
            last.digested.push(at);
        }
    };
    for at in late(history, bounds, from) {
        take(at, false);
    }
    for at in from..cut {
        take(at, at < bounds.held);
    }
    segments.push(Segment {
        kept: working.groups.into_iter().collect(),
        left_out: working.left_out,
        working: true,
        ..Segment::default()
    });
    segments.retain(|segment| !segment.kept.is_empty() || !segment.digested.is_empty());
    segments
}

/// The groups from one to another in their order: each run of groups that are digested is a block between
/// those that stay.
pub(super) fn in_order(
    history: &ToolHistory,
    bounds: &Bounds,
    from: usize,
    cut: usize,
) -> Vec<Segment> {
    let mut segments = vec![Segment::default()];
    for at in late(history, bounds, from).into_iter().chain(from..cut) {
        let stays = bounds.pinned.contains(&at);
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
    segments
}

/// Groups before the part that is digested that have results the last epoch did not know, and groups that were
/// pinned since.
fn late(history: &ToolHistory, bounds: &Bounds, from: usize) -> Vec<usize> {
    if from == 0 {
        return Vec::new();
    }
    let late = history.late.iter().copied();
    let pinned = bounds.pinned.range(..from).copied();
    let all: BTreeSet<usize> = late
        .chain(pinned)
        .filter(|at| *at < from && !history.frame.kept.contains(at))
        .collect();
    all.into_iter().collect()
}
