//! The state of the thread, as a run changes it.

use throughline_store::State;

/// The state that the next node of the run gets, and what the store has.
pub(crate) struct ThreadState {
    /// The state as the run has changed it.
    pub(crate) current: State,
    /// The state of the node before, if it is known: a state that has not changed is not written.
    stored: Option<State>,
    /// Whether this run has published `stored`.
    is_published: bool,
}

impl ThreadState {
    pub(crate) fn new(current: State, stored: Option<State>) -> Self {
        Self {
            current,
            stored,
            is_published: false,
        }
    }

    /// The state, if the node before has another one.
    pub(crate) fn changed(&self) -> Option<State> {
        let changed = self.stored.as_ref() != Some(&self.current);
        changed.then(|| self.current.clone())
    }

    /// Whether models are shown less of the history than at the node before.
    pub(crate) fn changes_view(&self) -> bool {
        let none = State::default();
        !self.current.shows_as(self.stored.as_ref().unwrap_or(&none))
    }

    /// A node has the current state.
    pub(crate) fn mark_published(&mut self) {
        self.stored = Some(self.current.clone());
        self.is_published = true;
    }

    /// The state that this run published last.
    pub(crate) fn into_published(self) -> Option<State> {
        self.stored.filter(|_| self.is_published)
    }
}
