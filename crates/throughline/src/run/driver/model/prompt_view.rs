//! What a model is given in one run, and what the next run finds.

use std::sync::Arc;

use throughline_compact::{
    Annotations, BudgetUnreachable, NarrativeOutcome, NarrativeRequest, Policy, Report,
    ViewSettings,
};
use throughline_model::json::RawJson;
use throughline_model::{Message, MessageId};

use crate::prompt::{Between, Compacted, Decided, PendingSummary, PromptRequest, View};

/// What a model is given in a run.
///
/// Mostly that is the history and behind it what the run said, so that what was rendered for earlier
/// runs holds. Where it is something else (a service that keeps the conversation, messages of
/// context providers, a message store of the application), the history stands apart.
pub(in crate::run::driver) struct PromptView {
    /// The history before the run; none while `view` begins with it.
    base: Option<View>,
    view: View,
    /// How much of `view` was there before the run said anything.
    start: usize,
    /// Whether the service has what it said and was sent.
    increments: bool,
    /// Whether `view` begins with something else than the history.
    apart: bool,
    /// What is shown in this run only, behind the history.
    shown: Vec<Arc<Message>>,
    /// How the history and what the run said are shown once they are long.
    compacted: Option<Box<Compacted>>,
    /// Whether that is what the model is given.
    compacts: bool,
}

/// What is known when a view is about to be sent.
pub(in crate::run::driver) struct Sending<'a> {
    pub(in crate::run::driver) policy: &'a Policy,
    /// What somebody wants to be shown.
    pub(in crate::run::driver) wishes: &'a ViewSettings,
    /// What holds at the end of the history.
    pub(in crate::run::driver) kept: Option<&'a RawJson>,
    pub(in crate::run::driver) tools: &'a dyn Fn() -> Vec<Annotations>,
    pub(in crate::run::driver) upstream: &'a str,
    pub(in crate::run::driver) model: &'a str,
    /// Units of instructions and tools.
    pub(in crate::run::driver) overhead: &'a dyn Fn() -> u64,
}

/// What became of a view before it was sent.
pub(in crate::run::driver) struct Sent {
    pub(in crate::run::driver) report: Report,
    /// What is to hold from now on, if that changed.
    pub(in crate::run::driver) kept: Option<RawJson>,
    /// What came of a summary.
    pub(in crate::run::driver) narrated: Option<NarrativeOutcome>,
    /// What a model is to be asked for another.
    pub(in crate::run::driver) asking: Option<NarrativeRequest>,
}

impl PromptView {
    /// The history, and behind it what the run says. `start` messages are history.
    pub(in crate::run::driver) fn whole(mut view: View, start: usize) -> Self {
        Self {
            compacted: view.take_compacted(),
            base: None,
            view,
            start,
            increments: false,
            apart: false,
            shown: Vec::new(),
            compacts: false,
        }
    }

