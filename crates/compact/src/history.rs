//! The one place through which tool history is shown.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use throughline_model::Message;

use crate::category::Annotations;
use crate::epoch::{Block, Epoch};
use crate::facts::{Digest, FactReader, Facts};
use crate::group::Group;
use crate::names::NameIndex;
use crate::narrative::Narrative;
use crate::policy::Policy;
use crate::record::Record;
use crate::trials::planted;
use crate::view::{Frame, View};
use crate::{recall, tokens};

/// A conversation's tool history: the record, as far as it was pushed, and the view of it.
///
/// Pushing costs what is new. Planning reads what it has not read before; a clone plans without
/// blocking pushes, and its epoch is installed afterwards.
#[derive(Clone)]
pub struct ToolHistory {
    pub(crate) policy: Policy,
    pub(crate) tools: Vec<Annotations>,
    pub(crate) digests: Vec<Arc<dyn Digest>>,
    pub(crate) record: Record,
    /// Epochs that hold or held, oldest first; the last holds.
    pub(crate) epochs: Vec<Arc<Epoch>>,
    /// The highest number that an epoch ever had here, so that none is used again.
    pub(crate) last_no: u64,
    pub(crate) frame: Frame,
    pub(crate) view: View,
    pub(crate) pins: BTreeSet<u64>,
    /// What triggers are armed against.
    pub(crate) armed: TriggerBaseline,
    /// Names seen so far, up to the place that was scanned.
    pub(crate) name_index: NameIndex,
    /// Groups before the cut that got a result after it, since the epoch was made.
    pub(crate) late: Vec<usize>,
    /// The facts of groups that were read, by group.
    pub(crate) facts: Vec<Option<Arc<Facts>>>,
    /// What a model wrote, for the next epoch.
    pub(crate) narrative: Option<Arc<Narrative>>,
}

/// The size of a view after the last epoch, or the last attempt at one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TriggerBaseline {
    pub(crate) tool_units: u64,
    pub(crate) messages: u64,
}

impl fmt::Debug for ToolHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolHistory")
            .field("messages", &self.record.len())
            .field("groups", &self.record.groups().len())
            .field("epoch", &self.epoch().map_or(0, |epoch| epoch.no))
            .finish_non_exhaustive()
    }
}

impl ToolHistory {
    /// An empty history.
    pub fn new(policy: Policy) -> Self {
        let single = single_cap(&policy);
        let pins = policy.pins.iter().copied().collect();
        Self {
            policy,
            tools: Vec::new(),
            digests: Vec::new(),
            record: Record::default(),
            epochs: Vec::new(),
            last_no: 0,
            frame: Frame {
                single,
                ..Frame::default()
            },
            view: View::default(),
            pins,
            armed: TriggerBaseline::default(),
            name_index: NameIndex::default(),
            late: Vec::new(),
            facts: Vec::new(),
            narrative: None,
        }
    }

