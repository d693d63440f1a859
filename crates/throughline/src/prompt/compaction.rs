//! A history as a model is given it once it is long, and how that is kept.

use std::sync::Arc;

use throughline_compact::tokens::Calibrations;
use throughline_compact::{
    Annotations, BudgetUnreachable, Call, NarrativeOutcome, NarrativeRequest, Planned, Policy,
    Report, Scale, StoredEpoch, ToolHistory, ViewSettings, number_count,
};
use throughline_model::json::RawJson;
use throughline_model::{HeapSize, Message};

use super::summary::PendingSummary;
use super::view::View;
use crate::trials::planted;

/// Whether older tool calls give way to digests of them, and when.
///
/// The record always keeps everything; this is about what a model is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// A model is shown everything.
    Off,
    /// A model is shown as much as the policy says.
    On(Box<Policy>),
}

impl Default for Compaction {
    /// On, with the policy's defaults: above 10,000 tokens of tool history all but the newest six
    /// calls are digested.
    fn default() -> Self {
        Self::On(Box::default())
    }
}

impl Compaction {
    /// The same, with some messages of a record always shown in full.
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

/// Who is asked, and what is sent beside the conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptRequest<'a> {
    pub(crate) upstream: &'a str,
    pub(crate) model: &'a str,
    /// Units of instructions and tools.
    pub(crate) overhead: u64,
}

/// A history as a model is given it: digests of what is older, and the rest as it was said.
pub(crate) struct Compacted {
    history: ToolHistory,
    /// What is sent.
    view: View,
    /// How many messages of the history's view are in `view`.
    sent: usize,
    /// How many messages of the record it knows.
    fed: usize,
    /// The number of the next message.
    next: u64,
    /// What was billed so far.
    bills: Calibrations,
    /// Whether `view` has something that is shown in one run only.
    mixed: bool,
    /// A summary that a model is writing.
    writing: Option<Arc<PendingSummary>>,
    /// What somebody wanted to be shown when that was last looked at.
    heeded: Option<ViewSettings>,
}

/// What was decided about a call.
pub(crate) struct Decided {
    pub(crate) report: Report,
    /// What is to hold from now on, if that changed.
    pub(crate) kept: Option<RawJson>,
    /// What a model is to be asked, if there is something to tell.
    pub(crate) asking: Option<NarrativeRequest>,
}

/// What is shown in one run only, and which message of the record it stands before.
#[derive(Clone, Copy, Default)]
pub(crate) struct Between<'a> {
    pub(crate) shown: &'a [Arc<Message>],
    pub(crate) before: usize,
}

