//! What can be written: values, complete in themselves, so that a group of them can be replayed.
//!
//! Each is one transaction, and each may be sent again when it is not known whether it was
//! committed: if its effect is there already, it is answered as it was the first time.

use throughline_model::Message;
use throughline_model::json::RawJson;

use crate::{
    CallRef, CallState, Effect, Fingerprint, Flush, Lease, Mode, NewApproval, NewItem, NewThread,
    NodeId, NodeRef, Position, Run, RunId, State, ThreadId, Version,
};

/// Whether a run takes the thread's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leasing {
    /// It does: it is the thread's one live run, and it alone moves the head.
    Thread,
    /// It does not: it conflicts with no other run, and what it publishes is a branch if the head has
    /// moved meanwhile.
    Free,
}

/// Where a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It opens a thread.
    New {
        /// The thread.
        thread: NewThread,
        /// Whether it takes its lease.
        leasing: Leasing,
    },
    /// At the head of a thread, with its lease.
    Head {
        /// The thread.
        thread: ThreadId,
        /// What the caller saw when it opened the thread.
        expected: Version,
    },
    /// At any node, without a lease.
    Node(NodeRef),
}

/// A key under which a request is made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The key, unique in its tenant.
    pub key: String,
    /// A digest of the request: the same key with another digest is refused.
    pub request: [u8; 16],
}

/// Begin a run: lease, idempotency record, input and first events, in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Its id.
    pub run: RunId,
    /// Where it starts.
    pub at: Anchor,
    /// When it moves the head.
    pub mode: Mode,
    /// What it is asked: items 1 and on.
    pub input: Vec<NewItem>,
    /// What the layer above needs to go on with the run, an object with a version of its own.
    /// Stored once for each distinct content.
    ///
    /// Its member `listed`, an object with the texts `agent` and `model`, is what
    /// [`ThreadFilter`](crate::ThreadFilter) knows the turn by. Its member `later`, messages that are
    /// stored as items of the run afterwards, goes when one of its items is redacted.
    pub request: Option<RawJson>,
    /// The key under which it is made once.
    pub key: Option<Idempotency>,
    /// Its first events.
    pub events: Option<Flush>,
    /// Messages of the thread's queue that it takes.
    pub dequeue: Vec<QueueNo>,
    /// Waiting calls of other runs that it answers; each can be taken once.
    pub takes: Vec<CallRef>,
    /// What the caller takes for granted of the thread, if it has not read it just now.
    pub expects: Option<Expects>,
    /// How many redactions its tenant had had when the messages that it goes on from were read
    /// ([`Opened::redactions`](crate::Opened::redactions)); another number is [`Error::Changed`], because they may
    /// say what was removed since.
    ///
    /// [`Error::Changed`]: crate::Error::Changed
    pub redactions: Option<u64>,
    /// Digests by which items of the input are found.
    pub fingerprints: Vec<Fingerprint>,
}

/// What a thread must be like for a run to begin; if it is not, that is [`Error::Changed`] and a caller that
/// remembered it reads it again. Nothing may wait in its queue either.
///
/// [`Error::Changed`]: crate::Error::Changed
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expects {
    /// Its settings.
    pub settings: Option<RawJson>,
}

impl Begin {
    /// A run with input and nothing else.
    pub fn new(run: RunId, at: Anchor, input: Vec<NewItem>) -> Self {
        Self {
            run,
            at,
            mode: Mode::PerRun,
            input,
            request: None,
            key: None,
            events: None,
            dequeue: Vec::new(),
            takes: Vec::new(),
            expects: None,
            redactions: None,
            fingerprints: Vec::new(),
        }
    }
}

/// What came of [`Begin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The run is the caller's.
    Started(Started),
    /// A run with the same key and request exists; nothing was written.
    Repeated(Box<Run>),
}

/// A run that is the caller's to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The right to write to it.
    pub lease: Lease,
    /// The thread's version that it expects.
    pub version: Version,
    /// The last position of its base; 0 if there is none.
    pub base: Position,
}

/// A tool call that a step plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCall {
    /// The value of its call id.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What a lost result means.
    pub effect: Effect,
    /// Where it starts: planned, with its intent at once, or waiting.
    pub state: CallState,
}

/// Record a step: what the model said, and the calls that follow from it.
///
/// For each call one item is kept for its result, in the order of the calls, right after the
/// items of the step.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Step {
    /// Its number; the run's next one.
    pub no: u32,
    /// What was said.
    pub items: Vec<NewItem>,
    /// Calls, in the order in which the model made them.
    pub calls: Vec<PlannedCall>,
    /// Approvals that calls of this step wait for.
    pub approvals: Vec<NewApproval>,
    /// What the layer above keeps with the step, an object.
    pub note: Option<RawJson>,
    /// Events up to here.
    pub events: Option<Flush>,
    /// In `per_call`: make everything up to the last of `items` a node and move the head.
    pub node: Option<StepNode>,
    /// Messages of the thread's queue that it delivers; those that are gone already are no matter.
    pub dequeue: Vec<QueueNo>,
}

