//! What can go wrong, and what a caller can do about it.

use std::fmt;

use crate::{ApprovalId, ItemRef, NodeId, Position, RunId, RunState, ThreadId, Version};

/// Why a store refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such thing in this tenant. Things of other tenants look the same.
    #[error("there is no {what} {id}")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// The name asked for.
        id: String,
    },
    /// A name is taken.
    #[error("the {what} {id} exists already")]
    Exists {
        /// The kind of thing.
        what: &'static str,
        /// The name.
        id: String,
    },
    /// Another run holds the thread, or is next in its wait queue.
    #[error("thread {thread} is busy with {run} ({})", state.as_str())]
    Busy {
        /// The thread.
        thread: ThreadId,
        /// The run that holds it; if none does, the first in its wait queue, which has not begun.
        run: RunId,
        /// Where that run stands; `Running` for the first waiter.
        state: RunState,
    },
    /// The head is not where the caller saw it.
    #[error("thread {thread} is at version {}, not {}", actual.0, expected.0)]
    HeadMoved {
        /// The thread.
        thread: ThreadId,
        /// What the caller expected.
        expected: Version,
        /// What is.
        actual: Version,
        /// The head now.
        head: Option<NodeId>,
    },
    /// What the caller remembered of a thread no longer holds.
    #[error("thread {thread} was changed since it was read; read it again")]
    Changed {
        /// The thread.
        thread: ThreadId,
    },
    /// A cursor's branch is no longer the thread's.
    #[error("thread {thread} has moved to another branch; go on after position {common}")]
    CursorMoved {
        /// The thread.
        thread: ThreadId,
        /// The last position that both branches share.
        common: Position,
    },
    /// A cursor that this store never made, or one of another tenant or thread.
    #[error("the cursor is not one of thread {thread}")]
    BadCursor {
        /// The thread.
        thread: ThreadId,
    },
    /// Another process took the run over.
    #[error("{run} was taken over: epoch {current}, not {mine}")]
    Fenced {
        /// The run.
        run: RunId,
        /// The caller's epoch.
        mine: u32,
        /// The epoch now.
        current: u32,
    },
    /// The run is not in a state in which this can be done.
    #[error("{run} is {}; {wanted}", state.as_str())]
    WrongState {
        /// The run.
        run: RunId,
        /// Where it stands.
        state: RunState,
        /// What was needed.
        wanted: &'static str,
    },
    /// The run is not published, so nothing can continue from it.
    #[error("{run} is {} and has no node yet", state.as_str())]
    NotFinal {
        /// The run.
        run: RunId,
        /// Where it stands.
        state: RunState,
    },
    /// A step, event or call is not the one that comes next.
    #[error("{run}: {what} {found} does not fit, the run is at {expected}")]
    OutOfOrder {
        /// The run.
        run: RunId,
        /// What was written.
        what: &'static str,
        /// What would fit.
        expected: u64,
        /// What came.
        found: u64,
    },
    /// A call is not in a state in which this can be done.
    #[error("{run}: call {position} of step {step} is {state}; {wanted}")]
    WrongCall {
        /// The run.
        run: RunId,
        /// The step.
        step: u32,
        /// The position.
        position: u32,
        /// Where it stands.
        state: &'static str,
        /// What was needed.
        wanted: &'static str,
    },
    /// Another run answered the call.
    #[error("call {position} of step {step} of {run} was answered by {by}")]
    Taken {
        /// The run of the call.
        run: RunId,
        /// The step.
        step: u32,
        /// The position.
        position: u32,
        /// The run that has it.
        by: RunId,
    },
    /// An approval cannot be answered like this.
    #[error("{approval} cannot be answered: {why}")]
    NotAnswerable {
        /// The approval.
        approval: ApprovalId,
        /// Why.
        why: Unanswerable,
    },
    /// The key belongs to another request.
    #[error("the idempotency key {key:?} was used for another request, {run}")]
    KeyReused {
        /// The key.
        key: String,
        /// The run that has it.
        run: RunId,
    },
    /// What was given cannot be stored.
    #[error("{what}: {why}")]
    Invalid {
        /// What.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// A stream that is imported does not say what it should.
    #[error("line {line} column {column}: {}{why}", at(path))]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// The column in characters, from 1.
        column: u64,
        /// Where in the line's JSON; empty for the line itself.
        path: String,
        /// Why.
        why: String,
    },
    /// What is imported could not be read, or what is exported could not be written.
    #[error("the {what} failed: {detail}")]
    Stream {
        /// Which side: `input` or `output`.
        what: &'static str,
        /// What kind of failure.
        kind: std::io::ErrorKind,
        /// What the system said.
        detail: String,
    },
    /// What is stored is damaged. Nothing of it is served.
    #[error("{place} is damaged: {detail}; run `throughline fsck`")]
    Corrupt {
        /// The thread, the position and the item, as far as they are known.
        place: Box<DamageSite>,
        /// How.
        detail: String,
    },
    /// No space is left.
    #[error("no space is left for the store; nothing was written")]
    Full,
    /// Another process holds the store's lock for too long.
    #[error("the store is locked by another process; nothing was written")]
    Locked,
    /// The disk or the connection failed.
    #[error("the store failed: {detail}")]
    Io {
        /// What it said.
        detail: String,
    },
    /// An operation panicked, which is a defect of the store. Nothing of it was written.
    #[error("the operation failed with a panic: {message}; nothing was written")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// The store was written by a newer version.
    #[error("the store has schema {found}, this program knows up to {known}; use a newer one")]
    Newer {
        /// The schema found.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// The store needs a migration that was not asked for.
    #[error("the store has schema {found} and needs {known}; run `throughline migrate`")]
    Older {
        /// The schema found.
        found: u32,
        /// The one needed.
        known: u32,
    },
    /// A URL that names no store.
    #[error("{url:?} names no store: {why}")]
    Url {
        /// The URL, without what stands before an `@`.
        url: String,
        /// Why.
        why: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Where something that is stored is damaged, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DamageSite {
    /// The thread that was read, or the one that a damaged row belongs to.
    pub thread: Option<ThreadId>,
    /// The position on the branch; for a node that of its first item.
    pub position: Option<Position>,
    /// The item, by its place in the journal.
    pub item: Option<ItemRef>,
    /// What is damaged if it is no item: a node, a state, the events of a run, a row, the file.
    pub what: Option<String>,
}

impl DamageSite {
    /// What is damaged, without the thread and the position: the item, or something else.
    pub fn subject(&self) -> String {
        match (&self.item, &self.what) {
            (Some(item), _) => format!("item {} of {}", item.no, item.run),
            (None, Some(what)) => what.clone(),
            (None, None) => match &self.thread {
                Some(thread) => format!("thread {thread}"),
                None => "the store".to_owned(),
            },
        }
    }

    /// The same in a thread, unless another one is named already.
    #[must_use]
    pub fn in_thread(mut self, thread: &ThreadId) -> Self {
        self.thread.get_or_insert_with(|| thread.clone());
        self
    }

    /// The same at a position, unless another one is named already.
    #[must_use]
    pub fn at_position(mut self, position: Position) -> Self {
        self.position.get_or_insert(position);
        self
    }
}

impl fmt::Display for DamageSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.item.is_none() && self.what.is_none() && self.position.is_none() {
            return f.write_str(&self.subject());
        }
        if let Some(thread) = &self.thread {
            write!(f, "thread {thread}, ")?;
        }
        match (self.position, self.item.is_some() || self.what.is_some()) {
            (Some(position), true) => write!(f, "position {position}, {}", self.subject()),
            (Some(position), false) => write!(f, "position {position}"),
            (None, _) => f.write_str(&self.subject()),
        }
    }
}

