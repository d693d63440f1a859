//! Which nodes an export holds, decided before the first one is written.
//!
//! A thread may grow while it is exported, and its tree is listed in pages. So the export fixes at
//! the start where each chain of nodes begins and ends, and checks that every chain continues a
//! node that is in it. That takes memory for each fork, not for each node.

use std::collections::HashMap;

use super::Extent;
use crate::{
    DamageSite, Error, NodeId, Position, Result, Store, TenantScope, ThreadId, Tip, TreeNode,
};

/// Nodes that are listed at once.
const PAGE: usize = 256;

/// How often a tree that changed while it was listed is listed again.
const ATTEMPTS: usize = 5;

/// Nodes that follow each other in the listing, each the child of the one before.
#[derive(Debug)]
struct Chain {
    start: NodeId,
    parent: Option<NodeId>,
    /// The last position that belongs to the export.
    limit: Position,
    items: u64,
}

/// The nodes of an export.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// By the first node of each chain: its last position.
    limits: HashMap<NodeId, Position>,
    /// How many items there are.
    pub(super) items: u64,
}

/// Lists the nodes of a tree, page by page.
#[derive(Debug, Default)]
pub(super) struct Walk {
    page: std::collections::VecDeque<TreeNode>,
    after: Option<NodeId>,
    over: bool,
}

impl Walk {
    pub(super) async fn next(
        &mut self,
        store: &Store,
        scope: &TenantScope,
        thread: &ThreadId,
    ) -> Result<Option<TreeNode>> {
        if self.page.is_empty() && !self.over {
            let page = store.tree(scope, thread, self.after, PAGE).await?;
            self.over = page.len() < PAGE;
            self.after = page.last().map(|node| node.node).or(self.after);
            self.page = page.into();
        }
        Ok(self.page.pop_front())
    }
}

/// Follows a walk and says which nodes are in the plan.
#[derive(Debug, Default)]
pub(super) struct Follow {
    last: Option<NodeId>,
    limit: Position,
    start: Option<NodeId>,
}

impl Follow {
    /// Whether the next node of the walk is in it.
    pub(super) fn takes(&mut self, plan: &Plan, node: &TreeNode) -> bool {
        if let Some(limit) = plan.limits.get(&node.node) {
            self.limit = *limit;
            self.start = Some(node.node);
        } else if self.last.is_none() || node.parent != self.last {
            return false;
        }
        let takes = node.last <= self.limit;
        if takes {
            self.last = Some(node.node);
        }
        takes
    }
}

/// Decide what to export.
pub(super) async fn plan(
    store: &Store,
    scope: &TenantScope,
    thread: &ThreadId,
    extent: Extent,
    tip: Option<Tip>,
) -> Result<Plan> {
    let mut missing = None;
    for _ in 0..ATTEMPTS {
        match attempt(store, scope, thread, extent, tip).await? {
            Ok(plan) => return Ok(plan),
            Err(node) => missing = Some(node),
        }
    }
    let site = missing.map(DamageSite::from).unwrap_or_default();
    let detail = "it is not in the tree of its thread, but something continues it";
    Err(Error::corrupt(site.in_thread(thread), detail))
}

/// A plan; or the node that is missing.
async fn attempt(
    store: &Store,
    scope: &TenantScope,
    thread: &ThreadId,
    extent: Extent,
    tip: Option<Tip>,
) -> Result<Result<Plan, NodeId>> {
    let chains = chains(store, scope, thread).await?;
    let mut plan = Plan {
        items: chains.iter().map(|chain| chain.items).sum(),
        limits: chains
            .iter()
            .map(|chain| (chain.start, chain.limit))
            .collect(),
    };
    let mut wanted: HashMap<NodeId, Option<(NodeId, Position)>> = HashMap::new();
    wanted.extend(
        chains
            .iter()
            .filter_map(|chain| Some((chain.parent?, None))),
    );
    wanted.extend(tip.map(|tip| (tip.node, None)));
    // Where the nodes stand that something continues.
    let mut walk = Walk::default();
    let mut follow = Follow::default();
    while let Some(node) = walk.next(store, scope, thread).await? {
        if follow.takes(&plan, &node)
            && let (Some(place), Some(start)) = (wanted.get_mut(&node.node), follow.start)
        {
            *place = Some((start, node.last));
        }
    }
    if let Some((node, _)) = wanted.iter().find(|(_, place)| place.is_none()) {
        return Ok(Err(*node));
    }
    if extent == Extent::Branch {
        let parents: HashMap<NodeId, Option<NodeId>> = chains
            .iter()
            .map(|chain| (chain.start, chain.parent))
            .collect();
        plan = Plan::default();
        let mut end = tip.map(|tip| tip.node);
        while let Some(node) = end {
            let Some((start, limit)) = wanted.get(&node).copied().flatten() else {
                return Ok(Err(node));
            };
            plan.limits.insert(start, limit);
            end = parents.get(&start).copied().flatten();
        }
        plan.items = tip.map_or(0, |tip| tip.last);
    }
    Ok(Ok(plan))
}

async fn chains(store: &Store, scope: &TenantScope, thread: &ThreadId) -> Result<Vec<Chain>> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut walk = Walk::default();
    let mut before = None;
    while let Some(node) = walk.next(store, scope, thread).await? {
        let items = (node.last + 1).saturating_sub(node.first);
        match chains.last_mut() {
            Some(chain) if node.parent.is_some() && node.parent == before => {
                chain.limit = node.last;
                chain.items += items;
            }
            _ => chains.push(Chain {
                start: node.node,
                parent: node.parent,
                limit: node.last,
                items,
            }),
        }
        before = Some(node.node);
    }
    Ok(chains)
}
