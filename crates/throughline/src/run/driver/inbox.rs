//! Messages that are queued on the thread while a run works.

use std::collections::{HashSet, VecDeque};

use throughline_model::Message;
use throughline_store::QueueNo;

use crate::run::machine::Turn;
use crate::thread::{Recorder, Shared};

/// Hands queued messages to the turn, each once, and notes which of them were delivered.
pub(crate) struct Inbox {
    /// Numbers of the messages that the turn has not delivered, in its order; none for input of the
    /// run itself.
    undelivered: VecDeque<Option<QueueNo>>,
    /// Numbers of the messages that the run has taken.
    taken: HashSet<QueueNo>,
    /// Whether messages of the queue may be among those that the run began with.
    may_begin_with_queued: bool,
    /// How many messages had been queued through this handle when the queue was last read.
    seen: u64,
}

/// Messages that the turn delivers with its next model call.
pub(crate) struct LaterMessages {
    /// Messages from the queue of the thread.
    pub(crate) queued: Vec<(QueueNo, Message)>,
    /// Input of the run itself, which follows them.
    pub(crate) input: Vec<Message>,
}

impl Inbox {
    /// `seen` messages had been queued through the handle when the thread was read.
    pub(crate) fn new(seen: u64, taken: impl IntoIterator<Item = QueueNo>) -> Self {
        let taken: HashSet<QueueNo> = taken.into_iter().collect();
        Self {
            undelivered: VecDeque::new(),
            may_begin_with_queued: !taken.is_empty(),
            taken,
            seen,
        }
    }

    /// The inbox of a run that another process began: its journal does not say which of its messages
    /// came from the queue.
    pub(crate) fn resumed(seen: u64) -> Self {
        Self {
            may_begin_with_queued: true,
            ..Self::new(seen, [])
        }
    }

    /// Whether messages of the queue may be among those that the run began with. They are in the
    /// queue no more.
    pub(crate) fn may_begin_with_queued(&self) -> bool {
        self.may_begin_with_queued
    }

    /// Whether messages were queued through this handle since this was last asked.
    pub(crate) fn has_new(&mut self, thread: &Shared) -> bool {
        let queued = thread.left();
        std::mem::replace(&mut self.seen, queued) != queued
    }

    /// Have the turn deliver a queued message, unless it has it already.
    pub(crate) fn inject_queued(&mut self, turn: &mut Turn, no: QueueNo, message: Message) {
        if self.taken.insert(no) {
            self.undelivered.push_back(Some(no));
            turn.inject(message);
        }
    }

    /// Have the turn deliver queued messages, then input of the run itself.
    pub(crate) fn inject_later(&mut self, turn: &mut Turn, later: LaterMessages) {
        for (no, message) in later.queued {
            self.inject_queued(turn, no, message);
        }
        for message in later.input {
            self.undelivered.push_back(None);
            turn.inject(message);
        }
    }

    /// Note for the journal which queued messages the turn has delivered. It delivers the oldest
    /// first.
    pub(crate) fn note_delivered(&mut self, turn: &Turn, recorder: &mut Recorder) {
        while self.undelivered.len() > turn.injected() {
            if let Some(Some(no)) = self.undelivered.pop_front() {
                recorder.deliver(no);
            }
        }
    }
}
