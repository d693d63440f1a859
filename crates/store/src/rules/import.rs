//! Whether a node can be imported.

use crate::{ImportNode, Millis, NewThread, NodeId, Result, RunState, Thread, ThreadId};

use super::{exists, invalid, threads};

/// How long an import may take until it counts as abandoned.
pub(crate) const LONGEST: Millis = 24 * 60 * 60 * 1000;

/// Whether a thread that is being imported is what this very opening made: nothing came since.
pub(crate) fn is_opened(
    thread: &Thread,
    has_nodes: bool,
    new: &NewThread,
    created: Millis,
) -> bool {
    !has_nodes && thread.created == created && threads::is_as(thread, new)
}

/// A node has items, and its run is finished.
pub(crate) fn check(node: &ImportNode) -> Result<()> {
    if node.items.is_empty() {
        return Err(invalid("an imported node", "it has no items"));
    }
    if !matches!(node.ended, RunState::Committed | RunState::Cancelled) {
        let why = format!("its run is {}", node.ended.as_str());
        return Err(invalid("an imported node", why));
    }
    Ok(())
}

/// What an import finds of the run of a node.
pub(crate) struct FoundRun {
    /// Whether the node is there already and, if it is, whether it has the items that are given.
    pub(crate) has_node: Option<bool>,
    /// Its last node.
    pub(crate) last: Option<NodeId>,
    pub(crate) next_step: u32,
}

/// The next node of a run continues its last one, at a later step. Says whether the node is new.
pub(crate) fn node(node: &ImportNode, run: &FoundRun) -> Result<bool> {
    match run.has_node {
        Some(true) => return Ok(false),
        Some(false) => return Err(exists("node", node.node)),
        None => {}
    }
    if run.next_step > node.node.step {
        let why = format!("{} comes too late", node.node);
        return Err(invalid("an imported node", why));
    }
    if node.parent != run.last {
        let why = format!("{} does not continue the node before of its run", node.node);
        return Err(invalid("an imported node", why));
    }
    Ok(true)
}

/// A thread that is shown was imported by this very finish.
pub(crate) fn finished(shown: &Thread, head: Option<NodeId>, touched: Millis) -> Result<()> {
    let same = shown.head.map(|head| head.node) == head && shown.touched == touched;
    match same {
        true => Ok(()),
        false => Err(exists("thread", &shown.id)),
    }
}

/// An import is aborted only before its thread is shown.
pub(crate) fn abort(thread: &ThreadId, is_shown: bool) -> Result<()> {
    match is_shown {
        true => Err(exists("thread", thread)),
        false => Ok(()),
    }
}