/// The node that a step publishes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepNode {
    /// The state at the node, if it changed.
    pub state: Option<State>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The step of the call.
    pub step: u32,
    /// Its position there.
    pub position: u32,
    /// The result, as a tool message with one content; of the second call and on it is a part of
    /// the message that the first one starts.
    pub item: NewItem,
    /// Whether the tool asks for the end of the run with it.
    pub ends: bool,
}

impl CallResult {
    /// The result of a call.
    pub fn new(step: u32, position: u32, message: &Message) -> Self {
        let item = match position {
            0 => NewItem::whole(message),
            _ => NewItem::part(message),
        };
        Self {
            step,
            position,
            item,
            ends: false,
        }
    }

    /// The same result, with which the tool asks for the end of the run.
    pub fn ending(self) -> Self {
        Self { ends: true, ..self }
    }
}

/// How far a publication goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Through {
    /// Everything that the run has stored. Places that are kept for results which have not come
    /// are left out at the end, and become gaps before it.
    Everything,
    /// Up to the items of the last step and what this publication adds; results that came after
    /// it stay in the journal, unsent. A run without a step publishes nothing.
    LastStep,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It is done.
    Committed,
    /// It was cancelled, and is closed.
    Cancelled,
}

/// Publish a run: its last items, a node, the head, and its end, in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// The number of this step; the run's next one.
    pub step: u32,
    /// Results for calls that have none, as closing a run makes them. They are filled in first.
    pub results: Vec<CallResult>,
    /// What was said last.
    pub items: Vec<NewItem>,
    /// How far the node goes.
    pub through: Through,
    /// The state at the node, if it changed.
    pub state: Option<State>,
    /// How the run ends.
    pub ending: Ending,
    /// Why it ended (stop reason, usage), for readers of the run: an object.
    pub note: Option<RawJson>,
    /// Its last events.
    pub events: Option<Flush>,
    /// Messages of the thread's queue that it delivers; those that are gone already are no matter.
    pub dequeue: Vec<QueueNo>,
    /// Digests by which items of the run are found.
    pub fingerprints: Vec<Fingerprint>,
}

impl Publish {
    /// The end of a run that is done.
    pub fn new(step: u32, items: Vec<NewItem>) -> Self {
        Self {
            step,
            results: Vec::new(),
            items,
            through: Through::Everything,
            state: None,
            ending: Ending::Committed,
            note: None,
            events: None,
            dequeue: Vec::new(),
            fingerprints: Vec::new(),
        }
    }
}

/// What a publication made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The node; the base of the run if it had nothing to publish.
    pub node: Option<NodeId>,
    /// The position of its last item.
    pub last: Position,
    /// Whether it is the thread's head now.
    pub moved: bool,
    /// The thread's version after it.
    pub version: Version,
}

/// End a run without publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// How.
    pub how: Stopped,
    /// Why, an object.
    pub note: Option<RawJson>,
    /// Its last events.
    pub events: Option<Flush>,
}

/// Ways to end without a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// It failed.
    Failed,
    /// It ended well, but its caller publishes it.
    Unpublished,
    /// It is thrown away.
    Discarded,
}

/// Which runs may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// One whose owner is gone.
    Orphan,
    /// One of this very process on which no task works any more, as after an error of the
    /// storage; or one whose owner is gone. Only the caller knows that none does.
    Own,
    /// A parked one, to go on with it.
    Parked,
    /// Any that is not finished, or that was never published: held and unpublished ones too.
    /// For people, and for the next run on a thread that must settle this one.
    Settle,
}

/// Add items by hand: a run of kind `append`, committed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The id of the run.
    pub run: RunId,
    /// The thread. A leased run on it makes it busy.
    pub thread: ThreadId,
    /// The version that the caller saw; `None` appends to whatever the head is.
    pub expected: Option<Version>,
    /// The items.
    pub items: Vec<NewItem>,
    /// The state at the node, if it changes.
    pub state: Option<State>,
    /// The key under which it is done once.
    pub key: Option<Idempotency>,
}

/// Make a thread that goes on from a node of another. One row, whatever the length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Where; a thread's head by [`At::Thread`](crate::At::Thread).
    pub from: crate::At,
    /// The new thread.
    pub thread: NewThread,
}

/// The number of a message in a thread's queue.
pub type QueueNo = u64;

/// A message that waits for a thread to be free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its number.
    pub no: QueueNo,
    /// What waits, as the layer above wrote it.
    pub body: RawJson,
}
