//! The compacted view of a long history, and its stored form.

use std::sync::Arc;

use throughline_compact::tokens::{Calibrations, recent_mix, units};
use throughline_compact::{
    Annotations, BudgetUnreachable, Call, NarrativeOutcome, NarrativeRequest, Planned, Policy,
    Report, StoredEpoch, ToolHistory, ViewSettings, number_count,
};
use throughline_model::json::RawJson;
use throughline_model::{HeapSize, Message};

use super::summary::PendingSummary;
use super::view::View;
use crate::trials::planted;

/// Whether and when older tool calls are replaced by digests.
///
/// The record always keeps everything; this concerns what a model is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// Models are shown the full history.
    Off,
    /// Models are shown a view by this policy.
    On(Box<Policy>),
}

impl Default for Compaction {
    /// On, with the policy's defaults: above 10,000 tokens of tool history, all but the newest six
    /// calls are replaced by digests.
    fn default() -> Self {
        Self::On(Box::default())
    }
}

impl Compaction {
    /// Also always shows some messages of a record in full.
    #[must_use]
    pub fn pinning<'m>(
        mut self,
        record: impl Iterator<Item = &'m Message>,
        wanted: impl Fn(&Message) -> bool,
    ) -> Self {
        if let Self::On(policy) = &mut self {
            let mut next = 1;
            for message in record {
                if wanted(message) {
                    policy.pins.push(next);
                }
                next += number_count(message);
            }
        }
        self
    }
}

impl From<Policy> for Compaction {
    fn from(policy: Policy) -> Self {
        Self::On(Box::new(policy))
    }
}

/// The upstream and model of a call, and the size of what is sent beside the conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptRequest<'a> {
    pub(crate) upstream: &'a str,
    pub(crate) model: &'a str,
    /// Units of instructions and tools.
    pub(crate) overhead: u64,
    /// Messages that are shown in one run only, and where.
    pub(crate) run_only: RunOnly<'a>,
}

/// A history as a model is shown it: digests of older calls, and the rest unchanged.
pub(crate) struct Compacted {
    history: ToolHistory,
    /// The view that is sent.
    view: View,
    /// How many messages of the history's view are in `view`.
    sent: usize,
    /// How many messages of the record have been added.
    fed: usize,
    /// The number of the next message.
    next: u64,
    /// The bills so far, for calibration.
    bills: Calibrations,
    /// Whether `view` has messages that are shown in one run only.
    mixed: bool,
    /// Units of those messages.
    run_only_units: u64,
    /// A summary that a model is writing.
    writing: Option<Arc<PendingSummary>>,
    /// The view settings that were applied last.
    applied_settings: Option<ViewSettings>,
}

/// The result of planning a call.
pub(crate) struct PlannedCompaction {
    pub(crate) report: Report,
    /// The stored form of a new epoch, if there is one.
    pub(crate) kept: Option<RawJson>,
    /// The request for a summary, if one is to be written.
    pub(crate) asking: Option<NarrativeRequest>,
}

/// Messages that are shown in one run only, and the message of the record before which they stand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunOnly<'a> {
    pub(crate) shown: &'a [Arc<Message>],
    pub(crate) before: usize,
}

