//! Threads: their names and what is known of them.

use throughline_model::json::RawJson;

use crate::{Millis, NodeId, Position, RunState, ThreadId, Version};

/// A protocol's name for a thread: a conversation id, an A2A context id. Unique in its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alias {
    /// Whose name it is: `conversation`, `a2a`, or a word of the application.
    pub kind: String,
    /// The name.
    pub name: String,
}

impl Alias {
    /// A name of a kind.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
        }
    }
}

/// Who may move a thread's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MovedBy {
    /// Any run that started from the head.
    #[default]
    AnyRun,
    /// Runs that hold the thread's lease only, as behind a conversation.
    LeasedRuns,
}

/// A thread that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewThread {
    /// Its public id.
    pub id: ThreadId,
    /// Its other names.
    pub aliases: Vec<Alias>,
    /// A title for people.
    pub title: Option<String>,
    /// The application's own data, an object.
    pub meta: Option<RawJson>,
    /// What the layers above keep with the thread, an object.
    pub settings: Option<RawJson>,
    /// Who may move its head.
    pub moved_by: MovedBy,
    /// How long it is kept after it was last touched, in milliseconds; for ever if not set.
    pub keep: Option<Millis>,
}

impl NewThread {
    /// A thread with an id and nothing else.
    pub fn new(id: ThreadId) -> Self {
        Self {
            id,
            aliases: Vec::new(),
            title: None,
            meta: None,
            settings: None,
            moved_by: MovedBy::default(),
            keep: None,
        }
    }
}

/// What is known of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its public id.
    pub id: ThreadId,
    /// Its other names, sorted. Listings leave them out.
    pub aliases: Vec<Alias>,
    /// A title for people.
    pub title: Option<String>,
    /// The application's own data, an object.
    pub meta: Option<RawJson>,
    /// What the layers above keep with the thread, an object.
    pub settings: Option<RawJson>,
    /// Who may move its head.
    pub moved_by: MovedBy,
    /// How long it is kept after it was last touched, in milliseconds.
    pub keep: Option<Millis>,
    /// The node it continues from.
    pub head: Option<Tip>,
    /// Counts the moves of the head.
    pub version: Version,
    /// When it was opened.
    pub created: Millis,
    /// When its head last moved.
    pub touched: Millis,
}

impl Thread {
    /// Tokens of its history: the sum of what every item up to its head was counted as when it
    /// entered, see [`throughline_model::tokens`]. A fork has what it shares with its origin in it;
    /// other branches are not in it.
    pub fn tokens(&self) -> u64 {
        self.head.map_or(0, |head| head.tokens)
    }
}

/// A node as the end of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The node.
    pub node: NodeId,
    /// The position of its last item.
    pub last: Position,
    /// Tokens of the whole branch: the sum of what its items count as.
    pub tokens: u64,
    /// Whether calls in it wait for answers that are not on the branch.
    pub open: bool,
    /// Whether its run has results that came after it and were never sent.
    pub unsent: bool,
}

/// A change of what is known of a thread; what is not set stays.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ThreadPatch {
    /// A new title; `Some(None)` takes it away.
    pub title: Option<Option<String>>,
    /// New data of the application.
    pub meta: Option<Option<RawJson>>,
    /// New data of the layers above.
    pub settings: Option<Option<RawJson>>,
    /// Who may move the head from now on.
    pub moved_by: Option<MovedBy>,
    /// How long it is kept.
    pub keep: Option<Option<Millis>>,
    /// Names to add.
    pub add_aliases: Vec<Alias>,
    /// Names to take away.
    pub remove_aliases: Vec<Alias>,
}

/// Which threads to list, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ThreadFilter {
    /// Only threads with an alias of this kind.
    pub alias_kind: Option<String>,
    /// Only threads whose `meta` has this member with this text.
    pub meta: Vec<(String, String)>,
    /// Only threads touched at or after this time.
    pub touched_from: Option<Millis>,
    /// Only threads touched before this time.
    pub touched_before: Option<Millis>,
    /// Only threads that were opened at or after this time.
    pub created_from: Option<Millis>,
    /// Only threads that were opened before this time.
    pub created_before: Option<Millis>,
    /// Only threads whose title contains this text, in letters of either case.
    pub title: Option<String>,
    /// Only threads whose newest turn is of this agent: the `agent` that its request is
    /// [listed](crate::Begin::request) under.
    pub agent: Option<String>,
    /// Only threads whose newest turn is of this model, named as the request is listed or without
    /// the upstream: `anthropic/claude-x` is found by that and by `claude-x`.
    pub model: Option<String>,
    /// Only threads whose newest run is in one of these states; any thread if there are none. The
    /// newest run is that of the head, or a later one that is not settled or published nothing.
    pub states: Vec<RunState>,
}

impl ThreadFilter {
    /// Whether threads are chosen by what their newest turn was asked of.
    pub(crate) fn asks_for_turn(&self) -> bool {
        self.agent.is_some() || self.model.is_some()
    }
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// What was found.
    pub found: Vec<T>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<PageToken>,
}

/// Where a page of a listing starts. Opaque; it holds no authority, the scope does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageToken {
    /// The sort key.
    pub(crate) key: u64,
    /// The row, for those with equal keys.
    pub(crate) row: i64,
}

impl std::fmt::Display for PageToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}-{:x}", self.key, self.row)
    }
}

impl std::str::FromStr for PageToken {
    type Err = crate::BadId;

    fn from_str(text: &str) -> Result<Self, crate::BadId> {
        let read = || {
            let (key, row) = text.split_once('-')?;
            Some(Self {
                key: u64::from_str_radix(key, 16).ok()?,
                // Written as its bits: half of an id may be a negative number.
                row: u64::from_str_radix(row, 16).ok()?.cast_signed(),
            })
        };
        read().ok_or_else(|| crate::BadId {
            kind: "page token",
            expected: "take the one that the page before ended with",
            text: text.chars().take(48).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PageToken;

    #[test]
    fn page_tokens_are_read_as_they_are_written() {
        for (key, row) in [(0, 0), (u64::MAX, i64::MIN), (7, -1), (1, i64::MAX)] {
            let token = PageToken { key, row };
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        assert!("7".parse::<PageToken>().is_err());
    }
}
