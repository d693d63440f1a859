//! What can be read.

use throughline_model::json::RawJson;

use crate::{
    Alias, Cursor, Entry, Item, ItemNo, Millis, Mode, NodeId, NodeRef, Position, Run, RunId,
    RunKind, RunState, State, Thread, ThreadId, Tip,
};

/// Something that names a place in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// A thread, at its head.
    Thread(ThreadId),
    /// A thread by another name, at its head.
    Alias(Alias),
    /// A node, also by its response id.
    Node(NodeRef),
}

/// A thread and the end of its history, read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The thread; for a node the one that it belongs to.
    pub thread: Thread,
    /// The node asked for: the head, unless a node was named. `None` while there is none.
    pub tip: Option<Tip>,
    /// The last messages of that branch, oldest first.
    pub entries: Vec<Entry>,
    /// Results of the tip's run that were never sent; they go out first with the next run.
    pub unsent: Vec<Entry>,
    /// State at the tip.
    pub state: State,
    /// The run that must be settled before the head can move.
    pub unsettled: Option<Run>,
    /// How many messages wait in the queue.
    pub queued: u64,
    /// The first run in the thread's wait queue: the next that may begin at its head.
    pub next: Option<RunId>,
    /// How many redactions its tenant has had: messages that were read when there were fewer may say what
    /// was removed since.
    pub redactions: u64,
}

/// Which messages of a branch to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The last ones.
    Tail,
    /// The first ones after a position; 0 starts at the beginning.
    After(Position),
    /// The last ones before a position.
    Before(Position),
}

/// Some messages of a branch, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The messages.
    pub entries: Vec<Entry>,
    /// Whether there are more in the direction of reading.
    pub more: bool,
    /// The node whose branch was read: name it to read on in the same branch while the head moves.
    pub node: Option<NodeId>,
    /// The last position of that node.
    pub last: Position,
}

/// What is new after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// The messages.
    pub entries: Vec<Entry>,
    /// Where to go on. Nothing is stored: a consumer that crashes asks again with the old one.
    pub next: Cursor,
    /// Whether more is there already.
    pub more: bool,
}

/// A node in the tree of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// The node.
    pub node: NodeId,
    /// The node it continues; `None` at a root.
    pub parent: Option<NodeId>,
    /// Its first position.
    pub first: Position,
    /// Its last position.
    pub last: Position,
    /// Its first item in its run.
    pub first_item: ItemNo,
    /// How many messages begin in it. Results of one round of tool calls are one message.
    pub messages: u64,
    /// Whether it is open.
    pub open: bool,
    /// When it was published.
    pub created: Millis,
}

/// A node as it is stored, with what is known of its run. For exports; see
/// [`Engine::node`](crate::Engine::node).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// What its run is.
    pub kind: RunKind,
    /// When its run moves the head.
    pub mode: Mode,
    /// Where its run stands.
    pub run: RunState,
    /// When its run began.
    pub begun: Millis,
    /// What its run says of its end.
    pub note: Option<RawJson>,
    /// Whether its run is hidden.
    pub hidden: bool,
    /// The state that was set at this node; `None` if it has that of the node before.
    pub state: Option<State>,
    /// Its items from the one asked for.
    pub items: Vec<Item>,
    /// Whether it has more items after these.
    pub more: bool,
}

impl At {
    /// What a name can stand for, in the order in which it is tried: a node, the last node of a run, a
    /// thread by its id, a thread by an alias as `KIND:NAME`. Empty if it names nothing.
    ///
    /// ```
    /// use throughline_store::{Alias, At, ThreadId};
    ///
    /// let thread = ThreadId::new("ticket:4711")?;
    /// let alias = Alias::new("ticket", "4711");
    /// assert_eq!(At::named("ticket:4711"), [At::Thread(thread), At::Alias(alias)]);
    /// assert!(At::named("").is_empty());
    /// # Ok::<(), throughline_store::BadId>(())
    /// ```
    pub fn named(name: &str) -> Vec<Self> {
        if let Ok(node) = name.parse() {
            return vec![Self::Node(NodeRef::Node(node))];
        }
        if let Ok(run) = name.parse::<RunId>() {
            return vec![Self::Node(NodeRef::Run(run))];
        }
        let thread = ThreadId::new(name).ok().map(Self::Thread);
        let alias = name
            .split_once(':')
            .map(|(kind, name)| Self::Alias(Alias::new(kind, name)));
        thread.into_iter().chain(alias).collect()
    }
}

impl From<ThreadId> for At {
    fn from(thread: ThreadId) -> Self {
        Self::Thread(thread)
    }
}

impl From<Alias> for At {
    fn from(alias: Alias) -> Self {
        Self::Alias(alias)
    }
}

impl From<NodeId> for At {
    fn from(node: NodeId) -> Self {
        Self::Node(NodeRef::Node(node))
    }
}

impl From<RunId> for At {
    /// The run's last node: a response id is a run's.
    fn from(run: RunId) -> Self {
        Self::Node(NodeRef::Run(run))
    }
}
