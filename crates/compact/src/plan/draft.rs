//! A view as it would be after an epoch.

use std::sync::Arc;

use crate::digest::{self, DigestInput, VisibleNames};
use crate::epoch::{Block, Epoch, LeftOut, Shortened};
use crate::history::ToolHistory;
use crate::report::Trigger;
use crate::tokens;
use crate::trials::planted;
use crate::view::{Frame, View};

use super::bounds::Bounds;

/// A part of the record that becomes one block: groups in full, then groups digested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) kept: Vec<usize>,
    pub(crate) digested: Vec<usize>,
    /// Results of the groups in full that are not shown.
    pub(crate) left_out: Vec<LeftOut>,
    /// Whether the groups in full show files that are being worked on.
    pub(crate) working: bool,
    pub(crate) ledger: bool,
    /// Its share of the room is by this weight.
    pub(crate) weight: u64,
}

/// What an epoch is to be made of.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    /// The first group of the tail.
    pub(crate) cut: usize,
    /// Blocks that stay as they are.
    pub(crate) old: Vec<Arc<Block>>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) shortened: Vec<Shortened>,
    pub(crate) shortened_requests: Vec<Shortened>,
    /// Units for all segments together.
    pub(crate) room: Option<u64>,
    pub(crate) major: bool,
}

/// A view as it would be after an epoch.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The first place of the tail.
    pub(crate) cut: usize,
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) shortened: Vec<Shortened>,
    pub(crate) shortened_requests: Vec<Shortened>,
    pub(crate) view: View,
    pub(crate) major: bool,
    pub(crate) groups: u64,
    pub(crate) calls: u64,
}

impl Draft {
    pub(crate) fn of(history: &ToolHistory, bounds: &Bounds, outline: Outline) -> Self {
        let record = &history.record;
        let groups = record.groups();
        let cut = record.begins(outline.cut) + usize::from(planted("compact-cut-in-group"));
        let mut visible = VisibleNames::new(&history.name_index, cut);
        for block in &outline.old {
            visible.learn(&history.name_index, &block.text);
        }
        // What shows files is in the digests too: later epochs may show others.
        let old_kept = outline.old.iter().filter(|block| !block.working);
        let old_kept = old_kept.flat_map(|block| &block.kept);
        let old_kept = old_kept.flat_map(|seq| crate::view::groups_from(record, *seq));
        let segments = outline.segments.iter().filter(|part| !part.working);
        let new_kept = segments.flat_map(|part| &part.kept).copied();
        for group in old_kept.chain(new_kept) {
            visible.learn_group(&history.name_index, &groups[group]);
        }
        let rooms = rooms(history, bounds, &outline);
        let mut blocks = outline.old.clone();
        for (segment, room) in outline.segments.iter().zip(rooms) {
            if let Some(block) = block(history, bounds, segment, room, &mut visible) {
                blocks.push(Arc::new(block));
            }
        }
        let newly = outline.segments.iter().flat_map(|part| &part.digested);
        let newly: Vec<usize> = newly.copied().filter(|at| *at >= bounds.held).collect();
        let calls = newly.iter().map(|at| u64::from(groups[*at].calls)).sum();
        let mut draft = Self {
            cut,
            blocks,
            shortened: outline.shortened,
            shortened_requests: outline.shortened_requests,
            view: View::default(),
            major: outline.major,
            groups: newly.len() as u64,
            calls,
        };
        draft.show(history);
        draft
    }

    /// The same with one more block.
    pub(crate) fn with(&self, history: &ToolHistory, place: usize, block: Block) -> Self {
        let mut draft = self.clone();
        let place = place.min(draft.blocks.len());
        draft.blocks.insert(place, Arc::new(block));
        draft.show(history);
        draft
    }

    /// Make the view of it.
    fn show(&mut self, history: &ToolHistory) {
        let record = &history.record;
        let last = record.entries().last().map_or(0, |entry| entry.seq);
        let epoch = Epoch {
            no: 0,
            cut_seq: record
                .entries()
                .get(self.cut)
                .map_or(last + 1, |entry| entry.seq),
            upto_seq: last,
            blocks: self.blocks.clone(),
            shortened: self.shortened.clone(),
            shortened_requests: self.shortened_requests.clone(),
            pinned: Vec::new(),
            policy_hash: String::new(),
            digest_version: 0,
            tokens_before: 0,
            tokens_after: 0,
            tool_units: 0,
            messages: 0,
            prefix: String::new(),
            reason: Trigger::Asked,
        };
        let frame = Frame::of(record, Some(&epoch), history.frame.single);
        self.view = View::of(record, Some(&epoch), &frame);
    }

