//! The point of a thread at which a run begins.

use throughline_model::json::RawJson;
use throughline_store::{
    Entry, Expects, NodeId, Opened, Run, RunId, RunState, State, TenantScope, ThreadId, Tip,
    Version,
};

/// A point of a thread, as it was read or as it is cached.
pub(crate) struct OpenedAt {
    /// The node there; `None` if the thread is empty.
    pub(crate) end: Option<End>,
    /// The state at that node.
    pub(crate) state: State,
    /// How often the head of the thread has moved. Not known from the cache.
    pub(crate) version: Version,
    /// Unsent results of the node's run.
    pub(crate) unsent: Vec<Entry>,
    /// The run that must be settled before the head can move.
    pub(crate) unsettled: Option<Run>,
    /// The number of queued messages.
    pub(crate) queued: u64,
    /// The first run in the thread's line, which begins next.
    pub(crate) next: Option<RunId>,
    /// What the store must check when a run begins here, because the point was not read.
    pub(crate) expects: Option<Expects>,
    /// How many redactions the tenant had had when the messages were read.
    pub(crate) redactions: u64,
}

/// A node at which a run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) node: NodeId,
    /// Whether its calls wait for answers that are not on the branch.
    pub(crate) open: bool,
    /// Whether its run has unsent results after it.
    pub(crate) unsent: bool,
}

/// What a finished run leaves in memory about its node, for the run that continues there. Only for
/// nodes without open calls and unsent results, because no run can change those.
#[derive(Clone)]
pub(crate) struct CachedNode {
    pub(crate) scope: TenantScope,
    pub(crate) thread: ThreadId,
    pub(crate) state: State,
    /// The settings of the thread, as stored. Other processes may change them.
    pub(crate) settings: Option<RawJson>,
}

impl CachedNode {
    /// The held bytes, approximately.
    pub(crate) fn held_bytes(&self) -> usize {
        let state = match self.state.is_empty() {
            true => 0,
            false => self.state.to_json().len(),
        };
        let settings = self.settings.as_ref().map_or(0, |text| text.get().len());
        size_of::<Self>() + self.thread.as_str().len() + settings + state
    }
}

impl OpenedAt {
    /// The point at which a cached run ended; `redactions` is as of its messages.
    pub(crate) fn known(node: NodeId, known: CachedNode, redactions: u64) -> Self {
        Self {
            end: Some(End {
                node,
                open: false,
                unsent: false,
            }),
            state: known.state,
            version: Version::default(),
            unsent: Vec::new(),
            unsettled: None,
            queued: 0,
            next: None,
            expects: Some(Expects {
                settings: known.settings,
            }),
            redactions,
        }
    }

    /// The run whose calls may wait there.
    pub(crate) fn waits(&self) -> Option<RunId> {
        let parked = self.unsettled.as_ref();
        let parked = parked.filter(|run| run.state == RunState::Parked);
        let open = self.end.filter(|end| end.open && !end.unsent);
        parked
            .map(|run| run.id)
            .or_else(|| open.map(|end| end.node.run))
    }

    /// The node.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.end.map(|end| end.node)
    }
}

impl From<Opened> for OpenedAt {
    fn from(opened: Opened) -> Self {
        Self {
            end: opened.tip.map(End::from),
            state: opened.state,
            version: opened.thread.version,
            unsent: opened.unsent,
            unsettled: opened.unsettled,
            queued: opened.queued,
            next: opened.next,
            expects: None,
            redactions: opened.redactions,
        }
    }
}

impl From<Tip> for End {
    fn from(tip: Tip) -> Self {
        Self {
            node: tip.node,
            open: tip.open,
            unsent: tip.unsent,
        }
    }
}
