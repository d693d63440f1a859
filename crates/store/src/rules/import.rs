//! Whether a node can be imported.

use crate::{ImportNode, NodeId, Result, RunState};

use super::invalid;

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

/// The next node of a run continues its last one, at a later step.
pub(crate) fn next(node: &ImportNode, last: Option<NodeId>, next_step: u32) -> Result<()> {
    if next_step > node.node.step {
        let why = format!("{} comes too late", node.node);
        return Err(invalid("an imported node", why));
    }
    if node.parent != last {
        let why = format!("{} does not continue the node before of its run", node.node);
        return Err(invalid("an imported node", why));
    }
    Ok(())
}
