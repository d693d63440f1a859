//! What a run has to know of the place where it begins.

use throughline_model::json::RawJson;
use throughline_store::{
    Entry, Expects, NodeId, Opened, Run, RunId, RunState, State, TenantScope, ThreadId, Tip,
    Version,
};

/// A place in a thread, as it was read or as it is remembered.
pub(crate) struct OpenedAt {
    /// The node there; `None` while there is none.
    pub(crate) end: Option<End>,
    /// The state at that node.
    pub(crate) state: State,
    /// How often the head of the thread has moved. Nobody remembers that.
    pub(crate) version: Version,
    /// Results of the node's run that were never sent.
    pub(crate) unsent: Vec<Entry>,
    /// The run that must be settled before the head can move.
    pub(crate) unsettled: Option<Run>,
    /// How many messages wait in the queue.
    pub(crate) queued: u64,
    /// The first run in the thread's line, which begins next.
    pub(crate) next: Option<RunId>,
    /// What the store is to look at when a run begins here, because nobody else has.
    pub(crate) expects: Option<Expects>,
}

/// A node at which somebody goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) node: NodeId,
    /// Whether calls in it wait for answers that are not on the branch.
    pub(crate) open: bool,
    /// Whether its run has results that came after it and were never sent.
    pub(crate) unsent: bool,
}

/// What a run that is over leaves in memory about the place where it ended, for whoever goes on
/// there. It is said of nodes only that wait for nothing: no run changes those any more.
#[derive(Clone)]
pub(crate) struct RememberedNode {
    pub(crate) scope: TenantScope,
    pub(crate) thread: ThreadId,
    pub(crate) state: State,
    /// The thread's, as they are stored. Somebody may change them.
    pub(crate) settings: Option<RawJson>,
}

impl RememberedNode {
    /// About how many bytes it holds.
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
    /// As a run left it.
    pub(crate) fn known(node: NodeId, known: RememberedNode) -> Self {
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

    /// The node there.
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
