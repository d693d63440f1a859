//! Other strategies, each cut to the size that our view of the same call has.
//!
//! What keeps more because it sends more says nothing, so all of these get the same room.

mod bag;
mod head_tail;
mod lines;

use std::sync::Arc;

use throughline_model::{Message, Source};

use crate::count::Counter;
use crate::groups::{self, MessageGroup, is_system, masked};
use crate::replay::{Strategy, View};
use bag::Bag;
use head_tail::HeadTail;
use lines::Lines;

/// Calls that are kept in full before extracts of what is older.
const RECENT: usize = 6;

/// How a history is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutKind {
    /// The newest groups that fit.
    DropOldest,
    /// Results before the newest ten calls are replaced by a placeholder, then as above.
    Mask,
    /// The oldest results are replaced by a placeholder, as many as it takes.
    ClearResults,
    /// Heads and tails of all texts before the newest calls.
    HeadTail,
    /// The lines with the rarest words, before the newest calls.
    RareLines,
    /// All names, without anything else, before the newest calls.
    BagOfNames,
}

impl CutKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::DropOldest,
        Self::Mask,
        Self::ClearResults,
        Self::HeadTail,
        Self::RareLines,
        Self::BagOfNames,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DropOldest => "drop-oldest",
            Self::Mask => "mask-last-10",
            Self::ClearResults => "clear-results",
            Self::HeadTail => "head-and-tail",
            Self::RareLines => "tf-idf-lines",
            Self::BagOfNames => "bag-of-names",
        }
    }
}

/// A history that is cut to given sizes, one for each call.
pub(crate) struct Cut<'a> {
    kind: CutKind,
    sizes: &'a [u64],
    calls: usize,
    groups: Vec<MessageGroup>,
    /// The groups with placeholders, as far as they were needed.
    masked: Vec<Option<MessageGroup>>,
    head_tail: HeadTail,
    lines: Lines,
    bag: Bag,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(kind: CutKind, sizes: &'a [u64]) -> Self {
        Self {
            kind,
            sizes,
            calls: 0,
            groups: Vec::new(),
            masked: Vec::new(),
            head_tail: HeadTail::default(),
            lines: Lines::default(),
            bag: Bag::default(),
        }
    }

    fn masked(&mut self, place: usize) -> MessageGroup {
        self.masked.resize(self.groups.len(), None);
        let group = &self.groups[place];
        self.masked[place]
            .get_or_insert_with(|| masked(group))
            .clone()
    }

    /// Placeholders before the newest ten calls.
    fn mask(&mut self) -> Vec<MessageGroup> {
        let recent = groups::recent(&self.groups, 10);
        let mut out: Vec<_> = (0..recent).map(|place| self.masked(place)).collect();
        out.extend_from_slice(&self.groups[recent..]);
        out
    }

    /// Placeholders from the oldest result on, until the history fits.
    fn clear(&mut self, limit: u64, counter: &mut Counter) -> Vec<MessageGroup> {
        let mut total: u64 = self.groups.iter().map(|group| counter.view(group)).sum();
        let mut out = self.groups.clone();
        let older = self.groups.len().saturating_sub(1);
        for (place, shown) in out.iter_mut().enumerate().take(older) {
            if total <= limit {
                break;
            }
            let before = counter.view(shown);
            *shown = self.masked(place);
            total = total + counter.view(shown) - before;
        }
        out
    }

    /// Instructions and the newest calls in full; the rest of the room is for `extract`.
    fn extracted(
        &mut self,
        limit: u64,
        counter: &mut Counter,
        extract: impl FnOnce(&mut Self, &[MessageGroup], u64, &mut Counter) -> String,
    ) -> Vec<Arc<Message>> {
        let place = groups::recent(&self.groups, RECENT);
        let (older, recent) = self.groups.split_at(place);
        let heads: Vec<_> = older
            .iter()
            .filter(|group| is_system(group))
            .cloned()
            .collect();
        let older: Vec<_> = older
            .iter()
            .filter(|group| !is_system(group))
            .cloned()
            .collect();
        let mut whole = heads.clone();
        whole.extend_from_slice(recent);
        let size: u64 = whole.iter().map(|group| counter.view(group)).sum();
        if size >= limit || older.is_empty() {
            return groups::newest(&whole, Some(limit), counter);
        }
        let text = extract(self, &older, limit - size, counter);
        let mut message = Message::user(text);
        message.source = Some(Source::Summary);
        let mut out: Vec<_> = heads.into_iter().flatten().collect();
        out.push(Arc::new(message));
        out.extend(whole.into_iter().flatten().skip(out.len() - 1));
        out
    }
}

impl Strategy for Cut<'_> {
    fn push(&mut self, _: usize, message: &Arc<Message>) {
        let place = groups::push(&mut self.groups, message);
        self.masked.truncate(place);
        self.head_tail.forget_from(place);
    }

    fn view(&mut self, counter: &mut Counter) -> View {
        let limit = self.sizes.get(self.calls).copied().unwrap_or_default();
        self.calls += 1;
        let total: u64 = self.groups.iter().map(|group| counter.view(group)).sum();
        let messages = if total <= limit {
            self.groups.iter().flatten().cloned().collect()
        } else {
            match self.kind {
                CutKind::DropOldest => groups::newest(&self.groups, Some(limit), counter),
                CutKind::Mask => {
                    let masked = self.mask();
                    groups::newest(&masked, Some(limit), counter)
                }
                CutKind::ClearResults => {
                    let cleared = self.clear(limit, counter);
                    groups::newest(&cleared, Some(limit), counter)
                }
                CutKind::HeadTail => {
                    let recent = groups::recent(&self.groups, RECENT);
                    let cut = self.head_tail.fit(&self.groups, recent, limit, counter);
                    groups::newest(&cut, Some(limit), counter)
                }
                CutKind::RareLines => {
                    self.extracted(limit, counter, |cut, older, room, counter| {
                        cut.lines.extract(older, room, counter)
                    })
                }
                CutKind::BagOfNames => {
                    self.extracted(limit, counter, |cut, older, room, counter| {
                        cut.bag.extract(older, room, counter)
                    })
                }
            }
        };
        View { messages, epoch: 0 }
    }

    fn billed(&mut self, _: u64) {}
}
