//! Taking over a thread that was made elsewhere. It is invisible until it is complete.

use crate::{
    ItemContent, Millis, Mode, NewThread, NodeId, Redaction, RunId, RunKind, RunState, State,
    ThreadId,
};
use throughline_model::json::RawJson;

/// One step of an import. A thread that is being imported is not visible; if the import is
/// never finished, it is swept away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Import {
    /// Open the thread.
    Open {
        /// The thread.
        thread: NewThread,
        /// When it was opened where it comes from.
        created: Millis,
    },
    /// Add a node. Its parent and the earlier nodes of its run come before it.
    Node {
        /// The thread.
        thread: ThreadId,
        /// The node.
        node: Box<ImportNode>,
    },
    /// It is complete: show it, with this head.
    Finish {
        /// The thread.
        thread: ThreadId,
        /// The head.
        head: Option<NodeId>,
        /// When its head last moved where it comes from.
        touched: Millis,
    },
    /// Forget it.
    Abort {
        /// The thread.
        thread: ThreadId,
    },
}

/// A node that is imported, with what is known of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNode {
    /// Its name.
    pub node: NodeId,
    /// The node that it continues.
    pub parent: Option<NodeId>,
    /// Its items. Their numbers in the run follow on those of the run's earlier nodes.
    pub items: Vec<ImportItem>,
    /// Whether calls in it wait for answers.
    pub open: bool,
    /// The state at the node, if it changed.
    pub state: Option<State>,
    /// When it was published.
    pub created: Millis,
    /// What its run is.
    pub kind: RunKind,
    /// When its run moved the head.
    pub mode: Mode,
    /// How its run ended: committed or cancelled.
    pub ended: RunState,
    /// When its run began.
    pub begun: Millis,
    /// What the run says of its end.
    pub note: Option<RawJson>,
    /// Whether the run is hidden.
    pub hidden: bool,
}

/// An item that is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportItem {
    /// Something that was said.
    Content(ItemContent),
    /// Something that was removed where it comes from: what is left of it, with an empty body.
    Redacted(ItemContent, Redaction),
    /// A place without a result.
    Gap,
}

/// A run without an owner, found by the orphan sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Whose it is.
    pub scope: crate::TenantScope,
    /// The run.
    pub run: RunId,
    /// Its epoch; claim it with this one.
    pub epoch: u32,
    /// How often it was taken over already.
    pub attempt: u32,
}
