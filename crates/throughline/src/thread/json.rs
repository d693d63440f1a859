//! Threads as JSON.

use throughline_model::json::{self, ArrayWriter, ObjectWriter};
use throughline_model::stored::{Fields, StoredError};
use throughline_model::{Message, Path};
use throughline_store::{At, NewThread, RunId, RunState, State, ThreadId};

use super::handle::{Seed, Thread};
use super::scoped_store::ScopedStore;
use super::threads::Threads;

/// The format and version of a thread's JSON.
const FORMAT: &str = "throughline.thread/1";

/// Why a thread cannot be written as JSON, or read from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadJsonError {
    /// A run on the thread is not settled, and would be lost.
    #[error("{run} is {}; settle it before the thread is written", state.as_str())]
    Unsettled {
        /// The run.
        run: RunId,
        /// The state of the run.
        state: RunState,
    },
    /// The JSON is not a thread.
    #[error("this is no thread in JSON")]
    Malformed(#[source] StoredError),
    /// A later version wrote the JSON.
    #[error("the thread was written as {found:?}, this program reads {FORMAT:?}; use a newer one")]
    Newer {
        /// The format that was found.
        found: String,
    },
    /// The thread is in a store: open it there.
    #[error("thread {id} is one of a store; open it with Threads::from_json")]
    InStore {
        /// The id of the thread.
        id: ThreadId,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] throughline_store::Error),
}

/// A thread's JSON, parsed.
enum Read {
    InStore(ThreadId),
    Whole(Box<Seed>, Vec<Message>),
}

impl Thread {
    /// The thread as JSON. A thread of a shared store is its id and a format version. A thread with
    /// a store of its own has everything: history, state, settings and queued messages. Tool
    /// results that were not sent to a model yet become history in it.
    ///
    /// Fails while a run of a thread with its own store is parked or unfinished, because the JSON
    /// has no journal.
    ///
    /// ```
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// agent.run_on(&thread, "The tide is at four.").await?;
    ///
    /// let text = thread.to_json().await?;
    /// let again = Thread::from_json(&text).await?;
    /// assert_eq!(again.history(), thread.history());
    /// assert_eq!(again.to_json().await?, text);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn to_json(&self) -> Result<String, ThreadJsonError> {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.str("format", FORMAT);
        object.str("id", self.id().as_str());
        if self.shared.private {
            self.write_whole(&mut object).await?;
        }
        object.end();
        Ok(out)
    }

    async fn write_whole(&self, object: &mut ObjectWriter<'_>) -> Result<(), ThreadJsonError> {
        let mut unsent = Vec::new();
        if !self.shared.is_new() {
            let ScopedStore { store, scope, .. } = &self.shared.home;
            let at = At::Thread(self.id().clone());
            let opened = store.open(scope, &at, 0).await?;
            if let Some(run) = opened.unsettled {
                return Err(ThreadJsonError::Unsettled {
                    run: run.id,
                    state: run.state,
                });
            }
            unsent = super::handle::messages(opened.unsent);
        }
        let mut messages = ArrayWriter::new(object.key("messages"));
        // The JSON has no journal for unsent results: they become history.
        for message in self.history().iter().chain(&unsent) {
            message.write_json(messages.slot());
        }
        messages.end();
        let state = self.state();
        if !state.is_empty() {
            object.raw("state", &state.to_json());
        }
        if let Some(settings) = self.shared.settings().to_json() {
            object.raw("settings", settings.get());
        }
        let queued = self.mailbox().waiting().await?;
        if !queued.is_empty() {
            let mut list = ArrayWriter::new(object.key("queued"));
            for message in queued {
                message.write_json(list.slot());
            }
            list.end();
        }
        Ok(())
    }

    /// Reads a thread with a store of its own from JSON. JSON that cannot be read completely is
    /// refused.
    ///
    /// ```
    /// use throughline::thread::ThreadJsonError;
    /// use throughline::{Agent, Demo, Thread};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = r#"{"format":"throughline.thread/1","id":"ticket-4711","messages":[
    ///     {"role":"user","contents":[{"kind":"text","text":"The tide is at four."}]}]}"#;
    /// let thread = Thread::from_json(text).await?;
    /// assert_eq!(thread.id().as_str(), "ticket-4711");
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// agent.run_on(&thread, "What did I say first?").await?;
    ///
    /// let newer = r#"{"format":"throughline.thread/2","id":"ticket-4711"}"#;
    /// let refused = Thread::from_json(newer).await;
    /// assert!(matches!(refused, Err(ThreadJsonError::Newer { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn from_json(text: &str) -> Result<Self, ThreadJsonError> {
        match read(text)? {
            Read::InStore(id) => Err(ThreadJsonError::InStore { id }),
            Read::Whole(seed, queued) => {
                let thread = Self::seeded(*seed);
                for message in queued {
                    thread.mailbox().leave(message).await?;
                }
                Ok(thread)
            }
        }
    }
}