    /// The history, behind it what is shown in this run only, and then what the run says.
    pub(in crate::run::driver) fn with(mut base: View, shown: &[Message]) -> Self {
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
            apart: false,
            shown,
            compacted,
            compacts: false,
        }
    }

    /// What the model is given comes from elsewhere, and behind it what is shown in this run only;
    /// the history is only kept.
    pub(in crate::run::driver) fn apart(base: View, mut view: View, shown: &[Message]) -> Self {
        for message in shown {
            view.push(message.clone());
        }
        Self {
            start: view.messages().len(),
            view,
            base: Some(base),
            increments: false,
            apart: true,
            shown: Vec::new(),
            compacted: None,
            compacts: false,
        }
    }

    /// Only what the service does not have: what stands behind the last message that it has, and
    /// what is shown in this run only.
    pub(in crate::run::driver) fn increments(
        base: View,
        has: Option<&MessageId>,
        shown: &[Message],
    ) -> Self {
        let messages = base.messages();
        let last = messages
            .iter()
            .rposition(|one| has.is_some() && one.id.as_ref() == has);
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
            apart: true,
            shown: Vec::new(),
            compacted: None,
            compacts: false,
        }
    }

    /// What the model is given.
    pub(in crate::run::driver) fn view(&self) -> &View {
        match &self.compacted {
            Some(compacted) if self.compacts => compacted.view(),
            Some(_) | None => &self.view,
        }
    }

    /// Whether what the model is given is the history and what the run said, so that it can be
    /// compacted here.
    pub(in crate::run::driver) fn is_ours(&self) -> bool {
        !self.apart && !self.increments
    }

    /// Decide how the history and what the run said are sent. `None` while that is too little to
    /// look at.
    pub(in crate::run::driver) fn compact(
        &mut self,
        sending: &Sending<'_>,
    ) -> Result<Option<Sent>, BudgetUnreachable> {
        let before = self.history().len();
        let record = before + self.view.messages().len() - self.start;
        let known = self.compacted.take();
        let known = known.filter(|one| one.fits(sending.policy, record));
        if known.is_none() && sending.kept.is_none() && self.is_little(sending.policy) {
            self.compacts = false;
            return Ok(None);
        }
        let history = match &self.base {
            Some(base) => base.messages(),
            None => &self.view.messages()[..self.start],
        };
        let messages = history.iter().chain(&self.view.messages()[self.start..]);
        let mut compacted = match known {
            Some(mut known) => {
                known.feed(messages);
                known
            }
            None => Box::new(Compacted::new(
                sending.policy,
                (sending.tools)(),
                sending.kept,
                messages,
            )),
        };
        let undone = compacted.heed(sending.wishes);
        let narrated = compacted.look_for_summary();
        let planned = compacted.plan(PromptRequest {
            upstream: sending.upstream,
            model: sending.model,
            overhead: (sending.overhead)(),
        });
        if planned.is_ok() {
            compacted.show(Between {
                shown: &self.shown,
                before,
            });
        }
        let told = narrated.is_some_and(|narrated| narrated.refused.is_none());
        let changed = match told || undone {
            true => compacted.kept(),
            false => None,
        };
        self.compacted = Some(compacted);
        self.compacts = true;
        let Decided {
            report,
            kept,
            asking,
        } = planned?;
        Ok(Some(Sent {
            report,
            kept: kept.or(changed),
            narrated,
            asking,
        }))
    }

    /// Wait for a summary.
    pub(in crate::run::driver) fn waits_for(&mut self, writing: Arc<PendingSummary>) {
        if let Some(compacted) = &mut self.compacted {
            compacted.waits_for(Some(writing));
        }
    }

    pub(in crate::run::driver) fn is_writing(&self) -> bool {
        self.compacted.as_ref().is_some_and(|one| one.is_writing())
    }

    /// What came of a summary, and what is to hold from now on if that changed.
    pub(in crate::run::driver) fn look_for_summary(
        &mut self,
    ) -> Option<(NarrativeOutcome, Option<RawJson>)> {
        let compacted = self.compacted.as_mut()?;
        let narrated = compacted.look_for_summary()?;
        let told = narrated.refused.is_none();
        Some((narrated, told.then(|| compacted.kept()).flatten()))
    }

    /// Nobody waits for a summary any more.
    pub(in crate::run::driver) fn forget_summary(&mut self) {
        if let Some(compacted) = &mut self.compacted {
            compacted.waits_for(None);
        }
    }

    /// Whether no trigger can fire, whatever the messages are: a token is seldom less than two
    /// bytes, and never for long.
    fn is_little(&self, policy: &Policy) -> bool {
        let least = policy.effective_budget().unwrap_or(policy.threshold);
        let bytes = self.view.wire_bytes() as u64;
        let few = policy.count.is_none_or(|count| {
            let messages = self.view.messages().len() as u64;
            messages <= u64::from(count)
        });
        few && bytes.saturating_mul(2) <= least
    }

    /// Learn what was billed for what was sent last.
    pub(in crate::run::driver) fn billed(&mut self, upstream: &str, model: &str, tokens: u64) {
        if let Some(compacted) = self.compacted.as_mut().filter(|_| self.compacts) {
            compacted.billed(upstream, model, tokens);
        }
    }

    /// The history before the run.
    pub(in crate::run::driver) fn history(&self) -> &[Arc<Message>] {
        match &self.base {
            Some(base) => base.messages(),
            None => &self.view.messages()[..self.start],
        }
    }

    /// The history and what the run said.
    pub(in crate::run::driver) fn record(&self) -> Vec<Arc<Message>> {
        let said = &self.view.messages()[self.start..];
        self.history().iter().chain(said).cloned().collect()
    }

    pub(in crate::run::driver) fn is_incremental(&self) -> bool {
        self.increments
    }

    /// Something was said that the model has not said itself.
    pub(in crate::run::driver) fn push(&mut self, message: Arc<Message>) {
        self.view.push(message);
    }

    /// The service has everything that was sent, and what it said: from now on only what comes
    /// after that.
    pub(in crate::run::driver) fn become_increments(&mut self) {
        if self.base.is_none() {
            let history = self.view.messages()[..self.start].iter().cloned();
            self.base = Some(View::new(history));
        }
        self.view = View::default();
        self.start = 0;
        self.increments = true;
        self.compacted = None;
        self.compacts = false;
    }

    /// The history after the run, of which the first `published` messages of `said` are part.
    pub(in crate::run::driver) fn leave(self, said: &[Arc<Message>], published: usize) -> View {
        let mut view = match self.base {
            None => {
                let mut view = self.view;
                view.rewind(self.start + published);
                view
            }
            Some(mut base) => {
                for message in &said[..published] {
                    base.push(Arc::clone(message));
                }
                base
            }
        };
        view.keep_compacted(self.compacted);
        view
    }
}