impl Compacted {
    /// Restores the view that was stored with a record. A stored epoch that cannot be read is
    /// ignored, because a view can be planned again at any time.
    pub(crate) fn new<'m>(
        policy: &Policy,
        tools: Vec<Annotations>,
        kept: Option<&RawJson>,
        record: impl Iterator<Item = &'m Arc<Message>>,
    ) -> Self {
        let mut new = Self {
            history: ToolHistory::new(policy.clone()).with_tools(tools),
            view: View::default(),
            sent: 0,
            fed: 0,
            next: 1,
            bills: Calibrations::default(),
            mixed: false,
            run_only_units: 0,
            writing: None,
            applied_settings: None,
        };
        new.feed(record);
        if let Some(kept) = kept.and_then(|kept| StoredEpoch::from_json(kept.get())) {
            new.history.restore(&kept);
            new.bills = kept.bills;
        }
        new
    }

    /// Whether it has this policy, and no more than a number of messages.
    pub(crate) fn fits(&self, policy: &Policy, messages: usize) -> bool {
        self.history.policy() == policy && self.fed <= messages
    }

    /// Adds messages of the record that are not known yet.
    pub(crate) fn feed<'m>(&mut self, record: impl Iterator<Item = &'m Arc<Message>>) {
        for message in record.skip(self.fed) {
            self.history.push(self.next, Arc::clone(message));
            self.next += number_count(message);
            self.fed += 1;
        }
    }

    /// Applies the thread's view settings. Returns true if an epoch was undone, which has to be
    /// stored.
    pub(crate) fn apply_view_settings(&mut self, settings: &ViewSettings) -> bool {
        if self.applied_settings.as_ref() == Some(settings) {
            return false;
        }
        self.applied_settings = Some(settings.clone());
        let undone = self.history.apply_settings(settings);
        if undone {
            self.writing = None;
            self.sent = 0;
        }
        undone
    }

    /// Plans the next call. A new epoch applies at once, and is returned so that it can be stored.
    pub(crate) fn plan(
        &mut self,
        asked: PromptRequest<'_>,
    ) -> Result<PlannedCompaction, BudgetUnreachable> {
        if self.bills.of(asked.upstream, asked.model).calls() == 0 {
            let view = self.history.view().iter();
            let mix = recent_mix(view.map(Arc::as_ref));
            self.bills.guess(asked.upstream, asked.model, &mix);
        }
        let bills = self.bills.of(asked.upstream, asked.model);
        let shown = asked.run_only.shown.iter();
        self.run_only_units = shown.map(|one| u64::from(units(one))).sum();
        let sent = self.history.units() + self.run_only_units;
        let mut call = Call::estimated(&bills, sent, asked.overhead);
        // Bills cover instructions and tools; messages of one run differ from run to run.
        call.overhead += call.scale.tokens(self.run_only_units);
        match self.history.plan(&call)? {
            Planned::Unchanged(report) => Ok(PlannedCompaction {
                report,
                kept: None,
                asking: None,
            }),
            Planned::Epoch(epoch, report) => {
                let asking = self.history.narrative_request(&epoch);
                self.history.install(epoch);
                self.sent = 0;
                Ok(PlannedCompaction {
                    report,
                    kept: self.kept().filter(|_| !planted("compact-epoch-unkept")),
                    asking,
                })
            }
        }
    }

    /// The form that is stored with the record.
    pub(crate) fn kept(&self) -> Option<RawJson> {
        StoredEpoch::of(&self.history, &self.bills).map(|kept| kept.to_json())
    }

    /// Sets the summary that is being written.
    pub(crate) fn waits_for(&mut self, writing: Option<Arc<PendingSummary>>) {
        self.writing = writing;
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// The outcome of a summary, if it is finished.
    pub(crate) fn look_for_summary(&mut self) -> Option<NarrativeOutcome> {
        let narrated = self.writing.as_ref()?.read(&mut self.history)?;
        self.writing = None;
        Some(narrated)
    }

    /// Records the bill of the last call.
    pub(crate) fn billed(&mut self, upstream: &str, model: &str, tokens: u64) {
        let units = self.history.units() + self.run_only_units;
        self.bills.observe(upstream, model, units, tokens);
    }

    /// Updates the view that is sent. It begins with what was sent before, unless there is a new
    /// epoch.
    pub(crate) fn show(&mut self, run_only: RunOnly<'_>) -> &View {
        let known = self.history.view();
        if self.sent == 0 || self.mixed == run_only.shown.is_empty() {
            let place = match run_only.shown {
                [] => known.len(),
                _ => known.len() - self.own(run_only.before).min(known.len()),
            };
            let messages = known[..place]
                .iter()
                .chain(run_only.shown)
                .chain(&known[place..]);
            self.view = View::new(messages.cloned());
            self.mixed = !run_only.shown.is_empty();
        } else {
            for message in &known[self.sent..] {
                self.view.push(Arc::clone(message));
            }
        }
        self.sent = known.len();
        &self.view
    }

    /// The view that is sent, as of the last update.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// How many messages at the end of the view the record has from an index on.
    fn own(&self, before: usize) -> usize {
        let cut = self.history.epoch().map_or(0, |epoch| epoch.cut_seq);
        let later = self.history.record().enumerate();
        later
            .filter(|(place, (seq, _))| *place >= before && *seq >= cut)
            .count()
    }

    /// A copy for another branch.
    pub(super) fn fork(&self) -> Self {
        Self {
            history: self.history.clone(),
            view: self.view.fork(),
            bills: self.bills.clone(),
            writing: self.writing.clone(),
            applied_settings: self.applied_settings.clone(),
            ..*self
        }
    }

    /// The number of the current epoch.
    pub(super) fn epoch_number(&self) -> Option<u64> {
        self.history.epoch().map(|epoch| epoch.no)
    }

    /// The bytes of the tool history, without messages.
    pub(super) fn history_bytes(&self) -> usize {
        self.history.heap_size()
    }

    /// How many messages of the record have been added.
    pub(crate) fn fed(&self) -> usize {
        self.fed
    }

    /// Whether a record begins with the messages that were added.
    pub(crate) fn begins(&self, record: &[Arc<Message>]) -> bool {
        let same = |(one, two): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, two) || one == two;
        let known = self.history.record().map(|(_, message)| message);
        self.fed <= record.len() && known.zip(record).all(same)
    }
}

/// A record with the numbers that digests use.
pub(crate) fn number(record: &[Arc<Message>]) -> ToolHistory {
    let policy = Policy::default();
    Compacted::new(&policy, Vec::new(), None, record.iter()).history
}