impl Threads {
    /// Reads a thread from JSON: opens a thread of this store; a thread with all its contents is
    /// created here, unless its id is taken.
    ///
    /// ```
    /// use throughline::store::Store;
    /// use throughline::{Agent, Demo, Thread, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(Demo::new()).build()?;
    /// let thread = Thread::new();
    /// agent.run_on(&thread, "The tide is at four.").await?;
    ///
    /// // In a store, its JSON is just its id.
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let stored = threads.from_json(&thread.to_json().await?).await?;
    /// let name = stored.to_json().await?;
    /// assert_eq!(name, format!(r#"{{"format":"throughline.thread/1","id":"{}"}}"#, thread.id()));
    /// assert_eq!(threads.from_json(&name).await?.history(), thread.history());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn from_json(&self, text: &str) -> Result<Thread, ThreadJsonError> {
        match read(text)? {
            Read::InStore(id) => Ok(self.open(id).await?),
            Read::Whole(seed, queued) => {
                let thread = Thread::made(self.home().clone(), false, *seed);
                thread.shared.create().await?;
                for message in queued {
                    thread.mailbox().leave(message).await?;
                }
                Ok(thread)
            }
        }
    }
}

fn read(text: &str) -> Result<Read, ThreadJsonError> {
    let malformed = ThreadJsonError::Malformed;
    let value = json::parse(text).map_err(|error| malformed(error.into()))?;
    let root = Path::Root;
    let mut fields = Fields::of(&value, &root).map_err(malformed)?;
    let format = fields.required_str("format").map_err(malformed)?;
    if format != FORMAT {
        let version = format.strip_prefix("throughline.thread/");
        let version = version.and_then(|version| version.parse::<u64>().ok());
        return Err(match version {
            Some(2..) => ThreadJsonError::Newer { found: format },
            _ => malformed(fields.missing("format", FORMAT)),
        });
    }
    let id = fields.required_str("id").map_err(malformed)?;
    let id = ThreadId::new(&id).map_err(|_| malformed(fields.missing("id", "a thread's id")))?;
    if fields.get("messages").is_none() {
        return Ok(Read::InStore(id));
    }
    let messages = fields.list("messages", Message::from_value);
    let queued = fields.list("queued", Message::from_value);
    let state = match fields.raw("state") {
        Some(state) => State::from_json(state.get()).map_err(malformed)?,
        None => State::default(),
    };
    let mut thread = NewThread::new(id);
    thread.settings = fields.raw_object("settings").map_err(malformed)?;
    super::owner::ThreadSettings::read(thread.settings.as_ref()).map_err(malformed)?;
    let seed = Seed {
        leasing: throughline_store::Leasing::Thread,
        thread,
        messages: messages.map_err(malformed)?,
        state,
    };
    Ok(Read::Whole(Box::new(seed), queued.map_err(malformed)?))
}
