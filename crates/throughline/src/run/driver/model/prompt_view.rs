//! The messages that a model is given in one run, and the history for the next run.

use std::sync::Arc;

use throughline_compact::{
    Annotations, BudgetUnreachable, NarrativeOutcome, NarrativeRequest, Policy, Report,
    ViewSettings,
};
use throughline_model::json::RawJson;
use throughline_model::{Message, MessageId};

use crate::prompt::{Compacted, PendingSummary, PlannedCompaction, PromptRequest, RunOnly, View};

/// The messages that a model is given in a run.
///
/// Mostly these are the history and behind it the messages of the run, so that what was rendered for
/// earlier runs is used again. With a service that keeps the history, messages of context providers,
/// or a message store of the application, the view differs from the history, which is kept apart.
pub(crate) struct PromptView {
    /// The history before the run; none while `view` begins with it.
    base: Option<View>,
    view: View,
    /// How many messages of `view` stand before those of the run.
    start: usize,
    /// Whether the service keeps the history, so that only new messages are sent.
    increments: bool,
    /// The history in a message store of the application, with which `view` begins instead of ours.
    loaded: Option<Vec<Arc<Message>>>,
    /// Messages behind the history that are shown in this run only.
    shown: Vec<Arc<Message>>,
    /// The compacted form of the history and the messages of the run, once they are long.
    compacted: Option<Box<Compacted>>,
    /// Whether the model is given the compacted form.
    compacts: bool,
}

/// What compaction depends on before a model call.
pub(crate) struct CompactionInput<'a> {
    pub(crate) policy: &'a Policy,
    /// Pins and undone compactions of the thread.
    pub(crate) view_settings: &'a ViewSettings,
    /// The compaction that the state of the thread has.
    pub(crate) stored: Option<&'a RawJson>,
    pub(crate) tools: &'a dyn Fn() -> Vec<Annotations>,
    pub(crate) upstream: &'a str,
    pub(crate) model: &'a str,
    /// Units of instructions and tools.
    pub(crate) overhead: &'a dyn Fn() -> u64,
}

/// What compaction did before a model call.
pub(crate) struct CompactionResult {
    pub(crate) report: Report,
    /// The compaction for the state of the thread, if it changed.
    pub(crate) changed: Option<RawJson>,
    /// What became of the summary that was being written.
    pub(crate) narrated: Option<NarrativeOutcome>,
    /// The summary that a model is to write next.
    pub(crate) wanted: Option<NarrativeRequest>,
}

impl PromptView {
    /// The history, and behind it the messages of the run. `start` messages are history.
    pub(crate) fn whole(mut view: View, start: usize) -> Self {
        Self {
            compacted: view.take_compacted(),
            base: None,
            view,
            start,
            increments: false,
            loaded: None,
            shown: Vec::new(),
            compacts: false,
        }
    }

    /// The history, behind it messages that are shown in this run only, then the messages of the run.
    pub(crate) fn with(mut base: View, shown: &[Message]) -> Self {
        let compacted = base.take_compacted();
        let mut view = base.fork();
        let shown: Vec<Arc<Message>> = shown.iter().cloned().map(Arc::new).collect();
        for message in &shown {
            view.push(Arc::clone(message));
        }
        Self {
            start: view.messages().len(),
            view,
            base: Some(base),
            increments: false,
            loaded: None,
            shown,
            compacted,
            compacts: false,
        }
    }

    /// The history in a message store of the application, behind it messages that are shown in this
    /// run only, then the messages of the run. Our own record of the history is kept and not shown.
    pub(crate) fn external(base: View, view: View, shown: &[Message]) -> Self {
        let loaded = view.messages().to_vec();
        Self {
            base: Some(base),
            loaded: Some(loaded),
            ..Self::with(view, shown)
        }
    }

    /// Only the messages that the service does not have: those behind the last one that it has, and
    /// those that are shown in this run only.
    pub(crate) fn increments(base: View, last: Option<&MessageId>, shown: &[Message]) -> Self {
        let messages = base.messages();
        let last = messages
            .iter()
            .rposition(|one| last.is_some() && one.id.as_ref() == last);
        let missing = last.map_or(messages.len(), |last| last + 1);
        let mut view = View::new(messages[missing..].iter().cloned());
        for message in shown {
            view.push(message.clone());
        }
        Self {
            start: view.messages().len(),
            view,
            base: Some(base),
            increments: true,
            loaded: None,
            shown: Vec::new(),
            compacted: None,
            compacts: false,
        }
    }

    /// The messages for the next model call.
    pub(crate) fn view(&self) -> &View {
        match &self.compacted {
            Some(compacted) if self.compacts => compacted.view(),
            Some(_) | None => &self.view,
        }
    }

    /// Whether the model is given the history and the messages of the run, which can be compacted.
    pub(crate) fn is_whole(&self) -> bool {
        !self.increments
    }

    /// Whether the history is that of a message store of the application.
    pub(crate) fn is_external(&self) -> bool {
        self.loaded.is_some()
    }

