//! Removing a message from the record.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use throughline_model::{Body, Content, MessageId};
use throughline_store::{
    At, CallState, Entry, Error, ItemRef, Millis, NodeRef, Position, Result, Run, RunFilter,
    RunState, Span, ThreadId,
};

use super::scoped_store::ScopedStore;
use super::threads::Threads;
use super::vendor_copies::VendorCopy;

/// How many messages are read at a time.
const PAGE: usize = 256;

/// Names a message of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageName {
    /// By the position at which it starts.
    Position(Position),
    /// By its id.
    Id(MessageId),
}

/// A message that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The thread in which it was found.
    pub thread: ThreadId,
    /// The position at which the message starts; it stays where it is.
    pub position: Position,
    /// Its items in the store.
    pub items: Vec<ItemRef>,
    /// Who removed it first.
    pub by: String,
    /// When that was.
    pub at: Millis,
    /// What vendors have of the thread; their copies may still hold the message.
    pub vendor_copies: Vec<VendorCopy>,
}

impl FromStr for MessageName {
    type Err = Infallible;

    /// A number, with or without `#`, is a position; everything else is an id.
    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        let number = text.strip_prefix('#').unwrap_or(text);
        Ok(match (number.parse(), MessageId::new(text)) {
            (Ok(position), _) => Self::Position(position),
            (Err(_), Ok(id)) => Self::Id(id),
            // No message starts at 0: it names none.
            (Err(_), Err(_)) => Self::Position(0),
        })
    }
}

impl fmt::Display for MessageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => write!(f, "at position {position}"),
            Self::Id(id) => f.write_str(id.as_str()),
        }
    }
}

