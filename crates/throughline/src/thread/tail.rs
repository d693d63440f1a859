//! Following a thread: its messages as they are committed.

use throughline_store::{At, Cursor, Increment, Position, Result, ThreadId};

use super::scoped_store::ScopedStore;
use super::threads::Threads;

/// How many messages an increment has at most, unless the caller says otherwise.
const PAGE: usize = 100;

/// Where a tail starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailStart {
    /// With the first message of the thread.
    First,
    /// With the first message that is committed from now on.
    Now,
    /// After a cursor that an earlier increment ended with.
    After(Cursor),
}

/// Follows a thread at its head: messages that are committed there, by any process, in their order.
/// See [`Threads::tail`].
pub struct Tail {
    home: ScopedStore,
    thread: ThreadId,
    start: TailStart,
    page: usize,
}

impl Threads {
    /// Follows a thread from a point on. Nothing is read before [`Tail::next`].
    ///
    /// ```
    /// use throughline::store::Store;
    /// use throughline::thread::TailStart;
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let thread = agent.new_thread();
    /// agent.run_on(&thread, "The tide is at four.").await?;
    ///
    /// let mut tail = threads.tail(thread.id(), TailStart::First);
    /// let first = tail.next().await?;
    /// assert_eq!(first.entries.len(), 2);
    /// // Waits for the next turn, here or in another process.
    /// let (next, run) = tokio::join!(tail.next(), agent.run_on(&thread, "And when is it low?"));
    /// run?;
    /// assert_eq!(next?.entries[0].first, 3);
    ///
    /// // A consumer that stopped goes on after the last cursor that it has.
    /// let mut again = threads.tail(thread.id(), TailStart::After(first.next));
    /// assert_eq!(again.next().await?.entries.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tail(&self, thread: &ThreadId, start: TailStart) -> Tail {
        Tail {
            home: self.home().clone(),
            thread: thread.clone(),
            start,
            page: PAGE,
        }
    }
}

impl Tail {
    /// Sets how many messages an increment has at most, at least one. With 1 each message has the cursor
    /// behind it.
    #[must_use]
    pub fn with_page(mut self, messages: usize) -> Self {
        self.page = messages.max(1);
        self
    }

    /// Where the tail goes on.
    pub fn start(&self) -> TailStart {
        self.start
    }

    /// The next messages, at least one; waits until there are any. Dropping the future loses nothing:
    /// the next call returns them.
    ///
    /// The store tells this process of its own writes and looks for those of others; see
    /// [`Engine::changed`](throughline_store::Engine::changed). Fails with
    /// [`NotFound`](throughline_store::Error::NotFound) once the thread is deleted, and with
    /// [`CursorMoved`](throughline_store::Error::CursorMoved) if it was made anew under its id.
    pub async fn next(&mut self) -> Result<Increment> {
        let ScopedStore { store, scope, .. } = &self.home;
        loop {
            // The version is read before the messages, so that what comes between is not missed.
            let at = At::Thread(self.thread.clone());
            let opened = store.open(scope, &at, 0).await?;
            let version = opened.thread.version;
            let after = match self.start {
                TailStart::First => None,
                TailStart::After(cursor) => Some(cursor),
                TailStart::Now => {
                    let last: Position = opened.thread.head.map_or(0, |head| head.last);
                    let cursor = store.cursor(scope, &self.thread, last).await?;
                    self.start = TailStart::After(cursor);
                    Some(cursor)
                }
            };
            let found = store
                .increment(scope, &self.thread, after.as_ref(), self.page)
                .await?;
            if !found.entries.is_empty() {
                self.start = TailStart::After(found.next);
                return Ok(found);
            }
            store.changed(scope, &self.thread, version).await?;
        }
    }
}
