use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_model::Message;
use throughline_model::json::RawJson;
use throughline_store::{DamageSite, Error, QueueNo, Result};

use super::handle::Shared;

/// The queue of messages for a thread. A run's next model call delivers them, each once and in
/// order. A message that no run took waits for the next run, also in another process.
///
/// ```
/// use throughline::model::Message;
/// use throughline::{Agent, Demo};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = Agent::builder(Demo::new()).build()?;
/// let thread = agent.new_thread();
/// thread.mailbox().leave(Message::user("The tide is at four.")).await?;
/// let outcome = agent.run_on(&thread, "What did I say first?").await?;
/// assert!(outcome.text().contains("The tide is at four."));
/// assert!(thread.mailbox().waiting().await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Mailbox(pub(super) Arc<Shared>);

/// Counts the messages that were queued through this handle, so that a run reads the queue only
/// when there are any.
#[derive(Default)]
pub(super) struct LeftCounter(AtomicU64);

impl LeftCounter {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Mailbox {
    pub(crate) fn on(thread: &Arc<Shared>) -> Self {
        Self(Arc::clone(thread))
    }

    /// Queues a message. Returns when the message is stored.
    pub async fn leave(&self, message: impl Into<Message>) -> Result<()> {
        let message: Message = message.into();
        let body = RawJson::new(&message.to_json()).map_err(|error| {
            let why = error.to_string();
            Error::Invalid {
                what: "message",
                why,
            }
        })?;
        self.0.create().await?;
        let home = &self.0.home;
        home.store.enqueue(&home.scope, &self.0.id, &body).await?;
        self.0.left.0.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// The queued messages, oldest first.
    pub async fn waiting(&self) -> Result<Vec<Message>> {
        let queued = self.0.queued().await?;
        Ok(queued.into_iter().map(|(_, message)| message).collect())
    }
}

impl Shared {
    /// The queued messages, with the numbers by which they are removed.
    pub(crate) async fn queued(&self) -> Result<Vec<(QueueNo, Message)>> {
        if self.is_new() {
            return Ok(Vec::new());
        }
        let queue = self.home.store.queue(&self.home.scope, &self.id).await?;
        let read = |queued: throughline_store::Queued| {
            let message = Message::from_json(queued.body.get()).map_err(|error| {
                let message = DamageSite::from(format!("queued message {}", queued.no));
                Error::corrupt(message.in_thread(&self.id), error.to_string())
            })?;
            Ok((queued.no, message))
        };
        queue.into_iter().map(read).collect()
    }

    /// Whether the store belongs to this handle alone.
    pub(crate) fn is_private(&self) -> bool {
        self.private
    }

    /// How many messages were queued through this handle.
    pub(crate) fn left(&self) -> u64 {
        self.left.count()
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mailbox({})", self.0.id)
    }
}