impl From<String> for DamageSite {
    fn from(what: String) -> Self {
        Self {
            what: Some(what),
            ..Self::default()
        }
    }
}

impl From<&str> for DamageSite {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

impl From<ItemRef> for DamageSite {
    fn from(item: ItemRef) -> Self {
        Self {
            item: Some(item),
            ..Self::default()
        }
    }
}

impl From<NodeId> for DamageSite {
    fn from(node: NodeId) -> Self {
        node.to_string().into()
    }
}

impl From<&ThreadId> for DamageSite {
    fn from(thread: &ThreadId) -> Self {
        Self {
            thread: Some(thread.clone()),
            ..Self::default()
        }
    }
}

fn at(path: &str) -> String {
    match path {
        "" => String::new(),
        path => format!("{path}: "),
    }
}

/// Why an approval cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unanswerable {
    /// It was answered.
    #[error("it has an answer")]
    Answered,
    /// It is too late.
    #[error("it has expired")]
    Expired,
    /// Other arguments were shown.
    #[error("it was asked for other arguments")]
    OtherArguments,
    /// Its run ended without it.
    #[error("it was withdrawn")]
    Withdrawn,
}

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Ask for something else.
    NotFound,
    /// Read again, then decide.
    Conflict,
    /// Wait, then try again.
    Busy,
    /// Stop: another process has the run.
    Fenced,
    /// Correct what was given.
    Invalid,
    /// Have the store looked at.
    Corrupt,
    /// Make room.
    Full,
    /// Try again; it may or may not have happened, and sending it again is safe.
    Unavailable,
}

