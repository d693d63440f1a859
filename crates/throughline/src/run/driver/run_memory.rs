//! Counts the memory of what models and tools say, until the run is over.

use throughline_model::{Content, Event, Response};

use crate::client::{MemoryBudget, Reservation};

/// How many copies of an answer exist while a run works on it: the messages, the journal entries and
/// the write that is made of them, and what the caller makes for its readers.
const COPIES: usize = 4;

/// The memory of the answers and results of a run.
///
/// An answer that was read whole waits for the store, also when no reader gets its events. The memory
/// is in use already, so that there is nothing to refuse: what comes from upstream was within bounds
/// when it was read.
pub(crate) struct RunMemory {
    /// Bytes of deltas.
    deltas: usize,
    /// Bytes of whole contents; mostly the same once more.
    contents: usize,
    /// Bytes of tool results.
    results: usize,
    reservation: Option<Reservation>,
}

impl RunMemory {
    pub(super) fn new(budget: Option<&MemoryBudget>) -> Self {
        Self {
            deltas: 0,
            contents: 0,
            results: 0,
            reservation: budget.map(MemoryBudget::reservation),
        }
    }

    /// An event of an answer that is streamed.
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Delta { text, .. } | Event::Summary { text, .. } => self.deltas += text.len(),
            Event::Content { content, .. } | Event::Opened { content, .. } => {
                self.contents += content.byte_size();
            }
            Event::Started { .. }
            | Event::Accepted { .. }
            | Event::Speaker { .. }
            | Event::Other { .. }
            | Event::Finished { .. } => return,
        }
        self.follow();
    }

    /// An answer that came whole.
    pub(super) fn answer(&mut self, response: &Response) {
        let contents = response.messages.iter().flat_map(|said| &said.contents);
        self.contents += contents.map(Content::byte_size).sum::<usize>();
        self.follow();
    }

    /// The results of a round of calls.
    pub(super) fn results(&mut self, contents: &[Content]) {
        self.results += contents.iter().map(Content::byte_size).sum::<usize>();
        self.follow();
    }

    fn follow(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            let said = self.deltas.max(self.contents) + self.results;
            reservation.follow(said * COPIES);
        }
    }
}
