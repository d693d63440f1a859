//! The memory that a run takes while it is worked on.

use throughline::{Reservation, RunEvent};
use throughline_model::Content;

/// How many copies of what a run says exist while it is worked on: what readers have seen, the items
/// and the response that are made of it, what goes to the store, and the frames that are made last.
const COPIES: usize = 4;

/// Memory is counted in steps of this; a run that says less is counted by its request alone.
const STEP: usize = 64 << 10;

/// The memory of a run, from its request to its end.
pub(crate) struct RunMemory {
    /// What its request takes.
    request: usize,
    /// What was said in small pieces.
    deltas: usize,
    /// What was said in whole contents; mostly the same once more.
    contents: usize,
    /// What tools answered.
    results: usize,
    memory: Reservation,
}

impl RunMemory {
    /// With the memory of its request, which it takes over.
    pub(crate) fn new(memory: Reservation) -> Self {
        Self {
            request: memory.bytes(),
            deltas: 0,
            contents: 0,
            results: 0,
            memory,
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
        let needed = self.request + said * COPIES;
        if needed >= self.memory.bytes() + STEP {
            self.memory.set(needed.next_multiple_of(STEP));
        }
    }
}
