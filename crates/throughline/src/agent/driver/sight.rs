//! What a model is given in one run, and what the next run finds.

use std::sync::Arc;

use throughline_model::{Message, MessageId};

use crate::history::View;

/// What a model is given in a run.
///
/// Mostly that is the history and behind it what the run said, so that what was rendered for earlier
/// runs holds. Where it is something else (a service that keeps the conversation, messages of
/// context providers, a message store of the application), the history stands apart.
pub(super) struct Sight {
    /// The history before the run; none while `view` begins with it.
    base: Option<View>,
    view: View,
    /// How much of `view` was there before the run said anything.
    start: usize,
    /// Whether the service has what it said and was sent.
    increments: bool,
}

impl Sight {
    /// The history, and behind it what the run says. `start` messages are history.
    pub(super) fn whole(view: View, start: usize) -> Self {
        Self {
            base: None,
            view,
            start,
            increments: false,
        }
    }

    /// The history, behind it what is shown in this run only, and then what the run says.
    pub(super) fn with(base: View, shown: &[Message]) -> Self {
        let mut view = base.fork();
        for message in shown {
            view.push(message.clone());
        }
        Self {
            start: view.messages().len(),
            view,
            base: Some(base),
            increments: false,
        }
    }

    /// What the model is given comes from elsewhere, and behind it what is shown in this run only;
    /// the history is only kept.
    pub(super) fn apart(base: View, mut view: View, shown: &[Message]) -> Self {
        for message in shown {
            view.push(message.clone());
        }
        Self {
            start: view.messages().len(),
            view,
            base: Some(base),
            increments: false,
        }
    }

    /// Only what the service does not have: what stands behind the last message that it has, and
    /// what is shown in this run only.
    pub(super) fn increments(base: View, has: Option<&MessageId>, shown: &[Message]) -> Self {
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
        }
    }

    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// The history before the run.
    pub(super) fn history(&self) -> &[Arc<Message>] {
        match &self.base {
            Some(base) => base.messages(),
            None => &self.view.messages()[..self.start],
        }
    }

    pub(super) fn is_incremental(&self) -> bool {
        self.increments
    }

    /// Something was said that the model has not said itself.
    pub(super) fn push(&mut self, message: Arc<Message>) {
        self.view.push(message);
    }

    /// The service has everything that was sent, and what it said: from now on only what comes
    /// after that.
    pub(super) fn become_increments(&mut self) {
        if self.base.is_none() {
            let history = self.view.messages()[..self.start].iter().cloned();
            self.base = Some(View::new(history));
        }
        self.view = View::default();
        self.start = 0;
        self.increments = true;
    }

    /// The history after the run, of which the first `published` messages of `said` are part.
    pub(super) fn leave(self, said: &[Arc<Message>], published: usize) -> View {
        match self.base {
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
        }
    }
}