    /// With what the caller knows about its tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Annotations>) -> Self {
        self.tools = tools;
        self
    }

    /// With a digest of the caller's own, asked before the shipped ones.
    #[must_use]
    pub fn with_digest(mut self, digest: Arc<dyn Digest>) -> Self {
        self.digests.push(digest);
        self
    }

    /// The policy by which the view is made.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// One more message of the record; false if its number is not above the last.
    pub fn push(&mut self, seq: u64, message: impl Into<Arc<Message>>) -> bool {
        let message = message.into();
        let units = tokens::units(&message);
        self.push_counted(seq, message, units)
    }

    /// The same with units that were counted before: they are stored with the message.
    pub fn push_counted(&mut self, seq: u64, message: impl Into<Arc<Message>>, units: u32) -> bool {
        if !self.record.push(seq, message.into(), units) {
            return false;
        }
        let place = self.record.len() - 1;
        self.view.add_tail(&self.record, place, &self.frame);
        for group in self.record.groups_of(place) {
            if let Some(facts) = self.facts.get_mut(group) {
                // It has a result now that it did not have when it was read.
                *facts = None;
            }
            if self.record.groups()[group].first() < self.frame.cut {
                self.late.push(group);
            }
        }
        true
    }

    /// The groups of the record, in the order in which they began.
    pub fn groups(&self) -> &[Group] {
        self.record.groups()
    }

    /// The number of the message at a place of the record.
    pub fn seq_at(&self, place: usize) -> Option<u64> {
        self.record.entries().get(place).map(|entry| entry.seq)
    }

    /// What a model is shown now.
    pub fn view(&self) -> &[Arc<Message>] {
        &self.view.messages
    }

    /// The whole record, which is what a model is shown without any epoch.
    pub fn record(&self) -> impl Iterator<Item = (u64, &Arc<Message>)> {
        let entries = self.record.entries().iter();
        entries.map(|entry| (entry.seq, &entry.message))
    }

    /// Units of the view.
    pub fn units(&self) -> u64 {
        self.view.size()
    }

    /// Units of the tool history in the view, digests included.
    pub fn tool_units(&self) -> u64 {
        self.view.tool_units
    }

    /// The epoch that holds.
    pub fn epoch(&self) -> Option<&Arc<Epoch>> {
        self.epochs.last()
    }

    /// Whether everything before the tail is what the epoch showed when it was made: the record is the
    /// one that it belongs to, and both are whole.
    ///
    /// ```
    /// use throughline_compact::{Policy, ToolHistory};
    ///
    /// // Without an epoch there is nothing that could differ.
    /// assert!(ToolHistory::new(Policy::default()).is_intact());
    /// ```
    pub fn is_intact(&self) -> bool {
        let held = self.epoch();
        held.is_none_or(|epoch| epoch.prefix == self.view.prefix())
    }

    /// Let an epoch hold. False, and nothing changes, if it holds already or is older than the one
    /// that does, if its cut lies before the current one, or if the record is not that long.
    pub fn install(&mut self, epoch: impl Into<Arc<Epoch>>) -> bool {
        let epoch = epoch.into();
        let newer = self
            .epochs
            .last()
            .is_none_or(|held| epoch.no > held.no && epoch.cut_seq >= held.cut_seq);
        let newer = newer && epoch.no > self.last_no;
        let known = self.record.exactly(epoch.upto_seq).is_some();
        if !known || !(newer || planted("compact-epoch-swapped")) {
            return false;
        }
        self.last_no = epoch.no;
        self.armed = TriggerBaseline {
            tool_units: epoch.tool_units,
            messages: epoch.messages,
        };
        self.pins.extend(epoch.pinned.iter().copied());
        self.epochs.push(epoch);
        self.settle_narrative();
        self.rebuild();
        true
    }

    /// Take back an epoch and all after it: the view is again as the one before made it. Triggers other than
    /// the budget are armed against the view that is shown then.
    pub fn uncompact(&mut self, no: u64) -> bool {
        let before = self.epochs.len();
        self.epochs.retain(|epoch| epoch.no < no);
        if self.epochs.len() == before {
            return false;
        }
        self.settle_narrative();
        self.rebuild();
        self.armed = TriggerBaseline {
            tool_units: self.view.tool_units,
            messages: self.view.messages.len() as u64,
        };
        true
    }

    /// Always show the groups of a message in full, from the next epoch on.
    pub fn pin(&mut self, seq: u64) -> bool {
        self.record.exactly(seq).is_some() && self.pins.insert(seq)
    }

    /// No longer show them in full, from the next major epoch on.
    pub fn unpin(&mut self, seq: u64) -> bool {
        self.pins.remove(&seq)
    }

    /// All messages that belong together with a message, in full.
    pub fn expand(&self, seq: u64) -> Vec<Arc<Message>> {
        let Some(place) = self.record.exactly(seq) else {
            return Vec::new();
        };
        let groups = self.record.groups_of(place);
        let members = groups
            .iter()
            .flat_map(|group| &self.record.groups()[*group].members);
        let places: BTreeSet<usize> = members.map(|member| member.place).collect();
        let entries = places.iter().map(|place| &self.record.entries()[*place]);
        entries.map(|entry| Arc::clone(&entry.message)).collect()
    }

    /// The numbers of the messages that have most of these words, best first, at most `k`.
    pub fn recall(&self, words: &str, k: usize) -> Vec<u64> {
        recall::recall(&self.record, words, k)
    }

    /// The narrative that waits for the next epoch.
    pub fn narrative(&self) -> Option<&Arc<Narrative>> {
        self.narrative.as_ref()
    }

    /// What waits is of no use any more: it is shown, or its epoch was taken back.
    pub(crate) fn settle_narrative(&mut self) {
        let Some(waiting) = &self.narrative else {
            return;
        };
        let held = self.epoch();
        let is_shown = |block: &Arc<Block>| block.narrative && block.last >= waiting.last;
        let settled = match held {
            None => true,
            Some(held) => held.no < waiting.epoch || held.blocks.iter().any(is_shown),
        };
        if settled {
            self.narrative = None;
        }
    }

    /// Read the groups that were not read before.
    pub(crate) fn learn_facts(&mut self) {
        let look = FactReader {
            record: &self.record,
            name_index: &self.name_index,
            policy: &self.policy,
            tools: &self.tools,
            digests: &self.digests,
        };
        let groups = self.record.groups();
        self.facts.resize(groups.len(), None);
        for (facts, group) in self.facts.iter_mut().zip(groups) {
            if facts.is_none() {
                *facts = Some(Arc::new(look.facts(group)));
            }
        }
    }

    /// Make the view again from the record and the epoch that holds.
    fn rebuild(&mut self) {
        let epoch = self.epochs.last().map(Arc::as_ref);
        self.frame = Frame::of(&self.record, epoch, self.frame.single);
        self.view = View::of(&self.record, epoch, &self.frame);
        // What came after the epoch was made, for calls before its cut.
        self.late.clear();
        for place in self.frame.upto..self.record.len() {
            let groups = self.record.groups_of(place).into_iter();
            let late = groups.filter(|group| self.record.groups()[*group].first() < self.frame.cut);
            self.late.extend(late);
        }
    }
}

/// Units that a single result may have in a view.
fn single_cap(policy: &Policy) -> u64 {
    match policy.effective_budget() {
        // One result must leave room for what it belongs to.
        Some(budget) => policy.single_result.min(budget * 2 / 5).max(64),
        None => policy.single_result.max(64),
    }
}
