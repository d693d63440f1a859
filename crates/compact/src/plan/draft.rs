//! A view as it would be after an epoch.

use std::sync::Arc;

use crate::digest::{self, DigestInput, VisibleNames};
use crate::epoch::{Block, Epoch, Shortened};
use crate::facts::Facts;
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
        let held = history.epoch().filter(|_| !outline.major);
        let kept = held.iter().flat_map(|epoch| &epoch.blocks);
        let old_kept = kept
            .flat_map(|block| &block.kept)
            .flat_map(|seq| crate::view::groups_from(record, *seq));
        let new_kept = outline.segments.iter().flat_map(|part| &part.kept).copied();
        for group in old_kept.chain(new_kept) {
            visible.learn_group(&history.name_index, &groups[group]);
        }
        let total: u64 = outline.segments.iter().map(|part| part.weight).sum();
        let mut blocks = outline.old.clone();
        for segment in &outline.segments {
            let room = outline
                .room
                .map(|room| (room * segment.weight).checked_div(total).unwrap_or(0));
            if let Some(block) = block(history, segment, room, &mut visible) {
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

fn block(
    history: &ToolHistory,
    segment: &Segment,
    room: Option<u64>,
    visible: &mut VisibleNames,
) -> Option<Block> {
    let record = &history.record;
    let groups = record.groups();
    let facts: Vec<&Facts> = segment
        .digested
        .iter()
        .filter_map(|at| history.facts.get(*at)?.as_deref())
        .collect();
    let job = DigestInput {
        facts,
        name_index: &history.name_index,
        caps: &history.policy.caps,
        room,
        ledger: segment.ledger,
        calls: history.name_index.calls,
    };
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
