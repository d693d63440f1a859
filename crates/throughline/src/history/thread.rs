//! A thread in memory.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use throughline_model::Message;
use throughline_store::{Ids, SystemClock, ThreadId};
use tokio::sync::Mutex;

use super::{Mailbox, View};
use crate::agent::{Parked, Pending};

/// One conversation: its id, its history, and a run that waits, if there is one.
///
/// Runs take turns: while one works on the thread the next one waits for it. The history shows
/// none or all of a run.
///
/// ```
/// use throughline::{Agent, Demo, Thread};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new()).build()?;
/// let mut thread = Thread::new();
/// agent.run_on(&mut thread, "The tide is at four.").await?;
/// agent.run_on(&mut thread, "What did I say first?").await?;
/// assert_eq!(thread.history().len(), 4);
/// # Ok(())
/// # }
/// ```
pub struct Thread {
    id: ThreadId,
    shown: Arc<RwLock<Shown>>,
    held: Arc<Mutex<Held>>,
    mailbox: Mailbox,
}

/// What readers see.
#[derive(Default)]
struct Shown {
    history: Vec<Arc<Message>>,
    pending: Vec<Pending>,
}

/// What a run has while it works on the thread.
#[derive(Default)]
pub(crate) struct Held {
    /// The history, and behind it what an unsettled run said.
    pub(crate) view: View,
    /// How much of the view is history.
    pub(crate) published: usize,
    /// A run that is parked, or that failed and can be gone on with.
    pub(crate) unsettled: Option<Box<Parked>>,
    shown: Arc<RwLock<Shown>>,
}

impl Thread {
    /// A new thread.
    pub fn new() -> Self {
        Self::with_id(Ids::new(Arc::new(SystemClock)).thread())
    }

    /// A new thread with an id of the caller's.
    pub fn with_id(id: ThreadId) -> Self {
        Self::of(id, Vec::new())
    }

    /// A thread that starts with a history.
    pub fn of(id: ThreadId, history: Vec<Message>) -> Self {
        let history: Vec<Arc<Message>> = history.into_iter().map(Arc::new).collect();
        let shown = Arc::new(RwLock::new(Shown {
            history: history.clone(),
            pending: Vec::new(),
        }));
        let held = Held {
            published: history.len(),
            view: View::new(history),
            unsettled: None,
            shown: Arc::clone(&shown),
        };
        Self {
            id,
            shown,
            held: Arc::new(Mutex::new(held)),
            mailbox: Mailbox::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    /// Its history: what is published, oldest first.
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.read(|shown| shown.history.clone())
    }

    /// The calls that a parked run waits for.
    pub fn pending(&self) -> Vec<Pending> {
        self.read(|shown| shown.pending.clone())
    }

    /// Where messages can be left while a run works.
    pub fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    pub(crate) fn held(&self) -> Arc<Mutex<Held>> {
        Arc::clone(&self.held)
    }

    fn read<T>(&self, look: impl FnOnce(&Shown) -> T) -> T {
        look(&self.shown.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held {
    /// Everything in the view is history now.
    pub(crate) fn publish(&mut self) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        let fresh = &self.view.messages()[self.published..];
        shown.history.extend(fresh.iter().cloned());
        shown.pending.clear();
        self.published = self.view.messages().len();
        self.unsettled = None;
    }

    /// The run stays as it is, with the calls that it waits for; the history does not move.
    pub(crate) fn keep(&mut self, unsettled: Box<Parked>, pending: Vec<Pending>) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        shown.pending = pending;
        self.unsettled = Some(unsettled);
    }

    /// What an unsettled run said goes; the history stays.
    pub(crate) fn discard(&mut self) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        shown.pending.clear();
        self.unsettled = None;
        self.view.rewind(self.published);
    }
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (history, pending) = self.read(|shown| (shown.history.len(), shown.pending.len()));
        f.debug_struct("Thread")
            .field("id", &self.id)
            .field("history", &history)
            .field("pending", &pending)
            .finish()
    }
}
