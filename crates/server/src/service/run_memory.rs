//! The memory that a run takes while it is worked on.

use std::sync::Arc;

use throughline::RunEvent;
use throughline::client::{MemoryBudget, Reservation};
use throughline_model::Content;

/// How many copies of what a run says exist while it is worked on: what readers have seen, the items
/// and the response that are made of it, what goes to the store, and the frames that are made last.
const COPIES: usize = 4;

/// The memory of a run, from its request to its end.
pub(crate) struct RunMemory {
    /// Bytes of deltas.
    deltas: usize,
    /// Bytes of whole contents; mostly the same once more.
    contents: usize,
    /// Bytes of tool results.
    results: usize,
    said: Reservation,
    _request: Arc<Reservation>,
}

impl RunMemory {
    /// `request` is what the request of the run takes.
    pub(crate) fn new(budget: &MemoryBudget, request: Arc<Reservation>) -> Self {
        Self {
            deltas: 0,
            contents: 0,
            results: 0,
            said: budget.reservation(),
            _request: request,
        }
    }

    /// Count what an event adds. The memory is taken already, so that there is nothing to refuse: what
    /// comes from upstream was within bounds when it was read.
    pub(crate) fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Text { delta, .. }
            | RunEvent::Refusal { delta, .. }
            | RunEvent::Summary { delta, .. }
            | RunEvent::Reasoning { delta, .. } => self.deltas += delta.len(),
            RunEvent::Content { content, .. } => self.contents += content.byte_size(),
            RunEvent::Message(message) => {
                let contents = message.contents.iter();
                self.results += contents
                    .filter(|content| content.as_tool_result().is_some())
                    .map(Content::byte_size)
                    .sum::<usize>();
            }
            RunEvent::Started { .. }
            | RunEvent::Asked { .. }
            | RunEvent::Incomplete { .. }
            | RunEvent::Dispatched { .. }
            | RunEvent::Result { .. }
            | RunEvent::Compacted { .. }
            | RunEvent::Narrated { .. }
            | RunEvent::Ended { .. } => {}
        }
        let said = self.deltas.max(self.contents) + self.results;
        self.said.follow(said * COPIES);
    }
}