impl Compacted {
    /// The view that was kept with a record. What cannot be read of it is as if it had never been:
    /// a view is made again at any time.
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
            writing: None,
            heeded: None,
        };
        new.feed(record);
        if let Some(kept) = kept.and_then(|kept| StoredEpoch::from_json(kept.get())) {
            new.history.restore(&kept);
            new.bills = kept.bills;
        }
        new
    }

    /// Whether it shows by this policy, and knows no more than so many messages.
    pub(crate) fn fits(&self, policy: &Policy, messages: usize) -> bool {
        self.history.policy() == policy && self.fed <= messages
    }

    /// Take in what the record has beyond what is known.
    pub(crate) fn feed<'m>(&mut self, record: impl Iterator<Item = &'m Arc<Message>>) {
        for message in record.skip(self.fed) {
            self.history.push(self.next, Arc::clone(message));
            self.next += number_count(message);
            self.fed += 1;
        }
    }

    /// Show what somebody wants to be shown. True if an epoch was taken back for it, which is to be
    /// kept.
    pub(crate) fn heed(&mut self, wishes: &ViewSettings) -> bool {
        if self.heeded.as_ref() == Some(wishes) {
            return false;
        }
        self.heeded = Some(wishes.clone());
        let undone = self.history.apply_settings(wishes);
        if undone {
            self.writing = None;
            self.sent = 0;
        }
        undone
    }

    /// Decide about the next call. An epoch holds at once; it is told so that it can be stored.
    pub(crate) fn plan(&mut self, asked: PromptRequest<'_>) -> Result<Decided, BudgetUnreachable> {
        let bills = self.bills.of(asked.upstream, asked.model);
        let scale = Scale::per_mille(bills.per_mille());
        let call = Call {
            // What was billed covers what is sent beside the conversation.
            overhead: match bills.calls() {
                0 => scale.tokens(asked.overhead),
                _ => bills.overhead(),
            },
            scale,
            open: Vec::new(),
        };
        match self.history.plan(&call)? {
            Planned::Unchanged(report) => Ok(Decided {
                report,
                kept: None,
                asking: None,
            }),
            Planned::Epoch(epoch, report) => {
                let asking = self.history.narrative_request(&epoch);
                self.history.install(epoch);
                self.sent = 0;
                Ok(Decided {
                    report,
                    kept: self.kept().filter(|_| !planted("compact-epoch-unkept")),
                    asking,
                })
            }
        }
    }

    /// What is to be kept with the record.
    pub(crate) fn kept(&self) -> Option<RawJson> {
        StoredEpoch::of(&self.history, &self.bills).map(|kept| kept.to_json())
    }

    /// Wait for a summary.
    pub(crate) fn waits_for(&mut self, writing: Option<Arc<PendingSummary>>) {
        self.writing = writing;
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// What came of a summary, if it is written.
    pub(crate) fn look_for_summary(&mut self) -> Option<NarrativeOutcome> {
        let narrated = self.writing.as_ref()?.read(&mut self.history)?;
        self.writing = None;
        Some(narrated)
    }

    /// Learn what was billed for what was sent last.
    pub(crate) fn billed(&mut self, upstream: &str, model: &str, tokens: u64) {
        let units = self.history.units();
        self.bills.observe(upstream, model, units, tokens);
    }

    /// Bring what is sent up to date. What was sent before is its beginning, unless an epoch came
    /// in between.
    pub(crate) fn show(&mut self, between: Between<'_>) -> &View {
        let known = self.history.view();
        if self.sent == 0 || self.mixed == between.shown.is_empty() {
            let place = match between.shown {
                [] => known.len(),
                _ => known.len() - self.own(between.before).min(known.len()),
            };
            let messages = known[..place]
                .iter()
                .chain(between.shown)
                .chain(&known[place..]);
            self.view = View::new(messages.cloned());
            self.mixed = !between.shown.is_empty();
        } else {
            for message in &known[self.sent..] {
                self.view.push(Arc::clone(message));
            }
        }
        self.sent = known.len();
        &self.view
    }

    /// What is sent, as it was brought up to date last.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// How many messages at the end of the view the record has from a place on.
    fn own(&self, before: usize) -> usize {
        let cut = self.history.epoch().map_or(0, |epoch| epoch.cut_seq);
        let later = self.history.record().enumerate();
        later
            .filter(|(place, (seq, _))| *place >= before && *seq >= cut)
            .count()
    }

    /// The same, to go on with in another way.
    pub(super) fn fork(&self) -> Self {
        Self {
            history: self.history.clone(),
            view: self.view.fork(),
            bills: self.bills.clone(),
            writing: self.writing.clone(),
            heeded: self.heeded.clone(),
            ..*self
        }
    }

    /// The number of the epoch that is shown.
    pub(super) fn epoch_number(&self) -> Option<u64> {
        self.history.epoch().map(|epoch| epoch.no)
    }

    /// What the tool history holds beside messages.
    pub(super) fn history_bytes(&self) -> usize {
        self.history.heap_size()
    }

    /// How many messages of the record it knows.
    pub(crate) fn fed(&self) -> usize {
        self.fed
    }

    /// Whether a record begins with what it knows.
    pub(crate) fn begins(&self, record: &[Arc<Message>]) -> bool {
        let same = |(one, two): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(one, two) || one == two;
        let known = self.history.record().map(|(_, message)| message);
        self.fed <= record.len() && known.zip(record).all(same)
    }
}

/// A record with the numbers that digests name.
pub(crate) fn number(record: &[Arc<Message>]) -> ToolHistory {
    let policy = Policy::default();
    Compacted::new(&policy, Vec::new(), None, record.iter()).history
}