impl Error {
    /// Something stored is not as it was stored.
    ///
    /// ```
    /// use throughline_store::{DamageSite, Error, ItemRef, RunId, ThreadId};
    ///
    /// let item = ItemRef { run: RunId::from_bytes([7; 16]), no: 2 };
    /// let site = DamageSite::from(item).at_position(3).in_thread(&ThreadId::new("tides").unwrap());
    /// assert_eq!(
    ///     Error::corrupt(site, "its digest does not fit its bytes").to_string(),
    ///     "thread tides, position 3, item 2 of run_07070707070707070707070707070707 is damaged: \
    ///      its digest does not fit its bytes; run `throughline fsck`"
    /// );
    /// ```
    pub fn corrupt(place: impl Into<DamageSite>, detail: impl Into<String>) -> Self {
        Self::Corrupt {
            place: Box::new(place.into()),
            detail: detail.into(),
        }
    }

    /// An error about a URL, without the password that may be in it.
    pub(crate) fn url(url: &str, why: String) -> Self {
        let url = match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, after))) => format!("{scheme}://…@{after}"),
            _ => url.to_owned(),
        };
        Self::Url { url, why }
    }

    /// The same error; damage is located by `locate`.
    pub(crate) fn located(self, locate: impl FnOnce(DamageSite) -> DamageSite) -> Self {
        match self {
            Self::Corrupt { place, detail } => Self::corrupt(locate(*place), detail),
            other => other,
        }
    }

    /// The same error; damage is at this position unless it names another.
    pub(crate) fn at_position(self, position: Position) -> Self {
        self.located(|site| site.at_position(position))
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. }
            | Self::HeadMoved { .. }
            | Self::Changed { .. }
            | Self::CursorMoved { .. }
            | Self::WrongState { .. }
            | Self::OutOfOrder { .. }
            | Self::WrongCall { .. }
            | Self::Taken { .. }
            | Self::NotAnswerable { .. }
            | Self::KeyReused { .. } => ErrorKind::Conflict,
            Self::Busy { .. } | Self::NotFinal { .. } | Self::Locked => ErrorKind::Busy,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::BadCursor { .. }
            | Self::Invalid { .. }
            | Self::Malformed { .. }
            | Self::Url { .. } => ErrorKind::Invalid,
            Self::Corrupt { .. } | Self::Newer { .. } | Self::Older { .. } => ErrorKind::Corrupt,
            Self::Full => ErrorKind::Full,
            Self::Io { .. } | Self::Stream { .. } | Self::Panicked { .. } | Self::Closed => {
                ErrorKind::Unavailable
            }
        }
    }
}

/// What a store answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;
