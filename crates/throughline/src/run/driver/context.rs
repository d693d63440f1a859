//! What every step of a run needs from before it began: agent, thread, cancellation, reader.

use std::sync::Arc;

use throughline_store::{RunId, ThreadId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::publisher::EventBatch;
use crate::run::event::RunEvent;
use crate::run::outcome::{Left, Outcome, RunError, RunFailed};
use crate::run::setup::AgentSetup;
use crate::run::usage::RunUsage;
use crate::thread::{Shared, StopReason, Thread};

/// Where a run works, what cancels it, and where its events go.
#[derive(Clone)]
pub(crate) struct RunContext {
    pub(crate) agent: Arc<AgentSetup>,
    pub(crate) thread: Arc<Shared>,
    pub(crate) cancel: CancellationToken,
    pub(crate) caller: Caller,
    /// The reader of the events, if the caller reads them.
    pub(crate) events: Option<mpsc::UnboundedSender<EventBatch>>,
    /// Whether events for a reader are stored as well.
    pub(crate) stores_events: bool,
}

/// Why the caller's side cancels a run.
#[derive(Clone, Default)]
pub(crate) struct Caller {
    /// Cancelled when the caller has dropped its future or stream.
    pub(crate) dropped: CancellationToken,
    /// Cancelled when the caller asks for the end.
    pub(crate) cancelled: CancellationToken,
}

impl RunContext {
    pub(crate) fn new(agent: &Arc<AgentSetup>, thread: &Thread) -> Self {
        Self {
            agent: Arc::clone(agent),
            thread: Arc::clone(thread.shared()),
            cancel: CancellationToken::new(),
            caller: Caller::default(),
            events: None,
            stores_events: true,
        }
    }

    /// Whether the run ends only because the caller is gone, and not because it asked for that.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.caller.dropped.is_cancelled() && !self.caller.cancelled.is_cancelled()
    }

    pub(crate) fn thread_id(&self) -> &ThreadId {
        &self.thread.id
    }

    /// Tell the reader how a run ended that this process does not work on.
    pub(crate) fn publish_end(&self, stop: StopReason) {
        if let Some(events) = &self.events {
            drop(events.send(EventBatch::unstored(RunEvent::Ended { stop })));
        }
    }

    /// The failure of a run that did not begin.
    pub(crate) fn refuse(&self, run: RunId, error: impl Into<RunError>) -> RunFailed {
        let stop = StopReason::Failed;
        self.publish_end(stop);
        let outcome = Outcome {
            run,
            thread: self.thread_id().clone(),
            stop,
            messages: Vec::new(),
            usage: RunUsage::default(),
            pending: Vec::new(),
            finish: None,
            compaction: None,
            losses: Vec::new(),
            steps: Vec::new(),
            cut_off: Vec::new(),
        };
        RunFailed::new(outcome, Left::Refused, error.into())
    }
}