    /// Compact the history and the messages of the run. `None` while they are too short for that.
    pub(crate) fn compact(
        &mut self,
        input: &CompactionInput<'_>,
    ) -> Result<Option<CompactionResult>, BudgetUnreachable> {
        let before = self.shown_history().len();
        let record = before + self.view.messages().len() - self.start;
        let known = self.compacted.take();
        let known = known.filter(|one| one.fits(input.policy, record));
        if known.is_none() && input.stored.is_none() && self.is_short(input.policy) {
            self.compacts = false;
            return Ok(None);
        }
        let history = match (&self.loaded, &self.base) {
            (Some(loaded), _) => &loaded[..],
            (None, Some(base)) => base.messages(),
            (None, None) => &self.view.messages()[..self.start],
        };
        let messages = history.iter().chain(&self.view.messages()[self.start..]);
        let mut compacted = match known {
            Some(mut known) => {
                known.feed(messages);
                known
            }
            None => Box::new(Compacted::new(
                input.policy,
                (input.tools)(),
                input.stored,
                messages,
            )),
        };
        let undone = compacted.apply_view_settings(input.view_settings);
        let narrated = compacted.look_for_summary();
        let run_only = RunOnly {
            shown: &self.shown,
            before,
        };
        let planned = compacted.plan(PromptRequest {
            upstream: input.upstream,
            model: input.model,
            overhead: (input.overhead)(),
            run_only,
        });
        if planned.is_ok() {
            compacted.show(run_only);
        }
        let has_summary = narrated.is_some_and(|narrated| narrated.refused.is_none());
        let changed = match has_summary || undone {
            true => compacted.kept(),
            false => None,
        };
        self.compacted = Some(compacted);
        self.compacts = true;
        let PlannedCompaction {
            report,
            kept,
            asking,
        } = planned?;
        Ok(Some(CompactionResult {
            report,
            changed: kept.or(changed),
            narrated,
            wanted: asking,
        }))
    }

    /// A summary is being written.
    pub(crate) fn await_summary(&mut self, pending: Arc<PendingSummary>) {
        if let Some(compacted) = &mut self.compacted {
            compacted.waits_for(Some(pending));
        }
    }

    pub(crate) fn is_writing_summary(&self) -> bool {
        self.compacted.as_ref().is_some_and(|one| one.is_writing())
    }

    /// Take a finished summary: what became of it, and the compaction for the state of the thread if
    /// it changed.
    pub(crate) fn take_summary(&mut self) -> Option<(NarrativeOutcome, Option<RawJson>)> {
        let compacted = self.compacted.as_mut()?;
        let narrated = compacted.look_for_summary()?;
        let is_accepted = narrated.refused.is_none();
        Some((narrated, is_accepted.then(|| compacted.kept()).flatten()))
    }

    /// The summary that is being written is not wanted any more.
    pub(crate) fn forget_summary(&mut self) {
        if let Some(compacted) = &mut self.compacted {
            compacted.waits_for(None);
        }
    }

    /// Whether the messages are too short for any trigger: a token seldom has less than two bytes.
    fn is_short(&self, policy: &Policy) -> bool {
        let least = policy.effective_budget().unwrap_or(policy.threshold);
        let bytes = self.view.wire_bytes() as u64;
        let few = policy.count.is_none_or(|count| {
            let messages = self.view.messages().len() as u64;
            messages <= u64::from(count)
        });
        few && bytes.saturating_mul(2) <= least
    }

    /// Compare the token estimate with what was billed for the last model call.
    pub(crate) fn billed(&mut self, upstream: &str, model: &str, tokens: u64) {
        if let Some(compacted) = self.compacted.as_mut().filter(|_| self.compacts) {
            compacted.billed(upstream, model, tokens);
        }
    }

    /// The history before the run.
    pub(crate) fn history(&self) -> &[Arc<Message>] {
        match &self.base {
            Some(base) => base.messages(),
            None => &self.view.messages()[..self.start],
        }
    }

    /// The history that the model is shown, in full or compacted: ours, or that of a message store
    /// of the application.
    pub(crate) fn shown_history(&self) -> &[Arc<Message>] {
        match &self.loaded {
            Some(loaded) => loaded,
            None => self.history(),
        }
    }

    /// The history that the model is shown, and the messages of the run. Digests have their numbers.
    pub(crate) fn record(&self) -> Vec<Arc<Message>> {
        let new = &self.view.messages()[self.start..];
        self.shown_history().iter().chain(new).cloned().collect()
    }

    pub(crate) fn is_incremental(&self) -> bool {
        self.increments
    }

    /// Show a message of the run from the next model call on.
    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.view.push(message);
    }

    /// The service keeps everything that was sent and answered: send only what comes after that.
    pub(crate) fn become_increments(&mut self) {
        if self.base.is_none() {
            let history = self.view.messages()[..self.start].iter().cloned();
            self.base = Some(View::new(history));
        }
        self.view = View::default();
        self.start = 0;
        self.increments = true;
        self.loaded = None;
        self.compacted = None;
        self.compacts = false;
    }

    /// The history after the run, with the messages that the run published.
    pub(crate) fn into_history(self, published: &[Arc<Message>]) -> View {
        let mut view = match self.base {
            None => {
                let mut view = self.view;
                view.rewind(self.start + published.len());
                view
            }
            Some(mut base) => {
                for message in published {
                    base.push(Arc::clone(message));
                }
                base
            }
        };
        // What an application's store has may be another history than ours.
        let compacted = self.compacted.filter(|_| self.loaded.is_none());
        view.keep_compacted(compacted);
        view
    }
}