impl Threads {
    /// Removes what a message says, from the record and from everything that the store derived from it. Who
    /// did it and when stays, and so do the digest, the position and a mark in place of each content, so
    /// that calls keep their results and models see that something was there. Branches and forks that share
    /// the message show the same. Doing it again changes nothing.
    ///
    /// The message is looked for on the branch that ends in `at`, and by an id of ours also on the other
    /// branches of the thread. It is [`Busy`](Error::Busy) while a run of the thread is at work, because that
    /// run has read the message, and [`WrongState`](Error::WrongState) if the run that said the message is
    /// not settled, or if the message makes calls and some of that run are still to be run here. Copies of vendors
    /// are listed and not changed. Handles that were opened before keep what they have read until they are
    /// refreshed or run.
    ///
    /// ```
    /// use throughline::store::Store;
    /// use throughline::thread::MessageName;
    /// use throughline::{Agent, Demo, Threads};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let threads = Threads::of(&Store::open("memory:").await?);
    /// let agent = Agent::builder(Demo::new()).threads(&threads).build()?;
    /// let thread = agent.new_thread();
    /// agent.run_on(&thread, "The key is under the mat.").await?;
    ///
    /// let message = MessageName::Position(1);
    /// let redacted = threads.redact(thread.id().clone(), &message, "ada").await?;
    /// assert_eq!((redacted.items.len(), redacted.by.as_str()), (1, "ada"));
    /// thread.refresh().await?;
    /// assert_eq!(thread.history()[0].text(), "[redacted]");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn redact(
        &self,
        at: impl Into<At>,
        message: &MessageName,
        by: &str,
    ) -> Result<Redacted> {
        let ScopedStore { store, scope, .. } = self.home();
        let at = at.into();
        let thread = store.open(scope, &at, 0).await?.thread.id;
        let (at, entry) = self.find_message(&thread, at, message).await?;
        self.check_settled_for(&thread, &entry).await?;
        for item in entry.item_refs() {
            let send = || store.redact(scope, item, by);
            self.home().retry_until_known(send).await?;
        }
        if let Some(history_cache) = &self.home().history_cache {
            history_cache.clear();
        }
        let missing = || not_found(message);
        let span = Span::After(entry.first.saturating_sub(1));
        let page = store.read(scope, &at, span, 1).await?;
        let redaction = page
            .entries
            .first()
            .and_then(|entry| entry.redacted.clone());
        let redaction = redaction.ok_or_else(missing)?;
        Ok(Redacted {
            vendor_copies: self.vendor_copies(&thread).await?,
            thread,
            position: entry.first,
            items: entry.item_refs().collect(),
            by: redaction.by,
            at: redaction.at,
        })
    }

    /// The branch on which a message is, and the message.
    async fn find_message(
        &self,
        thread: &ThreadId,
        at: At,
        message: &MessageName,
    ) -> Result<(At, Entry)> {
        let id = match message {
            MessageName::Position(position) => {
                let found = self.message_at(&at, *position).await?;
                return Ok((at, found.ok_or_else(|| not_found(message))?));
            }
            MessageName::Id(id) => id,
        };
        let item = ItemRef::of_message(id);
        let is_it = |entry: &Entry| entry.message.id.as_ref() == Some(id) || Some(entry.at) == item;
        if let Some(found) = self.first_message(&at, is_it).await? {
            return Ok((at, found));
        }
        let ScopedStore { store, scope, .. } = self.home();
        if let Some(item) = item {
            let branch = At::Node(NodeRef::Run(item.run));
            match store.open(scope, &branch, 0).await {
                Ok(opened) if opened.thread.id == *thread => {
                    if let Some(found) = self.first_message(&branch, is_it).await? {
                        return Ok((branch, found));
                    }
                }
                Ok(_) | Err(Error::NotFound { .. } | Error::NotFinal { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(not_found(message))
    }

    async fn message_at(&self, at: &At, position: Position) -> Result<Option<Entry>> {
        let ScopedStore { store, scope, .. } = self.home();
        let Some(before) = position.checked_sub(1) else {
            return Ok(None);
        };
        let page = store.read(scope, at, Span::After(before), 1).await?;
        let mut entries = page.entries.into_iter();
        Ok(entries.find(|entry| entry.first == position))
    }

    /// The first message of a branch for which something holds.
    async fn first_message(
        &self,
        at: &At,
        is_it: impl Fn(&Entry) -> bool,
    ) -> Result<Option<Entry>> {
        let ScopedStore { store, scope, .. } = self.home();
        let mut after = 0;
        loop {
            let page = store.read(scope, at, Span::After(after), PAGE).await?;
            let Some(last) = page.entries.last().map(|entry| entry.last) else {
                return Ok(None);
            };
            if let Some(found) = page.entries.into_iter().find(&is_it) {
                return Ok(Some(found));
            }
            if !page.more {
                return Ok(None);
            }
            after = last;
        }
    }

    /// Refuse while a run has the message in memory, or goes on from what it says.
    async fn check_settled_for(&self, thread: &ThreadId, entry: &Entry) -> Result<()> {
        let ScopedStore { store, scope, .. } = self.home();
        let at_work = RunFilter {
            thread: Some(thread.clone()),
            states: vec![RunState::Running],
        };
        let at_work = store.runs(scope, &at_work, None, 1).await?.found;
        if let Some(run) = at_work.into_iter().next() {
            return Err(Error::Busy {
                thread: run.thread,
                run: run.id,
                state: run.state,
            });
        }
        let run = match store.run(scope, entry.at.run).await {
            Ok(run) => run,
            // A hidden run is settled.
            Err(Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let wanted = match run.state.is_settled() {
            false => "resume, publish or discard it, then redact what it said",
            // A run that goes on with a call reads its arguments from the message.
            true if self.has_open_calls(&run, entry).await? => {
                "answer its calls, or begin a run that closes them, then redact what it said"
            }
            true => return Ok(()),
        };
        Err(Error::WrongState {
            run: run.id,
            state: run.state,
            wanted,
        })
    }

    /// Whether a message makes calls, and calls of its run may still be carried out by a run of ours. Calls
    /// that the application runs are not among them: it has their arguments.
    async fn has_open_calls(&self, run: &Run, entry: &Entry) -> Result<bool> {
        let mut contents = entry.message.contents.iter();
        let calls = |content: &Content| match content.body {
            Body::ToolCall(_) | Body::ApprovalRequest(_) => true,
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Media(_)
            | Body::ToolResult(_)
            | Body::ApprovalResponse(_)
            | Body::Refusal(_)
            | Body::Error(_)
            | Body::Opaque(_)
            | Body::Unknown(_) => false,
        };
        if !contents.any(calls) {
            return Ok(false);
        }
        let ScopedStore { store, scope, .. } = self.home();
        for call in store.journal(scope, run.id).await?.calls {
            let open = match (call.state, call.taken_by) {
                (CallState::Done | CallState::Client, _) | (CallState::Taken, None) => false,
                (CallState::Taken, Some(by)) => match store.run(scope, by).await {
                    Ok(by) => !by.state.is_settled(),
                    Err(Error::NotFound { .. }) => false,
                    Err(error) => return Err(error),
                },
                (CallState::Planned | CallState::Intent | CallState::Approval, _) => true,
            };
            if open {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn not_found(message: &MessageName) -> Error {
    Error::NotFound {
        what: "message",
        id: message.to_string(),
    }
}