    /// The hash of everything before the tail.
    pub(crate) fn prefix(&self) -> String {
        self.view.prefix()
    }
}

/// Units of one segment's digest.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentRoom {
    /// Of all of it; none for as much as the caps allow.
    all: Option<u64>,
    /// Set aside for failures.
    failures: u64,
}

/// The room of each segment: what its failures need, and its share of the rest by weight.
fn rooms(history: &ToolHistory, bounds: &Bounds, outline: &Outline) -> Vec<SegmentRoom> {
    let segments = &outline.segments;
    let Some(room) = outline.room else {
        return vec![SegmentRoom::default(); segments.len()];
    };
    let needed = |segment: &Segment| {
        let job = job(history, bounds, segment, SegmentRoom::default());
        digest::units_of_failures(&job)
    };
    let mut failures: Vec<u64> = segments.iter().map(needed).collect();
    let needed: u64 = failures.iter().sum();
    let most = room * digest::FAILURES / 100;
    if needed > most {
        for units in &mut failures {
            *units = *units * most / needed;
        }
    }
    let rest = room - failures.iter().sum::<u64>().min(room);
    let total: u64 = segments.iter().map(|part| part.weight).sum();
    let share = |weight: u64| (rest * weight).checked_div(total).unwrap_or(0);
    let all = segments.iter().zip(failures);
    all.map(|(segment, failures)| SegmentRoom {
        all: Some(failures + share(segment.weight)),
        failures,
    })
    .collect()
}

/// What a segment digests.
fn job<'a>(
    history: &'a ToolHistory,
    bounds: &'a Bounds,
    segment: &Segment,
    room: SegmentRoom,
) -> DigestInput<'a> {
    let digested = segment.digested.iter();
    DigestInput {
        facts: digested
            .filter_map(|at| history.facts.get(*at)?.as_deref())
            .collect(),
        name_index: &history.name_index,
        caps: &history.policy.caps,
        room: room.all,
        failures: room.failures,
        ledger: segment.ledger,
        successes: &bounds.successes,
        calls: history.name_index.calls,
    }
}

fn block(
    history: &ToolHistory,
    bounds: &Bounds,
    segment: &Segment,
    room: SegmentRoom,
    visible: &mut VisibleNames,
) -> Option<Block> {
    let record = &history.record;
    let groups = record.groups();
    let job = job(history, bounds, segment, room);
    let packed = digest::write_digest(&job, visible);
    let all = segment.kept.iter().chain(&segment.digested);
    let seq = |place: usize| record.entries().get(place).map(|entry| entry.seq);
    let members = all.clone().flat_map(|at| &groups[*at].members);
    let places: Vec<usize> = members.map(|member| member.place).collect();
    let first = places.iter().min().copied().and_then(seq)?;
    let last = places.iter().max().copied().and_then(seq)?;
    let covered = segment.digested.iter().flat_map(|at| &groups[*at].members);
    let mut sources: Vec<String> = covered
        .filter_map(|member| record.entries().get(member.place))
        .filter_map(|entry| Some(entry.message.source.as_ref()?.as_str().to_owned()))
        .collect();
    sources.sort_unstable();
    sources.dedup();
    let calls = segment
        .digested
        .iter()
        .map(|at| u64::from(groups[*at].calls));
    let mut block = Block {
        epoch: history.last_no + 1,
        first,
        last,
        kept: segment
            .kept
            .iter()
            .filter_map(|at| seq(groups[*at].first()))
            .collect(),
        left_out: segment.left_out.clone(),
        working: segment.working,
        units: 0,
        text: packed.text,
        groups: segment.digested.len() as u64,
        calls: calls.sum(),
        ledger: segment.ledger,
        narrative: false,
        facts: packed.kept,
        sources,
    };
    // What the message itself is counted as, so that a view adds up.
    block.units = block
        .message()
        .map_or(0, |message| tokens::units(&message).into());
    Some(block)
}
