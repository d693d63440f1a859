use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use throughline_model::Message;

/// Where messages for a thread are left while a run works on it. The run's next model call brings
/// them to the model, each once, in the order in which they were left; what no run took waits for
/// the next one.
#[derive(Clone, Default)]
pub struct Mailbox(Arc<Mutex<VecDeque<Message>>>);

impl Mailbox {
    /// Leave a message.
    pub fn leave(&self, message: impl Into<Message>) {
        self.queue().push_back(message.into());
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    pub(crate) fn take(&self) -> Vec<Message> {
        self.queue().drain(..).collect()
    }

    /// Put back what was taken and not delivered, in front of what came since.
    pub(crate) fn put_back(&self, messages: Vec<Message>) {
        let mut queue = self.queue();
        for message in messages.into_iter().rev() {
            queue.push_front(message);
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Message>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mailbox({})", self.len())
    }
}
